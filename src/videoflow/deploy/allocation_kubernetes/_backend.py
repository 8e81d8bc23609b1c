"""The allocation backend of a cluster whose GPUs a device plugin gives out."""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import replace

import msgspec

from videoflow.adapters.kubernetes import CONFIG_MAPS, KubernetesApi
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
from videoflow.backends.outcomes import Known, Observation, Unknown, UnknownReason, known, unknown
from videoflow.clock import Clock, RealClock
from videoflow.deploy.allocation_kubernetes._hosts import HostView
from videoflow.deploy.allocation_kubernetes._inventory import KubernetesSnapshot, inventory, read_ledgers
from videoflow.deploy.allocation_kubernetes._ledger import Taken
from videoflow.deploy.allocation_kubernetes._operation import Aborted, Operation
from videoflow.deploy.allocation_kubernetes._planning import (
    KubernetesPlan,
    cards_in,
    layouts_in,
    plan_for,
    resources_of,
)
from videoflow.deploy.allocation_kubernetes._records import (
    UNDER_WAY,
    ClaimRecord,
    Journal,
    Phase,
    Superseded,
    claim_name,
)
from videoflow.deploy.allocation_kubernetes._seeing import bindings_of, observed
from videoflow.deploy.allocation_kubernetes._session import Session, Unanswered
from videoflow.deploy.allocation_kubernetes._settings import (
    KIND,
    MIG_MANAGER_FACT,
    MPS_FACT,
    KubernetesSettings,
    Strategy,
)
from videoflow.errors import ContractBroken, UnknownName, UnobservableState
from videoflow.placement import is_legal


class KubernetesAllocation(AcceleratorAllocationBackend):
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

    def reserve(self, plan: FeasiblePlan, operation_id: str, expected_generation: str) -> ClaimObservation:
        """Writes the claim, then its ownership, host by host, then geometry."""
        if plan.snapshot_generation != expected_generation:
            raise ContractBroken("a plan is reserved against the generation that it was made from")
        claim = claim_name(operation_id)
        nothing = ClaimObservation(claim, "", "1", None, ClaimStatus.FAILED, None)
        try:
            journal = Journal.find(self._session, claim)
            if journal is None:
                refused, hosts = self._refused(plan, expected_generation)
                if refused:
                    return replace(nothing, evidence=refused)
                journal = Journal.begin(self._session, self._record(plan, claim, hosts))
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
        """Returns the resource that its container asks for, the host, and the labels of its pod."""
        try:
            record = self._found(claim_id).record
            if workload_id not in record.assignments:
                raise UnknownName(f"claim {claim_id} has no workload {workload_id}")
            if observed(self._session, record).status is not ClaimStatus.READY:
                raise ContractBroken(f"claim {claim_id} holds nothing that can be used now")
        except Unanswered as error:
            raise UnobservableState(f"claim {claim_id} cannot be read", cause=str(error)) from error
        return bindings_of(record, workload_id)

    def observe(self, claim_id: str) -> Observation[ClaimObservation]:
        """Reads the record of a claim, then its hosts."""
        try:
            journal = Journal.find(self._session, claim_id)
            if journal is None:
                return unknown(UnknownReason.MISSING, self._session.now(), f"there is no claim {claim_id}")
            seen = observed(self._session, journal.record)
        except Unanswered as error:
            return unknown(error.reason, self._session.now(), f"claim {claim_id} cannot be read: {error}")
        return known(seen, self._session.now())

    def claims(self, scope: str) -> Observation[tuple[ClaimObservation, ...]]:
        """Lists every claim of the records that has something on the host, or all of them."""
        namespace = self._settings.namespace
        try:
            holders = self._session.listed(CONFIG_MAPS, namespace, f"{KIND}=claim")
            journals = [Journal.read(self._session, holder) for holder in holders]
            found = [
                observed(self._session, journal.record)
                for journal in sorted(journals, key=lambda one: one.record.claim_id)
                if scope in ("", *journal.record.hosts())
            ]
        except Unanswered as error:
            return unknown(error.reason, self._session.now(), f"the claims cannot be listed: {error}")
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
                return self._of_nobody(claim_id)
            record = journal.record
            if str(record.generation) != expected_generation:
                fenced = f"the claim is of generation {record.generation}"
                return ReleaseObservation(claim_id, ReleaseStatus.STALE, reason=fenced)
            if keep_workloads:
                return replace(pending, remaining=tuple(record.assignments), reason="its workloads keep it")
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

    def _found(self, claim_id: str) -> Journal:
        journal = Journal.find(self._session, claim_id)
        if journal is None:
            raise UnknownName(f"there is no claim {claim_id}")
        return journal

    def _refused(
        self, plan: FeasiblePlan, expected_generation: str
    ) -> tuple[tuple[str, ...], dict[str, HostView]]:
        """Returns why nothing is written for a plan at all, or nothing; and the hosts as they are."""
        seen = inventory(self._session, "")
        if isinstance(seen, Unknown):
            return (EVIDENCE_ABORTED, f"the inventory cannot be read: {seen.detail}"), {}
        if seen.value.completeness is not Completeness.COMPLETE:
            return (EVIDENCE_ABORTED, *seen.value.notes), {}
        if seen.value.generation != expected_generation:
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
            plan=_digest(plan),
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

    def _carry_on(self, journal: Journal) -> None:
        """Takes a claim that is under way to its end; raises Superseded and Unanswered."""
        operation = Operation(self._session, journal)
        if journal.record.phase in (Phase.OWNING, Phase.CHANGING):
            try:
                operation.own()
                _look(operation)
                operation.change_geometry()
                journal.move(phase=Phase.HELD)
            except (Taken, Aborted) as error:
                why = EVIDENCE_CONFLICT if isinstance(error, Taken) else EVIDENCE_ABORTED
                journal.move(phase=Phase.ABORTING, evidence=(why, str(error)))
        if journal.record.phase is Phase.ABORTING and not operation.give_back():
            journal.move(phase=Phase.FAILED)


def _look(operation: Operation) -> None:
    """Looks again; raises Aborted also where nobody answers, since then nothing may change."""
    try:
        operation.look_again()
    except Unanswered as error:
        raise Aborted(f"occupancy cannot be read again: {error}") from error


def _illegal(host: HostView | None, entries: Sequence[str], snapshot: KubernetesSnapshot) -> str:
    if host is None or not host.managed or any((snapshot.used or {}).get(host.name, {}).values()):
        return f"the geometry of {'a host' if host is None else host.name} may not be changed now"
    model = host.model()
    for ordinal, layout in layouts_in(entries).items():
        if model is None or not 0 <= ordinal < len(host.cards) or not is_legal(model, layout):
            return f"{host.name}#{ordinal} cannot be cut into {layout}"
    return ""


def _digest(plan: FeasiblePlan) -> str:
    told = (plan.plan_id, plan.snapshot_generation, dict(plan.assignments), dict(plan.geometry))
    return hashlib.sha256(msgspec.json.encode(told)).hexdigest()


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
