"""What a video file says of itself, before it is read: for planning, progress and messages.

Nothing here is used for times or for the end of a reading: headers lie. Used by `VideoSource` before it
runs. It refuses a file that cannot be opened.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

import av

from videoflow.errors import SourceUnreadable
from videoflow.media.decoding._opening import Opened, UnplayableError, local_path, open_video
from videoflow.media.decoding._picture import counter_clockwise_quarters

if TYPE_CHECKING:
    from av import VideoFrame

_CHANNELS = 3
_MICROSECONDS = 1_000_000
_LOOKED_AT = 32


@dataclass(frozen=True, slots=True)
class VideoInfo:
    """What the header and the first picture of a video file say.

    Attributes:
        width: Pixels along x of the upright picture.
        height: Pixels along y of the upright picture.
        rotation: Degrees clockwise by which the stored picture is turned: 0, 90, 180 or 270.
        frames_estimate: About how many frames there are; None when nothing says so.
        average_rate: Frames per second; None when nothing says so.
        duration_seconds: Length in seconds; None when nothing says so.
        codec: FFmpeg's name of the codec, as `h264`.
    """

    width: int
    height: int
    rotation: int
    frames_estimate: int | None
    average_rate: Fraction | None
    duration_seconds: float | None
    codec: str

    @property
    def frame_bytes(self) -> int:
        """Bytes of one frame in three channels of 8 bits."""
        return self.width * self.height * _CHANNELS


def probe(uri: str, stream: int = 0) -> VideoInfo:
    """Return what a file says of itself; it decodes one picture at most.

    Args:
        uri: A path or a `file://` address.
        stream: Number of the video stream, from 0, cover art not counted.

    Raises:
        NotYet: A live or network address.
        SourceUnreadable: It cannot be opened, or no video can be read from it.
    """
    path = local_path(uri)
    try:
        opened = open_video(path, stream)
    except UnplayableError as finding:
        raise SourceUnreadable(
            f"{uri}: no video can be read from the source",
            cause=str(finding),
            effect="nothing was read",
            remedy="check the file with a player, or name another",
        ) from finding
    with opened.container:
        return _info(opened)


def max_frame_bytes(uri: str, stream: int = 0) -> int:
    """Return the bytes of one frame in three channels, as far as the header tells.

    Args:
        uri: A path or a `file://` address.
        stream: Number of the video stream, from 0, cover art not counted.

    Raises:
        SourceUnreadable: It cannot be opened, or no video can be read from it.
    """
    return probe(uri, stream).frame_bytes


def _info(opened: Opened) -> VideoInfo:
    stream, container = opened.stream, opened.container
    rate = stream.average_rate or stream.guessed_rate
    seconds: float | None = None
    if stream.duration is not None and stream.time_base is not None:
        seconds = float(stream.duration * stream.time_base)
    elif container.duration is not None:
        seconds = container.duration / _MICROSECONDS
    estimate = stream.frames or (round(seconds * rate) if seconds is not None and rate else 0)
    picture = _first_picture(opened)
    quarters = counter_clockwise_quarters(picture) if picture is not None else 0
    width = picture.width if picture is not None else stream.codec_context.width
    height = picture.height if picture is not None else stream.codec_context.height
    return VideoInfo(
        width=height if quarters % 2 else width,
        height=width if quarters % 2 else height,
        rotation=-90 * quarters % 360,
        frames_estimate=estimate or None,
        average_rate=rate,
        duration_seconds=seconds,
        codec=stream.codec_context.name,
    )


def _first_picture(opened: Opened) -> VideoFrame | None:
    """Return the first picture, since only a picture says how it is turned; None if there is none soon."""
    try:
        for count, packet in enumerate(opened.container.demux(opened.stream)):
            for picture in opened.stream.codec_context.decode(packet if packet.size else None):
                return picture
            if count > _LOOKED_AT:
                break
    except av.error.FFmpegError:
        return None
    return None
