"""The operations of an allocator whose claims are records; the order of steps, the fences and the endings."""

from abc import abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Generic

from videoflow.backends.allocation import (
    EVIDENCE_ABORTED,
    EVIDENCE_CONFLICT,
    EVIDENCE_STALE,
    AcceleratorAllocationBackend,
    ClaimObservation,
    ClaimStatus,
    FeasiblePlan,
    ReleaseObservation,
    ReleaseStatus,
    WorkloadRequest,
)
from videoflow.backends.allocation.lifecycle._terms import (
    UNDER_WAY,
    Aborted,
    Journal,
    NotBegun,
    Phase,
    R,
    Steps,
    Superseded,
    Taken,
    Unanswered,
    Undecided,
    changed_by,
    claim_name,
    plan_digest,
)
from videoflow.backends.outcomes import Known, Observation, UnknownReason, known, unknown
from videoflow.errors import ContractBroken, UnknownName


class RecordedAllocation(AcceleratorAllocationBackend, Generic[R]):
    """An allocator whose claims are records; what an adapter brings begins with an underscore."""

    claim_prefix = "claim"

    def reserve(self, plan: FeasiblePlan, operation_id: str, expected_generation: str) -> ClaimObservation:
        """Writes the claim, then takes its devices, then changes geometry."""
        if plan.snapshot_generation != expected_generation:
            raise ContractBroken("a plan is reserved against the generation that it was made from")
        claim = claim_name(operation_id, self.claim_prefix)
        nothing = ClaimObservation(claim, "", "1", None, ClaimStatus.FAILED, None)
        try:
            journal = self._find(claim)
            if journal is None:
                journal = self._begin(plan, claim)
            elif journal.record.plan != plan_digest(plan):
                raise ContractBroken(f"operation {operation_id} was begun with another plan")
            elif journal.record.phase in UNDER_WAY:
                journal.move(epoch=journal.record.epoch + 1)
            self._carry_on(journal)
        except NotBegun as refused:
            return replace(nothing, evidence=refused.evidence)
        except Superseded:
            pass
        except Unanswered as error:
            return replace(nothing, status=ClaimStatus.PENDING, evidence=(str(error),))
        seen = self.observe(claim)
        if isinstance(seen, Known):
            return seen.value
        return replace(nothing, status=ClaimStatus.PENDING, evidence=(f"{seen.reason}: {seen.detail}",))

    def observe(self, claim_id: str) -> Observation[ClaimObservation]:
        """Reads the record of a claim, then what it holds."""
        try:
            journal = self._find(claim_id)
            if journal is None:
                return unknown(UnknownReason.MISSING, self._now(), f"there is no claim {claim_id}")
            seen = self._seen(journal)
        except Unanswered as error:
            return unknown(error.reason, self._now(), f"claim {claim_id} cannot be read: {error}")
        return known(seen, self._now())

    def claims(self, scope: str) -> Observation[tuple[ClaimObservation, ...]]:
        """Lists every claim of the records that has something on the host, or all of them."""
        try:
            found = [
                self._seen(journal)
                for journal in sorted(self._listed(), key=lambda one: one.record.claim_id)
                if scope in ("", *journal.record.hosts())
            ]
        except Unanswered as error:
            return unknown(error.reason, self._now(), f"the claims cannot be listed: {error}")
        return known(tuple(found), self._now())

    def reconcile(
        self, claim_id: str, desired: Sequence[WorkloadRequest], expected_generation: str
    ) -> ClaimObservation:
        """Carries on with a claim; what it holds is never changed in place."""
        nothing = ClaimObservation(claim_id, "", expected_generation, None, ClaimStatus.PENDING, None)
        try:
            journal = self._known(claim_id)
            record = journal.record
            now = self._seen(journal)
            if str(record.generation) != expected_generation:
                fenced = f"the claim is of generation {record.generation}"
                return replace(now, evidence=(EVIDENCE_STALE, fenced, *now.evidence))
            if changed := changed_by(record.assignments, desired):
                evidence = (EVIDENCE_CONFLICT, changed, *now.evidence)
                return replace(now, status=ClaimStatus.FAILED, evidence=evidence)
            if (phase := self._carried_on_from(journal)) is not None:
                journal.move(phase=phase, epoch=record.epoch + 1)
                self._carry_on(journal)
            return self._seen(journal)
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
            journal = self._find(claim_id)
            if journal is None:
                return self._of_nobody(claim_id)
            record = journal.record
            if str(record.generation) != expected_generation:
                fenced = f"the claim is of generation {record.generation}"
                return ReleaseObservation(claim_id, ReleaseStatus.STALE, reason=fenced)
            if keep_workloads:
                return replace(pending, remaining=tuple(record.assignments), reason="its workloads keep it")
            steps = self._steps(journal)
            if users := steps.users():
                return replace(pending, remaining=users, reason="in use")
            journal.move(phase=Phase.RELEASING, epoch=record.epoch + 1)
            if remaining := steps.give_back():
                return replace(pending, remaining=remaining, reason="it is not all given back yet")
            journal.delete()
        except Superseded:
            return replace(pending, reason="another process moved the claim meanwhile")
        except Unanswered as error:
            return replace(pending, reason=str(error))
        return ReleaseObservation(claim_id, ReleaseStatus.RELEASED)

    # What an adapter brings; all of it may raise Unanswered ---------------------------------------

    @abstractmethod
    def _now(self) -> float:
        """Returns monotonic seconds."""

    @abstractmethod
    def _find(self, claim_id: str) -> Journal[R] | None:
        """Reads a claim; None: there is none."""

    @abstractmethod
    def _listed(self) -> Iterable[Journal[R]]:
        """Returns every claim of the records."""

    @abstractmethod
    def _begin(self, plan: FeasiblePlan, claim_id: str) -> Journal[R]:
        """Writes the record of a new claim; raises NotBegun where the inventory refuses the plan."""

    @abstractmethod
    def _steps(self, journal: Journal[R]) -> Steps:
        """Returns the steps of a claim."""

    @abstractmethod
    def _seen(self, journal: Journal[R]) -> ClaimObservation:
        """Returns a claim as it is with its authority now."""

    def _carried_on_from(self, journal: Journal[R]) -> Phase | None:
        """Returns where a reconciliation takes a claim up; None: there is nothing to be done."""
        return journal.record.phase if journal.record.phase in UNDER_WAY else None

    def _of_nobody(self, claim_id: str) -> ReleaseObservation:
        """Returns what becomes of a claim without a record, after looking for what it may have left."""
        return ReleaseObservation(claim_id, ReleaseStatus.RELEASED, reason="no such claim on record")

    # Inside ---------------------------------------------------------------------------------------

    def _known(self, claim_id: str) -> Journal[R]:
        journal = self._find(claim_id)
        if journal is None:
            raise UnknownName(f"there is no claim {claim_id}")
        return journal

    def _carry_on(self, journal: Journal[R]) -> None:
        """Takes a claim that is under way to its end; raises Superseded and Unanswered."""
        steps = self._steps(journal)
        if journal.record.phase in (Phase.OWNING, Phase.CHANGING):
            try:
                steps.own()
                _look(steps)
                steps.change_geometry()
                journal.move(phase=Phase.HELD)
            except Undecided:
                return
            except (Taken, Aborted) as error:
                why = EVIDENCE_CONFLICT if isinstance(error, Taken) else EVIDENCE_ABORTED
                journal.move(phase=Phase.ABORTING, evidence=(why, str(error)))
        if journal.record.phase is Phase.ABORTING and not steps.give_back():
            journal.move(phase=Phase.FAILED)


def _look(steps: Steps) -> None:
    """Looks again; raises Aborted also where nobody answers, since then nothing may change."""
    try:
        steps.look_again()
    except Unanswered as error:
        raise Aborted(f"occupancy cannot be read again: {error}") from error
