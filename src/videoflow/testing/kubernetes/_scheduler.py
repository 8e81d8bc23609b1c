"""A scheduler that places pods by what they need, and the controller that makes claims from templates."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from videoflow.testing.kubernetes._api import FakeCluster
from videoflow.testing.kubernetes._copying import copied
from videoflow.testing.kubernetes._hardware import requested
from videoflow.testing.kubernetes._kinds import Object
from videoflow.testing.kubernetes._mig_manager import used_on

Matches = Callable[[str, Mapping[str, Any]], bool]
"""Whether a device of a slice, its `driver` beside its own fields, fulfils a CEL expression."""


def refuses_expressions(expression: str, device: Mapping[str, Any]) -> bool:
    """Matches nothing: without a CEL library no expression is known to hold."""
    return False


class Scheduler:
    """Binds pods to nodes: selectors, required node affinity, taints, extended resources, claims of devices.

    Args:
        cluster: Whose pods.
        matches: Evaluates CEL.
    """

    def __init__(self, cluster: FakeCluster, matches: Matches = refuses_expressions) -> None:
        self._cluster = cluster
        self._claims = ClaimAllocator(cluster, matches)

    def step(self) -> bool:
        """Binds every pod that fits somewhere; returns whether anything changed."""
        return sum(self._bind(pod) for pod in self._cluster.every("pods") if _waits(pod)) > 0

    def _bind(self, pod: Object) -> bool:
        namespace, name = pod["metadata"]["namespace"], pod["metadata"]["name"]
        claims = self._claims.of_pod(pod)
        if claims is None:
            return False
        for node in self._cluster.every("nodes"):
            if not (admits(node, pod) and self._has_room(node, pod)):
                continue
            host = node["metadata"]["name"]
            if not self._claims.allocate(claims, host, pod):
                continue

            def bind(found: Object, host: str = host) -> None:
                found["spec"]["nodeName"] = host
                found["status"] = {**found.get("status", {}), "phase": "Running"}

            self._cluster.edit("pods", name, bind, namespace)
            return True
        return False

    def _has_room(self, node: Object, pod: Object) -> bool:
        used = used_on(self._cluster, node["metadata"]["name"])
        allocatable = node.get("status", {}).get("allocatable", {})
        return all(
            int(allocatable.get(resource, 0)) - used.get(resource, 0) >= count
            for resource, count in requested(pod).items()
        )


def _waits(pod: Object) -> bool:
    return not pod.get("spec", {}).get("nodeName") and not pod["metadata"].get("deletionTimestamp")


def admits(node: Object, pod: Object) -> bool:
    """Returns whether a node takes a pod by labels and taints."""
    labels, spec = node["metadata"].get("labels") or {}, pod["spec"]
    if not (spec.get("nodeSelector") or {}).items() <= labels.items():
        return False
    affinity = (spec.get("affinity") or {}).get("nodeAffinity") or {}
    terms = (affinity.get("requiredDuringSchedulingIgnoredDuringExecution") or {}).get("nodeSelectorTerms")
    if terms and not any(_fits(term, labels) for term in terms):
        return False
    tolerations = spec.get("tolerations") or []
    return all(
        any(_tolerates(toleration, taint) for toleration in tolerations)
        for taint in node.get("spec", {}).get("taints") or []
        if taint["effect"] != "PreferNoSchedule"
    )


def _fits(term: Object, labels: Mapping[str, str]) -> bool:
    return all(_holds(rule, labels) for rule in term.get("matchExpressions", []))


def _holds(rule: Object, labels: Mapping[str, str]) -> bool:
    value = labels.get(rule["key"])
    match rule["operator"]:
        case "In":
            return value in rule["values"]
        case "NotIn":
            return value not in rule["values"]
        case "Exists":
            return value is not None
        case "DoesNotExist":
            return value is None
        case _:
            raise ValueError(f"the fake scheduler does not know {rule['operator']}")


def _tolerates(toleration: Object, taint: Object) -> bool:
    if toleration.get("effect") not in (None, "", taint["effect"]):
        return False
    if toleration.get("operator", "Equal") == "Exists":
        return toleration.get("key") in (None, "", taint["key"])
    return (toleration.get("key"), toleration.get("value", "")) == (taint["key"], taint.get("value", ""))


class ClaimAllocator:
    """Structured allocation: devices of resource slices for the requests of resource claims."""

    def __init__(self, cluster: FakeCluster, matches: Matches) -> None:
        self._cluster = cluster
        self._matches = matches

    def of_pod(self, pod: Object) -> list[Object] | None:
        """Returns the claims of a pod; None: one of them is not there yet."""
        namespace, found = pod["metadata"]["namespace"], []
        made = {one["name"]: one for one in pod.get("status", {}).get("resourceClaimStatuses", [])}
        for entry in pod["spec"].get("resourceClaims") or []:
            name = entry.get("resourceClaimName") or made.get(entry["name"], {}).get("resourceClaimName")
            claim = self._cluster.find("resourceclaims", name, namespace) if name else None
            if claim is None:
                return None
            found.append(claim)
        return found

    def allocate(self, claims: Sequence[Object], host: str, pod: Object) -> bool:
        """Allocates claims on a host and reserves them for a pod; all of them or none."""
        taken = self._taken()
        results: list[list[Object]] = []
        for claim in claims:
            there = claim.get("status", {}).get("allocation")
            if there is not None:
                if _host_of(there) not in ("", host):
                    return False
                results.append(there["devices"]["results"])
                continue
            chosen = self._solve(claim["spec"]["devices"], host, taken)
            if chosen is None:
                return False
            taken |= {_identity(result) for result in chosen}
            results.append(chosen)
        for claim, chosen in zip(claims, results, strict=True):
            self._reserve(claim, chosen, host, pod)
        return True

    def _taken(self) -> set[tuple[str, str, str]]:
        return {
            _identity(result)
            for claim in self._cluster.every("resourceclaims")
            for result in claim.get("status", {}).get("allocation", {}).get("devices", {}).get("results", [])
        }

    def _solve(self, wanted: Object, host: str, taken: set[tuple[str, str, str]]) -> list[Object] | None:
        devices = [
            {**device, "driver": spec["driver"], "pool": spec["pool"]["name"]}
            for published in self._cluster.every("resourceslices")
            for spec in [published["spec"]]
            if spec.get("nodeName") == host
            for device in spec.get("devices", [])
        ]
        free = [d for d in devices if (d["driver"], d["pool"], d["name"]) not in taken]
        requests = [(one["name"], _choices(one)) for one in wanted.get("requests", [])]
        return self._fill(requests, free, wanted.get("constraints") or [], [])

    def _fill(
        self,
        requests: list[tuple[str, list[tuple[str, Object]]]],
        free: list[Object],
        constraints: list[Object],
        chosen: list[tuple[str, Object]],
    ) -> list[Object] | None:
        if not requests:
            return [
                {
                    "request": name,
                    "driver": device["driver"],
                    "pool": device["pool"],
                    "device": device["name"],
                }
                for name, device in chosen
            ]
        choices, rest = requests[0][1], requests[1:]
        for called, choice in choices:
            fitting = [device for device in free if self._suits(choice, device)]
            every = choice.get("allocationMode") == "All"
            count = len(fitting) if every else int(choice.get("count", 1))
            if every and not fitting:
                continue
            for some in _pick(fitting, count):
                further = [*chosen, *((called, device) for device in some)]
                if not _agree(constraints, further):
                    continue
                left = [device for device in free if device not in some]
                if (found := self._fill(rest, left, constraints, further)) is not None:
                    return found
        return None

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
            status = found.setdefault("status", {})
            status.setdefault(
                "allocation",
                {"devices": {"results": copied(chosen)}, "nodeSelector": {"nodeSelectorTerms": [only]}},
            )
            reserved = status.setdefault("reservedFor", [])
            if user not in reserved:
                reserved.append(user)

        self._cluster.edit("resourceclaims", claim["metadata"]["name"], write, claim["metadata"]["namespace"])


def _host_of(allocation: Object) -> str:
    terms = allocation.get("nodeSelector", {}).get("nodeSelectorTerms", [])
    fields = [field for term in terms for field in term.get("matchFields", [])]
    return str(fields[0]["values"][0]) if fields else ""


def _identity(result: Object) -> tuple[str, str, str]:
    return result["driver"], result["pool"], result["device"]


def _choices(request: Object) -> list[tuple[str, Object]]:
    name = request["name"]
    if "exactly" in request:
        return [(name, request["exactly"])]
    return [(f"{name}/{one['name']}", one) for one in request.get("firstAvailable", [])]


def _pick(devices: list[Object], count: int) -> list[list[Object]]:
    if count == 0:
        return [[]]
    return [
        [device, *rest]
        for place, device in enumerate(devices)
        for rest in _pick(devices[place + 1 :], count - 1)
    ]


def _agree(constraints: list[Object], chosen: list[tuple[str, Object]]) -> bool:
    for constraint in constraints:
        named = constraint.get("requests") or []
        attribute = constraint.get("matchAttribute") or constraint.get("distinctAttribute") or ""
        values = [
            _attribute(device, attribute)
            for name, device in chosen
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


class ClaimTemplates:
    """Makes the claims of pods from templates, and removes those of pods that are gone."""

    def __init__(self, cluster: FakeCluster) -> None:
        self._cluster = cluster

    def step(self) -> bool:
        """Makes what is missing and removes what is orphaned; returns whether anything changed."""
        pods = self._cluster.every("pods")
        made = [self._make(pod, entry) for pod in pods for entry in pod["spec"].get("resourceClaims") or []]
        return sum([*made, *self._remove({pod["metadata"]["uid"] for pod in pods})]) > 0

    def _make(self, pod: Object, entry: Object) -> bool:
        namespace, name = pod["metadata"]["namespace"], pod["metadata"]["name"]
        made = {one["name"] for one in pod.get("status", {}).get("resourceClaimStatuses", [])}
        wanted = entry.get("resourceClaimTemplateName")
        template = self._cluster.find("resourceclaimtemplates", wanted, namespace) if wanted else None
        if template is None or entry["name"] in made:
            return False
        claim = f"{name}-{entry['name']}"
        owner = {"apiVersion": "v1", "kind": "Pod", "name": name, "uid": pod["metadata"]["uid"]}
        metadata = {
            **template["spec"].get("metadata", {}),
            "name": claim,
            "namespace": namespace,
            "ownerReferences": [{**owner, "controller": True}],
        }
        self._cluster.add(
            {"kind": "ResourceClaim", "metadata": metadata, "spec": template["spec"]["spec"]},
        )

        def tell(found: Object) -> None:
            told = {"name": entry["name"], "resourceClaimName": claim}
            found.setdefault("status", {}).setdefault("resourceClaimStatuses", []).append(told)

        self._cluster.edit("pods", name, tell, namespace)
        return True

    def _remove(self, alive: set[str]) -> list[bool]:
        gone = []
        for claim in self._cluster.every("resourceclaims"):
            owners = {one["uid"] for one in claim["metadata"].get("ownerReferences", [])}
            if owners and not owners & alive:
                key = ("resourceclaims", claim["metadata"]["namespace"], claim["metadata"]["name"])
                self._cluster.store.delete(key)
                gone.append(True)
        return gone
