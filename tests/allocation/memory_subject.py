"""The reference under examination: the cluster is the authority, and its values are the raw probes."""

from collections.abc import Callable, Mapping, Sequence
from types import ModuleType
from typing import Any, ClassVar

from tests.allocation.mig_table import VendorTable
from videoflow.backends.allocation import ClaimObservation
from videoflow.backends.memory import allocation
from videoflow.backends.memory.allocation import MemoryAllocation, MemoryCluster
from videoflow.backends.outcomes import Observation, UnknownReason
from videoflow.clock import ManualClock
from videoflow.testing.examiners.allocation import (
    Ability,
    AllocationSubject,
    Call,
    Crashed,
    Fate,
    FixtureCard,
    FixtureHost,
    Layout,
    Read,
)

LISTINGS = {Read.PRIMARY: "hosts", Read.SECONDARY: "pods", Read.RECORDS: "records"}
LABELS: Mapping[str, Mapping[str, str]] = {
    "physical": {"nvidia.com/gpu.count": "8"},
    "mig": {"nvidia.com/mig.strategy": "single", "nvidia.com/mig.config.state": "success"},
    "time-sliced": {"nvidia.com/gpu.replicas": "4"},
    "mps": {"nvidia.com/gpu.sharing-strategy": "mps"},
    "unknown": {},
}
TABLE = VendorTable()


class MemorySubject(AllocationSubject):
    """Args: product: The package under examination, or a copy of it with a defect."""

    lacks: ClassVar[Mapping[Ability, str]] = {Ability.CLAIM_MANIFESTS: "it binds by environment alone"}

    def __init__(self, product: ModuleType = allocation) -> None:
        self.product: Any = product
        self.clock = ManualClock()
        self.cluster: MemoryCluster = self.product.MemoryCluster([], self.clock, TABLE)
        self.processes: dict[str, MemoryAllocation] = {}
        self.managed: list[str] = []
        self.births = 0

    def close(self) -> None:
        self.cluster.interposer = None

    def furnish(self, hosts: Sequence[FixtureHost]) -> None:
        self.processes.clear()
        self.managed = [host.name for host in hosts if host.managed]
        self.cluster = self.product.MemoryCluster(map(self.made, hosts), self.clock, TABLE)

    def backend(self, process: str = "main") -> MemoryAllocation:
        if process not in self.processes:
            self.births += 1
            self.processes[process] = self.product.MemoryAllocation(
                self.cluster,
                f"{process}#{self.births}",
                managed=self.managed,
                environment=self.environment(),
            )
        return self.processes[process]

    def kill(self, process: str) -> None:
        self.processes.pop(process, None)

    def environment(self, *, gates: bool = True) -> Mapping[str, str]:
        return {"memory": "1"} | ({self.product.MANAGER_FACT: "1"} if gates else {})

    def on_call(self, decide: Callable[[Call], Fate] | None) -> None:
        self.cluster.interposer = None if decide is None else self.interposer(decide)

    def fail(self, read: Read, reason: UnknownReason | None) -> None:
        self.cluster.fail(self.product.Listing(LISTINGS[read]), reason)

    def arrive(self, device: str, *, tolerant: bool = False) -> bool:
        return self.cluster.add_pod(
            self.product.MemoryPod(f"foreign-{device}", self.host_of(device), device), tolerant=tolerant
        )

    def leave(self, device: str) -> None:
        self.cluster.remove_pod(f"foreign-{device}")

    def start(self, claim_id: str, workload_id: str) -> None:
        for key in (
            self.backend("launcher").bindings(claim_id, workload_id).env["CUDA_VISIBLE_DEVICES"].split(",")
        ):
            name = f"{claim_id}/{workload_id}/{key}"
            self.cluster.add_pod(self.product.MemoryPod(name, self.host_of(key), key, 1, claim_id))

    def end(self, claim_id: str, workload_id: str) -> None:
        for name in list(self.cluster.pods):
            if name.startswith(f"{claim_id}/{workload_id}/"):
                self.cluster.remove_pod(name)

    def seize(self, host: str) -> None:
        self.cluster.seize(host, "dra.example")

    def hold_back(self) -> None:
        self.cluster.staged = True

    def proceed(self) -> None:
        self.cluster.proceed()

    def claims(self, process: str = "main") -> Observation[tuple[ClaimObservation, ...]]:
        return self.backend(process).claims("")

    def writes(self) -> tuple[str, ...]:
        return tuple(
            f"{one.process} {one.operation} {one.target} {one.detail}"
            for one in self.cluster.audit
            if one.process not in ("controller", "foreign")
        )

    def owned(self) -> tuple[tuple[str, str], ...]:
        return tuple((key, hold.claim) for host in self.cluster.hosts.values() for key, hold in host.held())

    def exclusive(self) -> tuple[tuple[str, str], ...]:
        return tuple(
            (other, hold.claim)
            for host in self.cluster.hosts.values()
            for key, hold in host.held()
            if hold.size_bytes is None
            for other in (host.related(key) if host.card(key) else (key,))
        )

    def layouts(self) -> Mapping[str, Layout]:
        return {card.uuid: card.layout for host in self.cluster.hosts.values() for card in host.cards}

    def records(self) -> tuple[str, ...]:
        return tuple(sorted(self.cluster.records))

    def host_owner(self, host: str) -> str:
        return self.cluster.hosts[host].owner

    def legal(self, product: str, layout: Layout) -> bool:
        return not TABLE.illegal(product, layout)

    def host_of(self, device: str) -> str:
        return next(host.name for host in self.cluster.hosts.values() if host.related(device))

    def made(self, host: FixtureHost) -> Any:
        cards = tuple(self.made_card(number, card) for number, card in enumerate(host.cards))
        return self.product.MemoryHost(host.name, cards, LABELS[host.sharing], host.owner)

    def made_card(self, ordinal: int, card: FixtureCard) -> Any:
        slices = tuple(
            self.product.MemorySlice(
                f"MIG-{card.uuid}-{start}", profile, start, TABLE.usable_bytes(card.product, profile)
            )
            for profile, start in card.slices
        )
        return self.product.MemoryCard(card.uuid, ordinal, card.product, card.memory_bytes, slices)

    def interposer(self, decide: Callable[[Call], Fate]) -> Callable[..., Callable[[], None] | None]:
        def lose() -> None:
            raise self.product.Unanswered

        def die() -> None:
            raise Crashed

        def ask(process: str, writes: bool, operation: str, target: str) -> Callable[[], None] | None:
            fate = decide(Call(process.partition("#")[0], writes, operation, target))
            if fate is Fate.CRASH:
                die()
            if fate is Fate.UNHEARD:
                lose()
            return {Fate.LOST: lose, Fate.CRASH_AFTER: die}.get(fate)

        return ask
