"""Markers of a run that was stopped to be resumed: none is lost, none is given twice but after a death."""

from pathlib import Path
from typing import Any

import msgspec
import pytest

import videoflow as vf
from tests.state.resumable import FRAMES, Gated
from tests.state.test_resume import gate, until
from videoflow.graph.report import EdgeReport, RunReport
from videoflow.nodes import JsonlSink

STOPS_AT = 23


class Flags(vf.Processor):
    """Passes on the number of each frame; every fourth is a marker, too."""

    ports = ("out", "events")
    max_item_bytes = 1000

    def process(self, frame: vf.Frame) -> Any:
        yield frame.index
        if frame.index % 4 == 0:
            yield vf.Out(frame.index, "events")


class Adds(vf.Processor):
    """Counts its markers in its state; each replica, where several compete, in a file of its own."""

    max_item_bytes = 1000

    def process(self, number: int) -> int:
        return number

    def on_control(self, marker: int, ctx: vf.Context) -> None:
        ctx.state[f"marker {marker:04d}"] = True

    def flush(self, ctx: vf.Context) -> vf.Out:
        return vf.Out([int(key.removeprefix("marker ")) for key in sorted(ctx.state)])


class Fives(vf.Consumer):
    """Makes what it has durable five inputs at a time: a line for each input, and one for each marker."""

    holds_items = 5

    def __init__(self, path: str, **options: Any) -> None:
        super().__init__(**options)
        self.path = Path(path)
        self.lines: list[str] = []
        self.taken = 0

    def outputs(self) -> tuple[str, ...]:
        return (str(self.path),)

    def open(self, ctx: vf.Context) -> None:
        self.path.parent.mkdir(exist_ok=True)
        with self.path.open("a", encoding="ascii") as file:
            file.truncate(ctx.state.get("size", 0))

    def consume(self, number: int) -> None:
        self.lines.append(f"{number}")
        self.taken += 1

    def on_control(self, marker: int) -> None:
        self.lines.append(f"marker {marker}")

    def checkpoint(self, ctx: vf.Context) -> int | None:
        if self.taken < 5 and not ctx.draining:
            return None
        with self.path.open("a", encoding="ascii") as file:
            file.write("".join(f"{line}\n" for line in self.lines))
        ctx.state["size"] = self.path.stat().st_size
        done, self.taken, self.lines = self.taken, 0, []
        return done


def flow_of(folder: Path) -> vf.Flow:
    """A node with state and a sink with checkpoints take the markers of another node."""
    camera = Gated(str(folder / "gate"), name="camera")
    flags = Flags(name="flags")(camera)
    adds = Adds(name="adds")(flags).control(flags.port("events"))
    fives = Fives(str(folder / "fives.txt"), name="fives")(flags).control(flags.port("events"))
    return vf.Flow([JsonlSink(folder / "adds.jsonl", name="lines")(adds), fives], name="resumed-markers")


def marker_edges(report: RunReport) -> dict[str, EdgeReport]:
    return {edge.child: edge for edge in report.edges if edge.replica is not None}


def stopped(out: Path, engine: str) -> RunReport:
    """Stops the flow where the sink has made twenty inputs durable, and holds three and a marker."""
    gate(out, 20)
    run = flow_of(out).start(engine, runs_folder=out.parent / "runs")
    until(lambda: sum(line.isdigit() for line in lines_of(out)) == 20)
    gate(out, STOPS_AT)
    until(lambda: any(node.node == "fives" and node.items >= STOPS_AT for node in run.status().nodes))
    run.stop(resumable=True)
    return run.wait()


def lines_of(out: Path) -> list[str]:
    path = out / "fives.txt"
    return path.read_text(encoding="ascii").splitlines() if path.exists() else []


@pytest.mark.parametrize("engine", ["threads", pytest.param("local", marks=pytest.mark.nightly)])
def test_markers_before_and_after_the_stop_are_those_of_one_run(engine: str, tmp_path: Path) -> None:
    out, runs = tmp_path / "out", tmp_path / "runs"
    first = stopped(out, engine)
    assert (first.verdict, first.resumable) == ("stopped", True), first.gaps
    before = marker_edges(first)
    came = len(range(0, STOPS_AT, 4))
    assert (before["adds"].delivered, before["adds"].in_flight) == (came, 0)
    assert before["fives"].delivered + before["fives"].in_flight == came
    assert before["fives"].in_flight > 0, "nothing was kept, so that nothing was shown"
    assert all(edge.closed and not edge.dropped for edge in before.values())

    gate(out, None)
    second = flow_of(out).run(engine, runs_folder=runs, resume=first.run_id)
    assert second.verdict == "complete", second.gaps
    markers = list(range(0, FRAMES, 4))
    for edge in marker_edges(second).values():
        assert (edge.announced, edge.delivered, edge.dropped, edge.closed) == (FRAMES, len(markers), {}, True)
    last = (out / "adds.jsonl").read_text(encoding="ascii").splitlines()[-1]
    assert msgspec.json.decode(last)["value"] == markers
    lines = lines_of(out)
    assert [int(line) for line in lines if line.isdigit()] == list(range(FRAMES))
    assert sorted(int(line.split()[1]) for line in lines if not line.isdigit()) == markers
