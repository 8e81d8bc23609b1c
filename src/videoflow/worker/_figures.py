"""Figures of a task replica: counts, and times in user code as a histogram of constant size.

Used by nodes, by the control link, by live figures and by the report. It refuses nothing.
"""

import math
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, field

import msgspec

from videoflow.worker._meter import Meter, Spending, Spent

_STEPS_PER_DOUBLING = 8


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
    """

    items: int = 0
    outputs: int = 0
    errors: int = 0
    dead_letters: int = 0
    seconds: float = 0.0
    buckets: dict[int, int] = {}
    expected: int | None = None

    def called(self, seconds: float, outputs: int) -> None:
        """Counts one call that returned."""
        self.items += 1
        self.outputs += outputs
        self.seconds += seconds
        bucket = math.ceil(_STEPS_PER_DOUBLING * math.log2(max(seconds * 1e6, 1.0)))
        self.buckets[bucket] = self.buckets.get(bucket, 0) + 1

    def add(self, other: "NodeFigures") -> None:
        """Adds the figures of another replica or incarnation."""
        self.items += other.items
        self.outputs += other.outputs
        self.errors += other.errors
        self.dead_letters += other.dead_letters
        self.seconds += other.seconds
        for bucket, calls in other.buckets.items():
            self.buckets[bucket] = self.buckets.get(bucket, 0) + calls
        self.expected = other.expected if self.expected is None else self.expected

    def quantile(self, share: float) -> float | None:
        """Returns the seconds that a share of the calls did not exceed (to a twelfth), or None."""
        calls = sum(self.buckets.values())
        reached = 0
        for bucket in sorted(self.buckets):
            reached += self.buckets[bucket]
            if reached >= share * calls:
                return float(2 ** (bucket / _STEPS_PER_DOUBLING) / 1e6)
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
                name: msgspec.structs.replace(f, buckets=dict(f.buckets)) for name, f in self.nodes.items()
            }

    def spending(self) -> Spending | None:
        """Returns where its time went so far, or None where nobody measures it."""
        return None if self.meter is None else self.meter.snapshot(self.calls())

    def calls(self) -> dict[str, Spent]:
        """Returns how often each node was called, and how long that took."""
        return {name: Spent(found.items, found.seconds) for name, found in self.nodes.items()}
