"""Frames, detections and what is observed in them; times are exact.

This package imports neither PyAV nor OpenCV. Reading and writing files live in `videoflow.media.decoding` and
`videoflow.media.encoding`, which need the extra `video` and are imported when they are used.
"""

from videoflow.media._detections import Detections
from videoflow.media._frame import Frame, FrameClock, PixelFormat
from videoflow.media._observations import Event, LineCount, ZoneCount
from videoflow.media._outcome import MissingSpan, SourceEnd, SourceOutcome

__all__ = [
    "Detections",
    "Event",
    "Frame",
    "FrameClock",
    "LineCount",
    "MissingSpan",
    "PixelFormat",
    "SourceEnd",
    "SourceOutcome",
    "ZoneCount",
]
