"""`Frame`: one picture of a video with its exact time. Used by every node that sees images.

A frame is a value: it never changes, and its image is read-only. It refuses images whose shape or dtype is
not what its pixel format declares.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, fields, replace
from fractions import Fraction
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from videoflow.media._arrays import read_only, require_array, same_array
from videoflow.media._pictures import encode_picture

PixelFormat = Literal["bgr", "rgb", "gray"]
"""Order of the channels: `bgr` and `rgb` have shape (H, W, 3), `gray` has (H, W)."""

FrameClock = Literal["container", "declared", "rtcp", "arrival"]
"""Who says when the frame was: the container's time stamps, a declared rate where the file has no times,
the sender's RTCP reports, or this machine at arrival."""

_CHANNELS: dict[str, int] = {"bgr": 3, "rgb": 3, "gray": 0}


@dataclass(frozen=True, slots=True, eq=False, kw_only=True, repr=False)
class Frame:
    """One picture of a video and its exact time.

    Attributes:
        image: (H, W, 3) uint8 in 0..255 for `bgr` and `rgb`, (H, W) uint8 for `gray`; axis 0 is y from the
            top downwards, axis 1 is x from the left; read-only, not necessarily contiguous.
        pixel_format: Order of the channels of `image`.
        pts: Presentation time in units of `time_base`.
        time_base: Seconds per unit of `pts`, exact.
        index: Number of the frame in its source, in presentation order, from 0; frames left out are counted.
        source: What the source is called: the address that a reader was given, or the name by its node.
        key_frame: True for a frame that was coded without reference to others.
        corrupt: True when the decoder said that the picture is damaged or a reference was missing.
        clock: Who says when the frame was.
        uncertainty_seconds: How far `time_seconds` may be from the moment of exposure, as far as is known.
        rotation_applied: Degrees clockwise, 0, 90, 180 or 270, by which the stored picture was turned.
        duration_pts: How long the frame is shown, in units of `time_base`; None where nothing says so.
        source_bit_depth: Bits per sample of the stored picture; above 8 the image was converted to 8.
        sample_aspect_ratio: Width of a pixel over its height; the image is never rescaled for it.
        interlaced: True when the stored picture holds two fields.

    Example:
        >>> import numpy as np
        >>> from fractions import Fraction
        >>> image = np.zeros((288, 512, 3), np.uint8)
        >>> frame = Frame(image=image, pts=3003, time_base=Fraction(1, 30000), index=3, source="street.mp4")
        >>> frame
        Frame(512x288 bgr, index=3, time_seconds=0.1001, source='street.mp4')
        >>> frame.time_exact
        Fraction(1001, 10000)
        >>> frame.image.flags.writeable
        False
        >>> drawn = frame.copy()
        >>> drawn[0, 0] = 255
        >>> frame.with_image(drawn).pts
        3003
    """

    image: NDArray[np.uint8]
    pixel_format: PixelFormat = "bgr"
    pts: int
    time_base: Fraction
    index: int
    source: str
    key_frame: bool = False
    corrupt: bool = False
    clock: FrameClock = "container"
    uncertainty_seconds: float = 0.0
    rotation_applied: int = 0
    duration_pts: int | None = None
    source_bit_depth: int = 8
    sample_aspect_ratio: Fraction = Fraction(1)
    interlaced: bool = False

    def __post_init__(self) -> None:
        """Check the image against its pixel format, and make it read-only without copying it."""
        if self.pixel_format not in _CHANNELS:
            known = ", ".join(get_args(PixelFormat))
            raise ValueError(f"pixel_format: expected one of {known}, got {self.pixel_format!r}")
        if self.clock not in get_args(FrameClock):
            raise ValueError(f"clock: expected one of {', '.join(get_args(FrameClock))}, got {self.clock!r}")
        if self.time_base <= 0:
            raise ValueError(f"time_base: expected seconds per unit above 0, got {self.time_base}")
        if self.rotation_applied not in (0, 90, 180, 270):
            raise ValueError(f"rotation_applied: expected 0, 90, 180 or 270, got {self.rotation_applied}")
        image = require_array("image", self.image)
        channels = _CHANNELS[self.pixel_format]
        wanted = "(H, W, 3)" if channels else "(H, W)"
        shaped = image.ndim == (3 if channels else 2) and (not channels or image.shape[2] == channels)
        if not shaped or image.dtype != np.uint8 or 0 in image.shape:
            raise ValueError(
                f"image: expected {wanted} uint8 for pixel_format {self.pixel_format!r},"
                f" got {image.shape} {image.dtype.name}"
            )
        object.__setattr__(self, "image", read_only(image))

    @property
    def time_exact(self) -> Fraction:
        """Presentation time in seconds, exact."""
        return self.pts * self.time_base

    @property
    def time_seconds(self) -> float:
        """Presentation time in seconds, the float nearest to `time_exact`."""
        return float(self.time_exact)

    @property
    def width(self) -> int:
        """Pixels along x."""
        return int(self.image.shape[1])

    @property
    def height(self) -> int:
        """Pixels along y."""
        return int(self.image.shape[0])

    def copy(self) -> NDArray[np.uint8]:
        """Return a writable, contiguous copy of the image, to draw on."""
        return np.array(self.image, order="C", copy=True)

    def with_image(self, image: NDArray[np.uint8], *, pixel_format: PixelFormat | None = None) -> Frame:
        """Return a frame with the same times and another image, which is not copied.

        Args:
            image: As the attribute `image`; its size may differ.
            pixel_format: What `image` is; None when it is what this frame's is.

        Raises:
            ValueError: The image is not of the pixel format.
        """
        return replace(self, image=image, pixel_format=pixel_format or self.pixel_format)

    def crop(self, x1: float, y1: float, x2: float, y2: float) -> Frame:
        """Return the part x1 <= x < x2, y1 <= y < y2 by reference: a view of the same bytes.

        Fractions of a pixel are rounded outwards, and what lies outside of the image is cut off.

        Args:
            x1: Left edge in pixels, inclusive.
            y1: Upper edge in pixels, inclusive.
            x2: Right edge in pixels, exclusive.
            y2: Lower edge in pixels, exclusive.

        Raises:
            ValueError: No pixel is left.
        """
        left, top = max(0, math.floor(x1)), max(0, math.floor(y1))
        right, bottom = min(self.width, math.ceil(x2)), min(self.height, math.ceil(y2))
        if left >= right or top >= bottom:
            raise ValueError(
                f"crop: ({x1}, {y1}, {x2}, {y2}) holds no pixel of a {self.width}x{self.height} image"
            )
        return self.with_image(self.image[top:bottom, left:right])

    def save(self, path: str | Path) -> Path:
        """Write the picture as PNG or JPEG, chosen by the suffix, and return the path.

        Args:
            path: File ending in .png, .jpg or .jpeg; it is replaced if it exists.

        Raises:
            ValueError: Another suffix.
            OSError: The file cannot be written.
        """
        target = Path(path)
        target.write_bytes(self._encoded(target.suffix))
        return target

    def _repr_png_(self) -> bytes:
        return self._encoded(".png")

    def _encoded(self, suffix: str) -> bytes:
        return encode_picture(self.image, self.pixel_format, suffix)

    def __repr__(self) -> str:
        damaged = ", corrupt" if self.corrupt else ""
        return (
            f"Frame({self.width}x{self.height} {self.pixel_format}, index={self.index},"
            f" time_seconds={self.time_seconds!r}, source={self.source!r}{damaged})"
        )

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Frame):
            return NotImplemented
        rest = (getattr(self, name) == getattr(other, name) for name in _SCALARS)
        return all(rest) and same_array(self.image, other.image)

    def __hash__(self) -> int:
        return hash((self.source, self.index, self.pts))

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuild, ({field.name: getattr(self, field.name) for field in fields(self)},)


_SCALARS = tuple(field.name for field in fields(Frame) if field.name != "image")


def _rebuild(values: dict[str, Any]) -> Frame:
    return Frame(**values)
