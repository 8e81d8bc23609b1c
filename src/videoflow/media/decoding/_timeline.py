"""Where a frame stands: its index and its time, from the packets that the container gave.

A frame's index is its rank by presentation time among the packets of the file, so that a frame that cannot
be decoded leaves a hole and moves no other; a reading that starts in the middle finds the same numbers.
Where packets have only the times of decoding, as in AVI, the frames get these times in order. Used by the
reader. It refuses to invent a time: a file without times has none.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

from videoflow.media._observations import Event
from videoflow.media._outcome import MissingSpan

if TYPE_CHECKING:
    from av.packet import Packet
    from av.video.stream import VideoStream

    from videoflow.media.decoding._opening import TimeTraits

_JUMP_SECONDS = Fraction(1, 10)
_GAP_SECONDS = Fraction(1)
_GAP_STEPS = 10
_KEPT = 100


@dataclass(frozen=True, slots=True)
class Place:
    """Index and time of one decoded frame."""

    index: int
    pts: int
    declared: bool


class Timeline:
    """Gives each decoded frame its index and its time, and notices what is missing or jumps.

    Args:
        source: The source's address, for events.
        time_base: Seconds per unit of pts.
        step: Units between two frames where the file has no times.
        first_index: Index of the first frame that can come.
        traits: What kind of times the container has.
    """

    def __init__(
        self, source: str, time_base: Fraction, step: int, first_index: int, traits: TimeTraits
    ) -> None:
        self._source = source
        self._time_base = time_base
        self._step = step
        self._waiting: list[int] = []
        self._lost: set[int] = set()
        self._in_order = traits.decoding_order_only
        self._may_jump = traits.may_jump
        self._next_index = first_index
        self._offset = 0
        self._last_stamp: int | None = None
        self._last_length = 0
        self._last_pts: int | None = None
        self._last_step = 0
        self.frames_missing = 0
        self.missing: list[MissingSpan] = []
        self.events: list[Event] = []

    def admit(self, packet: Packet[VideoStream]) -> None:
        """Take note of a packet before it is decoded; where times jump back, move it on.

        Args:
            packet: A packet with data; its times are changed after a jump.
        """
        stamp = packet.dts if packet.dts is not None else packet.pts
        if stamp is not None:
            self._close_jump(stamp)
            self._last_stamp, self._last_length = stamp + self._offset, packet.duration or 0
        if self._offset:
            packet.pts = None if packet.pts is None else packet.pts + self._offset
            packet.dts = None if packet.dts is None else packet.dts + self._offset
        if packet.pts is None and packet.dts is not None:
            self._in_order = True
        time = packet.dts if self._in_order else packet.pts
        if time is not None and not packet.is_discard:
            heapq.heappush(self._waiting, time)

    def lose(self, packet: Packet[VideoStream]) -> None:
        """Take note that a packet could not be decoded; it matters where frames have no times of their own.

        Args:
            packet: One that was admitted.
        """
        if packet.pts is None and packet.dts is None:
            self.frames_missing += 1
        elif self._in_order and packet.dts is not None:
            self._lost.add(packet.dts)

    def _close_jump(self, stamp: int) -> None:
        if self._last_stamp is None or not self._may_jump:
            return
        back = self._last_stamp - (stamp + self._offset)
        if back * self._time_base < _JUMP_SECONDS:
            return
        self._offset += back + self._last_length
        self.say("discontinuity", self._last_stamp, seconds=-float(back * self._time_base))

    def place(self, pts: int | None) -> Place:
        """Return where a decoded frame stands.

        Args:
            pts: The frame's time as the decoder gave it; None where the file has no times.
        """
        if self._in_order:
            self._pass_over_lost()
            pts = self._waiting[0] if self._waiting else None
        if pts is None:
            made = 0 if self._last_pts is None else self._last_pts + self._step
            if self._last_pts is None:
                self.say("times-declared", made, step_seconds=float(self._step * self._time_base))
            return self._placed(made, declared=True)
        self._pass_over(pts)
        if self._waiting and self._waiting[0] == pts:
            heapq.heappop(self._waiting)
        if self._last_pts is not None and pts < self._last_pts:
            self.say(
                "time-corrected", self._last_pts, seconds=float((self._last_pts - pts) * self._time_base)
            )
            pts = self._last_pts
        self._note_gap(pts)
        return self._placed(pts, declared=False)

    def finish(self) -> None:
        """Count what was announced and never came."""
        self._pass_over(None)

    def say(self, kind: str, pts: int, **data: float | str) -> None:
        """Record an event at a time.

        Args:
            kind: What happened.
            pts: When, in units of the time base.
            data: Particulars.
        """
        if len(self.events) < _KEPT:
            self.events.append(Event(kind, float(pts * self._time_base), self._source, None, dict(data)))

    def _placed(self, pts: int, *, declared: bool) -> Place:
        if self._last_pts is not None and pts > self._last_pts:
            self._last_step = pts - self._last_pts
        self._last_pts = pts
        index = self._next_index
        self._next_index += 1
        return Place(index, pts, declared)

    def _pass_over(self, pts: int | None) -> None:
        while self._waiting and (pts is None or self._waiting[0] < pts):
            self._miss(heapq.heappop(self._waiting))

    def _pass_over_lost(self) -> None:
        while self._waiting and self._waiting[0] in self._lost:
            self._lost.remove(self._waiting[0])
            self._miss(heapq.heappop(self._waiting))

    def _miss(self, pts: int) -> None:
        lost = float(pts * self._time_base)
        index = self._next_index
        self._next_index += 1
        self.frames_missing += 1
        previous = self.missing[-1] if self.missing else None
        if previous is not None and previous.last_index == index - 1:
            self.missing[-1] = MissingSpan(previous.first_index, index, previous.first_seconds, lost)
        elif len(self.missing) < _KEPT:
            self.missing.append(MissingSpan(index, index, lost, lost))

    def _note_gap(self, pts: int) -> None:
        if self._last_pts is None or not self._last_step:
            return
        hole = pts - self._last_pts
        if hole * self._time_base > _GAP_SECONDS and hole > _GAP_STEPS * self._last_step:
            self.say("gap", self._last_pts, until_seconds=float(pts * self._time_base))
