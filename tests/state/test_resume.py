"""A run that was stopped to be resumed, and the one that goes on: together they are one without a stop."""

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

import videoflow as vf
from tests.state.nodes import Numbers, Rows
from tests.state.resumable import FRAMES, flow_of, small_flow
from videoflow.cli.app import main
from videoflow.faults import Fault, FaultAction
from videoflow.graph.report import RunReport
from videoflow.nodes import JsonlSink

DEADLINE_SECONDS = 40.0
HELD = 5
STOPS_AT = 32 + HELD  # the lines and fragments of 32 frames are durable then


def gate(folder: Path, frames: int | None) -> None:
    """Lets so many frames through; None for all."""
    folder.mkdir(exist_ok=True)
    (folder / "gate").write_text("1000" if frames is None else str(frames), encoding="ascii")


def written(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.name != "gate"}


def until(condition: Callable[[], bool]) -> None:
    """Waits for something to become true."""
    for _ in range(int(DEADLINE_SECONDS * 50)):
        if condition():
            return
        threading.Event().wait(0.02)
    raise AssertionError("it did not become true")


def suspended(flow: vf.Flow, folder: Path, frames: int, engine: str = "threads", **options: Any) -> RunReport:
    """Runs a flow up to a frame, and stops it there to be resumed."""
    gate(folder, frames)
    run = flow.start(engine, runs_folder=folder.parent / "runs", **options)
    until(lambda: any(n.node == "camera" and n.items >= frames for n in run.status().nodes))
    if engine == "local":
        assert main(["stop", "--resumable", run.run_id, "--run-dir", str(folder.parent / "runs")]) == 0
    else:
        run.stop(resumable=True)
    return run.wait()


def edges(report: RunReport) -> list[Any]:
    return [(e.parent, e.child, e.announced, e.delivered, e.skipped, e.in_flight) for e in report.edges]


@pytest.fixture(scope="module")
def calm(tmp_path_factory: pytest.TempPathFactory) -> tuple[RunReport, dict[str, bytes]]:
    """The whole flow, not stopped."""
    folder = tmp_path_factory.mktemp("calm") / "out"
    gate(folder, None)
    return flow_of(folder).run(), written(folder)


def test_two_stops_and_what_goes_on_are_one_run(
    calm: tuple[RunReport, dict[str, bytes]], tmp_path: Path
) -> None:
    whole, files = calm
    out, runs = tmp_path / "out", tmp_path / "runs"
    first = suspended(flow_of(out), out, 13)
    assert (first.verdict, first.resumable, first.exit_status) == ("stopped", True, 0)
    assert "last.jsonl" not in written(out), "last words were said"
    second = suspended(flow_of(out), out, STOPS_AT, resume=first.run_id)
    assert (second.resumable, second.resumed_from) == (True, first.run_id)
    held = [edge.in_flight for edge in second.edges if edge.child in ("video", "totals", "means")]
    assert held == [HELD] * 3
    assert all(edge.closed for edge in second.edges)

    gate(out, None)
    third = flow_of(out).run(runs_folder=runs, resume="last")
    assert (third.verdict, third.resumed_from, third.resumable) == ("complete", second.run_id, False)
    assert written(out) == files
    assert edges(third) == edges(whole)
    figures = [[(node.node, node.items, node.outputs) for node in report.nodes] for report in (third, whole)]
    assert figures[0] == figures[1]
    assert [(s.node, s.outcome, s.items) for s in third.sources] == [
        (s.node, s.outcome, s.items) for s in whole.sources
    ]

    with pytest.raises(vf.UsageError, match=f"{third.run_id} went on with it already"):
        flow_of(out).run(runs_folder=runs, resume=second.run_id)
    with pytest.raises(vf.UsageError, match="it is complete"):
        flow_of(out).run(runs_folder=runs, resume=third.run_id)


def test_processes_that_are_killed_before_and_after_change_no_byte(tmp_path: Path) -> None:
    calm, out, record = tmp_path / "calm", tmp_path / "out", str(tmp_path / "hits")
    gate(calm, None)
    small_flow(calm).run()

    def killed(**hits: tuple[str, int]) -> dict[str, Any]:
        faults = {task: (Fault(at, FaultAction.CRASH, hit, record),) for task, (at, hit) in hits.items()}
        return {"faults": faults, "restart_backoff_seconds": 0.01}

    first = suspended(small_flow(out), out, STOPS_AT, "local", **killed(video=("terminator.sent", 1)))
    assert first.resumable, first.gaps
    gate(out, None)
    second = small_flow(out).run(
        "local",
        runs_folder=tmp_path / "runs",
        resume=first.run_id,
        **killed(video=("commit.before", 1), means=("commit.after", 1)),
    )
    assert len(Path(record).read_text(encoding="ascii").splitlines()) == 3, "a fault did not fire"
    assert (second.verdict, second.resumed_from) == ("complete", first.run_id)
    assert {edge.announced for edge in second.edges} == {FRAMES}
    assert written(out) == written(calm)


class Reader(Numbers):
    """Numbers that are said to come from a file."""

    def __init__(self, path: str, count: int = 5, **options: Any) -> None:
        super().__init__(count, **options)
        self.path = path

    def inputs(self) -> tuple[str, ...]:
        return (self.path,)


class Waits(vf.Processor):
    """Passes on what it is given, when it is allowed to."""

    may = threading.Event()

    def process(self, number: int) -> int:
        assert self.may.wait(DEADLINE_SECONDS)
        return number


def test_what_cannot_be_resumed_is_refused_by_name(tmp_path: Path) -> None:
    runs, source = tmp_path / "runs", tmp_path / "numbers.txt"
    source.write_text("numbers", encoding="ascii")

    def flow(file: str = "lines.jsonl", count: int = 5, name: str = "log") -> vf.Flow:
        reader = Reader(str(source), count, name="reader")
        return vf.Flow([JsonlSink(tmp_path / file, name=name)(Waits(name="waits")(reader))], name="refused")

    Waits.may.clear()
    run = flow().start("threads", runs_folder=runs)
    with pytest.raises(vf.UsageError, match="it is still running"):
        flow().run(runs_folder=runs, resume=run.run_id)
    run.stop(resumable=True)
    Waits.may.set()
    assert run.wait().resumable

    def refused(made: vf.Flow, **options: Any) -> str:
        with pytest.raises(vf.UsageError) as caught:
            made.run(runs_folder=runs, resume=run.run_id, **options)
        assert caught.value.effect == "nothing was started"
        return str(caught.value)

    assert "node log: arguments.path" in refused(flow("other.jsonl"))
    assert "node reader: arguments.count is 6, and was 5" in refused(flow(count=6))
    assert "there was a node log" in refused(flow(name="other"))
    with pytest.raises(vf.UsageError, match="there is no run"):
        flow().run(runs_folder=runs, resume="0Z")
    source.write_text("other numbers", encoding="ascii")
    assert "numbers.txt has changed since" in refused(flow())
    source.unlink()
    assert "which reader reads, is gone" in refused(flow())

    Waits.may.clear()
    source.write_text("numbers", encoding="ascii")
    plain = flow().start("threads", runs_folder=runs)
    plain.stop()
    with pytest.raises(vf.UsageError, match="stopping already"):
        plain.stop(resumable=True)
    Waits.may.set()
    report = plain.wait()
    assert (report.verdict, report.resumable) == ("stopped", False)
    with pytest.raises(vf.UsageError, match="it was not stopped to be resumed"):
        flow().run(runs_folder=runs, resume=plain.run_id)


def test_a_run_that_keeps_nothing_on_disk_goes_on_when_it_is_asked_in_vain() -> None:
    Waits.may.clear()
    run = vf.Flow([Rows(name="rows")(Waits(name="waits")(Numbers(3, name="numbers")))], name="f").start(
        "threads"
    )
    with pytest.raises(vf.UsageError, match="no folder to keep anything in"):
        run.stop(resumable=True)
    Waits.may.set()
    assert run.wait().verdict == "complete"


def test_a_run_without_a_supervisor_is_not_resumed(tmp_path: Path) -> None:
    out, runs = tmp_path / "out", tmp_path / "runs"
    report = suspended(small_flow(out), out, 3)
    folder = Path(report.folder)
    (folder / "report.json").unlink()
    told = msgspec.json.decode((folder / "supervisor.json").read_bytes())
    told["process"]["pid"] = 2**22 + 1
    (folder / "supervisor.json").write_bytes(msgspec.json.encode(told))
    with pytest.raises(vf.UsageError, match="its supervisor was lost"):
        small_flow(out).run(runs_folder=runs, resume=report.run_id)
