"""Stop and Ctrl-C on the real command line: drained or cut short, accounted for, and nothing left running."""

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from subprocess import Popen

import pytest

from tests.promises.commands import HOME, command, files_in, processes_of, running
from videoflow.clock import RealClock
from videoflow.engines.run_folder import RunState, list_runs
from videoflow.errors import FlowError
from videoflow.graph.report import RunReport, Verdict
from videoflow.media.decoding import VideoReader

FLOW = str(Path(__file__).parent / "scene.py")
ENGINES = ["threads", "local"]
SECONDS = 40.0


@contextmanager
def filming(folder: Path, engine: str, *words: str) -> Iterator[Popen[str]]:
    """A run that has written its first lines."""
    with running(folder, "run-local", FLOW, "--engine", engine, *words) as child:
        until_lines(folder / "log.jsonl", 40, child)
        yield child


def until_lines(path: Path, count: int, child: Popen[str]) -> None:
    until(lambda: path.exists() and path.read_text().count("\n") >= count, child)


def until(condition: Callable[[], bool], child: Popen[str]) -> None:
    clock = RealClock()
    deadline = clock.monotonic() + SECONDS
    while not condition():
        assert child.poll() is None, child.communicate()[0]
        assert clock.monotonic() < deadline, "it did not begin"
        clock.wait([], clock.monotonic() + 0.02)


def ended(folder: Path, child: Popen[str]) -> tuple[str, RunReport]:
    """Returns what a run said until its end, and its report; nothing else of it may be left."""
    said, _ = child.communicate(timeout=SECONDS)
    assert "Traceback" not in said
    assert processes_of(folder) == []
    (run,) = list_runs(folder / HOME / "runs")
    assert run.state() is RunState.FINISHED, said
    assert list((folder / HOME / "outputs").iterdir()) == []
    assert not list(run.path.glob("*-wal")) + list(run.path.glob(".*"))
    report = run.report()
    assert report is not None
    assert report.verdict is Verdict.STOPPED
    return said, report


def frames_so_far(path: Path) -> int:
    """Returns the frames in what is being written, none where nothing readable is there yet."""
    try:
        return frames_of(path)
    except FlowError:
        return 0


def frames_of(path: Path) -> int:
    return len(list(VideoReader(str(path)).frames()))


@pytest.mark.parametrize("engine", ENGINES)
def test_ctrl_c_drains_and_leaves_whole_outputs(engine: str, tmp_path: Path) -> None:
    with filming(tmp_path, engine) as child:
        child.send_signal(signal.SIGINT)
        said, report = ended(tmp_path, child)
    assert child.returncode == 130, said
    assert "stopping: sources end, the rest drains" in said
    count = report.sources[0].items
    assert all(edge.closed and edge.announced == edge.delivered == count for edge in report.edges)
    assert frames_of(tmp_path / "scene.mp4") == count
    assert (tmp_path / "log.jsonl").read_text().count("\n") == count
    assert {name for name in files_in(tmp_path) if not name.startswith(HOME)} == {"scene.mp4", "log.jsonl"}


@pytest.mark.parametrize("engine", ENGINES)
def test_a_second_ctrl_c_ends_at_once_and_says_what_was_in_flight(engine: str, tmp_path: Path) -> None:
    with filming(tmp_path, engine, "--held", "20") as child:
        until(lambda: frames_so_far(tmp_path / "scene.mp4.part") >= 5, child)
        child.send_signal(signal.SIGINT)
        assert child.stdout is not None
        assert any("stopping" in line for line in child.stdout)
        child.send_signal(signal.SIGINT)
        said, report = ended(tmp_path, child)
    assert child.returncode == 130, said
    assert "ending without draining" in said
    held = next(edge for edge in report.edges if edge.child == "gate")
    assert held.in_flight > 0
    assert held.closed, "what was in flight is accounted for as such"
    assert any(gap.where == "scene -> gate" and "were in flight" in gap.what for gap in report.gaps)
    video = next(edge for edge in report.edges if edge.child == "video")
    assert not (tmp_path / "scene.mp4").exists()
    assert frames_of(tmp_path / "scene.mp4.part") >= video.delivered > 0
    assert "scene.mp4 (not finished; scene.mp4.part, " in said


def test_a_third_ctrl_c_in_haste_does_not_cut_off_the_end(tmp_path: Path) -> None:
    with filming(tmp_path, "local", "--held", "20") as child:
        assert child.stdout is not None
        for answer in ("stopping", "ending without draining"):
            child.send_signal(signal.SIGINT)
            assert any(answer in line for line in child.stdout)
        child.send_signal(signal.SIGINT)
        said, _ = ended(tmp_path, child)
    assert child.returncode == 130, said


@pytest.mark.parametrize("engine", ENGINES)
def test_another_terminal_and_sigterm_stop_a_run_and_it_is_no_error(engine: str, tmp_path: Path) -> None:
    with filming(tmp_path, engine) as child:
        if engine == "local":
            child.send_signal(signal.SIGTERM)
        else:
            (run,) = list_runs(tmp_path / HOME / "runs")
            asked = command(tmp_path, "stop", run.run_id[-6:], left_running=True)
            assert (asked.status, asked.out) == (0, "")
            assert f"asked run {run.run_id} to stop" in asked.err
        said, report = ended(tmp_path, child)
    assert child.returncode == 0, said
    assert "error VF-" not in said
    assert all(edge.closed and edge.announced == edge.delivered for edge in report.edges)
    assert frames_of(tmp_path / "scene.mp4") == report.sources[0].items


def test_two_runs_do_not_write_one_path(tmp_path: Path) -> None:
    (tmp_path / "alias.mp4").symlink_to("scene.mp4")
    with filming(tmp_path, "threads", "--held", "20") as child:
        (run,) = list_runs(tmp_path / HOME / "runs")
        for out in ("elsewhere/../scene.mp4", "alias.mp4"):
            second = command(tmp_path, "run-local", FLOW, "--out", out, left_running=True)
            block = second.block()
            assert (second.status, block.code) == (2, "VF-USAGE")
            assert f"is being written by run {run.run_id}" in block.message
            assert "videoflow stop" in block.fields
        (tmp_path / "open").touch()
        child.send_signal(signal.SIGINT)
        said, report = ended(tmp_path, child)
    assert frames_of(tmp_path / "scene.mp4") == report.sources[0].items, said
