"""What the judge sees beyond a comparison with a run without faults, which may be wrong in the same way."""

from typing import Any

import numpy as np
import pytest

from tests.simulation.graphs import simulated, source
from videoflow.graph import State
from videoflow.nodes import Collect
from videoflow.simulation import PlannedFault, Schedule, Simulation
from videoflow.simulation import _library as library
from videoflow.worker import Shell
from videoflow.worker.core._concluding import Concluding
from videoflow.worker.core.actions import Recall, Steps

REPUBLISH = Concluding.republish


def totals(trouble: dict[str, list[int]]) -> Simulation:
    return simulated(library.Rows(name="rows")(library.Sum(1, name="totals", trouble=trouble)(source(4))))


def test_state_that_a_failed_attempt_left_is_seen_without_a_right_run(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert totals({"poison": [1]}).broken == ()
    monkeypatch.setattr(State, "rollback", State.keep)
    assert totals({"poison": [1]}).broken == (
        "state: an attempt of totals found another state than the one before it left",
    )


def test_who_is_asked_again_for_what_is_on_record_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    options: Any = {"deterministic": False, "ordered": False, "replicas": 2}
    simulation = simulated(library.Rows(name="rows")(library.Moody(1, name="moody", **options)(source(4))))
    died = tuple(PlannedFault(f"moody-{slot}", "commit.after", "crash") for slot in (0, 1))
    assert simulation.run(Schedule(1, died)).violations == ()
    monkeypatch.setattr(Shell, "_PERFORM", {**Shell._PERFORM, Recall: lambda *_: None})
    again = Simulation(simulation.subject).run(Schedule(1, died))
    assert again.violations == ("once: moody was called for what it had answered on record",)


def test_an_input_without_a_word_is_seen_in_a_run_that_failed(monkeypatch: pytest.MonkeyPatch) -> None:
    simulation = totals({"fatal": [1]})
    faults = (
        PlannedFault("totals-0", "acquire.after", "delay"),
        PlannedFault("totals-0", "commit.after", "crash"),
    )
    schedules = [Schedule(seed, faults) for seed in range(5, 13)]
    assert all(simulation.run(schedule).violations == () for schedule in schedules)

    def forgotten(core: Concluding) -> Steps:
        if not core.start.abandoned:
            yield from REPUBLISH(core)

    monkeypatch.setattr(Concluding, "republish", forgotten)
    said = {violation for schedule in schedules for violation in simulation.run(schedule).violations}
    assert said == {"skips: totals took 1 inputs, and said something of 0 of them"}


@pytest.mark.parametrize("kind", [library.Source, library.Live])
def test_a_source_and_a_sink_beside_their_neighbours_keep_every_promise(kind: Any) -> None:
    origin = kind(3, name="source", fuse="first")
    words = library.LastWords(1, name="words", fuse="first")(origin)
    step = library.Step(2, name="step", ordered=False, fuse="last")(words)
    simulation = simulated(library.Rows(name="rows", fuse="last")(step))
    assert [task.nodes for task in simulation.subject.plan.tasks] == [("source", "words"), ("step", "rows")]
    assert simulation.broken == ()
    for seed in range(6):
        assert simulation.run(simulation.schedule(seed)).violations == ()


def test_rows_with_arrays_in_them_are_compared_like_others() -> None:
    origin: Any = library.Source(3, large=True, name="source")
    simulation = simulated(Collect(name="rows")(origin))
    assert isinstance(simulation.reference(None).report.values["rows"][0]["array"], np.ndarray)
    assert simulation.run(Schedule(1, (PlannedFault("rows-0", "settle.sent", "crash"),))).violations == ()
