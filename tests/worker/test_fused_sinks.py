"""What is kept, flushed and answered inside a task: it is not ahead of its sink, and no death loses it."""

from typing import Any, Unpack

import pytest

import videoflow as vf
from tests.engines.flows import Numbers, Total
from tests.simulation.graphs import simulated, source
from videoflow.graph import Context
from videoflow.simulation import PlannedFault, Schedule
from videoflow.simulation import _library as library
from videoflow.worker.core._pending import HeldInput, Holding


class Late(library.Saver):
    """A sink of which the newest two inputs are never durable, as the frames in an encoder are not."""

    def checkpoint(self, ctx: Context) -> int | None:
        newest: list[Any] = [] if ctx.draining else self.buffer[-2:]
        del self.buffer[len(self.buffer) - len(newest) :]
        count = super().checkpoint(ctx) if self.buffer else None
        self.buffer += newest
        return count


def broken(sink: Any, *schedules: Schedule) -> list[str]:
    simulation = simulated(sink)
    assert simulation.broken == ()
    results = [simulation.run(schedule) for schedule in schedules]
    assert all(result.fired for result in results), "a fault did not fire"
    return [violation for result in results for violation in result.violations]


def deaths(station: str, *points: str, hits: int = 3) -> list[Schedule]:
    return [
        Schedule(seed, (PlannedFault(station, point, "crash", 1 + seed % hits),))
        for seed in range(6)
        for point in points
    ]


@pytest.mark.parametrize("kind", [library.Sum, library.LastWords])
def test_what_a_node_keeps_is_never_ahead_of_what_the_sink_below_it_made_durable(kind: Any) -> None:
    total = kind(1, name="total", fuse="one")(source(7))
    schedules = deaths("total-0", "commit.after", "settle.sent", "process.before", "effect.done")
    assert broken(Late(1, name="late", fuse="one")(total), *schedules) == []


@pytest.mark.parametrize("kind", [library.Sum, library.Private])
def test_what_a_node_skips_does_not_wait_for_more_than_may_come(kind: Any) -> None:
    total = kind(1, skips=2, name="total", fuse="one")(source(12).latest(capacity=1))
    schedules = deaths("total-0", "commit.after", "settle.sent", "process.before", "effect.done", hits=1)
    assert broken(library.Saver(4, name="saver", fuse="one")(total), *schedules) == []


def test_what_never_comes_to_a_sink_is_not_missing_when_the_sink_starts_again() -> None:
    faults = (
        PlannedFault("saver-0", "commit.after", "crash", 1),
        PlannedFault("saver-0", "effect.done", "crash", 2),
    )
    sink = library.Saver(1, name="saver")(source(8).latest(capacity=1))
    assert broken(sink, *(Schedule(seed, faults) for seed in range(10))) == []


def test_what_a_sink_holds_when_a_run_is_suspended_has_come_out_of_the_nodes_above_it() -> None:
    total = library.LastWords(1, name="total", fuse="one")(source(7))
    schedules = [Schedule(seed, stops=(seed,), resumed=True) for seed in range(30, 90, 6)]
    simulation = simulated(Late(1, name="late", fuse="one")(total))
    results = [simulation.run(schedule) for schedule in schedules]
    assert any(result.stopped for result in results)
    assert [violation for result in results for violation in result.violations] == []


def test_what_is_flushed_into_a_sink_of_the_same_task_is_made_durable() -> None:
    last = library.LastWords(1, name="last", fuse="one")(source(5))
    simulation = simulated(library.Saver(3, name="saver", fuse="one")(last))
    assert len(simulation.reference(None).record.disks["saver"]) == 6, "five sums, and what they came to"


class Told(vf.Consumer):
    """Keeps what it is given, and from which source."""

    collects = True
    holds_items = 5

    def __init__(self, **options: Unpack[vf.NodeOptions]) -> None:
        super().__init__(**options)
        self.rows: list[Any] = []

    def consume(self, value: Any, ctx: vf.Context) -> None:
        self.rows.append([value, ctx.source, ctx.time_seconds])

    def checkpoint(self, ctx: vf.Context) -> int:
        for row in self.rows:
            ctx.state[f"row/{len(ctx.state):08d}"] = row
        count, self.rows = len(self.rows), []
        return count


def test_a_sink_is_told_the_same_of_what_is_flushed_fused_or_not() -> None:
    flow = vf.Flow(
        [Told(name="told", fuse="one")(Total(name="total", fuse="one")(Numbers(7, name="numbers")))]
    )
    fused, apart = flow.run().values["told"], flow.run(fuse=False).values["told"]
    assert fused == apart
    assert [value for value, _, _ in fused][-1] == {"final": 21}


def test_an_answer_that_is_recalled_keeps_what_happened_inside_its_task() -> None:
    first = library.Moody(1, name="first", fuse="one", replicas=2, ordered=False, deterministic=False)(
        source(10)
    )
    second = library.Step(2, name="second", fuse="one", replicas=2, ordered=False)(first)
    schedules = deaths("first-0", "commit.after", "publish.sent", "settle.sent", hits=2)
    assert broken(library.Rows(name="rows")(second), *schedules) == []


def test_a_marker_is_settled_with_an_input_behind_it_or_at_the_end() -> None:
    """A sink says of inputs alone what is durable, so a marker behind all of them is not."""
    one, marker, skip, two = (
        HeldInput(consumed, name, [], [], markers=name == b"marker")
        for consumed, name in ((1, b"one"), (0, b"marker"), (0, b"skip"), (1, b"two"))
    )
    holding = Holding()
    holding.inputs += [one, marker, skip]
    assert holding.durable(1) == [one]
    assert holding.durable(0) == []
    holding.inputs.append(two)
    assert holding.durable(0) == []
    assert holding.durable(1) == [marker, skip, two]
    holding.inputs += [skip, marker]
    assert holding.durable(0) == [skip]
    assert holding.durable(0, final=True) == [marker]
