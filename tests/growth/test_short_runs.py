"""Short runs, one after another in one process, leave nothing open: no file, segment, thread or process.

Every run tries 120 in threads and three in processes; `make nightly` 20 000 and 300, and looks
at memory too.
"""

import gc
import os
import sys
import threading
import time
from pathlib import Path

import pytest

from benchmarks.holding import Open, opened, private_bytes, slope
from tests.growth.flows import short
from videoflow.graph.report import Verdict

FIRST = 2  # runs, after which what is loaded and made once is there
PATIENCE_SECONDS = 10.0
LOOK_SECONDS = 0.002
BYTES_A_RUN = 128.0
BYTES_A_RUN_IN_PROCESSES = 4096.0


def test_short_runs_in_threads_leave_nothing_open(tmp_path: Path) -> None:
    runs("threads", tmp_path, 120, 30)


def test_short_runs_in_processes_leave_nothing_open(tmp_path: Path) -> None:
    runs("local", tmp_path, 2, 1, first=1)


@pytest.mark.nightly
@pytest.mark.timeout(2 * 3600)
@pytest.mark.parametrize(
    ("engine", "count", "most"),
    [("threads", 20_000, BYTES_A_RUN), ("local", 300, BYTES_A_RUN_IN_PROCESSES)],
)
def test_thousands_of_short_runs_leave_nothing(
    engine: str, count: int, most: float, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    sizes = runs(engine, tmp_path, count, 100)
    late = sizes[len(sizes) // 2 :]
    grown = slope(late) if len(late) > 1 else 0.0
    with capsys.disabled():
        first, last = sizes[0], sizes[-1]
        told = f"{first[1] >> 10} KB after {first[0]}, {last[1] >> 10} KB after {last[0]}"
        sys.stdout.write(f"\n{engine}: {told}, {grown:.0f} bytes a run in the second half\n")
    assert grown <= most


def runs(engine: str, folder: Path, count: int, every: int, *, first: int = FIRST) -> list[tuple[int, int]]:
    """Runs a short flow so many times; returns (runs, private bytes), looked at after every so many.

    Args:
        engine: Name of the engine.
        folder: Where the run folders of runs in processes come.
        count: How many runs, after the first ones.
        every: How often what is open must be what was open after the first ones.
        first: Runs that may open what is opened once for all.
    """
    for _ in range(first):
        run(engine, folder)
    gc.collect()  # of what tests before this one left: a cycle of theirs that goes later is no change of ours
    before = settled(None)
    sizes = []
    for number in range(1, count + 1):
        run(engine, folder)
        if number % every == 0:
            assert settled(before) == before, f"after {number} runs"
            sizes.append((number, private_bytes(os.getpid())))
    return sizes


def run(engine: str, folder: Path) -> None:
    report = short().run(engine, runs_folder=None if engine == "threads" else folder)
    assert report.verdict is Verdict.COMPLETE, report.failure


def settled(wanted: Open | None) -> Open:
    """Returns what is open, once it is as wanted (None: once it is at rest), or after a while.

    The thread of a run says that it has ended before it has.
    """
    before, found, looking = None, opened(), threading.Event()
    until = time.monotonic() + PATIENCE_SECONDS
    while found != (before if wanted is None else wanted) and time.monotonic() < until:
        looking.wait(LOOK_SECONDS)
        before, found = found, opened()
    return found
