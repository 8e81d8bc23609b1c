"""What a run holds: private memory of its processes, shared memory, records, files, descriptors, threads.

Used by the soak and by the tests of growth. It reads Linux's /proc and the run's own files, and disturbs
nothing. It refuses to take a process that ended meanwhile for one that holds nothing: that raises.
"""

import os
import sqlite3
import threading
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from videoflow.engines._local_run import LocalRun

SUPERVISOR = "supervisor"


@dataclass(frozen=True)
class Held:
    """What a run in processes holds at one moment.

    Attributes:
        items: How many items had come through when it was looked at.
        private_bytes: Process → bytes that are its own: each worker as `task-slot`, and `supervisor`.
        shared_bytes: Pages of the run's shared memory that are in use.
        rows: Records and log entries in the run's store.
        store_bytes: What these hold, keys included.
        file_bytes: Files of the run folder, the store's among them.
    """

    items: int
    private_bytes: dict[str, int]
    shared_bytes: int
    rows: int
    store_bytes: int
    file_bytes: int


def held_by(run: LocalRun, items: int) -> Held:
    """Returns what a run holds now.

    Args:
        run: A run that has not ended.
        items: How many items have come through it.

    Raises:
        OSError: One of its processes ended meanwhile.
    """
    processes = {**run.processes(), SUPERVISOR: os.getpid()}
    rows, store_bytes = _stored(run.folder.store_path)
    return Held(
        items,
        {name: private_bytes(pid) for name, pid in sorted(processes.items())},
        _shared_bytes(),
        rows,
        store_bytes,
        sum(path.stat().st_size for path in run.folder.path.rglob("*") if path.is_file()),
    )


def private_bytes(pid: int) -> int:
    """Returns the bytes that a process has for itself: not its libraries, and no memory that is shared."""
    for line in Path(f"/proc/{pid}/smaps_rollup").read_text(encoding="ascii").splitlines():
        name, _, rest = line.partition(":")
        if name == "Anonymous":
            return 1024 * int(rest.split()[0])
    raise OSError(f"/proc/{pid}/smaps_rollup does not say what is anonymous")


def slope(pairs: Sequence[tuple[float, float]]) -> float:
    """Returns by how much the second grows for each of the first, by least squares.

    Raises:
        ValueError: The first are all alike, or there are fewer than two.
    """
    if len({x for x, _ in pairs}) < 2:
        raise ValueError("a slope needs two different places")
    middle = sum(x for x, _ in pairs) / len(pairs), sum(y for _, y in pairs) / len(pairs)
    over = sum((x - middle[0]) * (y - middle[1]) for x, y in pairs)
    return over / sum((x - middle[0]) ** 2 for x, _ in pairs)


@dataclass(frozen=True)
class Open:
    """What this process has open, beyond its memory.

    Attributes:
        descriptors: Open files, sockets and pipes.
        segments: Descriptors of nameless shared memory, and shared mappings of it.
        threads: Threads that live, as the kernel counts them.
        named_threads: Names of those that Python started, in order.
        children: Processes that it started and that are not waited for.
    """

    descriptors: int
    segments: int
    threads: int
    named_threads: tuple[str, ...]
    children: int


def opened() -> Open:
    """Returns what this process has open now."""
    links = list(_links().values())
    maps = Path("/proc/self/maps").read_text(encoding="utf-8").splitlines()
    segments = [text for text in (*links, *maps) if "/memfd:" in text or "/dev/shm/" in text]
    named = tuple(sorted(thread.name for thread in threading.enumerate()))
    threads, children = 0, 0
    for task in Path("/proc/self/task").iterdir():
        try:
            children += len((task / "children").read_text(encoding="ascii").split())
        except (FileNotFoundError, ProcessLookupError):  # that thread ended just now
            continue
        threads += 1
    return Open(len(links), len(segments), threads, named, children)


def _links() -> dict[str, str]:
    """Returns the descriptors of this process and what each stands for."""
    found = {}
    for entry in os.listdir("/proc/self/fd"):
        path = f"/proc/self/fd/{entry}"
        try:
            found[path] = os.readlink(path)
        except FileNotFoundError:  # another thread closed it, or it was that of this listing
            continue
    return found


def _shared_bytes() -> int:
    """Returns the pages in use of all nameless memory that this process holds, which is that of its runs."""
    blocks: dict[int, int] = {}
    for path, what in _links().items():
        if what.startswith("/memfd:"):
            found = os.stat(path)
            blocks[found.st_ino] = 512 * found.st_blocks
    return sum(blocks.values())


def _stored(path: Path) -> tuple[int, int]:
    with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as connection:
        query = "SELECT COUNT(*), COALESCE(SUM(LENGTH({})), 0) FROM {}"
        records = connection.execute(query.format("key) + LENGTH(value", "records")).fetchone()
        logs = connection.execute(query.format("record", "logs")).fetchone()
    return records[0] + logs[0], records[1] + logs[1]
