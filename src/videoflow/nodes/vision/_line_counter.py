"""`LineCounter`: counts tracks that cross a line.

Used behind a tracker. It refuses boxes without tracks, and frames without times.
"""

from collections.abc import Iterator, Mapping
from typing import Unpack

from videoflow.graph import Context, NodeOptions, Out, Processor
from videoflow.media import Detections, Event, LineCount
from videoflow.nodes._arguments import require, require_input
from videoflow.nodes.vision._crossing import Anchor, Line, Marks, count, start

MAX_EVENTS = 64


class LineCounter(Processor):
    """Counts tracks that cross a line from a to b, for each source on its own.

    Reads `Detections` with tracks. Makes on the port `out` one `LineCount` per frame, and on `events` one
    `Event` of kind `line-crossed` per crossing, with `way`, `x` and `y` in its data. A crossing is `up` when
    the anchor passes from the right of a→b to its left, as seen by who walks from a to b: for a line drawn
    from left to right, upwards on the screen. It is counted when the anchor is clear of the line, by a
    twentieth of its box's height, so that trembling on the line counts nothing. All that it knows is in
    `ctx.state`: a restart changes nothing.

    Args:
        line: x1, y1, x2, y2 in pixels of the upright frame: a and b.
        anchor: The point of a box that crosses: the middle of an edge, or the centre.

    Raises:
        ArgumentInvalid: a and b are one point.

    Example:
        >>> LineCounter((0, 200, 512, 200), name="count").events
        <port events of <LineCounter 'count'>>
    """

    ports = ("out", "events")
    many: Mapping[str, int] = {"events": MAX_EVENTS}
    stateful = True
    max_item_bytes: int = 1 << 16

    def __init__(
        self,
        line: tuple[float, float, float, float],
        *,
        anchor: Anchor = "bottom",
        **options: Unpack[NodeOptions],
    ) -> None:
        super().__init__(**options)
        x1, y1, x2, y2 = line
        require((x1, y1) != (x2, y2), "LineCounter", "line", line, "x1, y1, x2, y2 of two points")
        self._line = Line((x1, y1), (x2, y2))
        self._anchor = anchor

    def process(self, detections: Detections, ctx: Context) -> Iterator[LineCount | Out]:
        """Yields the count after this frame, then its crossings.

        Raises:
            TypeError: The input is no `Detections`.
            ValueError: Boxes without tracks, or a frame without a time.
        """
        require_input(detections, Detections, "LineCounter", "wire it to a Tracker")
        if ctx.time_seconds is None or ctx.ordinal is None:
            raise ValueError("LineCounter needs the time of each frame; the source gave none")
        if (detections.track_id < 0).any():
            raise ValueError("LineCounter needs boxes with tracks; put a Tracker before it")
        source, now = detections.source or ctx.source, ctx.time_seconds
        tracks = detections.track_id.tolist()
        marks = Marks.of(detections.xyxy, self._anchor)
        counted = count(ctx.state.get(source) or start(), self._line, tracks, marks, now)
        ctx.state[source] = counted.state
        yield LineCount(
            time_seconds=now,
            index=ctx.ordinal,
            source=source,
            up=counted.state["up"],
            down=counted.state["down"],
            crossings=counted.crossings,
        )
        for track, way in counted.crossings:
            x, y = marks.points[tracks.index(track)].tolist()
            yield Out(Event("line-crossed", now, source, track, {"way": way, "x": x, "y": y}), "events")
