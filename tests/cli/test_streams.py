"""Whoever reads a command's output may go away, and a full place is said; neither changes what was done."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

import pytest

_FULL = Path("/dev/full")
_VIDEOFLOW = [sys.executable, "-m", "videoflow"]


@contextmanager
def without_reader() -> Iterator[IO[bytes]]:
    """A pipe whose reading end is closed."""
    reading, writing = os.pipe()
    os.close(reading)
    with open(writing, "wb") as file:
        yield file


@pytest.fixture
def home(tmp_path: Path) -> dict[str, str]:
    return {**os.environ, "VIDEOFLOW_HOME": str(tmp_path / "home")}


def test_a_gone_reader_of_results_changes_nothing(home: dict[str, str]) -> None:
    with without_reader() as nobody:
        ended = subprocess.run(
            [*_VIDEOFLOW, "nodes"], stdout=nobody, stderr=subprocess.PIPE, env=home, check=False, timeout=60
        )
    assert ended.returncode == 0
    assert b"Error" not in ended.stderr


def test_a_gone_reader_of_errors_does_not_change_the_exit_status(home: dict[str, str]) -> None:
    with without_reader() as nobody:
        ended = subprocess.run(
            [*_VIDEOFLOW, "stop", "nothing"],
            stdout=subprocess.PIPE,
            stderr=nobody,
            env=home,
            check=False,
            timeout=60,
        )
    assert (ended.returncode, ended.stdout) == (2, b"")


def test_results_that_find_no_room_are_said(home: dict[str, str]) -> None:
    with _FULL.open("wb") as full:
        ended = subprocess.run(
            [*_VIDEOFLOW, "nodes"], stdout=full, stderr=subprocess.PIPE, env=home, check=False, timeout=60
        )
    said = ended.stderr.decode()
    assert ended.returncode == 3, said
    assert said.startswith("error VF-OUTPUT  the results cannot be written to standard output\n"), said
    assert "Traceback" not in said


def test_a_run_whose_progress_nobody_reads_any_more_comes_to_its_end(
    home: dict[str, str], tmp_path: Path
) -> None:
    flow, rows = tmp_path / "flow.py", tmp_path / "rows.jsonl"
    flow.write_text(
        "import videoflow as vf\n"
        "from videoflow.nodes import JsonlSink, SyntheticScene\n\n\n"
        "def build_flow() -> vf.Flow:\n"
        f'    return vf.Flow([JsonlSink(r"{rows}")(SyntheticScene(frames=3, size=(32, 32)))])\n'
    )
    with without_reader() as nobody:
        command = [*_VIDEOFLOW, "run-local", str(flow), "--engine", "threads"]
        ended = subprocess.run(command, stdout=nobody, stderr=nobody, env=home, check=False, timeout=120)
    assert ended.returncode == 0
    assert len(rows.read_text().splitlines()) == 3
