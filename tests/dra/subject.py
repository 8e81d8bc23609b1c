"""A cluster with dynamic resource allocation under examination, and its store as the raw probe."""

from collections.abc import Callable, Mapping, Sequence
from types import ModuleType
from typing import ClassVar

from tests.allocation.mig_table import VendorTable
from tests.dra.slices import DRIVER, PROFILES, Device, gpu, mig, partitions, shared
from tests.dra.world import DraWorld
from tests.kubernetes.world import StoppedApi
from videoflow.backends.allocation import AcceleratorAllocationBackend, ClaimObservation, ListsClaims
from videoflow.backends.outcomes import Observation, UnknownReason
from videoflow.clock import ManualClock
from videoflow.deploy import allocation_dra
from videoflow.testing.examiners.allocation import (
    Ability,
    AllocationSubject,
    Call,
    Fate,
    FixtureCard,
    FixtureHost,
    Layout,
    Read,
)
from videoflow.testing.kubernetes import Ending, Object, Request

ENDINGS = {
    UnknownReason.TIMEOUT: Ending.HANGS,
    UnknownReason.AUTH: Ending.DENIED,
    UnknownReason.UNREACHABLE: Ending.BROKEN,
    UnknownReason.MALFORMED: Ending.TRUNCATED,
}
LABELS = {
    "mps": {"nvidia.com/gpu.product": "x", "nvidia.com/gpu.sharing-strategy": "mps"},
    "mig": {
        "nvidia.com/gpu.product": "x",
        "nvidia.com/mig.strategy": "single",
        "nvidia.com/mig.config.state": "success",
    },
}
STAMP, OURS, KIND = "videoflow.dev/owner", "ours", "videoflow.dev/kind"
THEIRS = "theirs"
TABLE = VendorTable()


class DraSubject(AllocationSubject):
    """Cards that are whole, or cut by hand."""

    lacks: ClassVar[Mapping[Ability, str]] = {
        Ability.MASKS: "the driver puts devices into containers itself",
        Ability.GEOMETRY: "cards are cut by hand, and published as they are",
    }

    def __init__(self, product: ModuleType = allocation_dra) -> None:
        self.product = product
        self.world = DraWorld({})
        self.processes: dict[str, AcceleratorAllocationBackend] = {}
        self.failing: dict[Read, Ending] = {}
        self.hosts: dict[str, FixtureHost] = {}
        self.births = 0

    def close(self) -> None:
        self.world.decide = None

    def furnish(self, hosts: Sequence[FixtureHost]) -> None:
        self.processes.clear()
        self.failing.clear()
        self.hosts = {host.name: host for host in hosts}
        nodes = {
            host.name: {
                "labels": LABELS.get(host.sharing, {}) if not any(c.slices for c in host.cards) else {},
                "annotations": {STAMP: host.owner} if host.owner else {},
            }
            for host in hosts
        }
        self.world = DraWorld({host.name: self._devices(host) for host in hosts}, nodes)
        self.world.cluster.decide = self._ending

    def _devices(self, host: FixtureHost) -> list[Device]:
        found = [one for n, card in enumerate(host.cards) for one in self._published(n, card, host)]
        if host.sharing == "time-sliced":
            found = [shared(one) for one in found]
        if host.sharing == "unknown":
            for one in found:
                del one["attributes"]["uuid"]
        return found

    def _published(self, minor: int, card: FixtureCard, host: FixtureHost) -> list[Device]:
        if card.slices:
            return [
                mig(minor, card.uuid, profile, start, card.product, uuid=slice_uuid(card, start))
                for profile, start in card.slices
            ]
        return [gpu(minor, card.uuid, card.product)]

    def backend(self, process: str = "main") -> AcceleratorAllocationBackend:
        if process not in self.processes:
            self.births += 1
            name = f"{process}~{self.births}"
            self.processes[process] = self.product.DraAllocation(
                StoppedApi(self.world, name),
                self.product.DraSettings(process=name, namespace=OURS, holder_image="pause"),
                environment=self.environment(),
                clock=ManualClock(),
            )
        return self.processes[process]

    def kill(self, process: str) -> None:
        self.processes.pop(process, None)

    def environment(self, *, gates: bool = True) -> Mapping[str, str]:
        driver = {"driver": "0.5.0", "driver-gates": "DynamicMIG"}
        return {"kubernetes": "1.36"} | (driver if gates else {})

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
            Read.PRIMARY: request.path.endswith(("/resourceslices", "/nodes")),
            Read.SECONDARY: request.path.endswith(("/resourceclaims", "/pods")),
            Read.RECORDS: "/configmaps" in request.path,
        }
        return next((end for read, end in self.failing.items() if kinds[read]), Ending.ANSWERED)

    def arrive(self, device: str, *, tolerant: bool = False) -> bool:
        found = next((d for d in self.world.devices.values() if uuid_of(d) == device), None)
        if found is None:
            return False
        kind = found["attributes"]["type"]["string"]
        attributes = f'device.attributes["{DRIVER}"]'
        exactly = {
            "deviceClassName": f"{kind}.nvidia.com",
            "selectors": [
                {"cel": {"expression": f'"uuid" in {attributes} && {attributes}.uuid == "{device}"'}}
            ],
        }
        spec = {"devices": {"requests": [{"name": "it", "exactly": exactly}]}}
        return self.world.run(pod_name(device), THEIRS, pod_spec(pod_name(device)), spec)

    def leave(self, device: str) -> None:
        self.world.end(pod_name(device), THEIRS)

    def start(self, claim_id: str, workload_id: str) -> None:
        found = self.backend("launcher").bindings(claim_id, workload_id)
        container = {"name": "main", "image": "x", **found.container_fragment}
        spec = {**found.pod_fragment["spec"], "containers": [container]}
        assert self.world.run(run_name(claim_id, workload_id), OURS, spec)

    def end(self, claim_id: str, workload_id: str) -> None:
        self.world.end(run_name(claim_id, workload_id), OURS)

    def seize(self, host: str) -> None:
        self.world.cluster.edit(
            "nodes",
            host,
            lambda found: found["metadata"].setdefault("annotations", {}).update({STAMP: "dra.example"}),
        )

    def hold_back(self) -> None:
        self.world.held_back = True

    def proceed(self) -> None:
        self.world.proceed()

    def claims(self, process: str = "main") -> Observation[tuple[ClaimObservation, ...]]:
        backend = self.backend(process)
        assert isinstance(backend, ListsClaims)
        return backend.claims("")

    def writes(self) -> tuple[str, ...]:
        return tuple(self.world.audit)

    def owned(self) -> tuple[tuple[str, str], ...]:
        held = [(self._key(node, name), claim) for node, name, claim in self.world.given() if ours(claim)]
        return (*held, *self.world.leftovers())

    def exclusive(self) -> tuple[tuple[str, str], ...]:
        found = []
        for node, name, claim in self.world.given():
            device = self.world.devices[node, name]
            if not device.get("allowMultipleAllocations"):
                found.append((self._key(node, name), claim))
                if device["attributes"]["type"]["string"] == "gpu":
                    made = self.world.layout(node, uuid_of(device))
                    found += [(f"{profile}@{start} of {uuid_of(device)}", claim) for profile, start in made]
                else:
                    start, profile = int(name.rpartition("-")[2]), device["attributes"]["profile"]["string"]
                    card = device["attributes"]["parentUUID"]["string"]
                    found.append((f"{profile}@{start} of {card}", claim))
        return tuple((key, claim) for key, claim in found if ours(claim))

    def layouts(self) -> Mapping[str, Layout]:
        return {
            card.uuid: self.world.layout(host.name, card.uuid)
            for host in self.hosts.values()
            for card in host.cards
        }

    def records(self) -> tuple[str, ...]:
        return tuple(
            one["metadata"]["name"]
            for one in self.world.cluster.every("configmaps")
            if (one["metadata"].get("labels") or {}).get(KIND) == "dra-claim"
        )

    def host_owner(self, host: str) -> str:
        node = self.world.cluster.find("nodes", host) or {}
        return str((node["metadata"].get("annotations") or {}).get(STAMP, ""))

    def legal(self, product: str, layout: Layout) -> bool:
        return not TABLE.illegal(product, layout)

    def _key(self, node: str, name: str) -> str:
        return uuid_of(self.world.devices[node, name]) or f"{node}/{name}"


class DynamicDraSubject(DraSubject):
    """Cards that the driver cuts when a slice is given out."""

    lacks: ClassVar[Mapping[Ability, str]] = {
        Ability.MASKS: DraSubject.lacks[Ability.MASKS],
        Ability.FOREIGN_OWNER: "a host that the driver cuts is the driver's alone",
        Ability.STATIC_SLICES: "with DynamicMIG the driver removes every slice that it did not make",
    }

    def _published(self, minor: int, card: FixtureCard, host: FixtureHost) -> list[Device]:
        if host.managed and card.product in PROFILES:
            return partitions(minor, card.uuid, card.product)
        return super()._published(minor, card, host)


def uuid_of(device: Object) -> str:
    return str(device["attributes"].get("uuid", {}).get("string", ""))


def slice_uuid(card: FixtureCard, start: int) -> str:
    return f"MIG-{card.uuid}-{start}"


def ours(claim: str) -> bool:
    return claim.startswith("dra-")


def pod_name(device: str) -> str:
    return f"foreign-{device}".replace("/", "-").lower()


def run_name(claim_id: str, workload_id: str) -> str:
    return f"{claim_id}-{workload_id}".replace("/", "-")


def pod_spec(claim: str) -> Object:
    resources = {"claims": [{"name": "it"}]}
    return {
        "containers": [{"name": "main", "image": "x", "resources": resources}],
        "resourceClaims": [{"name": "it", "resourceClaimName": claim}],
    }
