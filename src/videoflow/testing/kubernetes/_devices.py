"""Structured allocation: devices of slices for claims, with shared counters and consumable capacity."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from videoflow.testing.kubernetes._api import FakeCluster
from videoflow.testing.kubernetes._copying import copied
from videoflow.testing.kubernetes._kinds import Object
from videoflow.testing.kubernetes._quantities import read_quantity

Matches = Callable[[str, Mapping[str, Any]], bool]
"""Whether a device of a slice, its `driver` beside its own fields, fulfils a CEL expression."""
PROTECTION = "resource.kubernetes.io/delete-protection"

Identity = tuple[str, str, str]
Amounts = dict[str, int]
Chosen = list[tuple[str, Object, Amounts]]


def refuses_expressions(expression: str, device: Mapping[str, Any]) -> bool:
    """Matches nothing: without a CEL library no expression is known to hold."""
    return False


@dataclass(frozen=True)
class Load:
    """What is given out of each device, and of each counter.

    Attributes:
        devices: Device → what each of its allocations consumes.
        counters: Pool, set and counter → how much is drawn from it.
    """

    devices: Mapping[Identity, tuple[Amounts, ...]] = field(default_factory=dict)
    counters: Mapping[tuple[str, str, str, str], int] = field(default_factory=dict)

    def with_(self, device: Object, consumed: Amounts) -> "Load":
        """Returns the load with one more allocation."""
        identity = _identity(device)
        devices = {**self.devices, identity: (*self.devices.get(identity, ()), consumed)}
        counters = dict(self.counters)
        if identity not in self.devices:
            for key, amount in _draws(device):
                counters[key] = counters.get(key, 0) + amount
        return Load(devices, counters)


class ClaimAllocator:
    """Gives devices to the claims of a pod.

    Args:
        cluster: Whose claims.
        matches: Evaluates CEL.
    """

    def __init__(self, cluster: FakeCluster, matches: Matches) -> None:
        self._cluster = cluster
        self._matches = matches
        self._supply: dict[tuple[str, str, str, str], int] = {}

    def of_pod(self, pod: Object) -> list[Object] | None:
        """Returns the claims of a pod; None: one of them is not there yet."""
        namespace, found = pod["metadata"]["namespace"], []
        made = {one["name"]: one for one in pod.get("status", {}).get("resourceClaimStatuses", [])}
        for entry in pod["spec"].get("resourceClaims") or []:
            name = entry.get("resourceClaimName") or made.get(entry["name"], {}).get("resourceClaimName")
            claim = self._cluster.find("resourceclaims", name, namespace) if name else None
            if claim is None or claim["metadata"].get("deletionTimestamp"):
                return None
            found.append(claim)
        return found

    def allocate(self, claims: Sequence[Object], host: str, pod: Object) -> bool:
        """Allocates claims on a host and reserves them for a pod; all of them or none."""
        if not claims:
            return True
        published = self._published()
        load = self._load(published)
        results: list[list[Object]] = []
        for claim in claims:
            there = claim.get("status", {}).get("allocation")
            if there is not None:
                if _host_of(there) not in ("", host):
                    return False
                results.append(there["devices"]["results"])
                continue
            free = [device for device in published.values() if device["node"] == host]
            chosen = self._solve(claim["spec"]["devices"], free, load)
            if chosen is None:
                return False
            for _, device, consumed in chosen:
                load = load.with_(device, consumed)
            results.append([_result(*one) for one in chosen])
        for claim, given in zip(claims, results, strict=True):
            self._reserve(claim, given, host, pod)
        return True

    # Inside -------------------------------------------------------------------------------------

    def _published(self) -> dict[Identity, Object]:
        """Returns the devices of the newest generation of every pool that is whole."""
        slices = self._cluster.every("resourceslices")
        newest: dict[tuple[str, str], int] = {}
        for one in slices:
            pool = (one["spec"]["driver"], one["spec"]["pool"]["name"])
            newest[pool] = max(newest.get(pool, 0), one["spec"]["pool"]["generation"])
        found: dict[Identity, Object] = {}
        self._supply = {}
        for one in slices:
            spec, pool = one["spec"], one["spec"]["pool"]
            if pool["generation"] != newest[spec["driver"], pool["name"]]:
                continue
            for counters in spec.get("sharedCounters") or []:
                for name, amount in counters["counters"].items():
                    key = (spec["driver"], pool["name"], counters["name"], name)
                    self._supply[key] = int(read_quantity(amount["value"]))
            for device in spec.get("devices") or []:
                whole = {
                    **device,
                    "driver": spec["driver"],
                    "pool": pool["name"],
                    "node": spec.get("nodeName", ""),
                }
                found[_identity(whole)] = whole
        return found

    def _load(self, published: Mapping[Identity, Object]) -> Load:
        load = Load()
        for claim in self._cluster.every("resourceclaims"):
            given = claim.get("status", {}).get("allocation", {}).get("devices", {}).get("results", [])
            for result in given:
                bare = {"driver": result["driver"], "pool": result["pool"], "name": result["device"]}
                consumed = {
                    name: int(read_quantity(amount))
                    for name, amount in (result.get("consumedCapacity") or {}).items()
                }
                load = load.with_(published.get(_identity(bare), bare), consumed)
        return load

    def _solve(self, wanted: Object, devices: list[Object], load: Load) -> Chosen | None:
        requests = [(one["name"], _choices(one)) for one in wanted.get("requests", [])]
        try:
            return self._fill(requests, devices, wanted.get("constraints") or [], ([], load))
        except ValueError:  # an expression that ends in an error: a scheduler then gives the claim up
            return None

    def _fill(
        self,
        requests: list[tuple[str, list[tuple[str, Object]]]],
        devices: list[Object],
        constraints: list[Object],
        state: tuple[Chosen, Load],
    ) -> Chosen | None:
        if not requests:
            return state[0]
        for called, choice in requests[0][1]:
            suiting = [device for device in devices if self._suits(choice, device)]
            every = choice.get("allocationMode") == "All"
            count = len(suiting) if every else int(choice.get("count", 1))
            if every and not suiting:
                continue
            for chosen, load in self._pick(called, choice, suiting, count, state):
                if not _agree(constraints, chosen):
                    continue
                found = self._fill(requests[1:], devices, constraints, (chosen, load))
                if found is not None:
                    return found
        return None

    def _pick(
        self, called: str, choice: Object, devices: list[Object], count: int, state: tuple[Chosen, Load]
    ) -> Iterator[tuple[Chosen, Load]]:
        chosen, load = state
        if count == 0:
            yield chosen, load
            return
        for place, device in enumerate(devices):
            consumed = self._consumed(choice, device, load)
            if consumed is not None:
                further = ([*chosen, (called, device, consumed)], load.with_(device, consumed))
                yield from self._pick(called, choice, devices[place + 1 :], count - 1, further)

    def _consumed(self, choice: Object, device: Object, load: Load) -> Amounts | None:
        """Returns what an allocation takes of a device's capacity; None: it is not to be had."""
        given = load.devices.get(_identity(device), ())
        if not given and any(
            load.counters.get(key, 0) + amount > self._supply.get(key, 0) for key, amount in _draws(device)
        ):
            return None
        if not device.get("allowMultipleAllocations"):
            return None if given else {}
        asked = (choice.get("capacity") or {}).get("requests") or {}
        consumed: Amounts = {}
        for name, capacity in (device.get("capacity") or {}).items():
            if "requestPolicy" not in capacity:
                continue
            amount = _by_policy(capacity["requestPolicy"], asked.get(name))
            total = sum(one.get(name, 0) for one in given)
            if amount is None or total + amount > int(read_quantity(capacity["value"])):
                return None
            consumed[name] = amount
        return consumed

    def _suits(self, choice: Object, device: Object) -> bool:
        found = self._cluster.find("deviceclasses", choice["deviceClassName"])
        if found is None:
            return False
        selectors = [*(found["spec"].get("selectors") or []), *(choice.get("selectors") or [])]
        return all(self._matches(selector["cel"]["expression"], device) for selector in selectors)

    def _reserve(self, claim: Object, chosen: list[Object], host: str, pod: Object) -> None:
        user = {"resource": "pods", "name": pod["metadata"]["name"], "uid": pod["metadata"]["uid"]}
        only = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [host]}]}

        def write(found: Object) -> None:
            finalizers = found["metadata"].setdefault("finalizers", [])
            if PROTECTION not in finalizers:
                finalizers.append(PROTECTION)
            status = found.setdefault("status", {})
            status.setdefault(
                "allocation",
                {"devices": {"results": copied(chosen)}, "nodeSelector": {"nodeSelectorTerms": [only]}},
            )
            reserved = status.setdefault("reservedFor", [])
            if user not in reserved:
                reserved.append(user)

        self._cluster.edit("resourceclaims", claim["metadata"]["name"], write, claim["metadata"]["namespace"])


def _by_policy(policy: Object, asked: str | None) -> int | None:
    """Returns what a request for capacity comes to, rounded up to a step; None: the policy forbids it."""
    if asked is None:
        return int(read_quantity(policy["default"]))
    wanted, valid = int(read_quantity(asked)), policy.get("validRange") or {}
    if "min" in valid:
        wanted = max(wanted, int(read_quantity(valid["min"])))
    if step := int(read_quantity(valid.get("step", "0"))):
        wanted = -(-wanted // step) * step
    return None if "max" in valid and wanted > int(read_quantity(valid["max"])) else wanted


def _draws(device: Object) -> list[tuple[tuple[str, str, str, str], int]]:
    return [
        ((device["driver"], device["pool"], drawn["counterSet"], name), int(read_quantity(amount["value"])))
        for drawn in device.get("consumesCounters") or []
        for name, amount in drawn["counters"].items()
    ]


def _result(called: str, device: Object, consumed: Amounts) -> Object:
    found = {"request": called, "driver": device["driver"], "pool": device["pool"], "device": device["name"]}
    if device.get("allowMultipleAllocations"):
        found["consumedCapacity"] = {name: str(amount) for name, amount in consumed.items()}
    return found


def _host_of(allocation: Object) -> str:
    terms = allocation.get("nodeSelector", {}).get("nodeSelectorTerms", [])
    fields = [one for term in terms for one in term.get("matchFields", [])]
    return str(fields[0]["values"][0]) if fields else ""


def _identity(device: Object) -> Identity:
    return device["driver"], device["pool"], device["name"]


def _choices(request: Object) -> list[tuple[str, Object]]:
    name = request["name"]
    if "exactly" in request:
        return [(name, request["exactly"])]
    return [(f"{name}/{one['name']}", one) for one in request.get("firstAvailable", [])]


def _agree(constraints: list[Object], chosen: Chosen) -> bool:
    for constraint in constraints:
        named = constraint.get("requests") or []
        attribute = constraint.get("matchAttribute") or constraint.get("distinctAttribute") or ""
        values = [
            _attribute(device, attribute)
            for name, device, _ in chosen
            if not named or name in named or name.partition("/")[0] in named
        ]
        if None in values:
            return False
        if "matchAttribute" in constraint and len(set(values)) > 1:
            return False
        if "distinctAttribute" in constraint and len(set(values)) < len(values):
            return False
    return True


def _attribute(device: Object, qualified: str) -> str | None:
    domain, _, name = qualified.partition("/")
    attributes = device.get("attributes", {})
    found = attributes.get(qualified) or (attributes.get(name) if domain == device["driver"] else None)
    return None if found is None else str(sorted(found.items()))
