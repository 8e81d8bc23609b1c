"""Figures of a task replica: counts, and times in user code as a histogram of constant size.

Used by nodes, by the control link, by live figures and by the report. It refuses nothing.
"""

import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import ceil, log2

import msgspec

from videoflow.worker._meter import Meter, Spending, Spent

_STEPS_PER_DOUBLING = 8
_SHORTEST_SECONDS = 1e-6  # that are told apart


class NodeFigures(msgspec.Struct):
    """What one node of one replica did so far.

    Attributes:
        items: Inputs done, or items produced.
        outputs: Values emitted.
        errors: Exceptions of user code.
        dead_letters: Inputs put aside.
        seconds: Time in user code.
        buckets: Histogram of the seconds of a call: eighths of a doubling from one microsecond → calls.
        expected: How many items there will be, or None.
        batches: Of a node that takes several inputs in one call: inputs → calls.
        waits: The seconds that inputs waited for others to be called with, as `buckets`.
        waited: Those seconds, added up.
    """

    items: int = 0
    outputs: int = 0
    errors: int = 0
    dead_letters: int = 0
    seconds: float = 0.0
    buckets: dict[int, int] = {}
    expected: int | None = None
    batches: dict[int, int] = {}
    waits: dict[int, int] = {}
    waited: float = 0.0

    def called(self, seconds: float, outputs: int) -> None:
        """Counts one call that returned; for every input, so that it calls nothing of ours."""
        self.items += 1
        self.outputs += outputs
        self.seconds += seconds
        buckets, bucket = self.buckets, 0
        if seconds > _SHORTEST_SECONDS:
            bucket = ceil(_STEPS_PER_DOUBLING * log2(seconds * 1e6))
        buckets[bucket] = buckets.get(bucket, 0) + 1

    def called_together(self, seconds: float, outputs: Sequence[int], waited: Sequence[float]) -> None:
        """Counts one call that returned for several inputs.

        Args:
            seconds: That it took.
            outputs: How many it made of each.
            waited: Seconds that each waited for others.
        """
        self.called(seconds, sum(outputs))
        self.items += len(outputs) - 1
        _count(self.batches, len(outputs))
        for each in waited:
            self.waited += each
            _count(self.waits, _bucket(each))

    def add(self, other: "NodeFigures") -> None:
        """Adds the figures of another replica or incarnation."""
        self.items += other.items
        self.outputs += other.outputs
        self.errors += other.errors
        self.dead_letters += other.dead_letters
        self.seconds += other.seconds
        self.waited += other.waited
        histograms = ((self.buckets, other.buckets), (self.batches, other.batches), (self.waits, other.waits))
        for mine, others in histograms:
            for bucket, count in others.items():
                _count(mine, bucket, count)
        self.expected = other.expected if self.expected is None else self.expected

    def quantile(self, share: float) -> float | None:
        """Returns the seconds that a share of the calls did not exceed (to a twelfth), or None."""
        return _quantile(self.buckets, share)

    def wait_quantile(self, share: float) -> float | None:
        """Returns the seconds that a share of the inputs did not wait longer for others, or None."""
        return _quantile(self.waits, share)

    def waits_by_seconds(self) -> list[tuple[float, int]]:
        """Returns (seconds, inputs that waited no longer than that, and longer than those before)."""
        return [(_seconds_of(bucket), self.waits[bucket]) for bucket in sorted(self.waits)]


def _bucket(seconds: float) -> int:
    return ceil(_STEPS_PER_DOUBLING * log2(max(seconds * 1e6, 1.0)))


def _seconds_of(bucket: int) -> float:
    return float(2 ** (bucket / _STEPS_PER_DOUBLING) / 1e6)


def _count(histogram: dict[int, int], bucket: int, count: int = 1) -> None:
    histogram[bucket] = histogram.get(bucket, 0) + count


def _quantile(histogram: Mapping[int, int], share: float) -> float | None:
    reached, everything = 0, sum(histogram.values())
    for bucket in sorted(histogram):
        reached += histogram[bucket]
        if reached >= share * everything:
            return _seconds_of(bucket)
    return None


@dataclass
class TaskFigures:
    """The figures of one replica, written by its work thread, read by others.

    Attributes:
        nodes: By node.
        steps: Counts every action of the core: it stands still only while the worker waits or hangs.
        concluded: Settlements, and publications that were new: what no death takes back.
        records: Started records of suspects, which count as progress.
        waiting: Whether it waits for input.
        calling: Node in whose code it is, since when (monotonic seconds), or None.
        meter: What measures it, where the run is profiled.
    """

    nodes: Mapping[str, NodeFigures]
    steps: int = 0
    concluded: int = 0
    records: int = 0
    waiting: bool = False
    calling: tuple[str, float] | None = None
    lock: threading.Lock = field(default_factory=threading.Lock)
    meter: Meter | None = None

    def move(self, steps: int, concluded: int = 0) -> None:
        """Counts steps, and how many of them no death takes back."""
        self.steps += steps
        self.concluded += concluded

    def enter(self, node: str) -> None:
        """Says that the code of a node is called now; that is a step."""
        self.steps += 1
        self.calling = (node, time.monotonic())

    def leave(self) -> None:
        """Says that it has returned."""
        self.calling = None

    def snapshot(self) -> dict[str, NodeFigures]:
        """Returns a copy that does not change any more."""
        with self.lock:
            return {
                name: msgspec.structs.replace(
                    f, buckets=dict(f.buckets), batches=dict(f.batches), waits=dict(f.waits)
                )
                for name, f in self.nodes.items()
            }

    def spending(self) -> Spending | None:
        """Returns where its time went so far, or None where nobody measures it."""
        return None if self.meter is None else self.meter.snapshot(self.calls())

    def calls(self) -> dict[str, Spent]:
        """Returns how often each node was called, and how long that took."""
        return {name: Spent(found.items, found.seconds) for name, found in self.nodes.items()}
