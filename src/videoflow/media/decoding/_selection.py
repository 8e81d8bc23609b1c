"""Which decoded frames are emitted: every nth, so many a second, a stretch of time.

Used by the reader. It refuses nothing; the options were checked when they were made.
"""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from videoflow.media.decoding._opening import ReadOptions


class Selection:
    """Decides frame by frame, by index and exact time alone, so that every run decides alike.

    Args:
        options: What was asked for.
    """

    def __init__(self, options: ReadOptions) -> None:
        self._every = options.every
        # As it was written: 0.3 means three tenths, not the float beside it.
        self._rate = None if options.fps is None else Fraction(str(options.fps))
        self._start = options.start_seconds
        self._end = options.end_seconds
        self._last_slot: int | None = None

    def takes(self, index: int, time: Fraction) -> bool:
        """Tell whether a frame is emitted; call it for every decoded frame, in order.

        Args:
            index: The frame's index.
            time: The frame's time in seconds.
        """
        if self._start is not None and float(time) < self._start:
            return False
        if self._rate is None:
            return index % self._every == 0
        slot = time * self._rate // 1
        fresh = slot != self._last_slot
        self._last_slot = slot
        return fresh

    def is_over(self, time: Fraction) -> bool:
        """Tell whether this frame and all after it lie behind the stretch that was asked for."""
        return self._end is not None and float(time) >= self._end
