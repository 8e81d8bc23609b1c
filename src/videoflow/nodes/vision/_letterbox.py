"""Fitting a picture of any size into the fixed square of a model, and boxes back. Used by the detector core.

The picture keeps its shape: it is scaled by one factor, centred, and the rest is filled with one gray. It
needs OpenCV, and is imported only when a detector opens. It refuses nothing: a frame has been checked when
it was made.
"""

from dataclasses import dataclass

import cv2
import numpy as np
from numpy.typing import NDArray

_TO_RGB = {"bgr": cv2.COLOR_BGR2RGB, "gray": cv2.COLOR_GRAY2RGB}


@dataclass(frozen=True)
class Placement:
    """Where a picture lies in the model's square.

    Attributes:
        scale: Square pixels per picture pixel, along x and along y; they differ by rounding only.
        offset: Position of the picture's upper left corner in the square, x and y in pixels.
        size: Width and height of the picture in its own pixels.
    """

    scale: tuple[float, float]
    offset: tuple[int, int]
    size: tuple[int, int]

    def to_picture(self, boxes: NDArray[np.floating]) -> NDArray[np.float32]:
        """Returns (N, 4) boxes of the square as boxes of the picture, cut at its edges."""
        shift = np.array(self.offset * 2, np.float64)
        scale = np.array(self.scale * 2, np.float64)
        limit = np.array(self.size * 2, np.float64)
        return np.clip((boxes - shift) / scale, 0.0, limit).astype(np.float32)


def letterbox(
    image: NDArray[np.uint8], pixel_format: str, size: tuple[int, int], fill: int = 114
) -> tuple[NDArray[np.uint8], Placement]:
    """Returns the picture in the model's rectangle, as RGB, and where it lies there.

    Args:
        image: (H, W, 3) uint8, or (H, W) for `gray`.
        pixel_format: `bgr`, `rgb` or `gray`.
        size: Width and height of the rectangle in pixels.
        fill: Gray value of what the picture does not cover.

    Returns:
        A (height, width, 3) uint8 RGB array, and the placement.

    Example:
        >>> square, placed = letterbox(np.zeros((100, 200, 3), np.uint8), "bgr", (300, 300))
        >>> square.shape, placed.offset, placed.scale
        ((300, 300, 3), (0, 75), (1.5, 1.5))
    """
    height, width = image.shape[:2]
    factor = min(size[0] / width, size[1] / height)
    inner = max(1, round(width * factor)), max(1, round(height * factor))
    offset = (size[0] - inner[0]) // 2, (size[1] - inner[1]) // 2
    shrinks = factor < 1
    scaled = cv2.resize(image, inner, interpolation=cv2.INTER_AREA if shrinks else cv2.INTER_LINEAR)
    if pixel_format in _TO_RGB:
        scaled = cv2.cvtColor(scaled, _TO_RGB[pixel_format])
    square = np.full((size[1], size[0], 3), fill, np.uint8)
    square[offset[1] : offset[1] + inner[1], offset[0] : offset[0] + inner[0]] = scaled
    return square, Placement((inner[0] / width, inner[1] / height), offset, (width, height))
