"""Laws of reservations: who owns, and who looked again."""

from functools import partial

import pytest

from videoflow.backends.allocation import (
    EVIDENCE_ABORTED,
    EVIDENCE_CONFLICT,
    EVIDENCE_LOST,
    ClaimStatus,
    FeasiblePlan,
    ReleaseStatus,
    WorkloadRequest,
)
from videoflow.errors import ContractBroken
from videoflow.testing.examiners import Examiner, law
from videoflow.testing.examiners.allocation import _laws as laws
from videoflow.testing.examiners.allocation._acts import (
    A100,
    FAILURES,
    card,
    claimed,
    host,
    needs,
    nothing_left,
    piece,
    planned,
    recover,
    refused,
    release,
    reserve,
    seen,
    share,
    sole,
    value,
    whole,
)
from videoflow.testing.examiners.allocation._steps import Stage
from videoflow.testing.examiners.allocation._subject import (
    Ability,
    AllocationSubject,
    FixtureHost,
    Read,
    Seizable,
)


class OwningSuite(Examiner[AllocationSubject]):
    """Nobody but the authority gives a device, and only once."""

    @law(laws.LOOKS_AGAIN)
    def test_alloc_7_users_that_cannot_be_read_again_end_the_operation(
        self, subject: AllocationSubject
    ) -> None:
        for reason in FAILURES:
            subject.furnish([host(card(1), managed=subject.can(Ability.GEOMETRY))])
            before = subject.layouts()
            plan = planned(subject, piece() if subject.can(Ability.GEOMETRY) else whole())
            stage = Stage(subject)
            actor = stage.enter("main", partial(reserve, subject, plan))
            while actor.call is not None and not subject.owned():
                actor.step()
            subject.fail(Read.SECONDARY, reason)
            claim = actor.finish()
            subject.fail(Read.SECONDARY, None)
            assert claim.status is ClaimStatus.FAILED, reason
            assert claim.evidence[0] == EVIDENCE_ABORTED
            assert subject.owned() == ()
            assert subject.layouts() == before
            recover(subject)
            nothing_left(subject, before)

    @law(laws.ONE_OWNER)
    def test_alloc_4_of_two_who_read_the_same_one_is_the_owner(self, subject: AllocationSubject) -> None:
        self._race(subject, host(card(1)), whole(), whole())

    @law(laws.ONE_OWNER)
    @needs(Ability.GEOMETRY, Ability.STATIC_SLICES)
    def test_alloc_18_of_a_card_and_its_slice_one_is_given(self, subject: AllocationSubject) -> None:
        cut = host(card(1, slices=(("3g.40gb", 0),)), managed=True)
        self._race(subject, cut, whole(), piece(gib=30.0))
        self._race(subject, cut, piece(gib=30.0), whole())

    @law(laws.POLICY)
    def test_alloc_25_sharers_who_come_at_once_never_have_more_than_the_device(
        self, subject: AllocationSubject
    ) -> None:
        subject.furnish([host(card(1, A100))])
        if subject.backend().capabilities(subject.environment()).cooperative_sharing:
            self._race(subject, host(card(1, A100)), share(gib=25.0), share(gib=25.0))
            self._race(subject, host(card(1, A100)), whole(), share(gib=1.0))

    def _race(
        self,
        subject: AllocationSubject,
        furnished: FixtureHost,
        asked: WorkloadRequest,
        against: WorkloadRequest,
    ) -> None:
        """The second overtakes the first at each of its calls in turn; they cannot both have it."""
        ahead, went_through = 0, False
        while not went_through:
            subject.furnish([furnished])
            first_plan, second_plan = planned(subject, asked), planned(subject, against, process="b")
            first = Stage(subject).enter("a", partial(reserve, subject, first_plan, "op-a", "a"))
            for _ in range(ahead):
                if first.call is not None:
                    first.step()
            went_through = first.call is None
            second = reserve(subject, second_plan, "op-b", "b")
            sole(subject)
            claims = [first.finish(), second]
            sole(subject)
            ready = [claim for claim in claims if claim.status is ClaimStatus.READY]
            assert len(ready) <= 1, ahead
            assert len({owner for _, owner in subject.owned()}) == len(ready), (ahead, claims)
            for claim in claims:
                if claim not in ready:
                    assert claim.status is ClaimStatus.FAILED, claim
                    assert claim.evidence[0] == EVIDENCE_CONFLICT
                    assert claim.grant is None
            if went_through:
                assert ready == [claims[0]]
            ahead += 1

    @law(laws.ONE_OWNER)
    def test_alloc_4_a_late_rollback_unseats_nobody(self, subject: AllocationSubject) -> None:
        """A process that stood still wakes after its claim was released and its device given away."""
        ahead, ended = 0, False
        while not ended:
            subject.furnish([host(card(1), managed=subject.can(Ability.GEOMETRY))])
            asked = piece(gib=79.0) if subject.can(Ability.GEOMETRY) else whole()
            plan = planned(subject, asked)
            stage = Stage(subject)
            late = stage.enter("late", partial(reserve, subject, plan, "op-late", "late"))
            for _ in range(ahead):
                if late.call is not None:
                    late.step()
            ended = late.call is None
            recover(subject)
            winner = claimed(subject, asked, operation="op-winner", process="winner")
            owners, layouts = subject.owned(), subject.layouts()
            if not ended:
                late.finish()
            assert subject.owned() == owners, ahead
            assert subject.layouts() == layouts, ahead
            sole(subject)
            again = value(subject.backend("winner").observe(winner.claim_id))
            assert again.status is ClaimStatus.READY, again
            recover(subject)
            assert subject.owned() == ()
            assert subject.records() == ()
            ahead += 1

    @law(laws.ONE_OWNER)
    def test_alloc_4_who_was_overtaken_owns_nothing_any_more(self, subject: AllocationSubject) -> None:
        """A process that stood still wakes after its claim was given back, and may die at any moment."""
        ahead, ended = 0, False
        while not ended:
            subject.furnish([host(card(1), managed=subject.can(Ability.GEOMETRY))])
            before = subject.layouts()
            plan = planned(subject, piece(gib=39.0) if subject.can(Ability.GEOMETRY) else whole())
            late = Stage(subject).enter("late", partial(reserve, subject, plan, "op-late", "late"))
            for _ in range(ahead):
                if late.call is not None:
                    late.step()
            ended = late.call is None
            recover(subject)
            while late.call is not None:
                late.step()
                if not subject.records():
                    assert subject.owned() == (), ahead
                    assert subject.layouts() == before, ahead
            recover(subject)
            nothing_left(subject, before)
            ahead += 1

    @law(laws.ONCE)
    def test_alloc_4_where_the_inventory_moved_nothing_is_written(self, subject: AllocationSubject) -> None:
        subject.furnish([host(card(1), card(2))])
        plan = planned(subject, whole())
        other = claimed(subject, whole(), operation="other", process="other")
        before = subject.writes()
        claim = reserve(subject, plan)
        assert claim.status is ClaimStatus.FAILED
        assert claim.evidence[0] == EVIDENCE_CONFLICT
        assert claim.grant is None
        assert subject.writes() == before
        with pytest.raises(ContractBroken):
            subject.backend().reserve(plan, "op", seen(subject).generation)
        assert subject.writes() == before
        assert value(subject.backend().observe(other.claim_id)).status is ClaimStatus.READY

    @law(laws.ONCE)
    def test_alloc_22_the_same_operation_is_done_once_by_any_process(
        self, subject: AllocationSubject
    ) -> None:
        subject.furnish([host(card(1), card(2))])
        plan = planned(subject, whole())
        first = reserve(subject, plan)
        before = subject.writes()
        for process in ("main", "fresh"):
            again = reserve(subject, plan, process=process)
            assert (again.claim_id, again.grant) == (first.claim_id, first.grant)
        assert subject.writes() == before
        assert len(subject.owned()) == 1
        with pytest.raises(ContractBroken):
            reserve(subject, planned(subject, whole("other")))
        assert subject.writes() == before

    @law(laws.LOOKS_AGAIN)
    @needs(Ability.KEEPS_OUT)
    def test_alloc_12_a_foreigner_is_kept_out_or_the_operation_gives_back(
        self, subject: AllocationSubject
    ) -> None:
        self._foreigner_at_every_call(subject, tolerant=False)

    @law(laws.LOOKS_AGAIN)
    def test_alloc_12_one_who_cannot_be_kept_out_is_seen_before_anything_changes(
        self, subject: AllocationSubject
    ) -> None:
        self._foreigner_at_every_call(subject, tolerant=True)

    def _foreigner_at_every_call(self, subject: AllocationSubject, *, tolerant: bool) -> None:
        asks = [whole()] + ([piece(gib=39.0)] if subject.can(Ability.GEOMETRY) else [])
        for asked in asks:
            ahead, ended = 0, False
            while not ended:
                subject.furnish([host(card(1), managed=subject.can(Ability.GEOMETRY))])
                before, plan = subject.layouts(), planned(subject, asked)
                stage = Stage(subject)
                actor = stage.enter("main", partial(reserve, subject, plan))
                for _ in range(ahead):
                    if actor.call is not None:
                        actor.step()
                ended = actor.call is None
                owned, untouched = subject.owned(), subject.layouts() == before
                inside = subject.arrive(card(1).uuid, tolerant=tolerant)
                claim = actor.finish()
                if inside and not owned:
                    assert claim.status is ClaimStatus.FAILED, (ahead, claim)
                    assert claim.evidence[0] in (EVIDENCE_ABORTED, EVIDENCE_CONFLICT)
                    assert subject.owned() == ()
                if inside and not tolerant:
                    assert claim.status is not ClaimStatus.READY, (ahead, claim)
                if inside and untouched:
                    assert subject.layouts() == before, ahead
                if not inside:
                    assert claim.status is ClaimStatus.READY, (ahead, claim)
                subject.leave(card(1).uuid)
                recover(subject)
                nothing_left(subject, before)
                ahead += 1

    @law(laws.ONE_OWNER)
    def test_alloc_18_a_card_and_a_slice_of_it_never_have_two_owners(
        self, subject: AllocationSubject
    ) -> None:
        subject.furnish([host(card(1), card(2), managed=subject.can(Ability.GEOMETRY))])
        claimed(subject, whole(), operation="one", process="one")
        if subject.can(Ability.GEOMETRY):
            claimed(subject, piece(gib=39.0), operation="two", process="two")
            refused(subject, piece(gib=79.0))
            self._beside_what_is_there(subject)
        else:
            claimed(subject, whole(), operation="two", process="two")
        sole(subject)
        refused(subject, whole())

    def _beside_what_is_there(self, subject: AllocationSubject) -> None:
        """A third comes on the half of a card that is left, where it may: what others have stays as it is."""
        owners, layouts = subject.owned(), subject.layouts()
        plan = subject.backend().plan([piece(gib=9.0)], seen(subject))
        if isinstance(plan, FeasiblePlan):
            claim = reserve(subject, plan, "three", "three")
            assert claim.status is ClaimStatus.READY, claim
        assert set(owners) <= set(subject.owned())
        for uuid, layout in subject.layouts().items():
            assert set(layouts[uuid]) <= set(layout), uuid
            assert layout == layouts[uuid] or layouts[uuid], "a card that is whole for one was cut"

    @law(laws.ONE_OWNER)
    @needs(Ability.FOREIGN_OWNER)
    def test_alloc_18_what_another_allocator_owns_or_takes_is_left_alone(
        self, subject: AllocationSubject
    ) -> None:
        subject.furnish([host(card(1), owner="dra.example")])
        assert "dra.example" in refused(subject, whole())
        subject.furnish([host(card(1), managed=subject.can(Ability.GEOMETRY))])
        claim = claimed(subject, piece(gib=39.0) if subject.can(Ability.GEOMETRY) else whole())
        assert isinstance(subject, Seizable)
        subject.seize("a")
        lost = value(subject.backend().observe(claim.claim_id))
        assert lost.status is ClaimStatus.FAILED
        assert lost.evidence[0] == EVIDENCE_LOST
        assert lost.grant is None
        with pytest.raises(ContractBroken):
            subject.backend().bindings(claim.claim_id, "w/0")
        layouts, owner = subject.layouts(), subject.host_owner("a")
        touched = len([write for write in subject.writes() if " a " in f"{write} "])
        assert release(subject, claim).status is ReleaseStatus.RELEASED
        assert len([write for write in subject.writes() if " a " in f"{write} "]) == touched
        assert (subject.layouts(), subject.host_owner("a")) == (layouts, owner)
        assert subject.records() == ()
