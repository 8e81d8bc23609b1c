"""`VideoSink`: an H.264 file that a crash cannot spoil. It needs the extra `video`.

Used as the end of a flow that makes a video. It refuses a place that cannot be written, before the run
starts.
"""

from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

from videoflow import faults
from videoflow.errors import FlowError, LibraryMissing, OutputUnwritable
from videoflow.graph import Consumer, Context, Disposition, NodeOptions, flow_folder
from videoflow.media import Frame
from videoflow.nodes._arguments import refuse_later, require, require_input

if TYPE_CHECKING:
    from videoflow.media.encoding import VideoWriter, WriteSummary

_STATE = "writer"
_SUFFIXES = (".mp4", ".m4v", ".mov")
_LATER_SUFFIXES = (".mkv", ".webm", ".avi")
_HIGHEST_CRF = 51


class VideoSink(Consumer):
    """Writes frames as H.264 into an MP4 or MOV file that plays in a browser.

    The times are the frames' own; the first is at 0. Frames of odd size are padded by a pixel; a frame of
    another size than the first, or with an earlier time than the one before, is put aside.

    While the run goes on, the frames are in `<path>.part`, which plays; the file itself appears at the end,
    whole and checked; that of an earlier run is removed with the first frame. Frames become durable a
    fragment at a time, and whatever process is killed, the finished file has the same bytes. When a run ends
    without having drained, the `.part` file stays with what is durable.

    Args:
        path: The file, relative to the folder where the flow was built; the folders above it are made.
        crf: Quality of x264: 0 (lossless) to 51 (poor).
        fragment_frames: Frames in a fragment; so many are kept in flight.
        resumable: False says that a restart may change bytes, though no frame and no time; it is not made
            use of yet.

    Raises:
        ArgumentInvalid: A number out of its range, or another kind of file.
        NotYet: A kind of file that comes later.

    Example:
        >>> from videoflow.nodes import SyntheticScene
        >>> from videoflow.testing import drive
        >>> drive(VideoSink("scene.mp4"), drive(SyntheticScene(frames=4, size=(64, 48)), []))
        []
        >>> from videoflow.media.decoding import VideoReader
        >>> [frame.time_seconds for frame in VideoReader("scene.mp4").frames()]
        [0.0, 0.04, 0.08, 0.12]
    """

    stateful = True

    def __init__(
        self,
        path: str | Path,
        *,
        crf: int = 23,
        fragment_frames: int = 30,
        resumable: bool = True,
        **options: Unpack[NodeOptions],
    ) -> None:
        super().__init__(**options)
        suffix = Path(path).suffix.lower()
        known = ", ".join(_SUFFIXES)
        refuse_later(
            suffix in _LATER_SUFFIXES, "VideoSink", "path", str(path), f"name a file ending in {known}"
        )
        require(suffix in _SUFFIXES, "VideoSink", "path", str(path), f"a file ending in {known}")
        require(0 <= crf <= _HIGHEST_CRF, "VideoSink", "crf", crf, f"0 to {_HIGHEST_CRF}")
        require(fragment_frames >= 1, "VideoSink", "fragment_frames", fragment_frames, "at least 1")
        self.holds_items = fragment_frames
        self._given = str(path)
        self._path = flow_folder() / path
        self._crf = crf
        self._fragment_frames = fragment_frames
        self._writer: VideoWriter | None = None
        self._written: WriteSummary | None = None
        self._durable = 0
        self._reached = 0
        self._drained = False
        self._begun = False

    def open(self, ctx: Context) -> None:
        """Begins the file, or goes on with it.

        Raises:
            LibraryMissing: PyAV is not installed.
            OutputUnwritable: The place cannot be written, or the file that was begun is gone.
        """
        try:
            from videoflow.media.encoding import VideoWriter
        except ImportError as error:
            raise LibraryMissing(
                "VideoSink needs PyAV", cause=str(error), remedy='pip install "videoflow[video]"'
            ) from error
        _make_folder(self._path)
        state = ctx.state.get(_STATE)
        if state is None:
            self._writer = VideoWriter(self._path, crf=self._crf, fragment_frames=self._fragment_frames)
        else:
            self._writer = VideoWriter.resume(self._path, state)
        self._durable = self._reached = 0 if state is None else int(state["frames"])
        self._drained = False
        self._begun = state is not None

    def consume(self, frame: Frame) -> None:
        """Takes the next frame.

        Raises:
            TypeError: It is no frame.
            ValueError: It has another size than the first, or an earlier time than the last.
            OutputUnwritable: The file cannot be written.
        """
        require_input(frame, Frame, "VideoSink", "wire it to a node that makes frames, such as an Annotator")
        writer = self._opened()
        if not self._begun:
            self._remove_earlier()
        durable = writer.write(frame)
        faults.reach("effect.done")
        if durable is not None:
            self._reached = durable

    def checkpoint(self, ctx: Context) -> int | None:
        """Commits where the file stands when a fragment is closed, and at the end."""
        self._drained = ctx.draining
        writer = self._opened()
        if ctx.draining:
            self._reached = writer.seal()
        fresh = self._reached - self._durable
        if not fresh:
            return None
        ctx.state[_STATE] = writer.state()
        self._durable = self._reached
        return fresh

    def close(self) -> None:
        """Finishes the file if everything is committed; otherwise leaves the working file as it is.

        Raises:
            OutputUnwritable: The finished file cannot be written.
        """
        if self._writer is None:
            return
        if self._drained:
            if not self._begun:
                self._remove_earlier()
            self._written = self._writer.finish()
        else:
            self._writer.abandon()

    def classify(self, error: Exception) -> Disposition | None:
        """A frame that does not fit is put aside; a file that cannot be written ends the run."""
        if isinstance(error, FlowError):
            return "fatal"
        return "poison" if isinstance(error, ValueError | TypeError) else None

    def outputs(self) -> tuple[str, ...]:
        """Returns the file, as given."""
        return (self._given,)

    def summary(self) -> dict[str, Any]:
        """Returns what was written."""
        written = self._written
        if written is None:
            return {"frames": self._durable, "finished": False}
        return {
            "frames": written.frames,
            "finished": True,
            "seconds": written.seconds,
            "width": written.width,
            "height": written.height,
            "padded_right": written.padded_right,
            "padded_bottom": written.padded_bottom,
            "times_rounded": written.times_rounded,
            "times_moved": written.times_moved,
            "file_bytes": written.file_bytes,
        }

    def _remove_earlier(self) -> None:
        """Removes the file of an earlier run, which would be taken for this one's if this one failed."""
        try:
            self._path.unlink(missing_ok=True)
        except OSError as error:
            raise _unwritable(self._path, error) from error
        self._begun = True

    def _opened(self) -> "VideoWriter":
        if self._writer is None:
            raise RuntimeError("VideoSink.consume was called before open")
        return self._writer


def _make_folder(path: Path) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise _unwritable(path, error) from error


def _unwritable(path: Path, error: OSError) -> OutputUnwritable:
    return OutputUnwritable(
        f"{path}: the file cannot be written",
        cause=error.strerror or str(error),
        effect="nothing was written",
        remedy="choose a folder that you may write to, and run again",
    )
