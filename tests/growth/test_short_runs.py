"""Short runs, one after another in one process, leave nothing open: no file, segment, thread or process.

Every run tries 120 in threads and three in processes; `make nightly` 20 000 and 300, and looks
at memory too.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.holding import slope
from tests.growth.short_runs import runs

ROOT = Path(__file__).parents[2]
BYTES_A_RUN = 128.0
BYTES_A_RUN_IN_PROCESSES = 4096.0
EVERY_BLOCK_FOR_ITSELF = {"PYTHONMALLOC": "malloc"}  # pools of Python's own grow though nothing is kept


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
    command = [sys.executable, "-m", "tests.growth.short_runs", engine, str(tmp_path), str(count), "100"]
    environment = os.environ | EVERY_BLOCK_FOR_ITSELF
    ran = subprocess.run(command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, check=True)
    sizes = json.loads(ran.stdout)
    late = sizes[len(sizes) // 2 :]
    grown = slope(late) if len(late) > 1 else 0.0
    with capsys.disabled():
        first, last = sizes[0], sizes[-1]
        told = f"{first[1] >> 10} KB after {first[0]}, {last[1] >> 10} KB after {last[0]}"
        sys.stdout.write(f"\n{engine}: {told}, {grown:.0f} bytes a run in the second half\n")
    assert grown <= most
