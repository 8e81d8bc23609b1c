"""Every example does what it says, and does the same in threads and processes, fused and unfused."""

import hashlib
import json
import runpy
import subprocess
import sys
from collections import Counter
from itertools import pairwise
from pathlib import Path

import pytest

from tests.examples.running import EXAMPLES, NAMES, Run, Runs, expected, groupings, pictures
from videoflow.media.decoding import VideoReader


def together(name: str) -> pytest.MarkDecorator:
    """All tests of one example run in one process, which makes each of its runs once."""
    return pytest.mark.xdist_group(f"example-{name}")


LOSSLESS = [pytest.param(name, marks=together(name)) for name in NAMES if expected(name).lossless]
LIVE = [pytest.param(name, marks=together(name)) for name in NAMES if not expected(name).lossless]
GROUPINGS = [
    pytest.param(
        name, engine, fuse, id=f"{name}-{engine}-{'fused' if fuse else 'unfused'}", marks=together(name)
    )
    for name in NAMES
    for engine, fuse in groupings(name)
]


def test_there_is_an_example_of_everything_that_is_promised() -> None:
    subjects = {name.partition("-")[2] for name in NAMES}
    assert subjects >= {
        "hello",
        "people-counting",
        "several-cameras",
        "parallel-detection",
        "custom-node",
        "functions",
    }


@pytest.mark.parametrize("name", NAMES)
def test_an_example_is_whole(name: str) -> None:
    names = {path.name for path in (EXAMPLES / name).iterdir() if path.name != "__pycache__"}
    assert {"README.md", "flow.py", "expected.json"} <= names
    readme = (EXAMPLES / name / "README.md").read_text(encoding="utf-8")
    assert f"videoflow run-local examples/{name}/flow.py" in readme


@pytest.mark.parametrize(("name", "engine", "fuse"), GROUPINGS)
def test_an_example_does_what_it_says(name: str, engine: str, fuse: bool, runs: Runs) -> None:
    wanted, run = expected(name), runs.of(name, engine, fuse=fuse)
    report = run.report
    assert report.failure is None
    assert (report.verdict, report.exit_status, report.dead_letters) == (wanted.verdict, 0, [])
    assert {source.node: source.items for source in report.sources} == wanted.sources
    assert report.values == wanted.values
    assert sorted(report.outputs) == sorted([*wanted.files, *wanted.videos])
    assert sorted(path.name for path in run.folder.iterdir()) == sorted([*wanted.files, *wanted.videos])
    for file, holds in wanted.files.items():
        data = (run.folder / file).read_bytes()
        lines = data.decode().splitlines()
        assert len(lines) == holds.lines if holds.lines is not None else lines
        if holds.last is not None:
            assert (lines[-1] if isinstance(holds.last, str) else json.loads(lines[-1])) == holds.last
        assert holds.sha256 in (None, hashlib.sha256(data).hexdigest())
    for video, shows in wanted.videos.items():
        frames = list(VideoReader(str(run.folder / video)).frames())
        assert (len(frames), frames[0].width, frames[0].height) == (shows.frames, shows.width, shows.height)
        assert frames[-1].time_seconds + 0.04 == pytest.approx(shows.seconds)


@pytest.mark.parametrize(("name", "engine", "fuse"), GROUPINGS)
def test_the_ledger_of_an_example_closes(name: str, engine: str, fuse: bool, runs: Runs) -> None:
    for edge in runs.of(name, engine, fuse=fuse).report.edges:
        counted = edge.delivered + sum(edge.skipped.values()) + sum(edge.dropped.values())
        assert (edge.closed, edge.announced, edge.in_flight) == (True, counted, 0), edge


@pytest.mark.parametrize("name", LOSSLESS)
def test_all_runs_of_an_example_agree(name: str, runs: Runs) -> None:
    first, *others = runs.all(name)
    assert others
    for other in others:
        for file in expected(name).files:
            assert (other.folder / file).read_bytes() == (first.folder / file).read_bytes()
        for video in expected(name).videos:
            assert pictures(other.folder / video) == pictures(first.folder / video)
        assert other.report.values == first.report.values
        assert flows(other) == flows(first)


def flows(run: Run) -> dict[tuple[str, str], tuple[int, int]]:
    return {(edge.parent, edge.child): (edge.announced, edge.delivered) for edge in run.report.edges}


def looked_at(run: Run, file: str) -> dict[str, list[tuple[int, str]]]:
    """Source → (index, line) of what was looked at, in the order of the file."""
    found: dict[str, list[tuple[int, str]]] = {}
    for line in run.lines(file):
        found.setdefault(line["source"], []).append((line["index"], json.dumps(line)))
    return found


@pytest.mark.parametrize("name", LIVE)
def test_what_a_live_edge_left_out_is_in_the_ledger_and_the_rest_in_order(name: str, runs: Runs) -> None:
    wanted = expected(name)
    (file,) = wanted.files
    seen: dict[tuple[str, int], str] = {}
    for run in runs.all(name):
        by_source = looked_at(run, file)
        delivered = Counter(
            {edge.parent: edge.delivered for edge in run.report.edges if edge.parent in wanted.sources}
        )
        dropped = {
            edge.parent: edge.dropped.get("dropped", 0)
            for edge in run.report.edges
            if edge.parent in wanted.sources
        }
        assert dropped.keys() == wanted.sources.keys()
        assert sum(len(lines) for lines in by_source.values()) == delivered.total()
        for node, items in wanted.sources.items():
            assert delivered[node] + dropped[node] == items
            assert delivered[node] == len(by_source.get(f"scene-{node.rpartition('-')[2]}", []))
        for source, lines in by_source.items():
            assert all(one < other for (one, _), (other, _) in pairwise(lines))
            for index, text in lines:  # what two runs both looked at they saw alike
                assert seen.setdefault((source, index), text) == text
    assert any(edge.dropped for edge in run.report.edges)


def test_the_notebook_runs_cell_by_cell(capsys: pytest.CaptureFixture[str]) -> None:
    runpy.run_path(str(EXAMPLES / "06-functions" / "notebook.py"))
    lines = capsys.readouterr().out.splitlines()
    assert len([text for text in lines if text.startswith("Frame(")]) == 5
    assert lines[-1].startswith("complete 30 heights")


@pytest.mark.parametrize("engine", ["threads", "local"])
def test_the_command_line_runs_an_example_where_it_is_called(engine: str, tmp_path: Path) -> None:
    flow = EXAMPLES / "01-hello" / "flow.py"
    command = [sys.executable, "-m", "videoflow", "run-local", str(flow), "--engine", engine, "--frames", "7"]
    done = subprocess.run(
        [*command, "--out", "seven.jsonl", "--run-dir", "runs"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert len((tmp_path / "seven.jsonl").read_text().splitlines()) == 7
