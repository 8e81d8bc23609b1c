"""What a run is compared with is given no less than the run itself, whatever its nodes and its end are."""

from typing import Any

from tests.simulation.graphs import simulated, source
from videoflow.simulation import PlannedFault, Schedule
from videoflow.simulation import _library as library


def test_what_a_source_had_in_work_when_the_stopped_run_failed_is_not_called_made_up() -> None:
    step: Any = library.Step(1, name="step", fuse="first", trouble={"fatal": [0]})
    sink: Any = library.Saver(1, name="saver")
    simulation = simulated(sink(step(source(2, fuse="first"))))
    results = [simulation.run(Schedule(0, stops=(at,))) for at in range(2, 8)]
    assert any(result.stopped for result in results)
    assert [result.violations for result in results if result.violations] == []


def test_an_item_that_kills_and_is_fatal_kills_with_faults_and_without() -> None:
    step: Any = library.Step(1, name="step", trouble={"fatal": [1], "killer": [1]})
    simulation = simulated(library.Rows(name="rows")(step(source(3))))
    assert simulation.run(Schedule(0)).violations == ()


def test_what_a_source_made_and_did_not_commit_before_it_died_is_in_no_ledger_and_not_made_up() -> None:
    rows: Any = library.Rows(name="rows", fuse="first")
    simulation = simulated(rows(source(2, fuse="first")))
    died = PlannedFault("source-0", "commit.before", "crash")
    results = [simulation.run(Schedule(0, (died,), stops=(at,))) for at in range(2, 12)]
    assert any(result.fired and result.stopped for result in results)
    assert [result.violations for result in results if result.violations] == []


def test_an_effect_of_what_died_with_its_source_is_no_other_effect() -> None:
    keyed: Any = library.Keyed(name="keyed", fuse="first", replicas=1)
    simulation = simulated(keyed(source(3, fuse="first")))
    died = PlannedFault("source-0", "fence:Settle", "replace", 2)
    results = [simulation.run(Schedule(0, (died,), stops=(at,))) for at in range(2, 14)]
    assert any(result.fired and result.stopped for result in results)
    assert [result.violations for result in results if result.violations] == []


def test_what_a_failed_run_had_in_work_when_it_was_told_to_end_at_once_is_in_flight() -> None:
    step: Any = library.Step(1, name="step", trouble={"fatal": [0]})
    simulation = simulated(library.Rows(name="rows")(step(source(1))))
    unread = [PlannedFault("step-0", "call:look", "unreadable", hit) for hit in range(2, 6)]
    results = [
        simulation.run(Schedule(0, (fault,), stops=(at, at + 2), quits=True))
        for fault in unread
        for at in range(4, 16)
    ]
    assert any(result.fired and result.stopped for result in results)
    assert [result.violations for result in results if result.violations] == []
