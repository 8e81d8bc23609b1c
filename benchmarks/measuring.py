"""Runs a contender as a command of its own, and reads what it measured.

Used by the workloads. Every contender inherits the cores of this process, and so all are pinned alike. What a
contender leaves running is ended with it. It refuses figures of a command that failed: that is a `Failure`.
"""

import ctypes
import json
import os
import signal
import subprocess
import tempfile
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from benchmarks.work import ROOT_VARIABLE, Job

ROOT = Path(__file__).resolve().parent.parent
_SET_CHILD_SUBREAPER = 36
_LAST_LINES = 3


@dataclass(frozen=True)
class Contender:
    """One way to do the work.

    Attributes:
        name: For the table.
        command: What comes before the job.
        arguments: What comes after it.
        why_not: Why it cannot run here, or "".
        is_floor: It is no library, but a bound.
    """

    name: str
    command: tuple[str, ...]
    arguments: tuple[str, ...] = ()
    why_not: str = ""
    is_floor: bool = False


@dataclass(frozen=True)
class Failure:
    """A contender that gave no figures, and its last words."""

    why: str


Figures = dict[str, Any]


def adopt_orphans() -> None:
    """Makes this process the parent of what its children leave behind, to count it and to end it."""
    ctypes.CDLL(None).prctl(_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def measure(contender: Contender, job: Job, timeout_seconds: float) -> Figures | Failure:
    """Runs a contender once.

    Args:
        contender: What to run.
        job: What it is to do; its `out` is set here.
        timeout_seconds: How long it may take.
    """
    before = set(_descendants())
    with tempfile.TemporaryDirectory(prefix="bench") as folder:
        out, log = Path(folder) / "figures.json", Path(folder) / "log"
        command = [*contender.command, replace(job, out=str(out)).to_json(), *contender.arguments]
        environment = {
            **os.environ,
            ROOT_VARIABLE: str(os.getpid()),
            "VIDEOFLOW_HOME": f"{folder}/home",
            "PYTHONPATH": str(ROOT),
            "OMP_NUM_THREADS": "1",
        }
        environment.pop("PYTHONDONTWRITEBYTECODE", None)
        began = time.monotonic()
        with log.open("wb") as sink:
            process = subprocess.Popen(
                command, cwd=ROOT, env=environment, stdout=sink, stderr=sink, start_new_session=True
            )
            try:
                status: int | None = process.wait(timeout_seconds)
            except subprocess.TimeoutExpired:
                status = None
            finally:
                _end(set(_descendants()) - before, process)
        seconds = time.monotonic() - began
        if status == 0 and out.exists():
            figures: Figures = json.loads(out.read_text())
            return {**figures, "command_seconds": seconds}
        words = log.read_text(errors="replace").strip().splitlines()[-_LAST_LINES:]
        how = f"took more than {timeout_seconds:.0f} s" if status is None else f"ended with {status}"
        return Failure(f"{how}: {' / '.join(words)}")


def _descendants() -> list[int]:
    found, new = [], [os.getpid()]
    while new:
        children = _children(new.pop())
        found += children
        new += children
    return found


def _children(pid: int) -> list[int]:
    try:
        threads = os.listdir(f"/proc/{pid}/task")
        texts = [Path(f"/proc/{pid}/task/{thread}/children").read_text() for thread in threads]
    except OSError:  # it ended meanwhile
        return []
    return [int(child) for text in texts for child in text.split()]


def _end(left: set[int], process: subprocess.Popen[bytes]) -> None:
    for pid in left:
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            continue
    process.wait()
    for pid in left - {process.pid}:
        try:
            os.waitpid(pid, 0)
        except ChildProcessError:  # it was another's child
            continue
