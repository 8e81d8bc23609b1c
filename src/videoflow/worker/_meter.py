"""Where the time of one replica goes, for the profile of a run.

Used by a shell whose run is profiled, and by the engines, which add it up. The parts exclude each other: a
wait within a publication is no part of the publication. It refuses to count what another thread does.
"""

import threading
import time
from collections.abc import Callable, Sequence
from enum import StrEnum
from typing import ParamSpec, TypeVar

import msgspec

from videoflow.clock import RealClock, Waitable

P = ParamSpec("P")
T = TypeVar("T")


class Part(StrEnum):
    """What a replica spends time on. Those of a hop are by port, `call` and `checkpoint` by node.

    `starved` waits for input, by the port that it came from in the end; `blocked` for room in the channel or
    in the memory of a port; and `paused` before an attempt is made again.
    """

    CALL = "call"
    CHECKPOINT = "checkpoint"
    STARVED = "starved"
    PAUSED = "paused"
    BLOCKED = "blocked"
    ENCODE = "encode"
    PUBLISH = "publish"
    RECEIVE = "receive"
    DECODE = "decode"
    SETTLE = "settle"
    COMMIT = "commit"


_WRITES = (Part.ENCODE, Part.PUBLISH)
Shares = Sequence[tuple[str, int]]
"""Ports or nodes, and how much of something goes to each."""


class Spent(msgspec.Struct):
    """Items, and the seconds that they took: on the wall, and of a processor where that is measured."""

    items: int = 0
    seconds: float = 0.0
    processor_seconds: float = 0.0

    def add(self, other: "Spent") -> None:
        """Adds what others took."""
        self.items += other.items
        self.seconds += other.seconds
        self.processor_seconds += other.processor_seconds


class Spending(msgspec.Struct):
    """What a replica, or several together, spent their time on.

    Attributes:
        seconds: Since nodes were open.
        processor_seconds: Time of a processor meanwhile; 0 for a replica that died.
        parts: Part → port or node ("" where it belongs to neither) → what it took.
    """

    seconds: float = 0.0
    processor_seconds: float = 0.0
    parts: dict[Part, dict[str, Spent]] = {}

    def add(self, other: "Spending") -> None:
        """Adds what another replica or incarnation spent."""
        self.seconds += other.seconds
        self.processor_seconds += other.processor_seconds
        for part, places in other.parts.items():
            sums = self.parts.setdefault(part, {})
            for place, spent in places.items():
                sums.setdefault(place, Spent()).add(spent)

    def of(self, part: Part, place: str | None = None) -> Spent:
        """Returns what a part took, of one port or node, or of all."""
        found = self.parts.get(part, {})
        total = Spent()
        for spent in found.values() if place is None else [found.get(place, Spent())]:
            total.add(spent)
        return total


class _Frame:
    """Something under way: what it took by itself, and what it waited."""

    __slots__ = ("part", "processor", "seconds", "waited")

    def __init__(self, part: Part | None) -> None:
        self.part = part
        self.seconds = 0.0
        self.processor = 0.0
        self.waited = 0.0


class Meter:
    """Measures one replica, in the thread that calls `start`.

    Args:
        processor_seconds: Reads the time of a processor that this replica took, with all of its threads.
        seconds: Reads the time.
        own_seconds: Reads the time of a processor that the calling thread took.
    """

    def __init__(
        self,
        processor_seconds: Callable[[], float],
        seconds: Callable[[], float] = time.perf_counter,
        own_seconds: Callable[[], float] = time.thread_time,
    ) -> None:
        self._processor_seconds = processor_seconds
        self._seconds = seconds
        self._own_seconds = own_seconds
        self._parts: dict[Part, dict[str, Spent]] = {}
        self._stack = [_Frame(None)]
        self._thread: int | None = None
        self._began = self._since = self._own_since = 0.0
        self._ended: float | None = None
        self._starved = 0.0  # since something came
        self._processor_began = self._processor = 0.0

    def start(self) -> None:
        """Begins to measure what this thread does."""
        self._thread = threading.get_ident()
        self._began = self._since = self._seconds()
        self._own_since = self._own_seconds()
        self._processor_began = self._processor_seconds()

    def stop(self) -> None:
        """Ends to measure."""
        if self.is_mine:
            self._ended = self._seconds()
            self._processor = self._processor_seconds() - self._processor_began
            self._thread = None

    @property
    def is_mine(self) -> bool:
        """Whether the calling thread is the one that is measured."""
        return threading.get_ident() == self._thread

    def begin(self, part: Part) -> None:
        """Begins a part; the time up to here goes to what it is a part of."""
        self._turn()
        self._stack.append(_Frame(part))

    def end(self, weights: Shares, items: Shares = ()) -> None:
        """Ends the part begun last; without weights its time goes back to what it is a part of.

        Args:
            weights: To what its time goes, in which proportion.
            items: What it did.
        """
        self._turn()
        frame = self._stack.pop()
        assert frame.part is not None
        if not weights:
            above = self._stack[-1]
            above.seconds += frame.seconds
            above.processor += frame.processor
            above.waited += frame.waited
            return
        total = sum(weight for _, weight in weights)
        if frame.part is Part.RECEIVE:
            for place, weight in weights:
                self._spent(Part.STARVED, place).seconds += self._starved * weight / total
            self._starved = 0.0
        waits = Part.BLOCKED if frame.part in _WRITES else frame.part
        for place, weight in weights:
            spent = self._spent(frame.part, place)
            spent.seconds += frame.seconds * weight / total
            spent.processor_seconds += frame.processor * weight / total
            if frame.waited:
                self._spent(waits, place).seconds += frame.waited * weight / total
        for place, count in items:
            self._spent(frame.part, place).items += count

    def spend(self, part: Part, place: str, call: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Calls something as one item of a part; what fails has taken its time, and is no item."""
        if not self.is_mine:
            return call(*args, **kwargs)
        self.begin(part)
        done = 0
        try:
            answer = call(*args, **kwargs)
            done = 1
        finally:
            self.end(((place, 1),), ((place, done),))
        return answer

    def wait(self, call: Callable[[], T], *, for_input: bool) -> T:
        """Calls something that waits, for input or a pause where nothing else is under way."""
        if not self.is_mine:
            return call()
        self._turn()
        try:
            return call()
        finally:
            now, top = self._seconds(), self._stack[-1]
            self._own_since = self._own_seconds()
            waited, self._since = now - self._since, now
            if top.part is not None:
                top.waited += waited
            elif for_input:
                self._starved += waited
            else:
                self._spent(Part.PAUSED, "").seconds += waited

    def snapshot(self, calls: dict[str, Spent]) -> Spending:
        """Returns what was spent so far, with the calls of nodes; from any thread."""
        ended = self._ended if self._ended is not None else self._seconds()
        parts = {
            part: {place: msgspec.structs.replace(spent) for place, spent in list(places.items())}
            for part, places in list(self._parts.items())
        }
        parts[Part.CALL] = calls
        parts.setdefault(Part.STARVED, {})[""] = Spent(seconds=self._starved)
        return Spending(ended - self._began if self._began else 0.0, self._processor, parts)

    def _spent(self, part: Part, place: str) -> Spent:
        return self._parts.setdefault(part, {}).setdefault(place, Spent())

    def _turn(self) -> None:
        now, own, top = self._seconds(), self._own_seconds(), self._stack[-1]
        top.seconds += now - self._since
        top.processor += own - self._own_since
        self._since, self._own_since = now, own


class MeteredClock(RealClock):
    """The clock of a replica that is measured: it tells what was waited.

    Args:
        meter: Whom it tells.
    """

    def __init__(self, meter: Meter) -> None:
        super().__init__()
        self._meter = meter

    def wait(self, waitables: Sequence[Waitable], deadline: float) -> set[Waitable]:
        """Waits as the real clock does, in the time of the meter."""
        return self._meter.wait(lambda: RealClock.wait(self, waitables, deadline), for_input=bool(waitables))
