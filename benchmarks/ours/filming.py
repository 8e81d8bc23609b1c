"""The sink of the people counting flow: the library's, with a note of when frames were encoded.

Imported by a worker of the run. It refuses nothing.
"""

import json
import time
from pathlib import Path
from typing import Unpack

import videoflow as vf
from videoflow.nodes import VideoSink


class WatchedSink(VideoSink):
    """Writes a video, and beside it when the first and the last frame were encoded.

    Args:
        path: The video.
        times: File for the seconds of both on the monotonic clock.
    """

    def __init__(self, path: str, times: str, **options: Unpack[vf.NodeOptions]) -> None:
        super().__init__(path, **options)
        self.times = times

    def open(self, ctx: vf.Context) -> None:
        super().open(ctx)
        self.first = self.last = 0.0

    def consume(self, frame: vf.Frame) -> None:
        super().consume(frame)
        self.last = time.monotonic()
        self.first = self.first or self.last

    def close(self) -> None:
        super().close()
        Path(self.times).write_text(json.dumps([self.first, self.last]))
