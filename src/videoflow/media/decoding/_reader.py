"""`VideoReader`: the frames of one video file, and how it ended. Used by source nodes.

Times come from the container, exactly; indices are ranks in presentation order; the end is an outcome. It
refuses only what it cannot open.
"""

from __future__ import annotations

import threading
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

from videoflow.media._outcome import SourceEnd, SourceOutcome
from videoflow.media.decoding._completeness import broken_off
from videoflow.media.decoding._decoder import Decoder
from videoflow.media.decoding._opening import (
    Opened,
    ReadOptions,
    UnplayableError,
    local_path,
    open_video,
    time_traits,
)
from videoflow.media.decoding._picture import PictureMaker
from videoflow.media.decoding._seeking import StartPoint, find_start, go_to
from videoflow.media.decoding._selection import Selection
from videoflow.media.decoding._timeline import Timeline

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator
    from pathlib import Path

    from av import VideoFrame
    from av.video.stream import VideoStream

    from videoflow.media._arrays import MakeArray
    from videoflow.media._frame import Frame
    from videoflow.media.decoding._timeline import Place

_ASSUMED_FPS = 25
_WITHOUT_ALPHA = 3


class VideoReader:
    """Reads the frames of one video file.

    Args:
        uri: A path or a `file://` address.
        options: What to read of it; None for every frame as BGR.

    Raises:
        NotYet: A live or network address.
        SourceUnreadable: Nothing is there, it is a folder, or it may not be read.

    Attributes:
        outcome: How the reading ended; None while it goes on.
    """

    def __init__(self, uri: str, options: ReadOptions | None = None) -> None:
        self._uri = uri
        self._options = options or ReadOptions()
        self._path = local_path(uri)
        self._stopping = threading.Event()
        self.outcome: SourceOutcome | None = None

    def stop(self) -> None:
        """End the reading before its next frame; may be called from another thread."""
        self._stopping.set()

    def frames(self, resume: int | None = None, empty: MakeArray = np.empty) -> Generator[Frame, None, None]:
        """Yield the frames in presentation order; afterwards `outcome` says how it ended.

        A resumed reading yields the same frames as an uninterrupted one: indices, times and bytes.

        Args:
            resume: Leave out frames with an index below this; None to start at the beginning.
            empty: Makes the arrays of their images, such as `ctx.empty` of a node.
        """
        self.outcome = None
        try:
            start = self._find_start(resume)
            opened = open_video(self._path, self._options.stream)
        except UnplayableError as finding:
            self.outcome = SourceOutcome(SourceEnd.UNDECODABLE, self._uri, detail=str(finding))
            return
        with opened.container:
            if start is not None:
                go_to(opened, start)
            reading = _Reading(self._uri, self._options, opened, start, empty)
            end = SourceEnd.STOPPED
            try:
                for frame in reading.frames(resume or 0):
                    if self._stopping.is_set():
                        return
                    yield frame
                end = SourceEnd.COMPLETE
            finally:
                self.outcome = reading.outcome(end, self._path)

    def _find_start(self, resume: int | None) -> StartPoint | None:
        start = self._options.start_seconds
        if not resume and start is None:
            return None
        opened = open_video(self._path, self._options.stream)
        with opened.container:
            # One frame earlier, since the choice by rate looks at the frame before.
            before = resume - 1 if resume else None
            return find_start(opened, before, start)


class _Reading:
    """One pass over a file that is open."""

    def __init__(
        self, uri: str, options: ReadOptions, opened: Opened, start: StartPoint | None, empty: MakeArray
    ) -> None:
        stream = opened.stream
        self._uri = uri
        self._opened = opened
        self._first_index = start.index if start else 0
        self._time_base = stream.time_base or Fraction(1, 1_000_000)
        self._step = _declared_step(stream, self._time_base, options.declared_fps)
        traits = time_traits(opened.container)
        self._timeline = Timeline(uri, self._time_base, self._step, self._first_index, traits)
        self._decoder = Decoder(opened, self._timeline, start)
        self._selection = Selection(options)
        aspect = stream.sample_aspect_ratio or Fraction(1)
        self._maker = PictureMaker(uri, self._time_base, options.pixel_format, aspect, empty)
        self._size: tuple[int, int] | None = None
        self._decoded = self._corrupt = 0
        self._first_pts: int | None = None
        self._last_pts = self._end_pts = 0
        self._is_over = False

    def frames(self, first_index: int) -> Iterator[Frame]:
        """Yield the chosen frames from an index on."""
        for picture, place in self._decoder.pictures():
            time = place.pts * self._time_base
            if self._selection.is_over(time):
                self._is_over = True
                return
            self._count(picture, place)
            if self._selection.takes(place.index, time) and place.index >= first_index:
                yield self._maker.make(picture, place)

    def _count(self, picture: VideoFrame, place: Place) -> None:
        self._decoded += 1
        self._corrupt += picture.is_corrupt
        if self._first_pts is None:
            self._first_pts = place.pts
            if len(picture.format.components) > _WITHOUT_ALPHA:
                self._timeline.say("alpha-dropped", place.pts, stored=picture.format.name)
        self._last_pts = place.pts
        self._end_pts = place.pts + (picture.duration or (self._step if place.declared else 0))
        size = (picture.width, picture.height)
        if self._size is not None and size != self._size:
            self._timeline.say("size-changed", place.pts, width=size[0], height=size[1])
        self._size = size

    def outcome(self, end: SourceEnd, path: Path) -> SourceOutcome:
        """Return how the pass ended.

        Args:
            end: STOPPED when it was broken off from outside, else COMPLETE, which is then checked.
            path: The file.
        """
        detail = ""
        if end is SourceEnd.COMPLETE and not self._is_over:
            end, detail = self._judge(path)
        seen = self._first_pts is not None
        return SourceOutcome(
            kind=end,
            source=self._uri,
            frames_decoded=self._decoded,
            frames_corrupt=self._corrupt,
            frames_missing=self._timeline.frames_missing,
            at_seconds=self._seconds(self._end_pts) if seen else None,
            first_seconds=self._seconds(self._first_pts or 0) if seen else None,
            last_seconds=self._seconds(self._last_pts) if seen else None,
            started_at_index=self._first_index,
            missing=tuple(self._timeline.missing),
            events=tuple(self._timeline.events),
            detail=detail,
        )

    def _seconds(self, pts: int) -> float:
        return float(pts * self._time_base)

    def _judge(self, path: Path) -> tuple[SourceEnd, str]:
        found = self._signs_of_a_cut(path)
        if self._decoded:
            return (SourceEnd.TRUNCATED if found else SourceEnd.COMPLETE), found
        if self._decoder.packets and not self._first_index:
            return SourceEnd.UNDECODABLE, found or "no packet of the video could be decoded"
        if found:
            return SourceEnd.UNDECODABLE, found
        return SourceEnd.COMPLETE, "" if self._first_index else "the video stream holds no frames"

    def _signs_of_a_cut(self, path: Path) -> str:
        decoder = self._decoder
        if decoder.read_error:
            return f"reading broke off: {decoder.read_error}"
        format_name = self._opened.container.format.name
        indexed = len(self._opened.stream.index_entries)
        if "mp4" in format_name.split(",") and indexed > decoder.packets:
            return f"the index names {indexed} frames, and the file holds {decoder.packets} of them"
        found = broken_off(path, format_name)
        return found or ("the last packet is incomplete" if decoder.last_is_cut else "")


def _declared_step(stream: VideoStream, time_base: Fraction, declared_fps: float | None) -> int:
    rate = Fraction(declared_fps) if declared_fps else stream.guessed_rate or Fraction(_ASSUMED_FPS)
    return max(1, round(1 / (rate * time_base)))
