"""Small values that counters and zones emit: `LineCount`, `ZoneCount`, `Event`.

They hold plain data only, so that they cross every engine and are written to JSON as they are. Used by nodes
that count, and by whoever reads their output. They refuse directions that do not exist.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class LineCount:
    """How many tracks crossed a line a→b, up to and with one frame.

    Attributes:
        time_seconds: Time of the frame.
        index: Number of the frame in its source.
        source: Address of the source.
        up: Tracks so far whose anchor passed from the right of a→b to its left.
        down: Tracks so far whose anchor passed from its left to its right.
        crossings: (track id, "up" or "down") of each crossing at this frame.

    Example:
        >>> LineCount(12.72, 318, "street.mp4", up=3, down=1, crossings=((7, "up"),)).up
        3
    """

    time_seconds: float
    index: int
    source: str
    up: int
    down: int
    crossings: tuple[tuple[int, str], ...] = ()

    def __post_init__(self) -> None:
        """Take lists, as they come from JSON and from the wire, for tuples."""
        pairs = tuple((int(track), str(way)) for track, way in self.crossings)
        unknown = [way for _, way in pairs if way not in {"up", "down"}]
        if unknown:
            raise ValueError(f'crossings: expected the directions "up" and "down", got {unknown[0]!r}')
        object.__setattr__(self, "crossings", pairs)


@dataclass(frozen=True, slots=True)
class ZoneCount:
    """How many tracks are in a zone, at one frame.

    Attributes:
        time_seconds: Time of the frame.
        index: Number of the frame in its source.
        source: Address of the source.
        inside: Tracks whose anchor is in the zone at this frame.
        entered: Tracks that came in so far.
        left: Tracks that went out so far.

    Example:
        >>> ZoneCount(12.72, 318, "street.mp4", inside=2, entered=3, left=1).inside
        2
    """

    time_seconds: float
    index: int
    source: str
    inside: int
    entered: int = 0
    left: int = 0


@dataclass(frozen=True, slots=True)
class Event:
    """Something that happened at one moment of a source.

    Attributes:
        kind: What happened, as `line-crossed` or `gap`.
        time_seconds: When, on the source's own clock.
        source: Address of the source.
        track_id: The track that it happened to; None when it concerns no track.
        data: Particulars, JSON-like.

    Example:
        >>> Event("line-crossed", 12.72, "street.mp4", 7, {"way": "up"}).data["way"]
        'up'
    """

    kind: str
    time_seconds: float
    source: str
    track_id: int | None = None
    data: dict[str, Any] = field(default_factory=dict)
