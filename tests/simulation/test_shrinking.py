"""A failing schedule becomes small, and reads well; each planted defect is noticed."""

import dataclasses
from pathlib import Path

import pytest

from tests.promises.planting import Change
from tests.simulation.defects import CORE, DEFECTS
from tests.simulation.graphs import chain
from tools.simulate import noticed
from videoflow.simulation import PlannedFault, Result, Schedule, promise_of, shrink, story
from videoflow.simulation._judge import judge
from videoflow.simulation._simulate import Simulation

HANDFUL = (
    "the terminator comes before the last publication",
    "the cursor is not committed",
    "a sink settles what is not durable",
    "a repeated statement is not recognised",
    "a settlement in doubt is not repeated",
)


class Fragile(Simulation):
    """Calls it a violation when its step died at a publication while the source made at least two items."""

    def run(self, schedule: Schedule, *, telling: bool = False) -> Result:
        result = super().run(schedule, telling=telling)
        long = dict(schedule.items or self.items())["source"] >= 2
        died = any(
            (f.station, f.action, f.point) == ("step-0", "crash", "publish.sent") for f in result.fired
        )
        broken = ("results: fragile",) if long and died else ()
        return dataclasses.replace(result, violations=broken)


def test_the_smallest_schedule_is_found() -> None:
    simulation = Fragile(chain(8).subject)
    faults = (
        PlannedFault("source-0", "commit.before", "delay"),
        PlannedFault("step-0", "publish.sent", "crash", 2),
        PlannedFault("saver-0", "settle.sent", "crash"),
        PlannedFault("step-0", "call:settle", "lost"),
    )
    found = simulation.run(Schedule(11, faults))
    assert [promise_of(violation) for violation in found.violations] == ["results"]
    smallest = shrink(simulation, found)
    assert smallest.schedule.faults == (PlannedFault("step-0", "publish.sent", "crash", 1),)
    assert smallest.schedule.items == (("source", 2),)
    assert smallest.schedule.calm
    lines = list(story(simulation, smallest))
    assert "  source: Source; 2 items" in lines
    assert "  step-0 dies at publish.sent, time 1" in lines
    assert any("step-0 publishes step.out 0" in line and line.endswith("(died)") for line in lines)
    assert lines[-1] == "  results: fragile"


def test_the_judge_notices_what_differs() -> None:
    simulation = chain(4)
    whole, short = simulation.reference(None), simulation.reference((("source", 3),))
    said = {promise_of(v) for v in judge(simulation.subject, short, whole, stopped=False)}
    assert {"results", "effects", "state"} <= said
    assert judge(simulation.subject, whole, whole, stopped=False) == []


@pytest.mark.timeout(120)
@pytest.mark.parametrize("name", HANDFUL)
def test_a_planted_defect_is_noticed(name: str, tmp_path: Path) -> None:
    seen = noticed(DEFECTS[name], tmp_path, schedules=150)
    assert seen["found"], f"{name}: nothing was noticed in {seen['counted']} schedules: {seen['broken']}"


@pytest.mark.timeout(120)
@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        (
            "        yield Terminate(kind)\n        return kind\n",
            "        yield Terminate(sort)\n",
            "NameError",
        ),
        pytest.param(
            "self._forget: list[str] = []", "self._forget = [", "SyntaxError", marks=pytest.mark.nightly
        ),
    ],
)
def test_what_does_not_run_does_not_count_as_noticed(old: str, new: str, said: str, tmp_path: Path) -> None:
    seen = noticed(Change(CORE, old, new), tmp_path, schedules=20)
    assert seen["found"] == []
    assert any(said in why for why in seen["broken"])


def test_there_are_enough_defects() -> None:
    assert len(DEFECTS) >= 40
    assert set(HANDFUL) <= set(DEFECTS)
