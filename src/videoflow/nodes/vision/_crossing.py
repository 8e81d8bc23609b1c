"""Who crosses a line, and which way. Used by the line counter node; its state is plain lists and numbers.

A line goes from a to b. With +y down, who walks from a to b has on the *left* the points p with (b - a) x (p
- a) < 0, where (u x v) = u.x * v.y - u.y * v.x: for a line drawn from left to right that is the part above
it on the screen. Only the segment counts: a way around its ends is no crossing.

Boxes tremble, and somebody who walks along the line would cross it with every tremor. So an anchor nearer to
the line than `TREMOR` of its box's height is on neither side; a crossing is counted when the anchor has left
this band on the other side, and stepping onto the line and back is none. It refuses nothing: the node checks
its arguments.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

Anchor = Literal["bottom", "center", "top", "left", "right"]
Way = Literal["up", "down"]
Point = tuple[float, float]
ANCHORS: dict[str, Point] = {
    "bottom": (0.5, 1.0),
    "center": (0.5, 0.5),
    "top": (0.5, 0.0),
    "left": (0.0, 0.5),
    "right": (1.0, 0.5),
}
FORGET_SECONDS = 60.0
TREMOR = 0.05
LEFT, RIGHT, ON_LINE = 1, -1, 0


@dataclass(frozen=True)
class Line:
    """A directed segment from `a` to `b`, in pixels, +y down.

    Example:
        >>> line = Line((0, 200), (512, 200))
        >>> line.side((100, 150)), line.side((100, 250)), line.side((100, 200))
        (1, -1, 0)
        >>> line.side((100, 196), band=4.0), line.side((100, 195), band=4.0)
        (0, 1)
    """

    a: Point
    b: Point

    def turn(self, point: Point) -> float:
        """Returns (b - a) x (point - a): below 0 on the left, above 0 on the right, in square pixels."""
        along = self.b[0] - self.a[0], self.b[1] - self.a[1]
        return along[0] * (point[1] - self.a[1]) - along[1] * (point[0] - self.a[0])

    def side(self, point: Point, band: float = 0.0) -> int:
        """Returns `LEFT`, `RIGHT`, or `ON_LINE` for a point not farther than `band` pixels from it."""
        distance = self.turn(point) / math.dist(self.a, self.b)
        return ON_LINE if abs(distance) <= band else LEFT if distance < 0 else RIGHT

    def holds(self, point: Point) -> bool:
        """Returns whether a point of the endless line lies within the segment, its ends included."""
        along = self.b[0] - self.a[0], self.b[1] - self.a[1]
        share = along[0] * (point[0] - self.a[0]) + along[1] * (point[1] - self.a[1])
        return 0 <= share <= along[0] ** 2 + along[1] ** 2


@dataclass(frozen=True)
class Marks:
    """Where N tracks are, in pixels: `points` (N, 2) x and y of the anchors, `heights` (N,) of the boxes."""

    points: NDArray[np.float64]
    heights: NDArray[np.float64]

    @classmethod
    def of(cls, xyxy: NDArray[np.floating], anchor: str) -> "Marks":
        """Returns the marks of (N, 4) boxes.

        Args:
            xyxy: Left, top, right, bottom in pixels.
            anchor: A key of `ANCHORS`; `bottom` is the middle of the lower edge, where a person stands.

        Example:
            >>> Marks.of(np.array([[10, 20, 30, 60.0]]), "bottom").points.tolist()
            [[20.0, 60.0]]
        """
        share = np.array(ANCHORS[anchor])
        boxes = xyxy.astype(np.float64)
        sides = boxes[:, 2:] - boxes[:, :2]
        return cls(boxes[:, :2] + share * sides, sides[:, 1])


@dataclass(frozen=True)
class Counted:
    """The state after one frame, and (track, way) of each crossing in it, in the order of the boxes."""

    state: dict[str, Any]
    crossings: tuple[tuple[int, Way], ...]


def start() -> dict[str, Any]:
    """Returns the state before the first frame: nobody seen, nothing counted."""
    return {"up": 0, "down": 0, "tracks": {}}


def count(state: Mapping[str, Any], line: Line, track_id: Sequence[int], marks: Marks, now: float) -> Counted:
    """Returns the counts after one more frame.

    Args:
        state: From `start` or from the last call; it is not changed.
        line: The line.
        track_id: N track numbers.
        marks: Anchor and size of each track.
        now: Time of the frame in seconds; tracks unseen for `FORGET_SECONDS` are forgotten.

    Returns:
        The new state: `up`, `down`, and per track its last side, its last point and its last time.
    """
    tracks: dict[str, list[float]] = {
        key: list(seen) for key, seen in state["tracks"].items() if now - seen[3] <= FORGET_SECONDS
    }
    crossings: list[tuple[int, Way]] = []
    for number, (x, y), height in zip(track_id, marks.points.tolist(), marks.heights.tolist(), strict=True):
        before = tracks.get(str(number))
        side = line.side((x, y), band=TREMOR * height)
        if before is not None:
            last_side = int(before[0])
            if side * last_side < 0 and _through(line, (before[1], before[2]), (x, y)):
                crossings.append((int(number), "up" if side == LEFT else "down"))
            side = side or last_side
        tracks[str(number)] = [side, x, y, now]
    ways = [way for _, way in crossings]
    after = {
        "up": state["up"] + ways.count("up"),
        "down": state["down"] + ways.count("down"),
        "tracks": tracks,
    }
    return Counted(after, tuple(crossings))


def _through(line: Line, before: Point, after: Point) -> bool:
    """Returns whether the way between two points passes the line within the segment.

    Where both are on one side already, since the first lies in the band, it passed at the first.
    """
    here, there = line.turn(before), line.turn(after)
    share = here / (here - there) if here * there < 0 else 0.0
    x, y = (start + share * (end - start) for start, end in zip(before, after, strict=True))
    return line.holds((x, y))
