"""Every refusal of the planner: raised as a whole, in words that help, with a legal neighbour beside it."""

from pathlib import Path

import pytest

from tests.planner.compositions import CLUSTER, compose, replace, wanting
from tests.planner.refusal_parts import Case
from tests.planner.refusals import CASES, error_of, page
from tests.planner.refusals_of_runs import SEVERAL
from videoflow.backends.messaging import Bounds
from videoflow.backends.outcomes import Durability, known
from videoflow.errors import EnvironmentFault, FlowInvalid, IncompatibleProfile, UnobservableState
from videoflow.planner import (
    ChannelRequirement,
    CompositionPlan,
    CompositionRequirements,
    Distance,
    Effects,
    Guarantee,
    SinkDeclaration,
)

GOLDEN = Path(__file__).with_name("refusals.golden.md")
NAMES = [case.asked for case in CASES]


@pytest.mark.parametrize("case", CASES, ids=NAMES)
def test_what_is_asked_in_vain_is_refused_before_anything_starts(case: Case) -> None:
    error = error_of(case)
    assert isinstance(error, IncompatibleProfile | FlowInvalid | EnvironmentFault)
    assert error.exit_status in (2, 3)
    assert error.effect.startswith("nothing was started")
    assert error.remedy
    for miss in getattr(error, "misses", ()):
        assert all((miss.subject, miss.profile, miss.guarantee, miss.wanted, miss.found, miss.remedy)), miss


@pytest.mark.parametrize("case", CASES, ids=NAMES)
def test_what_is_nearly_the_same_and_can_be_given_is_admitted(case: Case) -> None:
    assert case.admitted() is not None


def test_the_page_of_refusals_is_what_a_user_reads() -> None:
    assert page() + "\n" == GOLDEN.read_text(encoding="utf-8"), (
        "python -m tests.planner.refusals > tests/planner/refusals.golden.md, and read what changed"
    )


def test_every_guarantee_there_is_can_be_refused() -> None:
    errors = [error_of(case) for case in CASES]
    missed = {miss.guarantee for e in errors if isinstance(e, IncompatibleProfile) for miss in e.misses}
    assert missed == {guarantee.value for guarantee in Guarantee}


def test_all_that_is_missing_is_listed_once_in_words_and_for_each_subject_in_fields() -> None:
    error = error_of(SEVERAL[0])
    assert isinstance(error, IncompatibleProfile)
    assert [(miss.subject, miss.guarantee) for miss in error.misses] == [
        ("channel step0", Guarantee.SURVIVAL),
        ("channel step0", Guarantee.MESSAGE_COPIES),
        ("channel step1", Guarantee.SURVIVAL),
        ("channel step1", Guarantee.MESSAGE_COPIES),
        ("the run", Guarantee.LASTING_RECORDS),
    ]
    assert len(error.unread) == 2
    assert error.cause.count(Guarantee.MESSAGE_COPIES) == 1
    assert "channel step0, channel step1 (reliable_work)" in error.cause


def test_unread_is_not_missing_and_not_given() -> None:
    said = ("could not be read", "cannot be read", "could not be looked at", "say nothing")
    unread = [case for case in CASES if any(words in case.asked for words in said)]
    assert len(unread) == 8
    for case in unread:
        if case is not SEVERAL[0]:
            assert isinstance(error_of(case), UnobservableState), case.asked


def test_nothing_wanted_is_nothing_missing() -> None:
    assert compose(CompositionRequirements()).channels == ()


def test_what_is_admitted_is_what_was_asked_with_what_it_rests_on() -> None:
    sink = SinkDeclaration(sink="hook", effect_key_seconds=None)
    wanted = wanting(
        bounds=Bounds(8, 100),
        partitions=3,
        key="source",
        tolerated_failures=2,
        effects=Effects.EXACTLY_ONCE,
        sinks=(sink,),
    )
    plan = compose(wanted)
    assert isinstance(plan, CompositionPlan)
    [channel] = plan.channels
    assert (channel.channel, channel.profile, channel.partitions, channel.key) == (
        "detect",
        "reliable_work",
        3,
        "source",
    )
    assert (channel.bound_items, channel.bound_bytes, channel.copies) == (8, 100, 5)
    assert (channel.exactly_once_effects, channel.carried_by) == (True, "stream")
    assert channel.distance is Distance.HOSTS
    rests_on = {(ground.guarantee, ground.found, ground.rests_on) for ground in channel.grounds}
    assert rests_on >= {
        (Guarantee.MESSAGE_COPIES, "5 (stream)", "messaging.copies"),
        (Guarantee.PAYLOAD_COPIES, "5 (objects)", "payload.copies"),
        (Guarantee.EFFECT_HORIZON, "for ever", "effect_key_seconds of the sink"),
    }
    assert any(ground.rests_on == "runtime.copies" for ground in plan.grounds)


def test_a_port_that_is_read_in_two_ways_is_two_channels_and_said() -> None:
    parts = tuple(ChannelRequirement(channel="camera", profile=p) for p in ("reliable_work", "live_latest"))
    plan = compose(CompositionRequirements(channels=parts))
    assert [channel.profile for channel in plan.channels] == ["reliable_work", "live_latest"]
    assert plan.notes == (
        "camera is written once for each of reliable_work and live_latest: one log cannot keep to both",
    )


def test_a_name_is_no_guarantee() -> None:
    weak = replace(CLUSTER, durability=Durability.STREAM, copies=known(1, 0.0))
    with pytest.raises(IncompatibleProfile):
        compose(wanting(tolerated_failures=1), messaging=weak)
    assert compose(wanting(), messaging=weak).channels[0].copies == 1
