"""One picture as PNG or JPEG bytes. Used by `Frame`; OpenCV is imported when it is called.

It refuses a suffix and a shape that no encoder takes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_SUFFIXES = (".png", ".jpg", ".jpeg")


def encode_picture(image: NDArray[np.uint8], pixel_format: str, suffix: str) -> bytes:
    """Return `image` as a file's bytes.

    Args:
        image: (H, W, 3) uint8, or (H, W) uint8 for gray; axis 0 is y downwards.
        pixel_format: `bgr`, `rgb` or `gray`.
        suffix: .png, .jpg or .jpeg, in any case.

    Raises:
        ValueError: Another suffix.
    """
    kind = suffix.lower()
    if kind not in _SUFFIXES:
        raise ValueError(f"expected a file ending in {', '.join(_SUFFIXES)}, got {suffix!r}")
    import cv2

    stored = cv2.cvtColor(image, cv2.COLOR_RGB2BGR) if pixel_format == "rgb" else image
    written, data = cv2.imencode(kind, stored)
    if not written:
        raise ValueError(f"{kind}: a picture of shape {image.shape} cannot be encoded")
    return data.tobytes()
