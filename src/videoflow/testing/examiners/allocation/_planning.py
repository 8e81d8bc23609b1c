"""Laws of plans: what is refused, what is fitted, and what is said about it."""

import dataclasses

import pytest

from videoflow.backends.allocation import (
    EXCLUSIVE_FEATURE_PAIRS,
    GATED_FEATURES,
    Constraint,
    FeasiblePlan,
    Infeasible,
    Provenance,
    Sharing,
)
from videoflow.backends.capabilities import Enforcement
from videoflow.testing.examiners import Examiner, law
from videoflow.testing.examiners.allocation import _laws as laws
from videoflow.testing.examiners.allocation._acts import (
    A100,
    GIB,
    H100,
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
    share,
    whole,
)
from videoflow.testing.examiners.allocation._subject import Ability, AllocationSubject

CANNOT_GIVE_WHOLE = ("mig", "time-sliced", "mps", "unknown")


class PlanningSuite(Examiner[AllocationSubject]):
    """What a plan may and may not be; none of it writes."""

    @law(laws.ELIGIBLE)
    @needs(Ability.SEVERAL_HOSTS, Ability.SHARING_KINDS, Ability.FOREIGN_OWNER)
    def test_alloc_8_capacity_is_that_of_the_hosts_that_were_classified(
        self, subject: AllocationSubject
    ) -> None:
        subject.furnish(
            [
                host(card(1), name="physical"),
                host(*map(card, range(10, 14)), name="shared", sharing="mps"),
                host(*map(card, range(20, 24)), name="silent", sharing="unknown"),
                host(*map(card, range(30, 34)), name="theirs", owner="dra.example"),
            ]
        )
        plan = planned(subject, whole())
        assert {device.node for device in plan.assignments["w/0"]} == {"physical"}
        assert any("silent" in note for note in plan.notes)
        assert any("shared" in note and "mps" in note for note in plan.notes)
        assert any("theirs" in note and "dra.example" in note for note in plan.notes)
        for asked in ([whole(count=2)], [whole("w/0"), whole("w/1")]):
            reasons = refused(subject, *asked)
            assert "shared" in reasons
            assert "dra.example" in reasons

    @law(laws.ELIGIBLE)
    @needs(Ability.SEVERAL_HOSTS)
    def test_alloc_8_what_one_host_holds_is_not_added_up_over_hosts(self, subject: AllocationSubject) -> None:
        subject.furnish([host(*map(card, range(4)), name="four"), host(*map(card, range(4, 9)), name="five")])
        plan = planned(subject, *(whole(f"w/{n}", count) for n, count in enumerate((3, 2, 2, 2))))
        for devices in plan.assignments.values():
            assert len({device.node for device in devices}) == 1
        used = [device.uuid for devices in plan.assignments.values() for device in devices]
        assert len(set(used)) == len(used) == 9
        refused(subject, whole(count=6))

    @law(laws.ELIGIBLE)
    @needs(Ability.SHARING_KINDS)
    def test_alloc_9_only_physical_evidence_gives_whole_devices(self, subject: AllocationSubject) -> None:
        for sharing in CANNOT_GIVE_WHOLE:
            subject.furnish([host(card(1), card(2), sharing=sharing)])
            assert seen(subject).sharing["a"] == sharing
            assert "a" in refused(subject, whole())
        subject.furnish([host(card(1), card(2))])
        planned(subject, whole(count=2))

    @law(laws.PURE)
    def test_alloc_11_a_plan_is_a_value_and_nothing_leaks_into_the_next(
        self, subject: AllocationSubject
    ) -> None:
        subject.furnish([host(card(1))])
        backend, first = subject.backend(), seen(subject)
        writes = subject.writes()
        plan = backend.plan([whole()], first)
        assert isinstance(plan, FeasiblePlan)
        for name in vars(plan):
            with pytest.raises(dataclasses.FrozenInstanceError):
                setattr(plan, name, "mine")
        kept = dataclasses.replace(plan, assignments=dict(plan.assignments), geometry=dict(plan.geometry))
        assert subject.writes() == writes
        claim = claimed(subject, whole(), process="other")
        assert isinstance(backend.plan([whole()], seen(subject)), Infeasible)
        assert backend.plan([whole()], first) == kept
        assert subject.backend("third").plan([whole()], first) == kept
        release(subject, claim)
        assert isinstance(backend.plan([whole()], seen(subject)), FeasiblePlan)

    @law(laws.ALL_OR_NONE)
    def test_alloc_14_nothing_is_planned_short(self, subject: AllocationSubject) -> None:
        subject.furnish([host(card(1), card(2))])
        refused(subject, whole(count=3))
        refused(subject, whole("w/0", 2), whole("w/1"))
        assert "w/0" in refused(subject, whole("w/0"), whole("w/0"))
        plan = planned(subject, whole(count=2))
        assert len(set(plan.assignments["w/0"])) == 2
        refused(subject, whole(minimum_usable_memory_bytes=100 * GIB))

    @law(laws.REFUSED)
    def test_alloc_23_what_is_not_claimed_is_refused_by_name(self, subject: AllocationSubject) -> None:
        subject.furnish([host(card(1), card(2))])
        claims = subject.backend().capabilities(subject.environment())
        provided = {feature for feature, _ in claims.version_matrix}
        for feature in GATED_FEATURES:
            if feature not in provided:
                assert str(feature) in refused(subject, whole(features=(feature,)))
        for pair in EXCLUSIVE_FEATURE_PAIRS:
            reasons = refused(subject, whole(features=pair))
            assert all(str(feature) in reasons for feature in pair)
        for claimed_, request, named in (
            (claims.exclusive_device, whole(), "of its own"),
            (claims.cooperative_sharing, share(), "sharing"),
            (claims.multi_device, whole(count=2), "2 devices"),
        ):
            if claimed_:
                planned(subject, request)
            else:
                assert named in refused(subject, request)
        if not claims.isolated_mig:
            assert "MIG" in refused(subject, piece())

    @law(laws.REFUSED)
    @needs(Ability.GATES)
    def test_alloc_24_a_core_that_is_stable_implies_no_gate(self, subject: AllocationSubject) -> None:
        subject.furnish([host(card(1))])
        for facts in (subject.environment(gates=False), {}):
            matrix = subject.backend().capabilities(facts).version_matrix
            assert not {feature for feature, _ in matrix} & set(map(str, GATED_FEATURES))
        matrix = subject.backend().capabilities(subject.environment()).version_matrix
        assert {feature for feature, _ in matrix} & set(map(str, GATED_FEATURES))

    @law(laws.POLICY)
    def test_alloc_25_sharers_never_have_more_than_the_device(self, subject: AllocationSubject) -> None:
        subject.furnish([host(card(1, A100))])
        if not subject.backend().capabilities(subject.environment()).cooperative_sharing:
            assert "sharing" in refused(subject, share())
            return
        refused(subject, *(share(f"w/{n}", 20.5) for n in range(2)))
        refused(subject, share(gib=40.5))
        given = 0.0
        for number in range(4):
            asked = share(f"w/{number}", 12.0)
            plan = subject.backend().plan([asked], seen(subject))
            if isinstance(plan, FeasiblePlan):
                reserve(subject, plan, f"op-{number}")
                given = 12.0 * len(subject.owned())
        assert given == 36.0
        refused(subject, whole())

    @law(laws.REFUSED)
    def test_alloc_26_accounting_is_never_taken_for_isolation(self, subject: AllocationSubject) -> None:
        subject.furnish([host(card(1, "NVIDIA T4"), sharing="physical")])
        claims = subject.backend().capabilities(subject.environment())
        assert "w/0" in refused(subject, piece())
        if not claims.cooperative_sharing:
            return
        if claims.memory_enforcement not in (Enforcement.HARDWARE, Enforcement.RUNTIME_CAP):
            plan = subject.backend().plan([share(hard_memory_limit_bytes=GIB)], seen(subject))
            said = plan.reasons if isinstance(plan, Infeasible) else plan.notes
            assert "hard_memory_limit_bytes" in "\n".join(said)
        claim = claimed(subject, share(gib=4.0))
        assert claim.grant is not None
        assert not claim.grant.exclusive
        if claims.memory_enforcement is Enforcement.NONE:
            refused(subject, dataclasses.replace(share(), sharing=Sharing.ACCOUNTING_ONLY))

    @law(laws.REFUSED)
    def test_alloc_31_hard_constraints_are_kept_or_refused_and_soft_ones_stay_soft(
        self, subject: AllocationSubject
    ) -> None:
        subject.furnish([host(card(1), card(2, A100))])
        key = subject.product_key
        for product in (A100, H100):
            plan = planned(subject, whole(constraints=(Constraint(key, "In", (product,)),)))
            assert [device.product for device in plan.assignments["w/0"]] == [product]
        refused(subject, whole(constraints=(Constraint(key, "In", ("NVIDIA T4",)),)))
        planned(subject, whole(constraints=(Constraint(key, "In", ("NVIDIA T4",), hard=False),)))
        for unknown in (Constraint("moon.phase", "In", ("full",)), Constraint(key, "Resembles", (H100,))):
            assert {unknown.key, unknown.operator} & set(
                refused(subject, whole(constraints=(unknown,))).replace(":", " ").split()
            )
            planned(subject, whole(constraints=(dataclasses.replace(unknown, hard=False),)))

    @law(laws.SAID)
    def test_alloc_34_a_default_is_said_to_be_one(self, subject: AllocationSubject) -> None:
        subject.furnish([host(card(1), card(2))])
        sources = {
            "device_count": Provenance.DEFAULT,
            "minimum_usable_memory_bytes": Provenance.DESCRIPTOR,
            "sharing": Provenance.EXPLICIT,
        }
        asked = whole(minimum_usable_memory_bytes=GIB, provenance=sources)
        notes = planned(subject, asked).notes
        assert any("w/0" in n and "device_count" in n and "default" in n for n in notes)
        assert any("minimum_usable_memory_bytes" in n and "descriptor" in n for n in notes)
        assert not any("sharing" in note.split() for note in notes)
