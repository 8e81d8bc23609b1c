"""The allocation backend of a cluster whose GPUs a device plugin gives out."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from videoflow.adapters.kubernetes import KubernetesApi
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
    ReleaseObservation,
    ReleaseStatus,
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
from videoflow.backends.outcomes import Observation, Unknown, known
from videoflow.clock import Clock, RealClock
from videoflow.deploy.allocation_kubernetes._hosts import HostView
from videoflow.deploy.allocation_kubernetes._inventory import KubernetesSnapshot, inventory, read_ledgers
from videoflow.deploy.allocation_kubernetes._operation import Operation
from videoflow.deploy.allocation_kubernetes._planning import (
    KubernetesPlan,
    cards_in,
    layouts_in,
    plan_for,
    resources_of,
)
from videoflow.deploy.allocation_kubernetes._records import (
    ClaimRecord,
    Journal,
)
from videoflow.deploy.allocation_kubernetes._seeing import bindings_of, observed
from videoflow.deploy.allocation_kubernetes._session import Session
from videoflow.deploy.allocation_kubernetes._settings import (
    MIG_MANAGER_FACT,
    MPS_FACT,
    KubernetesSettings,
    Strategy,
)
from videoflow.deploy.kubernetes_records import Unanswered
from videoflow.errors import ContractBroken, UnknownName, UnobservableState
from videoflow.placement import is_legal


class KubernetesAllocation(RecordedAllocation[ClaimRecord]):
    """One process's backend; what must outlive it is in the cluster.

    Args:
        api: The way to the API server.
        settings: What may be used.
        environment: Probed facts: `mig-manager` and `mps`, each the version of what provides it.
        clock: For the times of observations.
    """

    def __init__(
        self,
        api: KubernetesApi,
        settings: KubernetesSettings,
        *,
        environment: Mapping[str, str] | None = None,
        clock: Clock | None = None,
    ) -> None:
        self._environment = dict(environment or {})
        unmanaged = MIG_MANAGER_FACT not in self._environment
        strategies = settings.strategies - ({Strategy.MANAGED_MIG} if unmanaged else set())
        self._api, self._clock = api, clock or RealClock()
        self._settings = replace(settings, strategies=strategies)

    def capabilities(self, environment: Mapping[str, str]) -> AllocationCapabilities:
        """Returns what the strategies in use guarantee; gated features only where their facts were probed."""
        settings = self._settings
        matrix = [(MATRIX_VERSION, "kubernetes-1")]
        if settings.uses(Strategy.MANAGED_MIG) and MIG_MANAGER_FACT in environment:
            matrix.append((str(Feature.DYNAMIC_MIG), environment[MIG_MANAGER_FACT]))
        if settings.uses(Strategy.MPS) and MPS_FACT in environment:
            matrix.append((str(Feature.MPS), environment[MPS_FACT]))
        if settings.uses(Strategy.TIME_SLICING, Strategy.WHOLE):
            enforcement = Enforcement.NONE
        elif settings.uses(Strategy.MPS):
            enforcement = Enforcement.RUNTIME_CAP
        else:
            enforcement = Enforcement.HARDWARE
        return AllocationCapabilities(
            adapter="kubernetes",
            authority="kubernetes",
            exclusive_device=settings.uses(Strategy.WHOLE),
            isolated_mig=settings.uses(Strategy.STATIC_MIG, Strategy.MANAGED_MIG),
            cooperative_sharing=settings.uses(Strategy.TIME_SLICING, Strategy.MPS),
            memory_enforcement=enforcement,
            multi_device=True,
            topology_verification=False,
            elastic=False,
            admission_boundary="cluster",
            version_matrix=tuple(matrix),
        )

    def inventory(self, scope: str) -> Observation[InventorySnapshot]:
        """Lists a host by name, or all of them."""
        found = inventory(self._session, scope)
        if isinstance(found, Unknown):
            return found
        return known(found.value, found.observed_at, found.generation)

    def plan(self, requests: Sequence[WorkloadRequest], snapshot: InventorySnapshot) -> PlanOutcome:
        """Plans with the one solver."""
        return plan_for(requests, snapshot, self.capabilities(self._environment))

    def bindings(self, claim_id: str, workload_id: str) -> WorkloadBindings:
        """Returns the resource that its container asks for, the host, and the labels of its pod."""
        try:
            record = self._known(claim_id).record
            if workload_id not in record.assignments:
                raise UnknownName(f"claim {claim_id} has no workload {workload_id}")
            if observed(self._session, record).status is not ClaimStatus.READY:
                raise ContractBroken(f"claim {claim_id} holds nothing that can be used now")
        except Unanswered as error:
            raise UnobservableState(f"claim {claim_id} cannot be read", cause=str(error)) from error
        return bindings_of(record, workload_id)

    # Inside -----------------------------------------------------------------------------------

    @property
    def _session(self) -> Session:
        return Session(self._api, self._settings, self._clock)

    def _of_nobody(self, claim_id: str) -> ReleaseObservation:
        held = [
            key
            for ledger in read_ledgers(self._session).values()
            for key, hold in ledger.held()
            if hold.claim == claim_id
        ]
        if held:
            lost = "its record was removed by somebody else, and with it what is to be restored"
            return ReleaseObservation(claim_id, ReleaseStatus.PENDING_RECOVERY, tuple(held), lost)
        return ReleaseObservation(claim_id, ReleaseStatus.RELEASED, reason="no such claim on record")

    def _now(self) -> float:
        return self._clock.monotonic()

    def _find(self, claim_id: str) -> Journal | None:
        return Journal.find(self._session, claim_id)

    def _listed(self) -> Iterable[Journal]:
        return Journal.listed(self._session)

    def _begin(self, plan: FeasiblePlan, claim_id: str) -> Journal:
        refused, hosts = self._refused(plan)
        if refused:
            raise NotBegun(*refused)
        return Journal.begin(self._session, self._record(plan, claim_id, hosts))

    def _steps(self, journal: AnyJournal[ClaimRecord]) -> Operation:
        assert isinstance(journal, Journal), "a journal of this backend"
        return Operation(self._session, journal)

    def _seen(self, journal: AnyJournal[ClaimRecord]) -> ClaimObservation:
        return observed(self._session, journal.record)

    def _refused(self, plan: FeasiblePlan) -> tuple[tuple[str, ...], dict[str, HostView]]:
        """Returns why nothing is written for a plan at all, or nothing; and the hosts as they are."""
        seen = inventory(self._session, "")
        if isinstance(seen, Unknown):
            return (EVIDENCE_ABORTED, f"the inventory cannot be read: {seen.detail}"), {}
        if seen.value.completeness is not Completeness.COMPLETE:
            return (EVIDENCE_ABORTED, *seen.value.notes), {}
        if seen.value.generation != plan.snapshot_generation:
            return (EVIDENCE_CONFLICT, "the inventory has changed since it was planned"), {}
        hosts = {host.name: host for host in seen.value.hosts}
        gone = {device.node for devices in plan.assignments.values() for device in devices} - set(hosts)
        if gone:
            return (EVIDENCE_CONFLICT, f"there is no host {', '.join(sorted(gone))}"), {}
        for name, entries in plan.geometry.items():
            if illegal := _illegal(hosts.get(name), entries, seen.value):
                return (EVIDENCE_CONFLICT, illegal), {}
        return (), hosts

    def _record(self, plan: FeasiblePlan, claim: str, hosts: Mapping[str, HostView]) -> ClaimRecord:
        used = {device.node for devices in plan.assignments.values() for device in devices}
        return ClaimRecord(
            claim_id=claim,
            plan=plan_digest(plan),
            generation=1,
            epoch=1,
            writer=self._settings.process,
            phase=Phase.OWNING,
            assignments=dict(plan.assignments),
            resources={name: resources_of(devices, hosts) for name, devices in plan.assignments.items()},
            terms=dict(plan.terms) if isinstance(plan, KubernetesPlan) else {},
            geometry={name: cards_in(entries, hosts[name]) for name, entries in plan.geometry.items()},
            recut={name: tuple(sorted(layouts_in(entries))) for name, entries in plan.geometry.items()},
            shares={name: hosts[name].shares for name in used},
        )


def _illegal(host: HostView | None, entries: Sequence[str], snapshot: KubernetesSnapshot) -> str:
    if host is None or not host.managed or any((snapshot.used or {}).get(host.name, {}).values()):
        return f"the geometry of {'a host' if host is None else host.name} may not be changed now"
    model = host.model()
    for ordinal, layout in layouts_in(entries).items():
        if model is None or not 0 <= ordinal < len(host.cards) or not is_legal(model, layout):
            return f"{host.name}#{ordinal} cannot be cut into {layout}"
    return ""
