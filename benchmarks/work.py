"""The work that every contender does alike: make an item, make a new one of it, look at it and measure.

Used by the floors, by our flows and by the peers, which run in environments of their own: NumPy and the
standard library alone. An item carries its index, when it was sent, and how long its hops took so far. It
refuses to call an item arrived whose bytes are not those that were sent.
"""

import json
import os
import signal
import struct
import sys
import time
import traceback
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.uint8]

FRAME_SHAPE = (1080, 1920, 3)
FRAME_BYTES = 1080 * 1920 * 3
SMALL_BYTES = 1024
ROOT_VARIABLE = "BENCHMARK_ROOT_PID"
VIDEO_VARIABLE = "BENCHMARK_VIDEO"
_STAMP = struct.Struct(
    "<qqqq"
)  # index, when it was made, when it was sent last, nanoseconds of the first hop
_SOURCES = 3
_PAGE = 4096
_TICKS = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True)
class Job:
    """What a contender is to do.

    Attributes:
        kind: `frames` (1080p BGR) or `small` (1 KiB).
        items: How many.
        warm: So many first ones are not measured.
        forward: The processor hands on what it was given; else it makes a new item.
        per_second: Pace of the producer; 0: as fast as it is taken.
        out: File for the figures.
    """

    kind: str
    items: int
    warm: int
    forward: bool = False
    per_second: float = 0.0
    out: str = ""

    @property
    def item_bytes(self) -> int:
        """Bytes of one item."""
        return FRAME_BYTES if self.kind == "frames" else SMALL_BYTES

    def to_json(self) -> str:
        """The job as an argument of a command."""
        return json.dumps(asdict(self))


def job_of_command() -> Job:
    """Returns the job that this process was started with."""
    return Job(**json.loads(sys.argv[1]))


class Maker:
    """Writes every byte of every item.

    Args:
        job: What to make.
    """

    def __init__(self, job: Job) -> None:
        self._job = job
        self._sources = sources(job)

    def indices(self) -> Iterator[int]:
        """Yields the numbers of the items, at the job's pace."""
        pace, begun = (1 / self._job.per_second if self._job.per_second else 0.0), time.monotonic()
        for index in range(self._job.items):
            if pace:
                time.sleep(max(0.0, begun + index * pace - time.monotonic()))
            yield index

    def make(self, index: int, out: Array | None = None) -> Array:
        """Returns item `index`, flat, written into `out` or a new array."""
        item = np.empty(self._job.item_bytes, np.uint8) if out is None else out
        np.copyto(item, self._sources[index % _SOURCES])
        now = time.monotonic_ns()
        _STAMP.pack_into(item.data, 0, index, now, now, 0)
        return item

    def make_bytes(self, index: int) -> bytes:
        """Returns item `index` of 1 KiB as bytes."""
        now = time.monotonic_ns()
        return _STAMP.pack(index, now, now, 0) + self._sources[index % _SOURCES][_STAMP.size :].tobytes()


def sources(job: Job) -> list[Array]:
    """Returns what items are copied from, the same in every process."""
    random = np.random.default_rng(7)
    return [random.integers(0, 256, job.item_bytes, np.uint8) for _ in range(_SOURCES)]


def remake(item: Array, out: Array | None = None) -> Array:
    """Returns a new item with all bytes of another, flat, written into `out` or a new array."""
    received = time.monotonic_ns()
    new = np.empty(item.size, np.uint8) if out is None else out
    np.copyto(new, item)
    index, made, sent, _ = _STAMP.unpack_from(new.data, 0)
    _STAMP.pack_into(new.data, 0, index, made, time.monotonic_ns(), received - sent)
    return new


def remake_bytes(item: bytes) -> bytes:
    """Returns a new item of 1 KiB with all bytes of another."""
    received = time.monotonic_ns()
    index, made, sent, _ = _STAMP.unpack_from(item, 0)
    return _STAMP.pack(index, made, time.monotonic_ns(), received - sent) + item[_STAMP.size :]


class Meter:
    """Looks at the items that arrive and measures from the first after the warm ones to the last.

    Args:
        job: What is to arrive.
    """

    def __init__(self, job: Job) -> None:
        self._job = job
        self._step = _PAGE if job.kind == "frames" else SMALL_BYTES
        self._expected = [source[self._step // 2 :: self._step].copy() for source in sources(job)]
        self._seen = self._wrong = self._out_of_order = 0
        self._last_index = -1
        self._started = self._ended = 0
        self._cpu = 0.0
        self._cpu_end = 0.0
        self._hops: list[int] = []
        self._whole: list[int] = []

    @property
    def full(self) -> bool:
        """Whether everything has arrived."""
        return self._seen >= self._job.items

    def take(self, item: Array | bytes | memoryview) -> None:
        """Notes an item, after a look at one byte of each page."""
        now = time.monotonic_ns()
        flat = item.reshape(-1) if isinstance(item, np.ndarray) else np.frombuffer(item, np.uint8)
        index, made, sent, first = _STAMP.unpack_from(flat.data, 0)
        if not np.array_equal(flat[self._step // 2 :: self._step], self._expected[index % _SOURCES]):
            self._wrong += 1
        self._out_of_order += index <= self._last_index
        self._last_index = index
        self._seen += 1
        if self._seen > self._job.warm:
            self._whole.append(now - made)
            if first:
                self._hops += (first, now - sent)
        if self._seen == self._job.warm:
            self._cpu = cpu_seconds_of_tree()
            self._started = time.monotonic_ns()
        if self._seen == self._job.items:
            self._ended = time.monotonic_ns()
            self._cpu_end = cpu_seconds_of_tree()
        elif self._seen < self._job.items:
            self._ended = now

    def finish(self, **more: Any) -> None:
        """Writes the figures; what did not arrive counts as lost."""
        measured = max(0, self._seen - self._job.warm)
        seconds = (self._ended - self._started) / 1e9 if self._started else 0.0
        cpu = (self._cpu_end or cpu_seconds_of_tree()) - self._cpu
        figures = {
            "items": self._seen,
            "lost": self._job.items - self._seen,
            "wrong": self._wrong,
            "out_of_order": self._out_of_order,
            "per_second": measured / seconds if seconds > 0 and measured else 0.0,
            "cpu_us": cpu * 1e6 / measured if measured else 0.0,
            "hop_us": quantiles([hop / 1e3 for hop in self._hops]),
            "chain_us": quantiles([whole / 1e3 for whole in self._whole]),
            **more,
        }
        write_figures(self._job.out, figures)


def quantiles(values: list[float]) -> dict[str, float]:
    """Returns the median and the 99th percentile, or nothing for no values."""
    if not values:
        return {}
    return {"p50": float(np.percentile(values, 50)), "p99": float(np.percentile(values, 99))}


def write_figures(path: str, figures: dict[str, Any]) -> None:
    """Writes what a contender measured, whole or not at all."""
    scratch = Path(f"{path}.part")
    scratch.write_text(json.dumps(figures))
    scratch.replace(path)


def cpu_seconds_of_tree() -> float:
    """Returns the processor time of the measured command and of all that it started; 0.0 for nobody's."""
    root = int(os.environ.get(ROOT_VARIABLE, "0"))
    if not root:
        return 0.0
    parents, spent = {}, {}
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            try:
                stat = Path(f"/proc/{entry}/stat").read_text()
            except (FileNotFoundError, ProcessLookupError):
                continue
            fields = stat.rpartition(")")[2].split()
            parents[int(entry)] = int(fields[1])
            spent[int(entry)] = sum(map(int, fields[11:15])) / _TICKS
    return sum(seconds for pid, seconds in spent.items() if _descends(pid, root, parents))


def _descends(pid: int, root: int, parents: dict[int, int]) -> bool:
    while pid in parents and pid != root:
        pid = parents[pid]
        if pid == root:
            return True
    return False


def in_processes(*roles: Callable[[], None]) -> None:
    """Runs each role in a forked process of its own, to the end of all.

    Raises:
        SystemExit: One of them failed.
    """
    children = {_fork(role) for role in roles}
    failed = 0
    while children:
        pid, status = os.wait()
        children.discard(pid)
        failed += status != 0
        if failed:  # the others would wait for it
            for other in children:
                os.kill(other, signal.SIGKILL)
    if failed:
        sys.exit(f"{failed} of {len(roles)} processes failed")


def _fork(role: Callable[[], None]) -> int:
    pid = os.fork()
    if pid:
        return pid
    status = 1
    try:
        role()
        status = 0
    finally:
        if status:
            traceback.print_exc()
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)
