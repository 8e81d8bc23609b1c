"""Finding a key frame from which decoding gives the very frames that decoding from the start would give.

The packets are read without being decoded; that is cheap, and tells each frame's index exactly. Where the
file does not allow a proof (no times, damage, jumps, codecs with hidden frames), there is no start point,
and the reader decodes from the beginning instead. Used by the reader that resumes. It refuses a start point
that is merely likely.
"""

from __future__ import annotations

import bisect
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

import av

from videoflow.media.decoding._opening import Opened, time_traits

if TYPE_CHECKING:
    from collections.abc import Iterator

    from av.packet import Packet
    from av.video.stream import VideoStream

# One packet is one frame, and nothing from before a key frame is used after it.
_EXACT_CODECS = frozenset({"h264", "hevc", "vp9", "av1", "mjpeg", "png", "ffv1", "prores", "rawvideo"})
_REORDERED_FRAMES = 64
_IDR_SLICE = 5


@dataclass(frozen=True, slots=True)
class StartPoint:
    """A key frame to start from.

    Attributes:
        pts: Its time, in units of the stream's time base.
        stamp: What to seek to, in the same units.
        index: Its index.
        packets_before: Packets of the stream before it in the file.
    """

    pts: int
    stamp: int
    index: int
    packets_before: int


@dataclass(frozen=True, slots=True)
class _Key:
    pts: int
    stamp: int
    packets_before: int


def find_start(opened: Opened, index: int | None, start: float | None) -> StartPoint | None:
    """Return the last provable key frame at or before what is wanted; None to read from the beginning.

    Args:
        opened: A container of its own, which is left at some other place.
        index: The first frame wanted by index, or None.
        start: The first frame wanted by time in seconds, or None.
    """
    if (
        opened.stream.codec_context.name not in _EXACT_CODECS
        or time_traits(opened.container).decoding_order_only
    ):
        return None
    scanned = _scan(opened, index or 0, start)
    if scanned is None:
        return None
    times, keys = scanned
    base = _base(opened)
    by_time = 0 if start is None else bisect.bisect_left(times, start, key=lambda pts: float(pts * base))
    wanted = max(index or 0, by_time)
    wanted_pts = times[min(wanted, len(times) - 1)]
    for key in reversed(keys):
        rank = bisect.bisect_left(times, key.pts)
        alone = times[rank : rank + 2] != [key.pts, key.pts]
        if key.pts <= wanted_pts and rank and alone:
            point = StartPoint(key.pts, key.stamp, rank, key.packets_before)
            return point if _reaches(opened, point) else None
    return None


def go_to(opened: Opened, point: StartPoint) -> None:
    """Place a container so that the packet of the key frame comes, perhaps after others."""
    opened.container.seek(point.stamp, stream=opened.stream, backward=True, any_frame=False)


def _base(opened: Opened) -> Fraction:
    base = opened.stream.time_base
    if base is None:
        raise AssertionError("an open stream has a time base")
    return base


def _scan(opened: Opened, index: int, start: float | None) -> tuple[list[int], list[_Key]] | None:
    """Read packets until the place of the wanted frame is settled; sorted times, and keys in file order."""
    base = _base(opened)
    may_jump = time_traits(opened.container).may_jump
    times: list[int] = []
    keys: list[_Key] = []
    reached = 0
    last_stamp: int | None = None
    try:
        for count, packet in enumerate(_packets(opened)):
            if packet.pts is None or packet.dts is None or packet.is_corrupt:
                return None
            if may_jump and last_stamp is not None and packet.dts < last_stamp:
                return None
            last_stamp = packet.dts
            if packet.is_discard:
                continue
            if packet.is_keyframe and _is_clean(packet, opened.stream):
                keys.append(_Key(packet.pts, packet.dts, count))
            times.append(packet.pts)
            reached += len(times) > index and (start is None or float(packet.pts * base) >= start)
            if reached > _REORDERED_FRAMES:
                break
    except av.error.FFmpegError:
        return None
    return (sorted(times), keys) if times else None


def _packets(opened: Opened) -> Iterator[Packet[VideoStream]]:
    return (packet for packet in opened.container.demux(opened.stream) if packet.size)


def _reaches(opened: Opened, point: StartPoint) -> bool:
    try:
        go_to(opened, point)
        for packet in _packets(opened):
            if packet.pts == point.pts and packet.is_keyframe:
                return True
            if packet.dts is None or packet.dts > point.stamp:
                return False
    except av.error.FFmpegError:
        return False
    return False


def _is_clean(packet: Packet[VideoStream], stream: VideoStream) -> bool:
    """Tell whether a key frame starts afresh: in H.264 only an IDR picture does, a recovery point may not."""
    if stream.codec_context.name != "h264":
        return True
    data, extra = bytes(packet), stream.codec_context.extradata or b""
    if extra[:1] != b"\x01" or len(extra) < 5:
        starts = (data[at + 3] for at in _start_codes(data))
        return any(first & 0x1F == _IDR_SLICE for first in starts)
    width, at = (extra[4] & 3) + 1, 0
    while at + width < len(data):
        if data[at + width] & 0x1F == _IDR_SLICE:
            return True
        at += width + int.from_bytes(data[at : at + width], "big")
    return False


def _start_codes(data: bytes) -> Iterator[int]:
    at = data.find(b"\x00\x00\x01")
    while 0 <= at < len(data) - 3:
        yield at
        at = data.find(b"\x00\x00\x01", at + 3)
