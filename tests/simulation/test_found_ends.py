"""What the simulation found at the ends of runs, of epochs and of processes: none of it may come back."""

from typing import Any

import pytest

from tests.simulation.graphs import fails, simulated, source
from videoflow.graph import Batch
from videoflow.simulation import PlannedFault, Schedule
from videoflow.simulation import _library as library


def test_what_a_source_never_said_is_not_made_where_the_run_was_stopped() -> None:
    parts = library.Split(1, name="parts", fuse="one")(library.Source(4, name="source", fuse="one"))
    replaced = (PlannedFault("source-0", "fence:Settle", "replace", 1),)
    stopped = [Schedule(seed, replaced, stops=(stop,)) for seed in range(4) for stop in (5, 9)]
    assert fails(*stopped, sinks=(library.Rows(name="rows")(parts),)) == []


def test_last_words_that_end_the_process_of_a_node_below_are_put_aside_like_an_input() -> None:
    last = library.LastWords(1, name="last", fuse="one")(source(2))
    killed: Any = library.Step(2, name="killed", fuse="one", trouble={"killer": [0]})
    simulation = simulated(library.Sink(name="sink")(killed(last)))
    assert simulation.broken == ()
    assert {node for node, _ in simulation.reference(None).letters} == {"killed"}
    assert len(simulation.reference(None).letters) == 2, "the first item, and the last words"


def test_what_was_dropped_together_is_taken_apart_where_a_parent_has_failed() -> None:
    origin = source(5)
    step: Any = library.Step(1, name="step", replicas=2, ordered=False, trouble={"fatal": [1], "poison": [2]})
    join = library.Step(2, name="join", missing="none")(step(origin), origin.latest(capacity=1))
    delayed = (PlannedFault("join-0", "acquire.after", "delay", 1),)
    schedules = [Schedule(seed, delayed) for seed in (2, 10, 17, 28, 33, 42)]
    assert fails(*schedules, sinks=(library.Sink(name="sink")(join),)) == []


def test_inputs_that_waited_for_others_while_the_end_was_told_do_not_keep_a_resumed_run() -> None:
    """What a sink in their task held was given again, and a pull had told that nothing more comes."""
    gathers: Any = library.Gathers(1, name="gathers", fuse="one", ordered=True, batch=Batch(4, 0.02))
    sink: Any = library.Saver(4, name="saver", fuse="one")
    simulation = simulated(sink(gathers(source(6))))
    results = [simulation.run(Schedule(0, stops=(at,), resumed=True)) for at in range(18, 26, 2)]
    assert any(result.stopped for result in results)
    assert [result.violations for result in results if result.violations] == []


def test_what_is_kept_with_something_dropped_is_not_taken_for_settled_when_the_run_goes_on() -> None:
    origin: Any = library.TwoPorts(3, name="source")
    total: Any = library.Sum(2, name="total", missing="none", fuse="one")
    saver = library.Saver(4, name="saver", fuse="one")(total(origin.latest(capacity=1), origin.port("more")))
    late = (PlannedFault("total-0", "acquire.after", "delay", 1),)
    stopped = [Schedule(seed, late, stops=(9,), resumed=True) for seed in range(3, 9)]
    assert fails(*stopped, sinks=(saver,)) == []


def test_what_was_published_while_its_source_waited_is_in_the_ledger_where_that_died_then() -> None:
    step = library.Step(1, name="step", fuse="one")(library.Source(6, name="source", fuse="one"))
    died = (PlannedFault("source-0", "tombstone.before", "raise", 1),)
    late = (PlannedFault("rows-0", "acquire.after", "delay", 1), *died)
    stopped = [Schedule(seed, late, stops=(stop,)) for seed in range(12) for stop in (12, 16)]
    stopped += [Schedule(seed, died, stops=(stop,)) for seed in range(12) for stop in (8, 10)]
    assert fails(*stopped, sinks=(library.Rows(name="rows")(step.latest(capacity=1)),)) == []


def test_the_end_of_an_epoch_that_is_kept_takes_nothing_out_of_what_was_settled() -> None:
    words = library.LastWords(1, name="words", fuse="one")(library.Live(2, name="source", fuse="one"))
    died = (PlannedFault("source-0", "publish.accepted", "crash", 1),)
    stopped = [Schedule(seed, died, stops=(stop,), resumed=True) for seed in range(6) for stop in (20, 30)]
    assert fails(*stopped, sinks=(library.Saver(1, name="saver")(words.latest(capacity=1)),)) == []


def test_what_a_sink_holds_of_an_epoch_is_given_again_although_the_epoch_is_over() -> None:
    origin = library.Live(3, name="source")
    steered: Any = library.Steered(1, name="steered", fuse="one")
    sink = library.Saver(4, name="saver", fuse="one")(steered(origin))
    steered.control(origin)
    faults = (
        PlannedFault("source-0", "source.item", "raise", 3),
        PlannedFault("steered-0", "settle.sent", "crash", 2),
    )
    assert fails(*(Schedule(seed, faults) for seed in range(24)), sinks=(sink,)) == []


@pytest.mark.parametrize("stateful", [False, True])
def test_a_failure_is_told_by_who_starts_again_where_its_process_died_before_it_told(stateful: bool) -> None:
    origin, kind = source(6), library.Sum if stateful else library.Step
    step: Any = kind(1, name="step", trouble={"fatal": [1]})
    join = library.Step(2, name="join", missing="none")(
        step(origin).latest(capacity=2), origin.latest(capacity=1)
    )
    lost = [(PlannedFault("step-0", "call:commit", "lost", hit),) for hit in (2, 3, 4)]
    schedules = [Schedule(seed, faults) for faults in lost for seed in range(3 * stateful, 6)]
    simulation = simulated(library.Sink(name="sink")(join))
    assert [v for schedule in schedules for v in simulation.run(schedule).violations] == []


def test_what_came_in_an_epoch_that_is_over_is_known_when_nothing_of_the_next_one_has_come() -> None:
    live: Any = library.Live(1, name="source", fuse="first")
    last: Any = library.LastWords(1, name="last", fuse="first")(live)
    total: Any = library.Sum(2, name="total", missing="none", fuse="one")(last.latest(capacity=1), live)
    died = (
        PlannedFault("source-0", "publish.sent", "crash", 1),
        PlannedFault("total-0", "commit.after", "crash", 1),
    )
    schedules = [Schedule(seed, died) for seed in range(3)]
    assert fails(*schedules, sinks=(library.Saver(2, name="saver", fuse="one")(total),)) == []
