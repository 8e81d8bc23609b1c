"""Opening a video file: what to read of it, and what is wrong with it when it cannot be read.

A path that cannot be opened at all is an error. A file whose content is no video is a finding,
`UnplayableError`, which becomes an outcome. Used by everything here that reads a file. It refuses what is
not local and not built yet, by name.
"""

from __future__ import annotations

import errno
import re
import stat
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote, urlsplit

import av
from av.container import InputContainer
from av.video.stream import VideoStream

from videoflow.errors import ArgumentInvalid, NotYet, SourceUnreadable
from videoflow.media._frame import PixelFormat

_SCHEME = re.compile(r"^[a-zA-Z][a-zA-Z0-9+.-]+://")
_CHECK_REMEDY = "check the path, or name a video file"


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadOptions:
    """What to read of a file.

    Attributes:
        pixel_format: `bgr`, `rgb` or `gray`.
        every: Emit frames whose index is a multiple of this; at least 1.
        fps: Emit at most one frame per 1/fps seconds of the file's own time; None for all.
        start_seconds: Emit frames with a time at or after this, on the file's own clock; None for all.
        end_seconds: Emit frames with a time before this, exclusive; None for all.
        stream: Number of the video stream, from 0, cover art not counted.
        declared_fps: Rate for files without times; None for what the decoder assumes.
    """

    pixel_format: PixelFormat = "bgr"
    every: int = 1
    fps: float | None = None
    start_seconds: float | None = None
    end_seconds: float | None = None
    stream: int = 0
    declared_fps: float | None = None

    def __post_init__(self) -> None:
        """Refuse what makes no sense."""
        _require(
            self.pixel_format in {"bgr", "rgb", "gray"}, "pixel_format", self.pixel_format, "bgr, rgb or gray"
        )
        _require(self.every >= 1, "every", self.every, "a whole number of at least 1")
        _require(self.fps is None or self.fps > 0, "fps", self.fps, "a number above 0")
        _require(self.fps is None or self.every == 1, "every", self.every, "1 when fps is given")
        _require(self.stream >= 0, "stream", self.stream, "a number from 0")
        _require(
            self.declared_fps is None or self.declared_fps > 0, "declared_fps", self.declared_fps, "above 0"
        )
        if self.start_seconds is not None and self.end_seconds is not None:
            _require(
                self.start_seconds < self.end_seconds,
                "end_seconds",
                self.end_seconds,
                f"more than start_seconds, which is {self.start_seconds}",
            )


def _require(holds: bool, name: str, value: object, wanted: str) -> None:
    if not holds:
        raise ArgumentInvalid(
            f"{name}: expected {wanted}, got {value!r}", effect="nothing was read", remedy=f"change {name}"
        )


class UnplayableError(Exception):
    """The file is there, and no video can be read from it; the argument says why. Stays in this package."""


@dataclass(frozen=True, slots=True)
class Opened:
    """A container that is open for reading, with the chosen stream."""

    container: InputContainer
    stream: VideoStream


def local_path(uri: str) -> Path:
    """Return the file that an address names.

    Args:
        uri: A path, or a `file://` address; any name is taken as it stands, `%03d` and `#` included.

    Raises:
        NotYet: A live or network address.
        SourceUnreadable: Nothing is there, it is a folder, or it may not be read.
    """
    if _SCHEME.match(uri):
        if not uri.lower().startswith("file://"):
            scheme = uri.split(":", 1)[0]
            raise NotYet(
                f"{uri}: {scheme} sources are not there yet",
                cause="only files can be read so far",
                effect="nothing was read",
                remedy="record the stream to a file and read that",
            )
        path = Path(unquote(urlsplit(uri).path))
    else:
        path = Path(uri)
    try:
        if not _is_endless(path):  # opening a pipe would wait for its writer
            with path.open("rb"):
                pass
            return path.absolute()
    except OSError as error:
        raise _unreadable(uri, error) from error
    raise SourceUnreadable(
        f"{uri}: the source cannot be opened",
        cause="it is a pipe, a socket or a device, and only files can be read so far",
        effect="nothing was read",
        remedy="record it to a file and read that",
    )


def _is_endless(path: Path) -> bool:
    mode = path.stat().st_mode
    return not (stat.S_ISREG(mode) or stat.S_ISDIR(mode))


def _unreadable(uri: str, error: OSError) -> SourceUnreadable:
    reasons = {
        errno.ENOENT: "there is no such file",
        errno.EISDIR: "it is a folder",
        errno.EACCES: "permission is denied",
    }
    reason = reasons.get(error.errno or 0, error.strerror or type(error).__name__)
    return SourceUnreadable(
        f"{uri}: the source cannot be opened", cause=reason, effect="nothing was read", remedy=_CHECK_REMEDY
    )


def open_video(path: Path, stream_number: int = 0) -> Opened:
    """Open a file by its content, whatever its name is, and choose one video stream.

    The decoder has one thread, so that damaged pictures come out alike in every run.

    Args:
        path: An absolute path.
        stream_number: Number of the video stream, from 0, cover art not counted.

    Raises:
        UnplayableError: No video can be read from it.
    """
    if path.stat().st_size == 0:
        raise UnplayableError("the file is empty")
    try:
        container = av.open(f"file:{path}", mode="r", metadata_errors="replace")
    except av.error.FFmpegError as error:
        raise UnplayableError(
            f"the file is not a video, or its header is missing ({error.strerror})"
        ) from error
    try:
        stream = _choose(container, stream_number)
    except UnplayableError:
        container.close()
        raise
    stream.codec_context.thread_count = 1
    return Opened(container, stream)


@dataclass(frozen=True, slots=True)
class TimeTraits:
    """What the times of a kind of container are worth.

    Attributes:
        decoding_order_only: It has no times of presentation; FFmpeg's guesses for AVI are wrong.
        may_jump: Its times may start anew within a file; elsewhere, FFmpeg's guesses of decoding times may
            go back although nothing jumped.
    """

    decoding_order_only: bool
    may_jump: bool


def time_traits(container: InputContainer) -> TimeTraits:
    """Return what the times of a container are worth."""
    jumps = bool(av.format.Flags(container.format.flags) & av.format.Flags.ts_discont)
    return TimeTraits(decoding_order_only=container.format.name == "avi", may_jump=jumps)


def _choose(container: InputContainer, stream_number: int) -> VideoStream:
    cover = av.stream.Disposition.attached_pic
    streams = [stream for stream in container.streams.video if not stream.disposition & cover]
    if not streams:
        raise UnplayableError("the file holds no video stream")
    if stream_number >= len(streams):
        raise UnplayableError(
            f"the file holds {len(streams)} video streams, and stream {stream_number} was asked for"
        )
    chosen = streams[stream_number]
    # Without a decoder PyAV gives the stream no codec context, whatever its stub says.
    if getattr(chosen, "codec_context", None) is None:
        raise UnplayableError("the video's codec has no decoder here")
    return chosen
