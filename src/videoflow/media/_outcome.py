"""How a source ended, as a value: `SourceOutcome`. Made by readers, read by the run's verdict.

An expected ending is never an exception. Zero frames is `complete` only for a file that holds none. It
refuses nothing: what an outcome means for a run is the verdict's.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from videoflow.errors import SourceUnreadable
from videoflow.media._observations import Event


class SourceEnd(StrEnum):
    """Why no more frames came.

    Attributes:
        COMPLETE: Everything that was asked for has been read.
        TRUNCATED: The file breaks off before its end.
        UNDECODABLE: Not one frame could be had, although the file should hold some.
        STALLED: A live source sent nothing within its time.
        DISCONNECTED: A live source went away.
        STOPPED: Somebody asked to stop.
    """

    COMPLETE = "complete"
    TRUNCATED = "truncated"
    UNDECODABLE = "undecodable"
    STALLED = "stalled"
    DISCONNECTED = "disconnected"
    STOPPED = "stopped"


@dataclass(frozen=True, slots=True)
class MissingSpan:
    """Consecutive frames that the file names and that could not be decoded.

    Attributes:
        first_index: Index of the first, inclusive.
        last_index: Index of the last, inclusive.
        first_seconds: Time of the first.
        last_seconds: Time of the last.
    """

    first_index: int
    last_index: int
    first_seconds: float
    last_seconds: float


@dataclass(frozen=True, slots=True)
class SourceOutcome:
    """How one reading of a source ended.

    Attributes:
        kind: Why no more frames came.
        source: Address of the source, as it was given.
        frames_decoded: Frames decoded in this reading, the corrupt ones and those not asked for included.
        frames_corrupt: Frames decoded that the decoder called damaged.
        frames_missing: Frames that the file names and that could not be decoded.
        at_seconds: Where the reading ended: end of the last frame; None without a frame.
        first_seconds: Time of the first frame decoded; None without a frame.
        last_seconds: Time of the last frame decoded; None without a frame.
        started_at_index: Index of the first frame that this reading looked at; above 0 after an exact seek.
        missing: Where frames are missing, the first 100 spans.
        events: Gaps, jumps of time, changes of size and what was made up, the first 100.
        detail: In words, what was found; empty for a plain end.
    """

    kind: SourceEnd
    source: str
    frames_decoded: int = 0
    frames_corrupt: int = 0
    frames_missing: int = 0
    at_seconds: float | None = None
    first_seconds: float | None = None
    last_seconds: float | None = None
    started_at_index: int = 0
    missing: tuple[MissingSpan, ...] = ()
    events: tuple[Event, ...] = ()
    detail: str = ""

    @property
    def complete(self) -> bool:
        """True when everything that was asked for has been read."""
        return self.kind is SourceEnd.COMPLETE

    def as_error(self) -> SourceUnreadable | None:
        """Return what the user should be told of a source that ended badly; None for a good end."""
        if self.kind in {SourceEnd.COMPLETE, SourceEnd.STOPPED}:
            return None
        at = "" if self.at_seconds is None else f" at {self.at_seconds:.3f} s"
        return SourceUnreadable(
            f"{self.source}: the source is {self.kind}{at}",
            cause=self.detail,
            effect=f"{self.frames_decoded} frames were read",
            remedy="check the file with a player, or make or copy it anew",
        )
