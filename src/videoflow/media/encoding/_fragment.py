"""One fragment of a file being written: a closed group of pictures from an encoder of its own.

A fragment's bytes depend on its frames, its number and its start, and on nothing before it. So a file that
is cut back to the end of a fragment and continued comes out as if nothing had happened. Used by the writer.
It refuses frames of another size or kind than its first.
"""

from __future__ import annotations

import io
import struct
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Final

import av
import numpy as np
from av.video.reformatter import ColorRange, Colorspace, Interpolation, VideoReformatter

from videoflow.errors import ContractBroken, LibraryMissing, OutputUnwritable

if TYPE_CHECKING:
    from av import VideoFrame
    from av.packet import Packet
    from av.video.stream import VideoStream
    from numpy.typing import NDArray

_NAMES = {"bgr": "bgr24", "rgb": "rgb24", "gray": "gray"}
_ACCURATE = Interpolation.BILINEAR | Interpolation.ACCURATE_RND
_BT709 = 1
_ENCODER: Final = "libx264"
# For the level that H.264 declares; the frames' times are in the container.
_NOMINAL_FPS = 30
_NEVER = 1 << 16
# Byte positions inside the boxes that FFmpeg writes, header included.
_SEQUENCE_AT = 12
_DECODE_TIME_AT = 12


@dataclass(frozen=True, slots=True)
class PictureSettings:
    """What all fragments of a file have in common.

    Attributes:
        width: Pixels along x, even.
        height: Pixels along y, even.
        timescale: Ticks in a second.
        crf: Quality of x264, 0 (lossless) to 51.
        aspect_ratio: Width of a pixel over its height.
    """

    width: int
    height: int
    timescale: int
    crf: int
    aspect_ratio: Fraction


@dataclass(frozen=True, slots=True)
class Fragment:
    """The bytes of one fragment.

    Attributes:
        head: What a file begins with; the same for every fragment of a file.
        body: One `moof` and one `mdat` box, to be appended.
    """

    head: bytes
    body: bytes


class FragmentEncoder:
    """Encodes the frames of one fragment.

    Args:
        settings: What all fragments have in common.
        number: Number of the fragment, from 1.
        start_ticks: Time of its first frame, in ticks from the file's beginning.
    """

    def __init__(self, settings: PictureSettings, number: int, start_ticks: int) -> None:
        self._settings = settings
        self._number = number
        self._start_ticks = start_ticks
        self._reformatter = VideoReformatter()
        self._packets: list[Packet[VideoStream]] = []
        self._buffer = io.BytesIO()
        options = {
            "movflags": "empty_moov+default_base_moof+frag_custom+skip_trailer",
            "use_editlist": "0",
            "video_track_timescale": str(settings.timescale),
            "fflags": "+bitexact",
        }
        _require_encoder()
        self._container = av.open(self._buffer, mode="w", format="mp4", options=options)
        self._stream = self._container.add_stream(
            _ENCODER, rate=_NOMINAL_FPS, options=_encoder_options(settings)
        )
        self._prepare(self._stream)

    def _prepare(self, stream: VideoStream) -> None:
        settings, coder = self._settings, stream.codec_context
        coder.width, coder.height, coder.pix_fmt = settings.width, settings.height, "yuv420p"
        stream.time_base = coder.time_base = Fraction(1, settings.timescale)
        coder.thread_count = 1
        coder.max_b_frames = 0
        coder.gop_size = _NEVER
        coder.sample_aspect_ratio = settings.aspect_ratio
        coder.colorspace = coder.color_primaries = coder.color_trc = _BT709
        coder.color_range = ColorRange.MPEG.value

    def add(self, image: NDArray[np.uint8], pixel_format: str, ticks: int) -> None:
        """Encode one frame.

        Args:
            image: (H, W, 3) uint8, or (H, W) uint8 for gray; at most one pixel smaller than the settings say,
                then its last row and column are repeated.
            pixel_format: `bgr`, `rgb` or `gray`.
            ticks: Its time, in ticks from the file's beginning.
        """
        picture = av.VideoFrame.from_ndarray(self._padded(image), format=_NAMES[pixel_format])
        converted = self._reformatter.reformat(
            picture,
            format="yuv420p",
            dst_colorspace=Colorspace.ITU709,
            dst_color_range=ColorRange.MPEG,
            interpolation=_ACCURATE,
            threads=1,
        )
        converted.pts = ticks - self._start_ticks
        converted.time_base = Fraction(1, self._settings.timescale)
        self._packets.extend(_encode(self._stream, converted))

    def _padded(self, image: NDArray[np.uint8]) -> NDArray[np.uint8]:
        down, right = self._settings.height - image.shape[0], self._settings.width - image.shape[1]
        if down or right:
            return np.pad(image, ((0, down), (0, right)) + ((0, 0),) * (image.ndim - 2), mode="edge")
        return np.ascontiguousarray(image)

    def close(self, last_duration_ticks: int) -> Fragment:
        """End the fragment and return its bytes.

        Args:
            last_duration_ticks: How long its last frame is shown.
        """
        self._packets.extend(_encode(self._stream, None))
        times = [packet.pts or 0 for packet in self._packets]
        ends = [*times[1:], times[-1] + last_duration_ticks]
        for packet, time, end in zip(self._packets, times, ends, strict=True):
            packet.duration = end - time
            self._container.mux_one(packet)
        self._container.close()
        return _placed(self._buffer.getvalue(), self._number, self._start_ticks)

    def abandon(self) -> None:
        """Give up the fragment; nothing of it is kept."""
        self._packets.clear()
        self._container.close()


def _require_encoder() -> None:
    try:
        av.Codec(_ENCODER, "w")
    except av.codec.codec.UnknownCodecError as error:
        raise LibraryMissing(
            "there is no H.264 encoder",
            cause=f"this build of av comes without {_ENCODER}",
            effect="nothing was written",
            remedy="install av from its wheel",
        ) from error


def _encode(stream: VideoStream, picture: VideoFrame | None) -> list[Packet[VideoStream]]:
    try:
        return stream.encode(picture)
    except av.error.FFmpegError as error:
        raise OutputUnwritable(
            "a frame cannot be encoded",
            cause=f"{_ENCODER}: {error.strerror}",
            effect="the frames since the last fragment are not durable",
            remedy="check the size of the frames: H.264 wants 2 to 16384 pixels a side",
        ) from error


def _encoder_options(settings: PictureSettings) -> dict[str, str]:
    return {"preset": "veryfast", "crf": str(settings.crf), "bf": "0"}


def _placed(data: bytes, number: int, start_ticks: int) -> Fragment:
    """Cut a file of one fragment in two, and write the fragment's own number and start into it."""
    at, boxes = 0, {}
    while at + 8 <= len(data):
        length, name = struct.unpack_from(">I4s", data, at)
        boxes[name] = at
        at += length
    if list(boxes)[-2:] != [b"moof", b"mdat"] or at != len(data):
        raise ContractBroken(
            "the muxer wrote a fragment of another form",
            cause=f"found the boxes {', '.join(name.decode('latin-1') for name in boxes)}",
            remedy="report this, with the version of av",
        )
    cut = boxes[b"moof"]
    body = bytearray(data[cut:])
    sequence = body.index(b"mfhd") - 4
    decode_time = body.index(b"tfdt") - 4
    if body[decode_time + 8] != 1:
        raise ContractBroken(
            "the muxer wrote a 32-bit decode time", remedy="report this, with the version of av"
        )
    struct.pack_into(">I", body, sequence + _SEQUENCE_AT, number)
    struct.pack_into(">Q", body, decode_time + _DECODE_TIME_AT, start_ticks)
    return Fragment(bytes(data[:cut]), bytes(body))
