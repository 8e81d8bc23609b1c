"""Laws of what is read: what is unknown, what is ready, and what a workload sees."""

from collections.abc import Sequence

import pytest

from videoflow.backends.allocation import (
    ClaimStatus,
    Completeness,
    DeviceIdentity,
    FeasiblePlan,
    Infeasible,
    device_key,
)
from videoflow.backends.outcomes import Unknown, UnknownReason
from videoflow.errors import ContractBroken, UnknownName
from videoflow.testing.examiners import Examiner, law
from videoflow.testing.examiners.allocation import _laws as laws
from videoflow.testing.examiners.allocation._acts import (
    DONE_FOR,
    FAILURES,
    card,
    claimed,
    host,
    needs,
    piece,
    planned,
    refused,
    release,
    reserve,
    seen,
    value,
    whole,
)
from videoflow.testing.examiners.allocation._subject import Ability, AllocationSubject, Read, Staged


class ReadingSuite(Examiner[AllocationSubject]):
    """Nothing is made of a read that failed, and ready is what evidence says."""

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

    @law(laws.EVIDENCE)
    @needs(Ability.STAGES)
    def test_alloc_21_allocated_prepared_and_ready_are_three_states(self, subject: AllocationSubject) -> None:
        cuts = subject.can(Ability.GEOMETRY)
        asked = piece(gib=39.0) if cuts else whole()
        subject.furnish([host(card(1), managed=cuts)])
        release(subject, claimed(subject, asked, operation="before"))
        assert isinstance(subject, Staged)
        subject.hold_back()
        claim = reserve(subject, planned(subject, asked))
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
        assert isinstance(subject, Staged)
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
