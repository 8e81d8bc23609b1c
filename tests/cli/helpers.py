"""Runs commands in this process, as the console script does, and makes runs for them to look at."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from videoflow.adapters.sqlite import SqliteStore
from videoflow.backends.runtime import DeadLetter, FlowRuntime
from videoflow.cli.app import main
from videoflow.clock import RealClock
from videoflow.engines.run_folder import RunFolder
from videoflow.graph.report import RunReport, Verdict

OLDER, NEWER = "01JAAAAAAAAAAAAAAAAAAAAAAA", "01K1BBBBBBBBBBBBBBBBBBBBBB"


@dataclass(frozen=True)
class Ending:
    """How a command ended: its exit status and what it printed."""

    status: int
    out: str
    err: str


def command(capfd: pytest.CaptureFixture[str], *arguments: str) -> Ending:
    """Runs one command line."""
    capfd.readouterr()
    status = main(arguments)
    out, err = capfd.readouterr()
    return Ending(status, out, err)


def report(run_id: str, verdict: Verdict = Verdict.COMPLETE) -> RunReport:
    return RunReport(
        run_id=run_id, flow_id="people", engine="local", verdict=verdict, exit_status=0, seconds=7.25
    )


def finished_run(run_id: str, verdict: Verdict = Verdict.COMPLETE) -> RunFolder:
    folder = RunFolder.create(None, run_id, engine="local", flow_id="people")
    folder.write_report(report(run_id, verdict))
    return folder


@contextmanager
def records(folder: RunFolder) -> Iterator[tuple[FlowRuntime, float]]:
    """The records of a run, and a deadline for calls."""
    clock = RealClock()
    store = SqliteStore(folder.store_path, clock)
    try:
        yield FlowRuntime(store, folder.run_id), clock.monotonic() + 10
    finally:
        store.close()


def put_letters(folder: RunFolder, *letters: DeadLetter) -> None:
    with records(folder) as (runtime, deadline):
        for letter in letters:
            runtime.put_dead_letter(letter, deadline=deadline)


def letter(number: int, *, run_id: str = NEWER, **members: bytes) -> DeadLetter:
    return DeadLetter(
        record_id=f"{number:032x}",
        label=f"{number}-7f3a",
        run_id=run_id,
        node="detect",
        task="detect",
        input_id=f"{number:04x}",
        origin=("camera", 0, number),
        attempts=4,
        error="ValueError: expected an image of (H, W, 3), got (300, 300)",
        where="flow.py:31 in process",
        trace="Traceback (most recent call last):\n  File flow.py, line 31, in process\nValueError: expected",
        event_time=number / 25,
        source="street.mp4",
        members=members,
    )


@contextmanager
def another_process(statement: str) -> Iterator[subprocess.Popen[str]]:
    """A process that has run a statement, said so, and now waits for its end."""
    code = f"{statement}\nprint('ready', flush=True)\ninput()"
    arguments = [sys.executable, "-c", code]
    with subprocess.Popen(arguments, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == "ready\n"
        try:
            yield child
        finally:
            if child.poll() is None:
                child.kill()


def lost_run(run_id: str, more: str = "") -> RunFolder:
    """A run whose supervisor was killed."""
    statement = (
        "from videoflow.engines.run_folder import RunFolder;"
        f"folder = RunFolder.create(None, {run_id!r}, engine='local', flow_id='people')\n{more}"
    )
    with another_process(statement) as child:
        os.kill(child.pid, signal.SIGKILL)
        child.wait()
    return RunFolder(Path(os.environ["VIDEOFLOW_HOME"], "runs", run_id))
