"""Laws of reservations: who owns, who looked again, and what is ready."""

from collections.abc import Sequence
from functools import partial

import pytest

from videoflow.backends.allocation import (
    EVIDENCE_ABORTED,
    EVIDENCE_CONFLICT,
    EVIDENCE_LOST,
    ClaimStatus,
    Completeness,
    DeviceIdentity,
    FeasiblePlan,
    Infeasible,
    ReleaseStatus,
    device_key,
)
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
    refused,
    release,
    reserve,
    seen,
    sole,
    value,
    whole,
)
from videoflow.testing.examiners.allocation._steps import Stage
from videoflow.testing.examiners.allocation._subject import Ability, AllocationSubject, Read

FAILURES = (
    UnknownReason.TIMEOUT,
    UnknownReason.AUTH,
    UnknownReason.UNREACHABLE,
    UnknownReason.MALFORMED,
)
DONE_FOR = (ClaimStatus.FAILED, ClaimStatus.PENDING)


class OwningSuite(Examiner[AllocationSubject]):
    """Nobody but the authority gives a device, and only once."""

    @law(laws.READS)
    def test_alloc_7_a_read_that_failed_is_unknown_and_blocks_what_rests_on_it(
        self, subject: AllocationSubject
    ) -> None:
        subject.furnish([host(card(1), card(2))])
        plan = planned(subject, whole())
        before = subject.writes()
        for reason in FAILURES:
            subject.fail(Read.PRIMARY, reason)
            assert isinstance(subject.backend().inventory(""), Unknown), reason
            assert reserve(subject, plan).status in DONE_FOR
            subject.fail(Read.PRIMARY, None)
            subject.fail(Read.SECONDARY, reason)
            snapshot = seen(subject)
            assert snapshot.completeness is Completeness.PARTIAL, reason
            assert not snapshot.occupancy
            assert isinstance(subject.backend().plan([whole()], snapshot), Infeasible), reason
            assert reserve(subject, plan).status in DONE_FOR
            subject.fail(Read.SECONDARY, None)
            subject.fail(Read.RECORDS, reason)
            assert reserve(subject, plan).status in DONE_FOR
            assert isinstance(subject.claims("fresh"), Unknown), reason
            subject.fail(Read.RECORDS, None)
        assert subject.owned() == ()
        assert subject.writes() == before
        claimed(subject, whole())

    @law(laws.READS)
    def test_alloc_14_a_host_that_cannot_be_read_is_not_one_without_devices(
        self, subject: AllocationSubject
    ) -> None:
        subject.furnish([host(card(1))])
        subject.fail(Read.PRIMARY, UnknownReason.UNREACHABLE)
        found = subject.backend().inventory("")
        assert isinstance(found, Unknown)
        assert found.reason is not UnknownReason.MISSING
        subject.fail(Read.PRIMARY, None)
        snapshot = seen(subject)
        assert [device_key(device) for device in snapshot.devices] == [card(1).uuid]
        assert subject.arrive(card(1).uuid)
        assert seen(subject).occupancy[card(1).uuid] == 1
        refused(subject, whole())

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
        ahead = 0
        while True:
            subject.furnish([host(card(1))])
            plans = {name: planned(subject, whole(), process=name) for name in ("a", "b")}
            stage = Stage(subject)
            first = stage.enter("a", partial(reserve, subject, plans["a"], "op-a", "a"))
            for _ in range(ahead):
                if first.call is not None:
                    first.step()
            went_through = first.call is None
            second = reserve(subject, plans["b"], "op-b", "b")
            sole(subject)
            claims = [first.finish(), second]
            sole(subject)
            ready = [claim for claim in claims if claim.status is ClaimStatus.READY]
            assert len(ready) <= 1
            assert len(subject.owned()) == len(ready), (ahead, claims)
            for claim in claims:
                if claim not in ready:
                    assert claim.status is ClaimStatus.FAILED, claim
                    assert claim.evidence[0] == EVIDENCE_CONFLICT
                    assert claim.grant is None
            if went_through:
                assert ready == [claims[0]]
                break
            ahead += 1

    @law(laws.ONE_OWNER)
    def test_alloc_4_a_late_rollback_unseats_nobody(self, subject: AllocationSubject) -> None:
        """A process that stood still wakes after its claim was released and its device given away."""
        ahead, ended = 0, False
        while not ended:
            subject.furnish([host(card(1), managed=subject.can(Ability.GEOMETRY))])
            asked = piece(gib=39.0) if subject.can(Ability.GEOMETRY) else whole()
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

    @law(laws.BINDINGS)
    @needs(Ability.MASKS)
    def test_alloc_15_a_mask_shows_exactly_the_devices_of_the_grant(self, subject: AllocationSubject) -> None:
        cards = [card(1), card(2), card(3)]
        subject.furnish([host(*cards, managed=subject.can(Ability.GEOMETRY))])
        everything = {device.uuid: device.ordinal for device in seen(subject).devices}
        assert set(everything) == {fixture.uuid for fixture in cards}
        asks = [whole("w/0", 2)] + ([piece("w/1", 39.0)] if subject.can(Ability.GEOMETRY) else [])
        claim = claimed(subject, *asks)
        assert claim.grant is not None
        shown: list[str] = []
        for asked in asks:
            env = subject.backend("launcher").bindings(claim.claim_id, asked.workload_id).env
            visible = cuda_sees(env["CUDA_VISIBLE_DEVICES"], seen(subject).devices)
            assert len(visible) == asked.device_count
            shown += visible
        assert sorted(shown) == sorted(device_key(device) for device in claim.grant.devices)
        with pytest.raises(UnknownName):
            subject.backend().bindings(claim.claim_id, "w/9")
        with pytest.raises(UnknownName):
            subject.backend().bindings("claim-of-nobody", "w/0")
        release(subject, claim)
        with pytest.raises((UnknownName, ContractBroken)):
            subject.backend().bindings(claim.claim_id, "w/0")

    @law(laws.ONE_OWNER)
    def test_alloc_18_a_card_and_a_slice_of_it_never_have_two_owners(
        self, subject: AllocationSubject
    ) -> None:
        subject.furnish([host(card(1), card(2), managed=subject.can(Ability.GEOMETRY))])
        claimed(subject, whole(), operation="one", process="one")
        if subject.can(Ability.GEOMETRY):
            claimed(subject, piece(gib=39.0), operation="two", process="two")
            refused(subject, piece(gib=9.0))
        else:
            claimed(subject, whole(), operation="two", process="two")
        sole(subject)
        refused(subject, whole())

    @law(laws.ONE_OWNER)
    @needs(Ability.FOREIGN_OWNER)
    def test_alloc_18_what_another_allocator_owns_or_takes_is_left_alone(
        self, subject: AllocationSubject
    ) -> None:
        subject.furnish([host(card(1), owner="dra.example")])
        assert "dra.example" in refused(subject, whole())
        subject.furnish([host(card(1), managed=subject.can(Ability.GEOMETRY))])
        claim = claimed(subject, piece(gib=39.0) if subject.can(Ability.GEOMETRY) else whole())
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

    @law(laws.EVIDENCE)
    @needs(Ability.STAGES, Ability.GEOMETRY)
    def test_alloc_21_allocated_prepared_and_ready_are_three_states(self, subject: AllocationSubject) -> None:
        subject.furnish([host(card(1), managed=True)])
        release(subject, claimed(subject, piece(gib=39.0), operation="before"))
        subject.hold_back()
        claim = reserve(subject, planned(subject, piece(gib=39.0)))
        for status in (ClaimStatus.ALLOCATED, ClaimStatus.PREPARED, ClaimStatus.READY):
            found = value(subject.backend("watcher").observe(claim.claim_id))
            assert found.status is status
            assert (found.observed_generation is not None) is (status is ClaimStatus.READY)
            if status is not ClaimStatus.READY:
                with pytest.raises(ContractBroken):
                    subject.backend().bindings(claim.claim_id, "w/0")
            subject.proceed()
        subject.backend().bindings(claim.claim_id, "w/0")

    @law(laws.ALL_OR_NONE)
    def test_alloc_30_desired_admitted_and_ready_are_three_numbers(self, subject: AllocationSubject) -> None:
        subject.furnish([host(card(1), card(2), card(3))])
        claim = claimed(subject, whole("w/0", 2))
        assert claim.grant is not None
        assert (claim.grant.requested, len(claim.grant.devices)) == (2, 2)
        assert claim.observed_generation == claim.desired_generation
        plan = subject.backend().plan([whole("w/1", 2)], seen(subject))
        assert not isinstance(plan, FeasiblePlan)
        missing = subject.backend().observe("claim-of-nobody")
        assert isinstance(missing, Unknown)
        assert missing.reason is UnknownReason.MISSING
        if not subject.can(Ability.STAGES, Ability.GEOMETRY):
            return
        subject.furnish([host(card(1), managed=True)])
        subject.hold_back()
        waiting = reserve(subject, planned(subject, piece(count=3)))
        assert waiting.status is ClaimStatus.ALLOCATED
        assert waiting.observed_generation is None
        assert waiting.grant is None or waiting.grant.requested == 3

    @law(laws.BINDINGS)
    @needs(Ability.CLAIM_MANIFESTS)
    def test_alloc_20_workloads_without_a_declared_group_share_no_claim(
        self, subject: AllocationSubject
    ) -> None:
        subject.furnish([host(card(1), card(2))])
        claim = claimed(subject, whole("w/0"), whole("w/1"))
        named: list[str] = []
        for workload in ("w/0", "w/1"):
            manifests = subject.backend().bindings(claim.claim_id, workload).claim_manifests
            named += [one["metadata"]["name"] for one in manifests if one["kind"] == "ResourceClaim"]
        assert len(named) == len(set(named))


def cuda_sees(mask: str, devices: Sequence[DeviceIdentity]) -> list[str]:
    """What a process with this mask sees, by CUDA's rules: keys in order; stops at what names nothing."""
    shown: list[str] = []
    entries = mask.split(",")
    if len(set(entries)) < len(entries):
        return []
    for entry in entries:
        if entry.isdecimal() != entries[0].isdecimal():
            break
        found = [
            device_key(device)
            for device in devices
            if (device.mig_uuid or "").startswith(entry)
            or (device.mig_uuid is None and (device.uuid or "").startswith(entry))
            or (device.mig_uuid is None and str(device.ordinal) == entry)
        ]
        if len(found) != 1:
            break
        shown += found
    return shown
