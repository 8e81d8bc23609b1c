"""Every example does what it says, and does the same in threads and processes, fused and unfused."""

import hashlib
import json
import runpy
import subprocess
import sys
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tests.examples.running import EXAMPLES, NAMES, Run, expected, pictures, runs_of
from videoflow.media.decoding import VideoReader

LOSSLESS = [name for name in NAMES if expected(name).lossless]
LIVE = [name for name in NAMES if not expected(name).lossless]


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


def check_that_it_does_what_it_says(name: str, run: Run) -> None:
    wanted, report = expected(name), run.report
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


def check_that_the_ledger_closes(run: Run) -> None:
    for edge in run.report.edges:
        counted = edge.delivered + sum(edge.skipped.values()) + sum(edge.dropped.values())
        assert (edge.closed, edge.announced, edge.in_flight) == (True, counted, 0), edge


def flows(run: Run) -> dict[tuple[str, str], tuple[int, int]]:
    return {(edge.parent, edge.child): (edge.announced, edge.delivered) for edge in run.report.edges}


@pytest.mark.timeout(400)
@pytest.mark.parametrize("name", LOSSLESS)
def test_a_lossless_example_does_what_it_says_and_the_same_everywhere(name: str, tmp_path: Path) -> None:
    first, *others = runs_of(name, tmp_path)
    assert others
    check_that_it_does_what_it_says(name, first)
    check_that_the_ledger_closes(first)
    for other in others:
        check_that_it_does_what_it_says(name, other)
        check_that_the_ledger_closes(other)
        for file in expected(name).files:
            assert (other.folder / file).read_bytes() == (first.folder / file).read_bytes(), other.folder.name
        for video in expected(name).videos:
            assert pictures(other.folder / video) == pictures(first.folder / video), other.folder.name
        assert flows(other) == flows(first)


@dataclass
class Looked:
    """What a live example looked at in all of its runs: (source, index) → the line."""

    seen: dict[tuple[str, int], str] = field(default_factory=dict)

    def add(self, run: Run, file: str) -> Counter[str]:
        """Checks one run against itself and the others; returns source → how many frames were looked at."""
        last: dict[str, int] = {}
        counts: Counter[str] = Counter()
        for line in run.lines(file):
            source, index = line["source"], line["index"]
            assert index > last.get(source, -1), "the frames of one source are in order"
            last[source] = index
            counts[source] += 1
            assert self.seen.setdefault((source, index), json.dumps(line)) == json.dumps(line)
        return counts


@pytest.mark.timeout(400)
@pytest.mark.parametrize("name", LIVE)
def test_what_a_live_example_left_out_is_in_the_ledger_and_the_rest_the_same(
    name: str, tmp_path: Path
) -> None:
    wanted = expected(name)
    (file,) = wanted.files
    looked, dropped = Looked(), 0
    for run in runs_of(name, tmp_path):
        check_that_it_does_what_it_says(name, run)
        check_that_the_ledger_closes(run)
        counts = looked.add(run, file)
        edges = [edge for edge in run.report.edges if edge.parent in wanted.sources]
        assert {edge.parent for edge in edges} == wanted.sources.keys()
        for edge in edges:
            source = f"scene-{edge.parent.rpartition('-')[2]}"
            missing = wanted.sources[edge.parent] - counts[source]
            assert (edge.delivered, edge.dropped.get("dropped", 0)) == (counts[source], missing)
            dropped += missing
    assert dropped > 0, "nothing was dropped in any run, so nothing was tested"


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
