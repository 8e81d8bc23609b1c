"""Short runs, one after another in one process, and what it has open and holds meanwhile.

Used by the tests of growth, in their own process or in one of its own: `python -m tests.growth.short_runs`.
"""

import gc
import json
import os
import sys
import threading
import time
from pathlib import Path

from benchmarks.holding import Open, opened, private_bytes
from tests.growth.flows import short
from videoflow.graph.report import Verdict

FIRST = 2  # runs, after which what is loaded and made once is there
PATIENCE_SECONDS = 10.0
LOOK_SECONDS = 0.002


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


if __name__ == "__main__":
    engine, folder, count, every = sys.argv[1:]
    json.dump(runs(engine, Path(folder), int(count), int(every)), sys.stdout)
