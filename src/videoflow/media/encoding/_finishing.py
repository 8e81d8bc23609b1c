"""From the working file to the finished one: one pass without re-encoding, then a look at the result.

Used by the writer. It refuses to put a file in place that does not hold what was written.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING

import av

from videoflow.errors import OutputUnwritable

if TYPE_CHECKING:
    from av.video.stream import VideoStream

    from videoflow.media.encoding._progress import Progress


@dataclass(frozen=True, slots=True)
class WriteSummary:
    """What was written.

    Attributes:
        path: The file.
        frames: Frames in it.
        seconds: Its length, from the start of the first frame to the end of the last.
        first_seconds: Time of the first frame in its source; the file itself begins at 0.
        width: Pixels along x in the file.
        height: Pixels along y in the file.
        padded_right: Columns repeated at the right, since H.264 wants even sizes.
        padded_bottom: Rows repeated at the bottom, for the same reason.
        times_rounded: Frames whose time had to be rounded to the file's ticks.
        times_moved: Frames that had the time of the one before, and were put a tick later.
        file_bytes: Length of the file.
    """

    path: Path
    frames: int
    seconds: float
    first_seconds: float
    width: int
    height: int
    padded_right: int
    padded_bottom: int
    times_rounded: int
    times_moved: int
    file_bytes: int


@dataclass(frozen=True, slots=True)
class _Content:
    frames: int
    first_ticks: int
    last_ticks: int
    end_ticks: int


def finish_file(part: Path, path: Path, progress: Progress) -> None:
    """Make the finished file of the working file; it appears at once, whole and checked, or not at all.

    Args:
        part: The working file.
        path: Where the finished file goes; what is there is replaced.
        progress: What the working file holds.

    Raises:
        OutputUnwritable: The file cannot be written, or does not hold what it should.
    """
    draft = path.with_name(f".{path.name}.draft")
    try:
        _copy(part, draft, progress)
        check_file(draft, progress)
        os.replace(draft, path)
    except (OSError, av.error.FFmpegError) as error:
        raise OutputUnwritable(
            f"{path}: the finished file cannot be written",
            cause=getattr(error, "strerror", None) or str(error),
            effect=f"what was written is in {part.name}, which plays",
            remedy="free the place, and run again",
        ) from error
    finally:
        draft.unlink(missing_ok=True)


def _copy(part: Path, draft: Path, progress: Progress) -> None:
    options = {
        "movflags": "faststart",
        "video_track_timescale": str(progress.timescale),
        "fflags": "+bitexact",
    }
    with (
        av.open(f"file:{part}", mode="r") as source,
        av.open(f"file:{draft}", mode="w", format="mp4", options=options) as target,
    ):
        stored = source.streams.video[0]
        stream = target.add_stream_from_template(stored)
        stream.time_base = Fraction(1, progress.timescale)
        if progress.first_time:
            target.metadata["comment"] = f"begins at {progress.first_time} s of its source"
        for packet in source.demux(stored):
            if packet.size:
                packet.stream = stream
                target.mux_one(packet)


def check_file(path: Path, progress: Progress) -> None:
    """Open a file anew and compare its frames and times with what was written.

    Args:
        path: The file.
        progress: What it should hold.

    Raises:
        OutputUnwritable: It holds something else.
    """
    found = _content(path, progress.timescale)
    wanted = _Content(progress.frames, 0, progress.last_ticks, progress.end_ticks)
    if found != wanted:
        raise OutputUnwritable(
            f"{path}: the file does not hold what was written",
            cause=f"expected {wanted}, found {found}",
            effect="the working file is kept beside it",
            remedy="check the disk, and run again",
        )


def _content(path: Path, timescale: int) -> _Content:
    frames, first, last, end = 0, 0, 0, 0
    with contextlib.closing(av.open(f"file:{path}", mode="r")) as container:
        stream: VideoStream = container.streams.video[0]
        scale = (stream.time_base or Fraction(1)) * timescale
        for pts, duration in _times(container.demux(stream)):
            first = int(pts * scale) if not frames else first
            last, end = int(pts * scale), int((pts + duration) * scale)
            frames += 1
    return _Content(frames, first, last, end)


def _times(packets: Iterator[av.Packet[VideoStream]]) -> Iterator[tuple[int, int]]:
    return ((packet.pts or 0, packet.duration or 0) for packet in packets if packet.size)


def summary(path: Path, progress: Progress) -> WriteSummary:
    """Return what a finished file holds.

    Args:
        path: The file; it may be missing when no frame was written.
        progress: What was written.
    """
    scale = progress.timescale or 1
    return WriteSummary(
        path=path,
        frames=progress.frames,
        seconds=progress.end_ticks / scale,
        first_seconds=float(progress.first_time),
        width=progress.width + progress.width % 2,
        height=progress.height + progress.height % 2,
        padded_right=progress.width % 2,
        padded_bottom=progress.height % 2,
        times_rounded=progress.times_rounded,
        times_moved=progress.times_moved,
        file_bytes=path.stat().st_size if progress.frames else 0,
    )
