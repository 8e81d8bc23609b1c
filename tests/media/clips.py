"""Makes the odd videos that the tests of `media` read; nothing binary is committed.

Frame k of every clip has k along its upper edge, as seven black or white squares of 16 by 16 pixels, lowest
bit first, so that a test can tell which picture it got.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import Any, cast

import av
import numpy as np
from numpy.typing import NDArray

SIZE = (160, 120)
MARK = 16
BITS = 7


@dataclass(frozen=True)
class Clip:
    """How a clip is made; width and height in pixels, times in units of 1/rate seconds."""

    frames: int = 50
    size: tuple[int, int] = SIZE
    rate: int = 25
    codec: str = "libx264"
    pixels: str = "yuv420p"
    format: str | None = None
    options: Mapping[str, str] = field(default_factory=dict)
    muxer: Mapping[str, str] = field(default_factory=dict)
    rotation: int = 0
    times: Callable[[int], int] = int
    aspect: Fraction | None = None


PLAIN = Clip()


def marked(k: int, size: tuple[int, int] = SIZE) -> NDArray[np.uint8]:
    """Picture k: (H, W, 3) uint8 RGB, blocks of noise that move, with a mark that says k."""
    width, height = size
    noise = np.random.default_rng(7).integers(0, 255, (height // 8 + 1, width // 8 + 1, 3), dtype=np.uint8)
    image = noise.repeat(8, 0).repeat(8, 1)[:height, :width]
    image = np.roll(image, 3 * k, 1)
    for bit in range(BITS):
        image[:MARK, bit * MARK : (bit + 1) * MARK] = 235 if k >> bit & 1 else 16
    return image


def mark_of(image: NDArray[np.uint8]) -> int:
    """Which picture this is, by its mark along the upper edge."""
    squares = (image[4:12, bit * MARK + 4 : bit * MARK + 12] for bit in range(BITS))
    return sum((float(square.mean()) > 128) << bit for bit, square in enumerate(squares))


def encoded(stream: av.VideoStream, clip: Clip) -> Iterable[av.Packet[av.VideoStream]]:
    """The packets of a clip."""
    for k in range(clip.frames):
        picture = av.VideoFrame.from_ndarray(marked(k, clip.size), format="rgb24")
        picture.pts, picture.time_base = clip.times(k), Fraction(1, clip.rate)
        yield from stream.encode(picture)
    yield from stream.encode(None)


def write_clip(path: Path, clip: Clip = PLAIN, keep: Callable[[int, Any], bool] | None = None) -> Path:
    """Write a clip.

    Args:
        path: Its file.
        clip: How it is made.
        keep: Gets the number of a packet and the packet, which it may change; False leaves it out.
    """
    with av.open(str(path), "w", format=clip.format, options=dict(clip.muxer)) as container:
        stream = cast(
            "av.VideoStream", container.add_stream(clip.codec, rate=clip.rate, options=dict(clip.options))
        )
        stream.width, stream.height = clip.size
        stream.pix_fmt = clip.pixels
        stream.codec_context.time_base = Fraction(1, clip.rate)
        if clip.aspect:
            stream.codec_context.sample_aspect_ratio = clip.aspect
        if clip.rotation:
            stream.set_display_rotation(clip.rotation)
        for number, packet in enumerate(encoded(stream, clip)):
            if keep is None or keep(number, packet):
                container.mux(packet)
    return path


def cut(source: Path, target: Path, share: float) -> Path:
    """Write the first part of a file."""
    data = source.read_bytes()
    target.write_bytes(data[: int(len(data) * share)])
    return target
