"""What the simulation found in the product, as small as it was made: none of it may come back."""

from collections.abc import Iterable
from typing import Any

import pytest

from tests.simulation.graphs import fails, simulated, source
from videoflow.errors import FlowInvalid
from videoflow.graph import merge
from videoflow.simulation import PlannedFault, Schedule
from videoflow.simulation import _library as library

SEEDS = range(12)
PARTS = (0, *(pytest.param(part, marks=pytest.mark.nightly) for part in (1, 2, 3)))
"""A sweep that takes long is cut into these; the first is a part of every run."""


def test_a_live_edge_whose_reader_begins_late_loses_nothing_without_a_word() -> None:
    origin = source(6)
    join = library.Step(2, name="join", missing="skip")(origin.latest(), origin)
    late = [
        Schedule(seed, (PlannedFault("join-0", "acquire.after", action),))
        for seed in SEEDS
        for action in ("delay", "crash")
    ]
    assert fails(*late, sinks=(library.Rows(name="rows")(join),)) == []


@pytest.mark.parametrize("action", ["raise", "crash"])
@pytest.mark.parametrize("point", ["commit.after", "process.after", "publish.sent"])
def test_stored_outputs_of_a_commit_outlive_their_worker_and_the_restarts_of_others(
    point: str, action: str
) -> None:
    totals = library.Sum(1, large=True, name="totals")(source(4))
    other = library.Step(2, large=True, name="other", ordered=False)(totals)
    schedules = [
        Schedule(
            seed,
            (
                PlannedFault("totals-0", point, action, 1 + seed % 3),
                PlannedFault("other-0", "receive.after", "crash", 1),
            ),
        )
        for seed in SEEDS
    ]
    assert fails(*schedules, sinks=(library.Rows(name="rows")(other),)) == []


@pytest.mark.parametrize("part", PARTS)
def test_what_a_dead_worker_has_committed_is_not_cleared_away_by_another_one(part: int) -> None:
    origin = source(4)
    totals = library.Sum(1, large=True, name="totals")(origin)
    other = library.Step(2, name="other", ordered=False, trouble={"killer": [0, 1, 2]})(origin)
    schedules = [
        Schedule(seed, (PlannedFault("totals-0", "process.after", "crash", 1 + seed % 4),))
        for seed in range(part, 40, len(PARTS))
    ]
    sinks = (library.Rows(name="rows")(totals), library.Sink(name="sink")(other))
    assert fails(*schedules, sinks=sinks) == []


def test_what_happens_inside_a_task_is_accounted_for_whatever_dies_after_the_commit() -> None:
    first = library.Step(1, name="first", fuse="pair")(source(5))
    second = library.Sum(2, name="second", fuse="pair")(first)
    schedules = [
        Schedule(seed, (PlannedFault("first-0", point, "crash", 1 + seed % 3),))
        for seed in SEEDS
        for point in ("commit.after", "process.after", "settle.sent")
    ]
    assert fails(*schedules, sinks=(library.Rows(name="rows")(second),)) == []


@pytest.mark.parametrize("hold", [2, 3])
def test_items_of_an_ended_epoch_that_were_committed_are_only_settled(hold: int) -> None:
    camera = library.Live(5, name="camera")
    schedules = [
        Schedule(
            1,
            (
                PlannedFault("camera-0", "source.item", "crash", item),
                PlannedFault("saver-0", "fence:Settle", "replace", settle),
            ),
            calm=True,
        )
        for item in range(1, 5)
        for settle in range(1, 4)
    ]
    assert fails(*schedules, sinks=(library.Saver(hold, name="saver")(camera),)) == []


def test_a_source_that_is_stopped_before_it_comes_again_to_where_it_was_has_lost_nothing() -> None:
    schedules = [
        Schedule(seed, (PlannedFault("source-0", "commit.before", "raise"),), stops=(step,))
        for seed in SEEDS
        for step in (30, 45, 60)
    ]
    assert fails(*schedules, sinks=(library.Rows(name="rows")(source(6)),)) == []


@pytest.mark.parametrize("part", PARTS)
def test_a_statement_is_sent_whole_although_the_room_for_it_comes_bit_by_bit(part: int) -> None:
    parts = library.Split(3, large=True, name="parts", ordered=False)(source(6))
    schedules = [
        Schedule(
            part,
            (
                PlannedFault("parts-0", "call:put", "full", full),
                PlannedFault("parts-0", "process.after", "crash", died),
            ),
        )
        for full in range(1, 6)
        for died in range(1, 5)
    ]
    assert fails(*schedules, sinks=(library.Rows(name="rows")(parts),)) == []


@pytest.mark.parametrize("fatal", range(4))
@pytest.mark.parametrize("keeps", [library.Rows, library.Saver])
def test_a_failure_ends_every_run_whatever_it_leaves_half_said(fatal: int, keeps: Any) -> None:
    one, two = source(4), library.Source(4, 7, name="other")
    trouble = {"fatal": [fatal]}
    merged = library.Step(1, name="merged", ordered=False, replicas=2, trouble=trouble)(merge(one, two))
    joined = library.LastWords(2, name="joined", missing="none")(
        one, library.Step(3, name="step", trouble=trouble)(one).latest()
    )
    sinks = (keeps(name="a")(merged), keeps(name="b")(joined))
    assert fails(*(Schedule(seed) for seed in SEEDS), sinks=sinks) == []


def test_an_aborted_join_does_not_wait_for_what_its_own_credit_holds_back() -> None:
    one = source(1)
    totals = library.LastWords(2, name="totals")(one)
    step = library.Step(3, name="step", trouble={"fatal": [0]})(one.latest())
    joined = library.Step(4, name="joined", missing="none")(totals.latest(), step.latest())
    schedules = [Schedule(seed, calm=seed == 0) for seed in SEEDS]
    assert fails(*schedules, sinks=(library.Sink(name="sink")(joined),)) == []


@pytest.mark.parametrize("part", PARTS)
def test_the_end_of_an_epoch_does_not_close_the_window_of_a_partition_without_items(part: int) -> None:
    camera = library.Live(3, name="camera")
    both = library.Moody(1, name="both", deterministic=False)(merge(source(20), camera))
    shared = library.LastWords(2, name="shared", replicas=2, partition_by="source")(both)
    died = PlannedFault("camera-0", "commit.after", "crash")
    schedules = [Schedule(seed, (died,)) for seed in SEEDS[part :: len(PARTS)]]
    assert fails(*schedules, sinks=(library.Rows(name="rows")(shared),)) == []


def test_the_end_of_an_epoch_that_was_published_before_the_terminator_is_not_said_again() -> None:
    camera = library.Live(3, name="camera")
    moody = library.Moody(1, name="moody", deterministic=False)(camera)
    schedules = [
        Schedule(
            seed,
            (
                PlannedFault("moody-0", "terminator.sent", "crash"),
                PlannedFault("camera-0", "publish.accepted", "crash", 3),
            ),
            calm=True,
        )
        for seed in range(3)
    ]
    assert fails(*schedules, sinks=(library.Rows(name="rows")(moody),)) == []


@pytest.mark.parametrize("part", PARTS)
def test_an_epoch_that_has_only_come_is_not_committed_as_begun(part: int) -> None:
    camera = library.Live(3, name="camera")
    totals = library.Sum(1, name="totals")(camera)
    schedules = [
        Schedule(
            seed,
            (
                PlannedFault("totals-0", "commit.after", "crash", commit),
                PlannedFault("camera-0", "publish.accepted", "crash", item),
                PlannedFault("totals-0", "acquire.after", "delay"),
            ),
        )
        for seed in SEEDS[part :: len(PARTS)]
        for commit in (1, 2, 3)
        for item in (1, 2, 3)
    ]
    assert fails(*schedules, sinks=(library.Rows(name="rows")(totals),)) == []


def test_tombstones_of_a_partition_do_not_hold_up_the_window_of_all() -> None:
    origin = source(24)
    step = library.Step(1, name="step", ordered=True)(origin)
    joined = library.Step(2, name="joined", missing="none", replicas=2)(step, origin.latest())
    late = tuple(
        PlannedFault(f"joined-{slot}", point, "delay")
        for slot in (0, 1)
        for point in ("acquire.after", "receive.after")
    )
    schedules = [Schedule(seed, late) for seed in (13, 16, 17, 20, 34, 35)]
    assert fails(*schedules, sinks=(library.Sink(name="sink")(joined),)) == []


def resumed(*faults: PlannedFault, steps: Iterable[int], sinks: tuple[Any, ...]) -> list[str]:
    schedules = (Schedule(seed, faults, stops=(step,), resumed=True) for step in steps for seed in range(2))
    return fails(*schedules, sinks=sinks)


@pytest.mark.parametrize("kind", [library.Source, library.Live])
def test_whoever_dies_once_it_is_suspended_says_nothing_new(kind: Any) -> None:
    died = PlannedFault("source-0", "terminator.sent", "raise")
    sinks = (library.Keyed(name="keyed")(kind(3, name="source")),)
    assert resumed(died, steps=(4, 9, 14), sinks=sinks) == []


def test_epochs_that_ended_before_a_run_was_suspended_are_over_when_it_is_resumed() -> None:
    camera = library.Live(2, name="camera")
    fork = library.Fork(1, name="fork")(camera)
    sinks = (library.Rows(name="rows")(fork), library.Saver(3, name="saver")(fork.port("more")))
    died = PlannedFault("camera-0", "process.after", "raise")
    assert resumed(died, steps=range(10, 40, 5), sinks=sinks) == []


def test_a_source_that_is_resumed_behind_what_it_said_does_not_say_it_again() -> None:
    step = library.Step(1, name="step", ordered=False)(source(4))
    died = PlannedFault("source-0", "publish.accepted", "raise", 2)
    assert resumed(died, steps=range(10, 40, 5), sinks=(library.Rows(name="rows")(step),)) == []


def test_calls_of_a_worker_that_died_before_a_run_was_suspended_are_not_counted_against_it() -> None:
    step = library.Step(1, name="step", ordered=False)(source(4))
    died = PlannedFault("step-0", "process.after", "raise", 2)
    assert resumed(died, steps=range(10, 40, 5), sinks=(library.Rows(name="rows")(step),)) == []


@pytest.mark.parametrize("large", [False, True])
def test_what_was_committed_is_published_also_by_whoever_is_given_up(large: bool) -> None:
    totals = library.Sum(1, name="totals", large=large, trouble={"fatal": [2]})(source(4))
    schedules = [
        Schedule(seed, (PlannedFault("totals-0", point, "crash", 1 + seed % 4),), calm=seed % 2 == 0)
        for seed in SEEDS
        for point in ("commit.after", "publish.sent", "settle.sent")
    ]
    assert fails(*schedules, sinks=(library.Rows(name="rows")(totals),)) == []


def test_a_source_that_waits_for_the_rest_of_its_markers_lets_others_move() -> None:
    steered: Any = library.SteeredSum(1, name="steered", fuse="first")
    words = steered(library.Source(3, name="source", fuse="first"))
    steered.control(library.Source(3, name="markers"))
    assert resumed(steps=range(2, 20, 6), sinks=(library.Rows(name="rows")(words),)) == []


def steered_by_each_other(*, fused: str | None) -> tuple[Any, ...]:
    first, second = library.Source(3, name="first", fuse="a"), library.Source(3, name="second", fuse=fused)
    mine: Any = library.Steered(1, name="mine", fuse="a")
    theirs: Any = library.Steered(2, name="theirs", fuse=fused)
    sinks = library.Rows(name="rows")(mine(first)), library.Rows(name="more")(theirs(second))
    mine.control(second)
    theirs.control(first)
    return sinks


def test_tasks_that_would_wait_for_each_others_markers_are_refused() -> None:
    with pytest.raises(FlowInvalid, match="first and second would wait for each other's items or markers"):
        simulated(*steered_by_each_other(fused="b"))
    assert resumed(steps=range(2, 26, 8), sinks=steered_by_each_other(fused=None)) == []


def test_a_reader_of_two_sources_that_starts_again_knows_the_epochs_that_have_ended() -> None:
    first, second = library.Live(5, name="first"), library.Live(5, name="second")
    step = library.Step(2, name="step")(merge(first, second))
    schedules = [
        Schedule(
            seed,
            (
                PlannedFault("first-0", "process.after", "crash", 2),
                PlannedFault("step-0", point, "crash", hit),
            ),
        )
        for seed in SEEDS
        for point in ("publish.accepted", "settle.sent")
        for hit in (3, 4, 5)
    ]
    assert fails(*schedules, sinks=(library.Rows(name="rows")(step),)) == []


def test_what_a_join_abandoned_before_it_died_is_not_called_delivered() -> None:
    origin = source(2)
    other = library.Step(1, name="other", ordered=False)(origin)
    total = library.Sum(1, name="total", trouble={"fatal": [0, 1]})(origin, other)
    schedules = [
        Schedule(seed, (PlannedFault("total-0", "settle.sent", "crash", hit),))
        for seed in SEEDS
        for hit in (1, 2)
    ]
    assert fails(*schedules, sinks=(library.Rows(name="rows")(total),)) == []


def test_who_failed_after_another_one_and_starts_again_does_not_go_on() -> None:
    origin = source(5)
    first = library.Sum(1, name="first", trouble={"fatal": [0]})(origin)
    words = library.LastWords(1, name="words", trouble={"fatal": [3]})(origin)
    sinks = library.Rows(name="rows")(first), library.Saver(2, name="saver")(words)
    schedules = [
        Schedule(seed, (PlannedFault("words-0", point, action),))
        for seed in SEEDS
        for point, action in (("fence:Terminate", "replace"), ("terminator.sent", "crash"))
    ]
    assert fails(*schedules, sinks=sinks) == []


def test_what_never_comes_to_a_sink_does_not_take_the_credit_of_what_it_waits_for() -> None:
    origin = source(7, large=True)
    split = library.Split(280, name="split", trouble={"flaky": [0, 1]})(origin.latest())
    words = library.LastWords(281, large=True, name="words", fuse="one", missing="skip")
    saver = library.Saver(3, name="saver", fuse="one")(words(split, origin.latest()))
    assert fails(*map(Schedule, range(40)), sinks=(saver,)) == []
