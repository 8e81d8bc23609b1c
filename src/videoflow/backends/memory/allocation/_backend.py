"""The reference of `backends.allocation`, over hosts in memory."""

import hashlib
import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

from videoflow.backends.allocation import (
    EVIDENCE_ABORTED,
    EVIDENCE_CONFLICT,
    EVIDENCE_STALE,
    MATRIX_VERSION,
    AcceleratorAllocationBackend,
    ClaimObservation,
    ClaimStatus,
    Completeness,
    Elasticity,
    FeasiblePlan,
    Feature,
    InventorySnapshot,
    PlanOutcome,
    ReleaseObservation,
    ReleaseStatus,
    WorkloadBindings,
    WorkloadRequest,
)
from videoflow.backends.capabilities import AllocationCapabilities, Enforcement
from videoflow.backends.memory.allocation._cluster import MemoryCluster, Unanswered
from videoflow.backends.memory.allocation._holding import Taken, layouts_in
from videoflow.backends.memory.allocation._operation import Aborted, Operation
from videoflow.backends.memory.allocation._planning import MemoryPlan, plan_for
from videoflow.backends.memory.allocation._records import (
    UNDER_WAY,
    ClaimRecord,
    Journal,
    Phase,
    Superseded,
    claim_name,
)
from videoflow.backends.memory.allocation._seeing import grant_of, hosts_of, inventory, observed
from videoflow.backends.memory.allocation._session import MemorySession
from videoflow.backends.outcomes import Known, Observation, Unknown, UnknownReason, known, unknown
from videoflow.errors import ContractBroken, UnknownName, UnobservableState
from videoflow.placement import is_legal, load_catalogue

GRANT_VARIABLE = "VIDEOFLOW_GRANT"
MANAGER_FACT = "mig-manager"


class MemoryAllocation(AcceleratorAllocationBackend):
    """One process's backend; what must outlive it is in the cluster.

    Args:
        cluster: The authority.
        process: Unique among all backends that live at once.
        managed: Hosts whose geometry may be changed.
        environment: Probed facts; `mig-manager` is the version of what changes geometry.
    """

    def __init__(
        self,
        cluster: MemoryCluster,
        process: str,
        *,
        managed: Collection[str] = (),
        environment: Mapping[str, str] | None = None,
    ) -> None:
        self._session = MemorySession(cluster, process)
        self._environment = dict(environment or {})
        self._managed = frozenset(managed) if MANAGER_FACT in self._environment else frozenset[str]()

    def capabilities(self, environment: Mapping[str, str]) -> AllocationCapabilities:
        """Returns what the reference guarantees; geometry changes only where a manager was probed."""
        matrix = [(MATRIX_VERSION, "memory-1")]
        if MANAGER_FACT in environment:
            matrix.append((str(Feature.DYNAMIC_MIG), environment[MANAGER_FACT]))
        return AllocationCapabilities(
            adapter="memory",
            authority="memory",
            exclusive_device=True,
            isolated_mig=True,
            cooperative_sharing=True,
            memory_enforcement=Enforcement.ACCOUNTING,
            multi_device=True,
            topology_verification=False,
            elastic=False,
            admission_boundary="cluster",
            version_matrix=tuple(matrix),
        )

    def inventory(self, scope: str) -> Observation[InventorySnapshot]:
        """Lists a host by name, or all of them."""
        return inventory(self._session, scope)

    def plan(self, requests: Sequence[WorkloadRequest], snapshot: InventorySnapshot) -> PlanOutcome:
        """Plans with the one solver."""
        return plan_for(requests, snapshot, self.capabilities(self._environment), self._managed)

    def reserve(self, plan: FeasiblePlan, operation_id: str, expected_generation: str) -> ClaimObservation:
        """Writes the claim, then its ownership, host by host, then geometry."""
        if plan.snapshot_generation != expected_generation:
            raise ContractBroken("a plan is reserved against the generation that it was made from")
        claim = claim_name(operation_id)
        nothing = ClaimObservation(claim, "", "1", None, ClaimStatus.FAILED, None)
        try:
            journal = Journal.find(self._session, claim)
            if journal is None:
                refused = self._refused(plan, expected_generation)
                if refused:
                    return replace(nothing, evidence=refused)
                journal = Journal.begin(self._session, self._record(plan, claim))
            elif journal.record.plan != _digest(plan):
                raise ContractBroken(f"operation {operation_id} was begun with another plan")
            elif journal.record.phase in UNDER_WAY:
                journal.move(epoch=journal.record.epoch + 1)
            self._carry_on(journal)
        except Superseded:
            pass
        except Unanswered as error:
            return replace(nothing, status=ClaimStatus.PENDING, evidence=(str(error),))
        seen = self.observe(claim)
        if isinstance(seen, Known):
            return seen.value
        return replace(nothing, status=ClaimStatus.PENDING, evidence=(f"{seen.reason}: {seen.detail}",))

    def bindings(self, claim_id: str, workload_id: str) -> WorkloadBindings:
        """Names the devices by MIG UUID, else GPU UUID, else ordinal, and tells the grant as JSON."""
        try:
            journal = self._found(claim_id)
            record = journal.record
            if workload_id not in record.assignments:
                raise UnknownName(f"claim {claim_id} has no workload {workload_id}")
            if observed(self._session, record).status is not ClaimStatus.READY:
                raise ContractBroken(f"claim {claim_id} holds nothing that can be used now")
            grant = grant_of(record, [workload_id], hosts_of(self._session, record))
        except Unanswered as error:
            raise UnobservableState(f"claim {claim_id} cannot be read", cause=str(error)) from error
        mask = [device.mig_uuid or device.uuid or str(device.ordinal) for device in grant.devices]
        env = {"CUDA_VISIBLE_DEVICES": ",".join(mask), GRANT_VARIABLE: json.dumps(grant.to_dict())}
        return WorkloadBindings(env=env, node_constraints={"hosts": sorted({d.node for d in grant.devices})})

    def observe(self, claim_id: str) -> Observation[ClaimObservation]:
        """Reads the record of a claim, then its hosts."""
        try:
            journal = Journal.find(self._session, claim_id)
            if journal is None:
                return unknown(UnknownReason.MISSING, self._session.now(), f"there is no claim {claim_id}")
            seen = observed(self._session, journal.record)
        except Unanswered as error:
            return unknown(error.reason, self._session.now(), f"claim {claim_id} cannot be read")
        return known(seen, self._session.now())

    def claims(self, scope: str) -> Observation[tuple[ClaimObservation, ...]]:
        """Lists every claim of the records that has something on the host, or all of them."""
        found = []
        try:
            page = self._session.records()
            for claim in page.items:
                journal = Journal.find(self._session, claim)
                if journal is not None and (scope in ("", *journal.record.hosts())):
                    found.append(observed(self._session, journal.record))
        except Unanswered as error:
            return unknown(error.reason, self._session.now(), "the claims cannot be listed")
        if not page.whole:
            return unknown(UnknownReason.MALFORMED, self._session.now(), "the list of claims was cut short")
        return known(tuple(found), self._session.now())

    def reconcile(
        self, claim_id: str, desired: Sequence[WorkloadRequest], expected_generation: str
    ) -> ClaimObservation:
        """Carries on with a claim; what it holds is never changed in place."""
        nothing = ClaimObservation(claim_id, "", expected_generation, None, ClaimStatus.PENDING, None)
        try:
            journal = self._found(claim_id)
            record = journal.record
            now = observed(self._session, record)
            if str(record.generation) != expected_generation:
                fenced = f"the claim is of generation {record.generation}"
                return replace(now, evidence=(EVIDENCE_STALE, fenced, *now.evidence))
            if changed := _changed(record, desired):
                evidence = (EVIDENCE_CONFLICT, changed, *now.evidence)
                return replace(now, status=ClaimStatus.FAILED, evidence=evidence)
            if record.phase in UNDER_WAY:
                journal.move(epoch=record.epoch + 1)
                self._carry_on(journal)
            return observed(self._session, journal.record)
        except Superseded:
            return replace(nothing, evidence=("another process carries on with it",))
        except Unanswered as error:
            return replace(nothing, evidence=(str(error),))

    def release(
        self, claim_id: str, operation_id: str, expected_generation: str, keep_workloads: bool = False
    ) -> ReleaseObservation:
        """Restores geometry, then gives up ownership, then removes the record."""
        pending = ReleaseObservation(claim_id, ReleaseStatus.PENDING_RECOVERY)
        try:
            journal = Journal.find(self._session, claim_id)
            if journal is None:
                return ReleaseObservation(claim_id, ReleaseStatus.RELEASED, reason="no such claim on record")
            record = journal.record
            if str(record.generation) != expected_generation:
                fenced = f"the claim is of generation {record.generation}"
                return ReleaseObservation(claim_id, ReleaseStatus.STALE, reason=fenced)
            if keep_workloads:
                kept = tuple(name for name in record.assignments)
                return replace(pending, remaining=kept, reason="its workloads keep it")
            operation = Operation(self._session, journal)
            if users := operation.users():
                return replace(pending, remaining=users, reason="in use")
            journal.move(phase=Phase.RELEASING, epoch=record.epoch + 1)
            if remaining := operation.give_back():
                return replace(pending, remaining=remaining, reason="its geometry is not restored yet")
            journal.delete()
        except Superseded:
            return replace(pending, reason="another process moved the claim meanwhile")
        except Unanswered as error:
            return replace(pending, reason=str(error))
        return ReleaseObservation(claim_id, ReleaseStatus.RELEASED)

    # Inside -----------------------------------------------------------------------------------

    def _found(self, claim_id: str) -> Journal:
        journal = Journal.find(self._session, claim_id)
        if journal is None:
            raise UnknownName(f"there is no claim {claim_id}")
        return journal

    def _refused(self, plan: FeasiblePlan, expected_generation: str) -> tuple[str, ...]:
        """Returns why nothing is written for a plan at all; empty: it may be tried."""
        seen = inventory(self._session, "")
        if isinstance(seen, Unknown):
            return EVIDENCE_ABORTED, f"the inventory cannot be read: {seen.detail}"
        if seen.value.completeness is not Completeness.COMPLETE:
            return EVIDENCE_ABORTED, "who uses the devices cannot be read"
        if seen.value.generation != expected_generation:
            return EVIDENCE_CONFLICT, "the inventory has changed since it was planned"
        products = {device.uuid: device.product for device in seen.value.devices}
        for host, entries in plan.geometry.items():
            for card, layout in layouts_in(entries).items():
                model = load_catalogue().card(products.get(card, ""))
                if host not in self._managed or model is None or not is_legal(model, layout):
                    return EVIDENCE_CONFLICT, f"{card} of {host} cannot be cut into {layout}"
        return ()

    def _record(self, plan: FeasiblePlan, claim: str) -> ClaimRecord:
        return ClaimRecord(
            claim_id=claim,
            plan=_digest(plan),
            generation=1,
            epoch=1,
            writer=self._session.process,
            phase=Phase.OWNING,
            assignments=dict(plan.assignments),
            terms=dict(plan.terms) if isinstance(plan, MemoryPlan) else {},
            geometry=dict(plan.geometry),
        )

    def _carry_on(self, journal: Journal) -> None:
        """Takes a claim that is under way to its end; raises Superseded and Unanswered."""
        operation = Operation(self._session, journal)
        if journal.record.phase in (Phase.OWNING, Phase.CHANGING):
            try:
                operation.own()
                operation.look_again()
                operation.change_geometry()
                journal.move(phase=Phase.HELD)
            except (Taken, Aborted) as error:
                why = EVIDENCE_CONFLICT if isinstance(error, Taken) else EVIDENCE_ABORTED
                journal.move(phase=Phase.ABORTING, evidence=(why, str(error)))
        if journal.record.phase is Phase.ABORTING and not operation.give_back():
            journal.move(phase=Phase.FAILED)


def _digest(plan: FeasiblePlan) -> str:
    told = (plan.plan_id, plan.snapshot_generation, dict(plan.assignments), dict(plan.geometry))
    return hashlib.sha256(repr(told).encode()).hexdigest()


def _changed(record: ClaimRecord, desired: Sequence[WorkloadRequest]) -> str:
    """Returns what is desired otherwise than a claim has it; empty: nothing."""
    for request in desired:
        held = record.assignments.get(request.workload_id)
        if held is None:
            return f"{request.workload_id} is not in this claim: reserve it"
        if len(held) != request.device_count:
            if request.elasticity is Elasticity.FIXED:
                raise ContractBroken(f"{request.workload_id} has a fixed number of devices")
            return f"{request.workload_id} has {len(held)} devices, and nothing here changes that"
    gone = set(record.assignments) - {request.workload_id for request in desired}
    return f"{', '.join(sorted(gone))} would lose what it has" if gone else ""
