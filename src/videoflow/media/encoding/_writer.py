"""`VideoWriter`: frames into an H.264 MP4 file that a crash cannot spoil. Used by video sinks.

While writing, the frames are in `<path>.part`, a fragmented MP4 that plays. A fragment is durable as soon as
it is closed; `state()` then says how to continue. `finish` turns it into the file that was asked for.
Whatever crashes lie between, the bytes of the finished file are the same. It refuses a frame that does not
follow the one before, and a place that cannot be written.
"""

from __future__ import annotations

import dataclasses
import os
from contextlib import suppress
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Any

from videoflow.errors import ArgumentInvalid, ContractBroken, NotYet, OutputUnwritable
from videoflow.media.encoding._finishing import WriteSummary, check_file, finish_file, summary
from videoflow.media.encoding._fragment import Fragment, FragmentEncoder, PictureSettings
from videoflow.media.encoding._progress import Progress

if TYPE_CHECKING:
    from collections.abc import Mapping

    from videoflow.media._frame import Frame

_SUFFIXES = (".mp4", ".m4v", ".mov")
_LATER_SUFFIXES = (".mkv", ".webm", ".avi")
_HIGHEST_CRF = 51
_LONGEST_STEP_TICKS = 2**31 - 1


class _Stage(Enum):
    OPEN = "it is open"
    SPOILT = "writing failed before"
    ABANDONED = "writing was given up"
    FINISHED = "the file is finished"


class VideoWriter:
    """Writes one file.

    Args:
        path: The file to make; its folder must exist. A `.part` file of an earlier writer is replaced.
        crf: Quality of x264, 0 (lossless) to 51 (poor).
        fragment_frames: Frames in a fragment, at least 1; after a crash at most so many are given again.

    Raises:
        ArgumentInvalid: An argument out of its range, or another kind of file.
        NotYet: A kind of file that comes later.
        OutputUnwritable: The place cannot be written.
    """

    def __init__(self, path: str | Path, *, crf: int = 23, fragment_frames: int = 30) -> None:
        self._path = _checked_path(path)
        if not 0 <= crf <= _HIGHEST_CRF:
            raise _invalid("crf", f"0 to {_HIGHEST_CRF}", crf)
        if fragment_frames < 1:
            raise _invalid("fragment_frames", "at least 1", fragment_frames)
        self._open(Progress(crf=crf, fragment_frames=fragment_frames))
        self._cut_back()

    @classmethod
    def resume(cls, path: str | Path, state: Mapping[str, Any]) -> VideoWriter:
        """Return a writer that continues a file; the next frame is the one after those in the state.

        Args:
            path: As for the writer before.
            state: What its `state()` gave; anything written after that is cut off.

        Raises:
            OutputUnwritable: The working file is gone or too short, and no finished file holds its frames.
        """
        writer = cls.__new__(cls)
        writer._path = _checked_path(path)
        writer._open(Progress.from_state(state))
        if writer._durable.frames and not writer._part.exists():
            writer._recognise_finished()
        else:
            writer._cut_back()
        return writer

    def _open(self, progress: Progress) -> None:
        # What is durable, and what will be when the open fragment is closed.
        self._durable = self._reached = progress
        self._encoder: FragmentEncoder | None = None
        self._stage = _Stage.OPEN

    @property
    def _part(self) -> Path:
        return self._path.with_name(f"{self._path.name}.part")

    def _recognise_finished(self) -> None:
        """Accept a finished file in place of the working file, which `finish` removes last."""
        if not self._path.exists():
            raise OutputUnwritable(
                f"{self._path}: the file cannot be continued",
                cause=f"{self._part.name} is gone",
                effect=f"{self._durable.frames} frames that were written are lost",
                remedy="run anew, from the beginning",
            )
        check_file(self._path, self._durable)
        self._stage = _Stage.FINISHED

    def _cut_back(self) -> None:
        """Leave in the working file what is durable, and nothing else; where nothing is, there is no file."""
        length = self._durable.durable_bytes
        try:
            with self._part.open("ab") as file:
                found = file.tell()
                if found >= length:
                    file.truncate(length)
            if not length:  # it was made to see that it can be; a kill from here on leaves nothing
                self._part.unlink()
        except OSError as error:
            raise self._unwritable(error) from error
        if found < length:
            raise OutputUnwritable(
                f"{self._path}: the file cannot be continued",
                cause=f"{self._part.name} has {found} bytes of {length}",
                effect="frames that were written are lost",
                remedy="run anew, from the beginning",
            )

    def write(self, frame: Frame) -> int | None:
        """Take the next frame.

        Args:
            frame: In order of time; of the size of the first.

        Returns:
            How many frames are durable now, when this frame closed a fragment; else None.

        Raises:
            ValueError: A frame of another size, or of an earlier time; the writer goes on without it.
            OutputUnwritable: The file cannot be written; the writer is of no more use.
        """
        self._check_usable()
        if not self._reached.timescale:
            self._reached = self._reached.begun(frame)
        reached = self._with(frame)
        if self._encoder is None:
            self._encoder = FragmentEncoder(
                _settings(reached), self._durable.fragments + 1, reached.last_ticks
            )
        self._encoder.add(frame.image, frame.pixel_format, reached.last_ticks)
        self._reached = reached
        if reached.frames - self._durable.frames < reached.fragment_frames:
            return None
        return self.seal()

    def _with(self, frame: Frame) -> Progress:
        """Return the progress with one more frame, or refuse the frame."""
        reached = self._reached
        if (frame.width, frame.height) != (reached.width, reached.height):
            raise ValueError(
                f"{self._path.name}: expected frames of {reached.width}x{reached.height},"
                f" got {frame.width}x{frame.height} (index {frame.index} of {frame.source})"
            )
        wanted = (frame.time_exact - reached.first_time) * reached.timescale
        ticks = round(wanted)
        step = ticks - reached.last_ticks if reached.frames else 0
        # Frames moved by a tick may be ahead of the frames' own times; more than that is another order.
        moved = bool(reached.frames) and -reached.times_moved <= step <= 0
        if moved:
            ticks, step = reached.last_ticks + 1, 1
        if ticks < reached.last_ticks or step > _LONGEST_STEP_TICKS:
            raise ValueError(
                f"{self._path.name}: expected a time after {self._shown(reached.last_ticks)} s and within"
                f" {_LONGEST_STEP_TICKS // reached.timescale} s of it,"
                f" got {self._shown(ticks)} s (index {frame.index} of {frame.source}, counted from the first)"
            )
        length = _length_ticks(frame, reached.timescale) or step or reached.step_ticks
        return dataclasses.replace(
            reached,
            frames=reached.frames + 1,
            last_ticks=ticks,
            step_ticks=step or reached.step_ticks,
            end_ticks=ticks + (length or reached.timescale // 25),
            times_rounded=reached.times_rounded + (ticks != wanted and not moved),
            times_moved=reached.times_moved + moved,
        )

    def _shown(self, ticks: int) -> str:
        return f"{ticks / self._reached.timescale:.6f}"

    def seal(self) -> int:
        """Close the open fragment, even if it is short, and return how many frames are durable.

        Of a finished file it says so again: a crash may come between the end of a file and that of its run.

        Raises:
            OutputUnwritable: The file cannot be written; the writer is of no more use.
        """
        if self._stage is _Stage.FINISHED:
            return self._durable.frames
        self._check_usable()
        encoder, reached = self._encoder, self._reached
        if encoder is None:
            return self._durable.frames
        # Until the last byte is written, a failure leaves a fragment that cannot be closed a second time.
        self._stage = _Stage.SPOILT
        fragment = encoder.close(reached.end_ticks - reached.last_ticks)
        try:
            written = self._append(fragment)
        except OSError as error:
            with suppress(OSError):  # the disk is full, or gone; what is torn is not for who plays the file
                os.truncate(self._part, self._durable.durable_bytes)
            raise self._unwritable(error) from error
        self._encoder, self._stage = None, _Stage.OPEN
        self._durable = self._reached = dataclasses.replace(
            reached,
            fragments=self._durable.fragments + 1,
            durable_bytes=self._durable.durable_bytes + written,
        )
        return self._durable.frames

    def _append(self, fragment: Fragment) -> int:
        with self._part.open("a+b") as file:
            if not self._durable.fragments:
                return file.write(fragment.head + fragment.body)
            file.seek(0)
            if file.read(len(fragment.head)) != fragment.head:
                raise OutputUnwritable(
                    f"{self._path}: the file cannot be continued",
                    cause=f"{self._part.name} was begun by another encoder, or by another version of av",
                    effect=f"{self._durable.frames} frames are durable",
                    remedy="continue with the version that began it, or run anew",
                )
            return file.write(fragment.body)

    def state(self) -> dict[str, int]:
        """Return what `resume` needs to continue after the frames that are durable now."""
        return self._durable.as_state()

    def finish(self) -> WriteSummary:
        """Close the last fragment, make the finished file, check it, and remove the working file.

        May be called again, and after a resumption: it then only finds what is there.

        Returns:
            What was written. Without a frame there is no file.

        Raises:
            OutputUnwritable: The file cannot be written, or does not hold what it should; the working file
                stays.
        """
        if self._stage is not _Stage.FINISHED:
            self.seal()
            if self._durable.frames:
                finish_file(self._part, self._path, self._durable)
            self._part.unlink(missing_ok=True)
            self._stage = _Stage.FINISHED
        return summary(self._path, self._durable)

    def abandon(self) -> None:
        """Stop writing; what is durable stays in the working file, and can be continued.

        Without a durable frame there is nothing to continue, and no working file stays.
        """
        if self._encoder is not None:
            self._encoder.abandon()
        self._encoder = None
        if self._stage in (_Stage.OPEN, _Stage.SPOILT) and not self._durable.frames:
            self._part.unlink(missing_ok=True)
        if self._stage is _Stage.OPEN:
            self._stage = _Stage.ABANDONED

    def _check_usable(self) -> None:
        if self._stage is not _Stage.OPEN:
            raise ContractBroken(
                f"{self._path}: the writer takes nothing more",
                cause=self._stage.value,
                remedy="resume from the last state",
            )

    def _unwritable(self, error: OSError) -> OutputUnwritable:
        return OutputUnwritable(
            f"{self._path}: the file cannot be written",
            cause=error.strerror or str(error),
            effect=f"{self._durable.frames} frames are durable",
            remedy="make room, or choose a folder that you may write to, and run again",
        )


def _checked_path(path: str | Path) -> Path:
    target = Path(path).absolute()
    suffix = target.suffix.lower()
    if suffix in _LATER_SUFFIXES:
        raise NotYet(
            f"path: {suffix} files cannot be written yet",
            effect="nothing was written",
            remedy=f"name a file ending in {', '.join(_SUFFIXES)}",
        )
    if suffix not in _SUFFIXES:
        raise _invalid("path", f"a file ending in {', '.join(_SUFFIXES)}", target.name)
    return target


def _invalid(name: str, wanted: str, got: object) -> ArgumentInvalid:
    return ArgumentInvalid(
        f"{name}: expected {wanted}, got {got!r}", effect="nothing was written", remedy=f"change {name}"
    )


def _settings(progress: Progress) -> PictureSettings:
    return PictureSettings(
        width=progress.width + progress.width % 2,
        height=progress.height + progress.height % 2,
        timescale=progress.timescale,
        crf=progress.crf,
        aspect_ratio=progress.aspect_ratio,
    )


def _length_ticks(frame: Frame, timescale: int) -> int:
    return round((frame.duration_pts or 0) * frame.time_base * timescale)
