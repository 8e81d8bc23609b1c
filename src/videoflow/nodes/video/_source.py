"""`VideoSource`: the frames of a video file. It needs the extra `video`.

Used as the beginning of a flow. It refuses what it cannot open; how a file ends is an outcome.
"""

import math
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack
from urllib.parse import unquote, urlsplit

from videoflow.errors import EnvironmentFault, LibraryMissing, NotYet, SourceUnreadable, UsageError
from videoflow.graph import Context, Disposition, Item, NodeOptions, Producer, flow_folder
from videoflow.media import Frame, PixelFormat, SourceEnd, SourceOutcome
from videoflow.nodes._arguments import refuse_later, require
from videoflow.nodes.video._unchanged import refuse_changed

if TYPE_CHECKING:
    from videoflow.media.decoding import VideoInfo, VideoReader

_SCHEME = re.compile(r"^[a-zA-Z][a-zA-Z0-9+.-]+://")
_FILE_SCHEME = "file://"
_BESIDE_PIXELS_BYTES = 4096
_SHOWN_EVENTS = 20
DAMAGED = "damaged"
"""The outcome of a file that was read to its end and in which frames could not be decoded."""


class VideoSource(Producer):
    """Reads the frames of a video file, with exact times and an honest end.

    Makes a `Frame` per frame, in the order in which they are shown; the offset is the frame's index in the
    file. `frame.source` is the name of the file without its folder, so that what derives from it does not
    depend on where the file lies. A file that is missing is refused before anything starts. A file that is
    empty, broken off or no video runs, and its outcome in the report says so: `undecodable`, `truncated`, or
    `damaged` when frames in it could not be decoded; the run is then incomplete. After a restart it goes on
    with the very next frame, and refuses to if the file has changed since the run began.

    Args:
        uri: A path, relative to the folder where the flow was built, or a `file://` address.
        every: Only frames whose index is a multiple of this.
        fps: At most one frame per 1/fps seconds of the file's own time; None for all.
        start_seconds: Only frames at or after this time of the file.
        end_seconds: Only frames before this time of the file.
        keyframes_only: Only key frames (later).
        live: Whether it is a live source; None: by the address (later: True).
        pixel_format: `bgr`, `rgb` or `gray`.
        hwaccel: Hardware that decodes (later).
        open_timeout_seconds: How long a live source may take to open (later).
        read_timeout_seconds: How long a live source may be silent (later).
        required: Whether the run needs it.

    Raises:
        ArgumentInvalid: A number out of its range.
        NotYet: What comes later was used.

    Example:
        >>> VideoSource("street.mp4", every=2, name="camera")
        <VideoSource 'camera'>
        >>> VideoSource("rtsp://camera.local/1")
        Traceback (most recent call last):
        videoflow.errors.NotYet: VideoSource cannot read rtsp://camera.local/1 yet: live and network ...
    """

    later_ports = ("packets", "events")

    def __init__(
        self,
        uri: str | Path,
        *,
        every: int = 1,
        fps: float | None = None,
        start_seconds: float | None = None,
        end_seconds: float | None = None,
        keyframes_only: bool = False,
        live: bool | None = None,
        pixel_format: PixelFormat = "bgr",
        hwaccel: str = "none",
        open_timeout_seconds: float = 5,
        read_timeout_seconds: float = 3,
        required: bool = True,
        **options: Unpack[NodeOptions],
    ) -> None:
        super().__init__(**options)
        self._uri = str(uri)
        _refuse_address(self._uri)
        for used, name, value, meanwhile in (
            (bool(live), "live", live, "leave it out: files are read so far"),
            (keyframes_only, "keyframes_only", keyframes_only, "leave it out, or use every= or fps="),
            (hwaccel != "none", "hwaccel", hwaccel, "leave it out"),
            (open_timeout_seconds != 5, "open_timeout_seconds", open_timeout_seconds, "leave it out"),
            (read_timeout_seconds != 3, "read_timeout_seconds", read_timeout_seconds, "leave it out"),
        ):
            refuse_later(used, "VideoSource", name, value, meanwhile)
        require(self._uri != "", "VideoSource", "uri", self._uri, "the path of a video file")
        require(every >= 1, "VideoSource", "every", every, "a whole number of at least 1")
        require(fps is None or fps > 0, "VideoSource", "fps", fps, "a number above 0")
        require(fps is None or every == 1, "VideoSource", "every", every, "1 when fps is given")
        require(
            start_seconds is None or end_seconds is None or start_seconds < end_seconds,
            "VideoSource",
            "end_seconds",
            end_seconds,
            f"more than start_seconds, which is {start_seconds}",
        )
        self.required = required
        self._choice: dict[str, Any] = {
            "every": every,
            "fps": fps,
            "start_seconds": start_seconds,
            "end_seconds": end_seconds,
            "pixel_format": pixel_format,
        }
        self._path = flow_folder() / _path_of(self._uri)
        self._source = self._path.name
        self._reader: VideoReader | None = None
        self._expected: int | None = None

    def max_item_bytes(self) -> int | None:
        """Returns the size of a frame, by the file's header; None where nothing can be read from it.

        Raises:
            UsageError: There is no such file.
            EnvironmentFault: It may not be read.
            LibraryMissing: PyAV is not installed.
        """
        path = flow_folder() / _path_of(self._uri)
        try:
            self._made_reader(path)
        except SourceUnreadable as error:
            raise _unopened(self._uri, path, error) from error
        info = self._probed(path)
        if info is None:
            return None
        channels = 1 if self._choice["pixel_format"] == "gray" else 3
        return info.width * info.height * channels + _BESIDE_PIXELS_BYTES

    def inputs(self) -> tuple[str, ...]:
        """Returns the file."""
        return (_path_of(self._uri),)

    def open(self) -> None:
        """Looks how many frames there will be.

        Raises:
            LibraryMissing: PyAV is not installed.
            SourceUnreadable: The file is gone.
        """
        info = self._probed(self._path)
        self._expected = None if info is None else _expected(info, self._choice)

    def produce(self, resume: int | None, ctx: Context) -> Iterator[Item]:
        """Yields the frames from index `resume` on.

        Raises:
            SourceUnreadable: The file is gone, or has changed since the run began.
        """
        reader = self._made_reader(self._path)
        if resume is not None:
            refuse_changed(self._path, self._source, ctx.run_id)
        self._reader = reader
        for frame in reader.frames(resume, ctx.empty):
            yield Item(self._named(frame), offset=frame.index, time_seconds=frame.time_seconds)

    def interrupt(self) -> None:
        """Ends the reading before its next frame."""
        if self._reader is not None:
            self._reader.stop()

    def classify(self, error: Exception) -> Disposition | None:
        """A file that is gone or has changed does not come back by trying again."""
        return "fatal" if isinstance(error, SourceUnreadable | EnvironmentFault) else None

    def summary(self) -> dict[str, Any]:
        """Returns how the reading ended, and how many items are expected, as an estimate."""
        figures: dict[str, Any] = {} if self._expected is None else {"expected": self._expected}
        outcome = None if self._reader is None else self._reader.outcome
        return figures if outcome is None else figures | _account(outcome)

    def _named(self, frame: Frame) -> Frame:
        return replace(frame, source=self._source)

    def _made_reader(self, path: Path) -> "VideoReader":
        try:
            from videoflow.media.decoding import ReadOptions, VideoReader
        except ImportError as error:
            raise _without_library(error) from error
        chosen: ReadOptions = ReadOptions(**self._choice)
        return VideoReader(str(path), chosen)

    def _probed(self, path: Path) -> "VideoInfo | None":
        try:
            from videoflow.media.decoding import probe
        except ImportError as error:
            raise _without_library(error) from error
        try:
            return probe(str(path))
        except SourceUnreadable:
            return None  # reading it will say what is wrong, as the outcome of the source


def _refuse_address(uri: str) -> None:
    if _SCHEME.match(uri) and not uri.lower().startswith(_FILE_SCHEME):
        raise NotYet(
            f"VideoSource cannot read {uri} yet",
            cause="live and network sources are not built yet",
            effect="nothing was started",
            remedy="record the stream to a file and read that",
        )


def _path_of(uri: str) -> str:
    return unquote(urlsplit(uri).path) if uri.lower().startswith(_FILE_SCHEME) else uri


def _unopened(uri: str, path: Path, error: SourceUnreadable) -> UsageError | EnvironmentFault:
    """Returns what a file that cannot be opened is before anything has started."""
    kind = EnvironmentFault if isinstance(error.__cause__, PermissionError) else UsageError
    return kind(
        f"{uri}: the source cannot be opened",
        cause=error.cause,
        where=str(path),
        effect="nothing was started",
        remedy=error.remedy,
    )


def _without_library(error: ImportError) -> LibraryMissing:
    return LibraryMissing("VideoSource needs PyAV", cause=str(error), remedy='pip install "videoflow[video]"')


def _expected(info: "VideoInfo", choice: dict[str, Any]) -> int | None:
    """Returns about how many frames will come, by what the header says."""
    frames, rate = info.frames_estimate, info.average_rate
    if frames is None or not rate:
        return None
    seconds = frames / float(rate)
    begin = min(choice["start_seconds"] or 0.0, seconds)
    end = seconds if choice["end_seconds"] is None else min(choice["end_seconds"], seconds)
    share = (end - begin) / seconds if seconds else 1.0
    wanted: int = math.ceil(frames * share / choice["every"])
    return wanted if choice["fps"] is None else min(wanted, math.ceil((end - begin) * choice["fps"]))


def _account(outcome: SourceOutcome) -> dict[str, Any]:
    whole_but_damaged = outcome.kind is SourceEnd.COMPLETE and outcome.frames_missing > 0
    return {
        "outcome": DAMAGED if whole_but_damaged else outcome.kind.value,
        "detail": "; ".join(_details(outcome)),
        "frames_decoded": outcome.frames_decoded,
        "frames_corrupt": outcome.frames_corrupt,
        "frames_missing": outcome.frames_missing,
        "first_seconds": outcome.first_seconds,
        "last_seconds": outcome.last_seconds,
        "missing": [[span.first_index, span.last_index] for span in outcome.missing],
        "events": [
            {"kind": event.kind, "time_seconds": event.time_seconds, **event.data}
            for event in outcome.events[:_SHOWN_EVENTS]
        ],
    }


def _details(outcome: SourceOutcome) -> Iterator[str]:
    if outcome.detail:
        yield outcome.detail
    if outcome.frames_missing:
        spans = [_span(span.first_index, span.last_index) for span in outcome.missing[:3]]
        more = ", …" if len(outcome.missing) > len(spans) else ""
        noun = "frame" if outcome.frames_missing == 1 else "frames"
        yield f"{outcome.frames_missing} {noun} could not be decoded ({', '.join(spans)}{more})"
    if outcome.frames_corrupt:
        yield f"{outcome.frames_corrupt} frames are damaged, and marked as corrupt"
    if outcome.started_at_index:
        yield f"this is the account of the frames from {outcome.started_at_index} on"


def _span(first: int, last: int) -> str:
    return str(first) if first == last else f"{first}-{last}"
