"""A cluster under examination: its API server is the authority, and its store the raw probe."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from types import ModuleType
from typing import Any, ClassVar

from tests.kubernetes.naming import NamedBackend, Names, Seat
from tests.kubernetes.world import TABLE, StoppedApi, World, managed_labels, rules
from videoflow.backends.allocation import ClaimObservation
from videoflow.backends.outcomes import Observation, UnknownReason
from videoflow.clock import ManualClock
from videoflow.deploy import allocation_kubernetes
from videoflow.deploy.allocation_kubernetes import KIND, OWNER
from videoflow.testing.examiners.allocation import (
    Ability,
    AllocationSubject,
    Call,
    Fate,
    FixtureHost,
    Layout,
    Read,
)
from videoflow.testing.kubernetes import Ending, FakeGpu, FakeGpuHost, Object, Request

ENDINGS = {
    UnknownReason.TIMEOUT: Ending.HANGS,
    UnknownReason.AUTH: Ending.DENIED,
    UnknownReason.UNREACHABLE: Ending.BROKEN,
    UnknownReason.MALFORMED: Ending.TRUNCATED,
}
SHARING = {"time-sliced": "time-slicing", "mps": "mps"}
STRATEGIES = ("whole-devices", "static-mig", "managed-mig")
FOREIGN = "dra.example"


class KubernetesSubject(AllocationSubject):
    lacks: ClassVar[Mapping[Ability, str]] = {
        Ability.MASKS: "a device plugin chooses the card and writes the mask",
        Ability.CLAIM_MANIFESTS: "it binds by extended resources",
        Ability.KEEPS_OUT: "only geometry is tainted: a whole device goes to whoever is scheduled first",
    }

    def __init__(self, product: ModuleType = allocation_kubernetes) -> None:
        self.product = product
        self.world = World([])
        self.names = Names([])
        self.processes: dict[str, NamedBackend] = {}
        self.failing: dict[Read, Ending] = {}
        self.births = 0
        self.seen: tuple[tuple[int, int], list[tuple[str, str, str, bool]]] = ((0, -1), [])

    def close(self) -> None:
        self.world.decide = None

    def furnish(self, hosts: Sequence[FixtureHost]) -> None:
        self.processes.clear()
        self.failing.clear()
        seats, made, entries = [], [], dict[str, str]()
        for host in hosts:
            products = list(dict.fromkeys(card.product for card in host.cards))
            for number, name in enumerate(products):
                node = host.name if len(products) == 1 else f"{host.name}.{number}"
                cards = [card for card in host.cards if card.product == name]
                seats += [Seat(host.name, node, ordinal, card) for ordinal, card in enumerate(cards)]
                made.append(gpu_host(replace(host, cards=tuple(cards)), node, entries))
        self.names = Names(seats)
        self.world = World(made, entries)
        self.world.cluster.decide = self._ending
        for host in hosts:
            if host.owner:
                self._published(host.name, host.owner)

    def backend(self, process: str = "main") -> NamedBackend:
        if process not in self.processes:
            self.births += 1
            name = f"{process}~{self.births}"
            settings = self.product.KubernetesSettings(
                process=name,
                strategies=frozenset(map(self.product.Strategy, STRATEGIES)),
                dra_drivers=("gpu.nvidia.com", FOREIGN),
            )
            inner = self.product.KubernetesAllocation(
                StoppedApi(self.world, name),
                settings,
                environment=self.environment(),
                clock=ManualClock(),
            )
            self.processes[process] = NamedBackend(inner, self.names)
        return self.processes[process]

    def kill(self, process: str) -> None:
        self.processes.pop(process, None)

    def environment(self, *, gates: bool = True) -> Mapping[str, str]:
        return {"kubernetes": "1.36"} | ({"mig-manager": "0.12"} if gates else {})

    def on_call(self, decide: Callable[[Call], Fate] | None) -> None:
        self.world.decide = decide

    def fail(self, read: Read, reason: UnknownReason | None) -> None:
        if reason is None:
            self.failing.pop(read, None)
        else:
            self.failing[read] = ENDINGS[reason]

    def _ending(self, request: Request) -> Ending:
        if request.method != "GET":
            return Ending.ANSWERED
        kinds = {
            Read.PRIMARY: "/nodes" in request.path,
            Read.SECONDARY: "/pods" in request.path,
            Read.RECORDS: "/configmaps/claim-" in request.path
            or f"{KIND}=claim" in request.query.get("labelSelector", ""),
        }
        return next((end for read, end in self.failing.items() if kinds[read]), Ending.ANSWERED)

    def arrive(self, device: str, *, tolerant: bool = False) -> bool:
        if device in self.names.by_uuid:
            node, resource = self.names.by_uuid[device].node, "nvidia.com/gpu"
        else:
            node, _, profile, _ = device.split("/")
            resource = f"nvidia.com/mig-{profile}"
        return self.world.pod(pod_name(device), node, resource, tolerant=tolerant)

    def leave(self, device: str) -> None:
        self.world.end(pod_name(device))

    def start(self, claim_id: str, workload_id: str) -> None:
        found = self.backend("launcher").bindings(claim_id, workload_id)
        metadata = {"name": run_name(claim_id, workload_id), "namespace": "ours"}
        container = {"name": "main", "image": "x", **found.container_fragment}
        labels = found.pod_fragment["metadata"]
        assert self.world.run(
            {
                "kind": "Pod",
                "metadata": {**metadata, **labels},
                "spec": {**without_fields(found.pod_fragment["spec"]), "containers": [container]},
            }
        )

    def end(self, claim_id: str, workload_id: str) -> None:
        self.world.end(run_name(claim_id, workload_id))

    def seize(self, host: str) -> None:
        self._published(host, FOREIGN)
        for node in [seat.node for seat in self.names.by_key.values() if seat.host == host]:
            self.world.cluster.edit(
                "nodes",
                node,
                lambda found: found["metadata"].setdefault("annotations", {}).update({OWNER: FOREIGN}),
            )

    def hold_back(self) -> None:
        self.world.held_back = True

    def proceed(self) -> None:
        self.world.proceed()

    def claims(self, process: str = "main") -> Observation[tuple[ClaimObservation, ...]]:
        return self.backend(process).claims("")

    def writes(self) -> tuple[str, ...]:
        return tuple(self.world.audit)

    def owned(self) -> tuple[tuple[str, str], ...]:
        return tuple((self.names.key(key), claim) for _, key, claim, _ in self._holds()) + self._bare_stamps()

    def exclusive(self) -> tuple[tuple[str, str], ...]:
        found = []
        for node, key, claim, shared in self._holds():
            if not shared:
                found.append((self.names.key(key), claim))
                if "#" in key:
                    on_it = self.world.slices(node, int(key.rpartition("#")[2]))
                    found += [(name, claim) for name in on_it]
        return tuple(found)

    def layouts(self) -> Mapping[str, Layout]:
        return {self.names.by_key[key].card.uuid: layout for key, layout in self.world.cards().items()}

    def records(self) -> tuple[str, ...]:
        return tuple(found["metadata"]["name"] for found in self._maps("claim"))

    def host_owner(self, host: str) -> str:
        drivers = [
            found["spec"]["driver"]
            for found in self.world.cluster.every("resourceslices")
            if found["spec"]["nodeName"] == host
        ]
        return ",".join(drivers)

    def legal(self, product: str, layout: Layout) -> bool:
        return not TABLE.illegal(product, layout)

    # Raw ----------------------------------------------------------------------------------------

    def _published(self, node: str, driver: str) -> None:
        pool = {"name": node, "generation": 1, "resourceSliceCount": 1}
        self.world.cluster.add(
            {
                "kind": "ResourceSlice",
                "metadata": {"name": f"{node}-{driver}"},
                "spec": {"driver": driver, "nodeName": node, "pool": pool, "devices": []},
            }
        )

    def _maps(self, kind: str) -> list[Object]:
        found = self.world.cluster.every("configmaps")
        return [one for one in found if (one["metadata"].get("labels") or {}).get(KIND) == kind]

    def _holds(self) -> list[tuple[str, str, str, bool]]:
        version = (id(self.world), self.world.cluster.store.version)
        if self.seen[0] != version:
            self.seen = version, self._now_held()
        return self.seen[1]

    def _now_held(self) -> list[tuple[str, str, str, bool]]:
        return [
            (str(data["host"]), key, hold["claim"], hold["shared"])
            for found in self._maps("host")
            for data in [found["data"]]
            for key, holds in json.loads(data["holds"]).items()
            for hold in holds
        ]

    def _bare_stamps(self) -> tuple[tuple[str, str], ...]:
        """Stamps, taints and entries of claims that hold nothing: what would be orphaned."""
        holders = {claim for _, _, claim, _ in self._holds()}
        found = []
        for node in self.world.cluster.every("nodes"):
            stamp = (node["metadata"].get("annotations") or {}).get(OWNER, "").rpartition(".")[0]
            if stamp.startswith("claim-") and stamp not in holders:
                found.append((f"stamp of {node['metadata']['name']}", stamp))
        return tuple(found)


def gpu_host(host: FixtureHost, node: str, entries: dict[str, str]) -> FakeGpuHost:
    """A node as a fixture describes it; its layout is an entry of the configuration."""
    cards = host.cards
    cut = any(card.slices for card in cards)
    layouts = [[profile for profile, _ in card.slices] if card.slices else None for card in cards]
    single = host.sharing == "mig"
    entry = ""
    if cut and not single:
        entry = f"initial-{node}"
        entries[entry] = rules(layouts)
    elif host.managed and len(cards) % 2 == 0:
        # Every second managed host never had an entry.
        entry = "all-disabled"
    labels = managed_labels(entry) if host.managed else {}
    if entry and not host.managed:
        labels = {key: value for key, value in managed_labels(entry).items() if "nvidia" in key}
    if single:
        labels["nvidia.com/mig.config.state"] = "success"
    memory = cards[0].memory_bytes
    return FakeGpuHost(
        name=node,
        product=cards[0].product.replace(" ", "-"),
        memory_mib=None if memory is None else memory >> 20,
        gpus=[FakeGpu(None if layout is None else sorted(layout)) for layout in layouts],
        sharing=SHARING.get(host.sharing, ""),
        replicas=4 if host.sharing in SHARING else 1,
        mig_strategy="single" if single else "mixed",
        discovered=host.sharing != "unknown",
        labels=labels,
    )


def pod_name(device: str) -> str:
    return f"foreign-{device}".replace("/", "-").replace("#", "-").lower()


def run_name(claim_id: str, workload_id: str) -> str:
    return f"{claim_id}-{workload_id}".replace("/", "-")


def without_fields(spec: Mapping[str, Any]) -> dict[str, Any]:
    """The fake scheduler knows labels, not fields: what a pod asks of its node's name, by its label."""
    affinity = spec["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    (field,) = affinity["nodeSelectorTerms"][0]["matchFields"]
    rest = {key: value for key, value in spec.items() if key != "affinity"}
    return {**rest, "nodeSelector": {"kubernetes.io/hostname": field["values"][0]}}
