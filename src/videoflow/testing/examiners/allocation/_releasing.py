"""Laws of what outlives a process: records, recovery, and giving back."""

from functools import partial

import pytest

from videoflow.backends.allocation import EVIDENCE_STALE, ClaimStatus, ReleaseStatus, WorkloadRequest
from videoflow.backends.outcomes import Unknown, UnknownReason
from videoflow.errors import ContractBroken, UnknownName
from videoflow.testing.examiners import Examiner, law
from videoflow.testing.examiners.allocation import _laws as laws
from videoflow.testing.examiners.allocation._acts import (
    card,
    claimed,
    host,
    needs,
    nothing_left,
    piece,
    planned,
    recover,
    release,
    reserve,
    sole,
    value,
    whole,
)
from videoflow.testing.examiners.allocation._steps import Stage
from videoflow.testing.examiners.allocation._subject import Ability, AllocationSubject, Fate, Read

MISHAPS = (Fate.CRASH, Fate.CRASH_AFTER, Fate.LOST, Fate.UNHEARD)


class ReleasingSuite(Examiner[AllocationSubject]):
    """Whatever happens to a process, its claims are found, and given back to the last device."""

    @law(laws.DURABLE)
    def test_alloc_6_wherever_a_reservation_ends_the_next_process_finds_it(
        self, subject: AllocationSubject
    ) -> None:
        for fate in MISHAPS:
            ahead, ended = 0, False
            while not ended:
                asked = self._world(subject)
                before, plan = subject.layouts(), planned(subject, asked)
                actor = Stage(subject).enter("first", partial(reserve, subject, plan, "op", "first"))
                for _ in range(ahead):
                    if actor.call is not None:
                        actor.step()
                ended = actor.call is None
                if actor.call is not None:
                    in_doubt = actor.call.writes and fate in (Fate.LOST, Fate.UNHEARD)
                    actor.step(fate)
                    status = None if actor.crashed else actor.finish().status
                    if in_doubt:
                        assert status in (ClaimStatus.READY, ClaimStatus.PENDING), (fate, ahead)
                sole(subject)
                subject.kill("first")
                owners = {owner for _, owner in subject.owned()}
                listed = value(subject.claims("second"))
                assert len(listed) >= len(owners), (fate, ahead)
                assert len(owners) <= 1
                if ahead % 2:
                    claim = reserve(subject, plan, "op", "second")
                    if claim.status is ClaimStatus.FAILED:
                        assert subject.owned() == (), (fate, ahead)
                    else:
                        assert claim.status is ClaimStatus.READY, (fate, ahead, claim)
                recover(subject)
                nothing_left(subject, before)
                ahead += 1

    @law(laws.DURABLE)
    @needs(Ability.GEOMETRY)
    def test_alloc_6_a_restore_that_fails_is_on_record_and_carried_on(
        self, subject: AllocationSubject
    ) -> None:
        ahead, ended = 0, False
        while not ended:
            asked = self._world(subject)
            before = subject.layouts()
            claim = claimed(subject, asked)
            assert claim.grant is not None
            device = str(claim.grant.devices[0].mig_uuid)
            actor = Stage(subject).enter("main", partial(release, subject, claim))
            for _ in range(ahead):
                if actor.call is not None:
                    actor.step()
            ended = actor.call is None
            there = any(device == key for key, _ in subject.exclusive())
            inside = there and subject.arrive(device, tolerant=True)
            done = actor.finish()
            if done.status is ReleaseStatus.PENDING_RECOVERY:
                assert inside
                assert done.remaining
                assert done.reason
                assert subject.records() == (claim.claim_id,)
                assert subject.owned()
                again = release(subject, claim, "second")
                assert again.status is ReleaseStatus.PENDING_RECOVERY
            else:
                assert done.status is ReleaseStatus.RELEASED
            if inside:
                subject.leave(device)
            assert release(subject, claim, "third").status is ReleaseStatus.RELEASED
            nothing_left(subject, before)
            ahead += 1
        assert ahead > 1

    @law(laws.RELEASE)
    def test_alloc_22_a_release_is_idempotent_over_every_mishap(self, subject: AllocationSubject) -> None:
        for fate in MISHAPS:
            ahead, ended = 0, False
            while not ended:
                asked = self._world(subject)
                before = subject.layouts()
                other = claimed(subject, whole(), operation="other", process="other")
                owned = subject.owned()
                claim = claimed(subject, asked)
                actor = Stage(subject).enter("main", partial(release, subject, claim))
                for _ in range(ahead):
                    if actor.call is not None:
                        actor.step()
                ended = actor.call is None
                if not ended:
                    actor.step(fate)
                if not actor.crashed and actor.finish().status is ReleaseStatus.RELEASED:
                    assert subject.records() == (other.claim_id,), (fate, ahead)
                subject.kill("main")
                for process in ("second", "third"):
                    assert release(subject, claim, process).status is ReleaseStatus.RELEASED, (fate, ahead)
                assert subject.owned() == owned, (fate, ahead)
                assert subject.layouts() == before, (fate, ahead)
                assert value(subject.backend().observe(other.claim_id)).status is ClaimStatus.READY
                recover(subject)
                nothing_left(subject, before)
                ahead += 1

    @law(laws.RELEASE)
    def test_alloc_7_what_is_busy_kept_or_unreadable_stays_owned(self, subject: AllocationSubject) -> None:
        asked = self._world(subject)
        before = subject.layouts()
        claim = claimed(subject, asked)
        backend = subject.backend()
        kept = subject.owned(), subject.layouts(), subject.writes()

        def stays(status: ReleaseStatus, generation: str, *, keep: bool = False) -> None:
            done = backend.release(claim.claim_id, "release", generation, keep)
            assert done.status is status, done
            assert done.reason
            assert (subject.owned(), subject.layouts(), subject.writes()) == kept

        stays(ReleaseStatus.STALE, f"{claim.desired_generation}-older")
        stays(ReleaseStatus.PENDING_RECOVERY, claim.desired_generation, keep=True)
        subject.start(claim.claim_id, "w/0")
        stays(ReleaseStatus.PENDING_RECOVERY, claim.desired_generation)
        subject.end(claim.claim_id, "w/0")
        for read in (Read.SECONDARY, Read.RECORDS):
            for reason in (UnknownReason.TIMEOUT, UnknownReason.AUTH, UnknownReason.MALFORMED):
                subject.fail(read, reason)
                stays(ReleaseStatus.PENDING_RECOVERY, claim.desired_generation)
                if read is Read.RECORDS:
                    assert isinstance(backend.observe(claim.claim_id), Unknown)
            subject.fail(read, None)
        assert value(backend.observe(claim.claim_id)).status is ClaimStatus.READY
        assert release(subject, claim).status is ReleaseStatus.RELEASED
        nothing_left(subject, before)

    @law(laws.RELEASE)
    def test_alloc_22_a_claim_that_nobody_knows_is_released_after_a_look(
        self, subject: AllocationSubject
    ) -> None:
        self._world(subject)
        before = subject.writes()
        done = subject.backend().release("claim-of-nobody", "release", "1")
        assert done.status is ReleaseStatus.RELEASED
        subject.fail(Read.RECORDS, UnknownReason.TIMEOUT)
        done = subject.backend().release("claim-of-nobody", "release", "1")
        assert done.status is ReleaseStatus.PENDING_RECOVERY
        assert done.reason
        assert subject.writes() == before

    @law(laws.RELEASE)
    def test_alloc_22_reconciling_is_fenced_by_generation(self, subject: AllocationSubject) -> None:
        asked = self._world(subject)
        claim = claimed(subject, asked)
        backend, before = subject.backend(), (subject.owned(), subject.writes())
        fenced = backend.reconcile(claim.claim_id, [asked], f"{claim.desired_generation}-older")
        assert fenced.evidence[0] == EVIDENCE_STALE
        assert (subject.owned(), subject.writes()) == before
        same = backend.reconcile(claim.claim_id, [asked], claim.desired_generation)
        assert (same.status, same.grant) == (ClaimStatus.READY, claim.grant)
        with pytest.raises(ContractBroken):
            backend.reconcile(claim.claim_id, [whole(count=2)], claim.desired_generation)
        with pytest.raises(UnknownName):
            backend.reconcile("claim-of-nobody", [asked], "1")
        assert subject.owned() == before[0]
        recover(subject)

    def _world(self, subject: AllocationSubject) -> WorkloadRequest:
        managed = subject.can(Ability.GEOMETRY)
        subject.furnish([host(card(1), card(2), managed=managed)])
        return piece(gib=39.0) if managed else whole()
