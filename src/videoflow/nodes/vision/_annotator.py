"""`Annotator`: draws what other nodes found. It needs the extra `video`, loaded when it opens.

Used before a video sink. It refuses inputs that it cannot draw, by their type.
"""

from typing import TYPE_CHECKING, Any, Unpack

import numpy as np
from numpy.typing import NDArray

from videoflow.errors import LibraryMissing
from videoflow.graph import Context, NodeOptions, Processor
from videoflow.media import Detections, Frame, LineCount, ZoneCount
from videoflow.nodes._arguments import require_input
from videoflow.nodes.vision._crossing import Marks

if TYPE_CHECKING:
    from types import ModuleType

    from videoflow.nodes.vision._drawing import Canvas

TRACE_SECONDS = 2.0
MARK_SECONDS = 0.8
Memory = dict[str, Any]
Layer = Detections | LineCount | ZoneCount


class Annotator(Processor):
    """Draws boxes, track numbers, traces and counts on frames.

    Reads a `Frame`, then any number of `Detections`, `LineCount` and `ZoneCount`, told apart by type; makes a
    `Frame` with the same times. A track keeps its colour. Counts stand in the upper left corner, one row for
    each line and zone in the order of the inputs; a count does not say where its line is, so no line is
    drawn, but who crosses one is marked with an arrow. A gray frame comes out in colour. Where traces
    and marks last longer than a frame, what is needed for them is in `ctx.state`, for each source on its own.

    Args:
        labels: Write the track number and the class on each box.
        traces: Draw the way of each track over the last two seconds, and keep the mark of a crossing for
            most of a second.

    Example:
        >>> Annotator(traces=False, name="draw")
        <Annotator 'draw'>
    """

    stateful = True

    def __init__(self, *, labels: bool = True, traces: bool = True, **options: Unpack[NodeOptions]) -> None:
        super().__init__(**options)
        self._labels = labels
        self._traces = traces
        self._drawing: ModuleType | None = None

    def open(self) -> None:
        """Loads OpenCV.

        Raises:
            LibraryMissing: OpenCV is not installed.
        """
        try:
            from videoflow.nodes.vision import _drawing
        except ImportError as error:
            raise LibraryMissing(
                "Annotator needs OpenCV", cause=str(error), remedy='pip install "videoflow[video]"'
            ) from error
        self._drawing = _drawing

    def process(self, frame: Frame, *layers: Layer | None, ctx: Context) -> Frame:
        """Returns the frame with everything drawn; an input that is None is left out.

        Raises:
            TypeError: The first input is no frame, or another is nothing that can be drawn.
        """
        require_input(frame, Frame, "Annotator", "wire it to the frames first, then to what is drawn on them")
        found = [layer for layer in layers if isinstance(layer, Detections)]
        counts = [layer for layer in layers if isinstance(layer, LineCount | ZoneCount)]
        for layer in layers:
            if layer is not None and not isinstance(layer, Layer):
                raise TypeError(
                    f"Annotator draws Detections, LineCount and ZoneCount, not {type(layer).__name__}"
                )
        memory = _nothing()
        if self._traces:
            memory = _forget(ctx.state.get(frame.source, memory), frame.time_seconds)
        memory = _remember(memory, found, counts, frame.time_seconds)
        if self._traces:
            ctx.state[frame.source] = memory
        return self._draw(frame, found, counts, memory, ctx)

    def _draw(
        self,
        frame: Frame,
        found: list[Detections],
        counts: list[LineCount | ZoneCount],
        memory: Memory,
        ctx: Context,
    ) -> Frame:
        drawing = self._drawing
        if drawing is None:
            raise RuntimeError("Annotator.process was called before open")
        gray = frame.pixel_format == "gray"
        image = ctx.empty((frame.height, frame.width, 3), np.uint8)
        np.copyto(image, drawing.colour_picture(frame.image) if gray else frame.image)
        canvas: Canvas = drawing.Canvas(image, rgb=frame.pixel_format == "rgb")
        if self._traces:
            here = [detections.track_id for detections in found]
            for track in np.intersect1d(memory["track_id"], np.concatenate(here) if here else []).tolist():
                path = memory["xy"][memory["track_id"] == track]
                canvas.trace(path.tolist(), drawing.track_colour(track))
        for detections in found:
            colours = [drawing.track_colour(key) for key in _colour_keys(detections)]
            boxes = detections.xyxy.tolist()
            for box, colour in zip(boxes, colours, strict=True):
                canvas.box(box, colour)
            if self._labels:
                for box, text, colour in zip(boxes, _texts(detections), colours, strict=True):
                    canvas.label(box, text, colour)
            for track, _, way in memory["marks"]:
                for place in np.flatnonzero(detections.track_id == track).tolist():
                    canvas.crossing(boxes[place], way)
        if counts:
            canvas.counts([_figures(count) for count in counts])
        return frame.with_image(image, pixel_format="bgr" if gray else None)


def _nothing() -> Memory:
    """Returns the memory before the first frame: P points of traces, and marks of crossings.

    `track_id` (P,) int64, `time_seconds` (P,) float64, `xy` (P, 2) float32 pixels, and in `marks` lists of
    track, time of the crossing, and way.
    """
    return {
        "track_id": np.zeros(0, np.int64),
        "time_seconds": np.zeros(0),
        "xy": np.zeros((0, 2), np.float32),
        "marks": [],
    }


def _forget(memory: Memory, now: float) -> Memory:
    """Returns the memory without what is too old, or after `now` because the time went back."""
    age = now - memory["time_seconds"]
    young = (age >= 0) & (age <= TRACE_SECONDS)
    kept: Memory = {key: memory[key][young] for key in ("track_id", "time_seconds", "xy")}
    kept["marks"] = [mark for mark in memory["marks"] if 0 <= now - mark[1] <= MARK_SECONDS]
    return kept


def _remember(
    memory: Memory, found: list[Detections], counts: list[LineCount | ZoneCount], now: float
) -> Memory:
    """Returns the memory with the tracks and crossings of this frame."""
    tracked = [detections[detections.track_id >= 0] for detections in found]
    numbers: NDArray[np.int64] = np.concatenate([memory["track_id"], *(each.track_id for each in tracked)])
    points = [Marks.of(each.xyxy, "bottom").points.astype(np.float32) for each in tracked]
    crossings = [each.crossings for each in counts if isinstance(each, LineCount)]
    fresh = np.full(len(numbers) - len(memory["track_id"]), now)
    return {
        "track_id": numbers,
        "time_seconds": np.concatenate([memory["time_seconds"], fresh]),
        "xy": np.concatenate([memory["xy"], *points]),
        "marks": [*memory["marks"], *([track, now, way] for each in crossings for track, way in each)],
    }


def _colour_keys(detections: Detections) -> list[int]:
    """Returns what each box has its colour from: its track, or its class when it has none."""
    keys = np.where(detections.track_id >= 0, detections.track_id, detections.class_id)
    return [int(key) for key in keys]


def _texts(detections: Detections) -> list[str]:
    """Returns the label of each box: `#7 person`, or `person 0.52` for a box without a track."""
    texts = []
    for row in detections.rows():
        name = row["class_name"] or ""
        number = f"#{row['track_id']} {name}" if row["track_id"] >= 0 else f"{name} {row['confidence']:.2f}"
        texts.append(number.strip())
    return texts


def _figures(count: LineCount | ZoneCount) -> list[tuple[str, int]]:
    if isinstance(count, LineCount):
        return [("up", count.up), ("down", count.down)]
    return [("inside", count.inside), ("entered", count.entered), ("left", count.left)]
