"""A sink with checkpoints loses no marker that it was given: whoever dies, and when a run is gone on with."""

from typing import Any

import pytest

from tests.simulation.graphs import simulated, source
from tests.worker.test_fused_sinks import Late
from videoflow.graph import Context
from videoflow.simulation import PlannedFault, Schedule
from videoflow.simulation import _library as library
from videoflow.simulation._account import outcome_of
from videoflow.simulation._run import SimulatedRun

POINTS = ("settle.sent", "commit.after", "process.before", "release.before")


class Marked(Late):
    """Keeps its markers with what it makes durable, and not before."""

    def open(self, ctx: Context) -> None:
        super().open(ctx)
        self.markers: list[int] = []

    def on_control(self, marker: Any) -> None:
        self.markers.append(library.number_of(marker))

    def checkpoint(self, ctx: Context) -> int | None:
        count = super().checkpoint(ctx)
        if count or ctx.draining:
            ctx.state.update({f"marker/{number}": True for number in self.markers})
            self.markers.clear()
        return count


@pytest.mark.parametrize("resumed", [False, True])
def test_no_marker_is_lost(resumed: bool) -> None:
    fork = library.Fork(2, name="fork")(source(9))
    total = library.Sum(1, name="total", fuse="one")(fork)
    simulation = simulated(Marked(2, name="marked", fuse="one")(total).control(fork.port("more")))
    wanted = {key for key in simulation.reference(None).state if "marker/" in key[1]}
    assert len(wanted) > 3
    suspended = 0
    for seed in range(16):
        fault = PlannedFault("total-0", POINTS[seed % len(POINTS)], "crash", 1 + seed % 3)
        schedule = Schedule(seed, (fault,), stops=(20 + 5 * seed,) if resumed else (), resumed=resumed)
        run = SimulatedRun(simulation.subject, schedule).go()
        found = outcome_of(run)
        if found.suspended is not None:
            suspended += 1
            later = Schedule(seed + 1, (fault,), resumed=True)
            run = SimulatedRun(simulation.subject, later, earlier=(run, found.suspended)).go()
            found = outcome_of(run)
        assert found.report.verdict == "complete", found.report.gaps
        assert {key for key in found.state if "marker/" in key[1]} == wanted, schedule
    assert resumed is (suspended > 5)
