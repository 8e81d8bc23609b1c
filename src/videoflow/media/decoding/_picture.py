"""From a decoded picture to the image of a `Frame`: colours, depth, rotation.

Used by the reader. It refuses nothing: PyAV converts what FFmpeg decodes.
"""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np
from av.video.reformatter import VideoReformatter

from videoflow.media._frame import Frame

if TYPE_CHECKING:
    from av import VideoFrame
    from numpy.typing import NDArray

    from videoflow.media._arrays import MakeArray
    from videoflow.media._frame import PixelFormat
    from videoflow.media.decoding._timeline import Place

_NAMES = {"bgr": "bgr24", "rgb": "rgb24", "gray": "gray"}


def counter_clockwise_quarters(picture: VideoFrame) -> int:
    """Return by how many quarters, 0 to 3, a stored picture is to be turned counter-clockwise."""
    return round(picture.rotation / 90) % 4


class PictureMaker:
    """Makes frames of one source.

    Args:
        source: The source's address.
        time_base: Seconds per unit of pts.
        pixel_format: What the frames shall hold.
        aspect_ratio: Width of a stored pixel over its height.
        empty: Makes the arrays of images.
    """

    def __init__(
        self,
        source: str,
        time_base: Fraction,
        pixel_format: PixelFormat,
        aspect_ratio: Fraction,
        empty: MakeArray = np.empty,
    ) -> None:
        self._source = source
        self._time_base = time_base
        self._pixel_format = pixel_format
        self._aspect_ratio = aspect_ratio
        self._empty = empty
        self._reformatter = VideoReformatter()

    def make(self, picture: VideoFrame, place: Place) -> Frame:
        """Return the frame: upright, 8 bits, in the declared format.

        Args:
            picture: What the decoder gave.
            place: Its index and time.
        """
        quarters = counter_clockwise_quarters(picture)
        return Frame(
            image=self._image(picture, quarters),
            pixel_format=self._pixel_format,
            pts=place.pts,
            time_base=self._time_base,
            index=place.index,
            source=self._source,
            key_frame=picture.key_frame,
            corrupt=picture.is_corrupt,
            clock="declared" if place.declared else "container",
            rotation_applied=-90 * quarters % 360,
            duration_pts=picture.duration or None,
            source_bit_depth=picture.format.components[0].bits,
            sample_aspect_ratio=1 / self._aspect_ratio if quarters % 2 else self._aspect_ratio,
            interlaced=picture.interlaced_frame,
        )

    def _image(self, picture: VideoFrame, quarters: int) -> NDArray[np.uint8]:
        # One thread: for one picture at a time swscale's own threads cost more than they bring.
        converted = self._reformatter.reformat(picture, format=_NAMES[self._pixel_format], threads=1)
        stored = converted.to_ndarray()
        turned = np.rot90(stored, quarters) if quarters else stored
        # The decoder's memory is not ours to keep, so this is the one copy.
        image = self._empty(turned.shape, np.uint8)
        np.copyto(image, turned)
        return image
