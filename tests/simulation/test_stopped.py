"""Runs that were stopped are compared with as much as their sources made, and no less."""

from typing import Any

from tests.simulation.graphs import simulated, source
from videoflow.simulation import Schedule
from videoflow.simulation import _library as library


def test_what_a_source_had_in_work_when_the_stopped_run_failed_is_not_called_made_up() -> None:
    step: Any = library.Step(1, name="step", fuse="first", trouble={"fatal": [0]})
    sink: Any = library.Saver(1, name="saver")
    simulation = simulated(sink(step(source(2, fuse="first"))))
    results = [simulation.run(Schedule(0, stops=(at,))) for at in range(2, 8)]
    assert any(result.stopped for result in results)
    assert [result.violations for result in results if result.violations] == []
