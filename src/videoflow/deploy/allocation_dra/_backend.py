"""The allocation backend of a cluster whose GPUs a driver of dynamic resource allocation gives out."""

from collections.abc import Iterable, Mapping, Sequence

from videoflow.adapters.kubernetes import RESOURCE_CLAIMS, KubernetesApi
from videoflow.backends.allocation import (
    EVIDENCE_ABORTED,
    EVIDENCE_CONFLICT,
    ClaimObservation,
    ClaimStatus,
    Completeness,
    FeasiblePlan,
    InventorySnapshot,
    PlanOutcome,
    ReleaseObservation,
    ReleaseStatus,
    WorkloadBindings,
    WorkloadRequest,
    device_key,
)
from videoflow.backends.allocation.lifecycle import Journal as AnyJournal
from videoflow.backends.allocation.lifecycle import NotBegun, Phase, RecordedAllocation, plan_digest
from videoflow.backends.capabilities import AllocationCapabilities
from videoflow.backends.outcomes import Observation, Unknown, known
from videoflow.clock import Clock, RealClock
from videoflow.deploy.allocation_dra._capabilities import capabilities_of, group_of
from videoflow.deploy.allocation_dra._gates import Gates
from videoflow.deploy.allocation_dra._inventory import DraSnapshot, inventory, place_of
from videoflow.deploy.allocation_dra._operation import Operation
from videoflow.deploy.allocation_dra._planning import layouts_in, plan_for
from videoflow.deploy.allocation_dra._pools import HostView, model_of
from videoflow.deploy.allocation_dra._records import (
    DraRecord,
    Journal,
    is_shared,
    pinned_spec,
    requests_of,
)
from videoflow.deploy.allocation_dra._seeing import bindings_of, observed
from videoflow.deploy.allocation_dra._settings import CLAIM, DraSettings
from videoflow.deploy.kubernetes_records import Reads, Unanswered
from videoflow.errors import ArgumentInvalid, ContractBroken, UnknownName, UnobservableState
from videoflow.placement import is_legal


class DraAllocation(RecordedAllocation[DraRecord]):
    """One process's backend; what must outlive it is in the cluster.

    Args:
        api: The way to the API server.
        settings: What may be used.
        environment: Facts of the cluster, as `Gates.of` reads them.
        clock: For the times of observations.

    Raises:
        ArgumentInvalid: The settings name no image for the pods that hold claims.
    """

    claim_prefix = "dra"

    def __init__(
        self,
        api: KubernetesApi,
        settings: DraSettings,
        *,
        environment: Mapping[str, str] | None = None,
        clock: Clock | None = None,
    ) -> None:
        if not settings.holder_image:
            raise ArgumentInvalid(
                "there is no image for the pods that hold claims",
                cause="a scheduler gives devices to pods alone, so each claim is held by one",
                remedy="set DraSettings(holder_image=...) to one of your registry that does nothing but stay",
            )
        self._settings = settings
        self._gates = Gates.of(environment or {})
        self._session = Reads(api, settings.process, settings.namespace, clock or RealClock())

    def capabilities(self, environment: Mapping[str, str]) -> AllocationCapabilities:
        """Returns what the gates guarantee that these facts prove to be on."""
        return capabilities_of(Gates.of(environment))

    def inventory(self, scope: str) -> Observation[InventorySnapshot]:
        """Lists a host by name, or all of them; a pool that is not whole makes it partial."""
        found = inventory(self._session, self._settings, scope)
        if isinstance(found, Unknown):
            return found
        return known(found.value, found.observed_at, found.generation)

    def plan(self, requests: Sequence[WorkloadRequest], snapshot: InventorySnapshot) -> PlanOutcome:
        """Plans with the one solver."""
        return plan_for(requests, snapshot, self._settings, self._gates)

    def bindings(self, claim_id: str, workload_id: str) -> WorkloadBindings:
        """Returns the resource claim that a pod names, its labels, and its grant as JSON."""
        try:
            journal = self._known(claim_id)
            assert isinstance(journal, Journal), "a journal of this backend"
            if workload_id not in journal.record.assignments:
                raise UnknownName(f"claim {claim_id} has no workload {workload_id}")
            seen = self._seen_of(journal, workload_id)
            if seen.status is not ClaimStatus.READY or seen.grant is None:
                raise ContractBroken(f"claim {claim_id} holds nothing that can be used now")
        except Unanswered as error:
            raise UnobservableState(f"claim {claim_id} cannot be read", cause=str(error)) from error
        return bindings_of(journal.record, workload_id, seen.grant, journal.uid, self._settings)

    # What is shared with other allocators brings the rest ------------------------------------------

    def _now(self) -> float:
        return self._session.now()

    def _find(self, claim_id: str) -> Journal | None:
        return Journal.find(self._session, claim_id)

    def _listed(self) -> Iterable[Journal]:
        return Journal.listed(self._session)

    def _begin(self, plan: FeasiblePlan, claim_id: str) -> Journal:
        if refused := _refused(plan, self._looked(plan)):
            raise NotBegun(EVIDENCE_CONFLICT, refused)
        requests = requests_of(plan)
        record = DraRecord(
            claim_id=claim_id,
            plan=plan_digest(plan),
            generation=1,
            epoch=1,
            writer=self._settings.process,
            phase=Phase.OWNING,
            assignments=dict(plan.assignments),
            specs={
                request.workload_id: pinned_spec(
                    request, plan.assignments[request.workload_id], self._settings, self._gates
                )
                for request in requests
            },
            alone=tuple(sorted(r.workload_id for r in requests if not is_shared(r))),
            groups={r.workload_id: group for r in requests if (group := group_of(r))},
            geometry=dict(plan.geometry),
        )
        return Journal.begin(self._session, record)

    def _steps(self, journal: AnyJournal[DraRecord]) -> Operation:
        assert isinstance(journal, Journal), "a journal of this backend"
        return Operation(self._session, self._settings, journal)

    def _seen(self, journal: AnyJournal[DraRecord]) -> ClaimObservation:
        return self._seen_of(journal)

    def _carried_on_from(self, journal: AnyJournal[DraRecord]) -> Phase | None:
        """A claim whose holder was evicted is taken again, where nobody else has its devices."""
        held = journal.record.phase is Phase.HELD
        if held and self._steps(journal).missing():
            return Phase.OWNING
        return super()._carried_on_from(journal)

    def _of_nobody(self, claim_id: str) -> ReleaseObservation:
        """Looks for what a claim without a record left: the garbage collector removes it, in its time."""
        known_as = {journal.record.claim_id for journal in self._listed()}
        labels = f"{CLAIM}={claim_id}"
        left = tuple(
            one["metadata"]["name"]
            for one in self._session.listed(RESOURCE_CLAIMS, self._settings.namespace, labels)
            if claim_id not in known_as
        )
        if left:
            lost = "its record is gone, and what it had is not yet"
            return ReleaseObservation(claim_id, ReleaseStatus.PENDING_RECOVERY, left, lost)
        return ReleaseObservation(claim_id, ReleaseStatus.RELEASED, reason="no such claim on record")

    # Inside -----------------------------------------------------------------------------------

    def _seen_of(self, journal: AnyJournal[DraRecord], *workloads: str) -> ClaimObservation:
        assert isinstance(journal, Journal), "a journal of this backend"
        return observed(self._session, self._settings, journal.record, journal.uid, *workloads)

    def _looked(self, plan: FeasiblePlan) -> DraSnapshot:
        """Returns the inventory; raises NotBegun where it refuses the plan."""
        seen = inventory(self._session, self._settings, "")
        if isinstance(seen, Unknown):
            raise NotBegun(EVIDENCE_ABORTED, f"the inventory cannot be read: {seen.detail}")
        if seen.value.completeness is not Completeness.COMPLETE:
            raise NotBegun(EVIDENCE_ABORTED, *seen.value.notes)
        if seen.value.generation != plan.snapshot_generation:
            raise NotBegun(EVIDENCE_CONFLICT, "the inventory has changed since it was planned")
        return seen.value


def _refused(plan: FeasiblePlan, snapshot: DraSnapshot) -> str:
    """Returns why nothing is written for a plan that somebody made of this snapshot, or nothing."""
    hosts = {host.name: host for host in snapshot.hosts}
    for devices in plan.assignments.values():
        for device in devices:
            made = device.mig_profile is None or device.mig_uuid is not None
            if made and place_of(hosts, device) is None:
                return f"{device_key(device)} is not published on {device.node}"
    for name, entries in plan.geometry.items():
        for card, layout in layouts_in(entries).items():
            if not _is_possible(hosts.get(name), card, layout):
                return f"{card} of {name} cannot be cut into {layout}"
    return ""


def _is_possible(host: HostView | None, card: str, layout: tuple[tuple[str, int], ...]) -> bool:
    """Returns whether the driver could cut a card so, by the catalogue and by what it publishes."""
    found = next((one for one in host.cards if device_key(one.identity) == card), None) if host else None
    if host is None or found is None or not found.counted or host.excluded:
        return False
    model = model_of(found)
    mine = [one for one in host.possible if one.identity.uuid == found.identity.uuid]
    published = {(str(one.identity.mig_profile), one.start) for one in mine}
    return model is not None and is_legal(model, layout) and set(layout) <= published
