"""The reference of `backends.allocation`, over hosts in memory."""

import json
from collections.abc import Collection, Iterable, Mapping, Sequence

from videoflow.backends.allocation import (
    EVIDENCE_ABORTED,
    EVIDENCE_CONFLICT,
    MATRIX_VERSION,
    ClaimObservation,
    ClaimStatus,
    Completeness,
    FeasiblePlan,
    Feature,
    InventorySnapshot,
    PlanOutcome,
    WorkloadBindings,
    WorkloadRequest,
)
from videoflow.backends.allocation.lifecycle import (
    Journal as AnyJournal,
)
from videoflow.backends.allocation.lifecycle import (
    NotBegun,
    Phase,
    RecordedAllocation,
    plan_digest,
)
from videoflow.backends.capabilities import AllocationCapabilities, Enforcement
from videoflow.backends.memory.allocation._cluster import MemoryCluster, Unanswered
from videoflow.backends.memory.allocation._holding import layouts_in
from videoflow.backends.memory.allocation._operation import Operation
from videoflow.backends.memory.allocation._planning import MemoryPlan, plan_for
from videoflow.backends.memory.allocation._records import (
    ClaimRecord,
    Journal,
)
from videoflow.backends.memory.allocation._seeing import grant_of, hosts_of, inventory, observed
from videoflow.backends.memory.allocation._session import MemorySession
from videoflow.backends.outcomes import Observation, Unknown, UnknownReason
from videoflow.environment import GRANT_VARIABLE, MASK_VARIABLE
from videoflow.errors import ContractBroken, UnknownName, UnobservableState
from videoflow.placement import is_legal, load_catalogue

MANAGER_FACT = "mig-manager"


class MemoryAllocation(RecordedAllocation[ClaimRecord]):
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

    def bindings(self, claim_id: str, workload_id: str) -> WorkloadBindings:
        """Names the devices by MIG UUID, else GPU UUID, else ordinal, and tells the grant as JSON."""
        try:
            journal = self._known(claim_id)
            record = journal.record
            if workload_id not in record.assignments:
                raise UnknownName(f"claim {claim_id} has no workload {workload_id}")
            if observed(self._session, record).status is not ClaimStatus.READY:
                raise ContractBroken(f"claim {claim_id} holds nothing that can be used now")
            grant = grant_of(record, [workload_id], hosts_of(self._session, record))
        except Unanswered as error:
            raise UnobservableState(f"claim {claim_id} cannot be read", cause=str(error)) from error
        mask = [device.mig_uuid or device.uuid or str(device.ordinal) for device in grant.devices]
        env = {MASK_VARIABLE: ",".join(mask), GRANT_VARIABLE: json.dumps(grant.to_dict())}
        return WorkloadBindings(env=env, node_constraints={"hosts": sorted({d.node for d in grant.devices})})

    # Inside -----------------------------------------------------------------------------------

    def _now(self) -> float:
        return self._session.now()

    def _find(self, claim_id: str) -> Journal | None:
        return Journal.find(self._session, claim_id)

    def _listed(self) -> Iterable[Journal]:
        page = self._session.records()
        if not page.whole:
            raise Unanswered(UnknownReason.MALFORMED)
        found = [Journal.find(self._session, claim) for claim in page.items]
        return [journal for journal in found if journal is not None]

    def _begin(self, plan: FeasiblePlan, claim_id: str) -> Journal:
        refused = self._refused(plan)
        if refused:
            raise NotBegun(*refused)
        return Journal.begin(self._session, self._record(plan, claim_id))

    def _steps(self, journal: AnyJournal[ClaimRecord]) -> Operation:
        assert isinstance(journal, Journal), "a journal of this backend"
        return Operation(self._session, journal)

    def _seen(self, journal: AnyJournal[ClaimRecord]) -> ClaimObservation:
        return observed(self._session, journal.record)

    def _refused(self, plan: FeasiblePlan) -> tuple[str, ...]:
        """Returns why nothing is written for a plan at all; empty: it may be tried."""
        seen = inventory(self._session, "")
        if isinstance(seen, Unknown):
            return EVIDENCE_ABORTED, f"the inventory cannot be read: {seen.detail}"
        if seen.value.completeness is not Completeness.COMPLETE:
            return EVIDENCE_ABORTED, "who uses the devices cannot be read"
        if seen.value.generation != plan.snapshot_generation:
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
            plan=plan_digest(plan),
            generation=1,
            epoch=1,
            writer=self._session.process,
            phase=Phase.OWNING,
            assignments=dict(plan.assignments),
            terms=dict(plan.terms) if isinstance(plan, MemoryPlan) else {},
            geometry=dict(plan.geometry),
        )
