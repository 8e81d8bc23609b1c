"""Cards by UUID, as the examiner names them, for a backend that knows seats.

In a cluster nobody outside a host knows the UUIDs of its GPUs. The examiner does, since it furnishes them:
this translates a seat to the fixture's card of that ordinal and back, and nothing else.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from videoflow.backends.allocation import (
    AcceleratorAllocationBackend,
    ClaimObservation,
    DeviceIdentity,
    FeasiblePlan,
    InventorySnapshot,
    LayoutEntry,
    PlanOutcome,
    ReleaseObservation,
    WorkloadBindings,
    WorkloadRequest,
)
from videoflow.backends.capabilities import AllocationCapabilities
from videoflow.backends.outcomes import Known, Observation, Unknown, known
from videoflow.deploy.allocation_kubernetes import KubernetesAllocation
from videoflow.testing.examiners.allocation import FixtureCard


@dataclass(frozen=True)
class Seat:
    host: str
    node: str
    ordinal: int
    card: FixtureCard

    @property
    def key(self) -> str:
        return f"{self.node}#{self.ordinal}"


@dataclass(frozen=True)
class NamedSnapshot(InventorySnapshot):
    raw: InventorySnapshot | None = None


class Names:
    """Seats by the keys of either side."""

    def __init__(self, seats: Sequence[Seat]) -> None:
        self.by_key = {seat.key: seat for seat in seats}
        self.by_uuid = {seat.card.uuid: seat for seat in seats}
        self.hosts = {seat.node: seat.host for seat in seats}

    def key(self, key: str) -> str:
        seat, size = key.removesuffix(":bytes"), ":bytes" if key.endswith(":bytes") else ""
        return self.by_key[seat].card.uuid + size if seat in self.by_key else key

    def told(self, device: DeviceIdentity) -> DeviceIdentity:
        seat = self.by_key.get(f"{device.node}#{device.ordinal}")
        host = self.hosts[device.node]
        if seat is None:
            return replace(device, node=host)
        return replace(device, node=host, uuid=seat.card.uuid, product=seat.card.product)

    def meant(self, device: DeviceIdentity) -> DeviceIdentity:
        seat = self.by_uuid.get(device.uuid or "")
        if seat is None:
            # A slice of which nobody knows the card is named after its node.
            return replace(device, node=str(device.mig_uuid).partition("/")[0])
        product = seat.card.product.replace(" ", "-")
        return replace(device, node=seat.node, ordinal=seat.ordinal, uuid=None, product=product)

    def claim(self, seen: ClaimObservation) -> ClaimObservation:
        if seen.grant is None:
            return seen
        devices = tuple(self.told(device) for device in seen.grant.devices)
        return replace(seen, grant=replace(seen.grant, devices=devices))

    def plan_told(self, plan: FeasiblePlan) -> FeasiblePlan:
        geometry: dict[str, tuple[str, ...]] = {}
        for node, entries in plan.geometry.items():
            told = tuple(str(e._replace(card=self.key(e.card))) for e in map(LayoutEntry.parse, entries))
            geometry[self.hosts[node]] = (*geometry.get(self.hosts[node], ()), *told)
        return replace(plan, assignments=self._each(plan.assignments, self.told), geometry=geometry)

    def plan_meant(self, plan: FeasiblePlan) -> FeasiblePlan:
        geometry: dict[str, tuple[str, ...]] = {}
        for entries in plan.geometry.values():
            for entry in map(LayoutEntry.parse, entries):
                seat = self.by_uuid[entry.card]
                meant = str(entry._replace(card=seat.key))
                geometry[seat.node] = (*geometry.get(seat.node, ()), meant)
        return replace(plan, assignments=self._each(plan.assignments, self.meant), geometry=geometry)

    def _each(
        self, assignments: Mapping[str, tuple[DeviceIdentity, ...]], how: object
    ) -> dict[str, tuple[DeviceIdentity, ...]]:
        assert callable(how)
        return {name: tuple(how(device) for device in devices) for name, devices in assignments.items()}


class NamedBackend(AcceleratorAllocationBackend):
    """A cluster's backend under the examiner's names."""

    def __init__(self, inner: KubernetesAllocation, names: Names) -> None:
        self.inner = inner
        self.names = names

    def capabilities(self, environment: Mapping[str, str]) -> AllocationCapabilities:
        return self.inner.capabilities(environment)

    def inventory(self, scope: str) -> Observation[InventorySnapshot]:
        found = self.inner.inventory(scope)
        if isinstance(found, Unknown):
            return found
        raw, names = found.value, self.names
        snapshot = NamedSnapshot(
            devices=tuple(names.told(device) for device in raw.devices),
            occupancy={names.key(key): units for key, units in raw.occupancy.items()},
            sharing={names.hosts[node]: sharing for node, sharing in raw.sharing.items()},
            owners={names.hosts[node]: owner for node, owner in raw.owners.items()},
            completeness=raw.completeness,
            observed_at=raw.observed_at,
            generation=raw.generation,
            raw=raw,
        )
        return known(snapshot, found.observed_at, found.generation)

    def plan(self, requests: Sequence[WorkloadRequest], snapshot: InventorySnapshot) -> PlanOutcome:
        assert isinstance(snapshot, NamedSnapshot)
        raw = snapshot.raw
        assert raw is not None
        found = self.inner.plan(requests, replace(raw, completeness=snapshot.completeness))
        return self.names.plan_told(found) if isinstance(found, FeasiblePlan) else found

    def reserve(self, plan: FeasiblePlan, operation_id: str, expected_generation: str) -> ClaimObservation:
        meant = self.names.plan_meant(plan)
        return self.names.claim(self.inner.reserve(meant, operation_id, expected_generation))

    def bindings(self, claim_id: str, workload_id: str) -> WorkloadBindings:
        return self.inner.bindings(claim_id, workload_id)

    def observe(self, claim_id: str) -> Observation[ClaimObservation]:
        found = self.inner.observe(claim_id)
        return replace_known(found, self.names)

    def claims(self, scope: str) -> Observation[tuple[ClaimObservation, ...]]:
        found = self.inner.claims(scope)
        if isinstance(found, Unknown):
            return found
        return known(tuple(self.names.claim(one) for one in found.value), found.observed_at)

    def reconcile(
        self, claim_id: str, desired: Sequence[WorkloadRequest], expected_generation: str
    ) -> ClaimObservation:
        return self.names.claim(self.inner.reconcile(claim_id, desired, expected_generation))

    def release(
        self, claim_id: str, operation_id: str, expected_generation: str, keep_workloads: bool = False
    ) -> ReleaseObservation:
        return self.inner.release(claim_id, operation_id, expected_generation, keep_workloads)


def replace_known(found: Observation[ClaimObservation], names: Names) -> Observation[ClaimObservation]:
    return known(names.claim(found.value), found.observed_at) if isinstance(found, Known) else found
