"""Laws of MIG geometry: what a card can be cut into, by whose judgement, and when it is left alone."""

import dataclasses

from videoflow.backends.allocation import (
    ClaimStatus,
    DeviceIdentity,
    FeasiblePlan,
    LayoutEntry,
    ReleaseStatus,
)
from videoflow.testing.examiners import Examiner, law
from videoflow.testing.examiners.allocation import _laws as laws
from videoflow.testing.examiners.allocation._acts import (
    A100,
    H100,
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
    whole,
)
from videoflow.testing.examiners.allocation._subject import Ability, AllocationSubject, Layout

BEYOND: tuple[Layout, ...] = (
    (("3g.40gb", 0), ("3g.40gb", 4), ("3g.40gb", 0)),
    (("7g.80gb", 0), ("1g.10gb", 0)),
    tuple(("1g.10gb", n) for n in range(8)),
)
MISPLACED: tuple[Layout, ...] = (
    (("2g.20gb", 1),),
    (("3g.40gb", 2),),
    (("1g.20gb", 5),),
    (("4g.40gb", 4),),
    (("2g.20gb", 6),),
)
FITTING = ((39.0, 2), (19.0, 4), (79.0, 1), (9.0, 7))
TOO_MANY = ((39.0, 3), (19.0, 5), (79.0, 2), (9.0, 8))


class GeometrySuite(Examiner[AllocationSubject]):
    """Layouts are judged by the subject's own table, never by the catalogue that plans are made from."""

    @law(laws.GEOMETRY)
    def test_alloc_1_a_layout_beyond_the_card_is_refused_with_nothing_written(
        self, subject: AllocationSubject
    ) -> None:
        subject.furnish([host(card(1), managed=subject.can(Ability.GEOMETRY))])
        before = subject.writes(), subject.layouts()
        if not subject.can(Ability.GEOMETRY):
            refused(subject, piece(gib=1.0))
            return
        for gib, count in FITTING:
            planned(subject, piece(gib=gib, count=count))
        for gib, count in TOO_MANY:
            refused(subject, piece(gib=gib, count=count))
        for layout in BEYOND:
            assert not subject.legal(H100, layout)
            refuses_layout(subject, layout)
        assert (subject.writes(), subject.layouts()) == before

    @law(laws.GEOMETRY)
    @needs(Ability.GEOMETRY)
    def test_alloc_1_a_label_is_no_size(self, subject: AllocationSubject) -> None:
        subject.furnish([host(card(1), managed=True)])
        claim = claimed(subject, piece(gib=10.0))
        assert claim.grant is not None
        (device,) = claim.grant.devices
        assert device.mig_profile != "1g.10gb"
        assert (device.memory_bytes or 0) >= 10 << 30

    @law(laws.GEOMETRY)
    @needs(Ability.GEOMETRY)
    def test_alloc_2_slices_begin_where_the_card_allows(self, subject: AllocationSubject) -> None:
        subject.furnish([host(card(1), managed=True)])
        before = subject.writes(), subject.layouts()
        for layout in MISPLACED:
            assert not subject.legal(H100, layout)
            refuses_layout(subject, layout)
        assert (subject.writes(), subject.layouts()) == before
        for number, asked in enumerate(([(39, 1), (19, 2)], [(19, 3), (9, 1)], [(39, 1), (9, 3)])):
            claim = claimed(
                subject,
                *(piece(f"w/{n}", float(gib), count) for n, (gib, count) in enumerate(asked)),
                operation=f"op-{number}",
            )
            for layout in subject.layouts().values():
                assert layout
                assert subject.legal(H100, layout), layout
            assert release(subject, claim).status is ReleaseStatus.RELEASED
        assert subject.layouts() == before[1]

    @law(laws.GEOMETRY)
    @needs(Ability.GEOMETRY, Ability.SEVERAL_HOSTS)
    def test_alloc_2_cards_of_several_kinds_are_cut_each_by_its_own_table(
        self, subject: AllocationSubject
    ) -> None:
        cards = {1: A100, 2: H100, 3: H100}
        subject.furnish(
            [host(card(n, product), name=f"host-{n}", managed=True) for n, product in cards.items()]
        )
        claim = claimed(
            subject,
            *(piece(f"big/{n}", 39.0) for n in range(4)),
            *(piece(f"small/{n}", 19.0) for n in range(2)),
        )
        for number, product in cards.items():
            layout = subject.layouts()[card(number).uuid]
            assert layout
            assert subject.legal(product, layout), layout
        assert claim.grant is not None
        assert len({device.mig_uuid for device in claim.grant.devices}) == 6

    @law(laws.GEOMETRY)
    @needs(Ability.STATIC_SLICES)
    def test_alloc_17_slices_that_are_there_are_used_as_they_are(self, subject: AllocationSubject) -> None:
        slices: Layout = (("3g.40gb", 0), ("3g.40gb", 4))
        subject.furnish([host(card(1, slices=slices), sharing="mig", managed=subject.can(Ability.GEOMETRY))])
        before = subject.layouts()
        there = {device.mig_uuid for device in seen(subject).devices} - {None}
        plan = planned(subject, piece("w/0", 30.0), piece("w/1", 30.0))
        assert not any(plan.geometry.values())
        claim = reserve(subject, plan)
        assert claim.status is ClaimStatus.READY, claim
        assert claim.grant is not None
        assert {device.mig_uuid for device in claim.grant.devices} == there
        assert {device.mig_uuid for device in seen(subject).devices} - {None} == there
        assert release(subject, claim).status is ReleaseStatus.RELEASED
        assert {device.mig_uuid for device in seen(subject).devices} - {None} == there
        nothing_left(subject, before)

    @law(laws.GEOMETRY)
    @needs(Ability.STATIC_SLICES)
    def test_alloc_28_a_card_with_slices_in_use_is_not_cut(self, subject: AllocationSubject) -> None:
        slices: Layout = (("1g.10gb", 0), ("1g.10gb", 1))
        for managed in {False, subject.can(Ability.GEOMETRY)}:
            subject.furnish([host(card(1, slices=slices), managed=managed)])
            before = subject.layouts()
            busy = next(device.mig_uuid for device in seen(subject).devices if device.mig_uuid)
            assert subject.arrive(busy)
            refused(subject, piece(gib=39.0))
            refused(subject, whole())
            subject.leave(busy)
            if not managed:
                refused(subject, piece(gib=39.0))
                refused(subject, whole())
            assert subject.layouts() == before

    @law(laws.GEOMETRY)
    @needs(Ability.STATIC_SLICES, Ability.GEOMETRY)
    def test_alloc_28_a_drained_card_is_cut_on_purpose_and_becomes_what_it_was(
        self, subject: AllocationSubject
    ) -> None:
        slices: Layout = (("1g.10gb", 0), ("1g.10gb", 1))
        subject.furnish([host(card(1, slices=slices), managed=True)])
        before = subject.layouts()
        for number, asked in enumerate((piece(gib=39.0, count=2), whole())):
            claim = claimed(subject, asked, operation=f"op-{number}")
            assert subject.layouts() != before
            assert release(subject, claim).status is ReleaseStatus.RELEASED
            nothing_left(subject, before)
        recover(subject)


def refuses_layout(subject: AllocationSubject, layout: Layout) -> None:
    """A plan that somebody else made, with a layout that cannot be, is not even begun."""
    plan = planned(subject, piece())
    (wanted,) = plan.assignments["w/0"]
    forged: FeasiblePlan = dataclasses.replace(
        plan,
        assignments={"w/0": tuple(_device(wanted, profile) for profile, _ in layout)},
        geometry={wanted.node: tuple(str(LayoutEntry(str(wanted.uuid), *placed)) for placed in layout)},
        plan_id=f"forged-{layout}",
    )
    claim = reserve(subject, forged, f"forged-{layout}")
    assert claim.status is ClaimStatus.FAILED, claim
    assert claim.grant is None


def _device(like: DeviceIdentity, profile: str) -> DeviceIdentity:
    return dataclasses.replace(like, mig_profile=profile)
