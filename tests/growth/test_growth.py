"""What a run holds does not grow with its items: private memory, shared memory, records, files, report.

Every run takes thousands of items; `make nightly` takes ten million through a chain, and a million through a
join with state. All is looked at while nothing moves, so that no figure depends on how fast the machine is.
"""

import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from benchmarks.holding import Held, slope
from tests.growth.flows import Build, chain, held_at, joined
from videoflow.graph.report import Verdict

# Of one process, between the marks: 140 bytes of each item that is kept in a chain are more; pages of the
# allocator and of SQLite's cache that come into use, some time or other, are fewer.
MOST_BYTES = 700_000
MOST_FILE_BYTES = 8 << 20  # SQLite begins its log anew at 4 MiB
MOST_REPORT_BYTES = 8 << 10
# What was committed last with what it said: a burst of 32 inputs.
MOST_STORED_BYTES = 24 << 10
MILLION = 1_000_000
# Less than any object kept of each item; SQLite's caches, 2 MiB at most in each of five processes, fill late.
JOINED_BYTES_AN_ITEM = 4.0


@pytest.mark.parametrize(
    ("build", "marks"), [(chain, (2000, 10_000)), (joined, (1000, 3000))], ids=["chain", "joined"]
)
def test_a_run_of_many_items_holds_no_more_than_one_of_few(
    build: Build, marks: tuple[int, ...], tmp_path: Path
) -> None:
    found, report_bytes = growth(build, tmp_path, marks)
    check_state(found, report_bytes)
    first, last = found
    assert {name: grown for name, grown in grown_by(first, last).items() if grown > MOST_BYTES} == {}


@pytest.mark.nightly
@pytest.mark.timeout(6 * 3600)
@pytest.mark.parametrize(
    ("build", "items", "most"),
    [(chain, 10 * MILLION, 1.0), (joined, MILLION, JOINED_BYTES_AN_ITEM)],
    ids=["chain", "joined"],
)
def test_memory_is_flat_over_millions_of_items(
    build: Build, items: int, most: float, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    tenth = items // 10
    marks = [mark for mark in (1000, 10_000, 100_000) if mark < tenth]
    found, report_bytes = growth(build, tmp_path, [*marks, *range(tenth, items + 1, tenth)])
    with capsys.disabled():
        sys.stdout.write(table(found))
    check_state(found, report_bytes)
    settled = [held for held in found if held.items >= tenth]
    whole = slope([(held.items, sum(held.private_bytes.values()) + held.shared_bytes) for held in settled])
    assert whole <= most, f"{whole:.2f} bytes an item, of all processes together"


def growth(build: Build, folder: Path, marks: Sequence[int]) -> tuple[list[Held], int]:
    """Returns what a run held at each mark, and how long its report is."""
    found, run = held_at(build, folder, marks)
    report = run.wait()
    assert report.verdict is Verdict.COMPLETE, report.failure
    assert {edge.announced for edge in report.edges} == {marks[-1]}
    return found, run.folder.report_path.stat().st_size


def check_state(found: Sequence[Held], report_bytes: int) -> None:
    """Checks all but private memory, which knows its bounds better by the number of items."""
    assert {held.rows for held in found} == {found[0].rows}, "records of single items are kept"
    assert max(held.store_bytes for held in found) < MOST_STORED_BYTES
    assert max(held.file_bytes for held in found) < MOST_FILE_BYTES
    assert report_bytes < MOST_REPORT_BYTES
    assert found[-1].shared_bytes - found[0].shared_bytes < MOST_BYTES


def grown_by(first: Held, last: Held) -> dict[str, int]:
    """Returns by how many bytes the private memory of each process grew."""
    assert first.private_bytes.keys() == last.private_bytes.keys()
    return {name: last.private_bytes[name] - size for name, size in first.private_bytes.items()}


def table(found: Sequence[Held]) -> str:
    """The curve: kilobytes of each process, of shared memory and of the run folder, at each mark."""
    names = list(found[0].private_bytes)
    lines = [
        "",
        f"{'items':>10} " + " ".join(f"{name:>11}" for name in (*names, "shared", "records", "files")),
    ]
    for held in found:
        sizes = [*(held.private_bytes[name] >> 10 for name in names), held.shared_bytes >> 10]
        row = [*sizes, held.rows, held.file_bytes >> 10]
        lines.append(f"{held.items:>10} " + " ".join(f"{value:>11}" for value in row))
    return "\n".join(lines) + "\n"
