"""`ColorDetector`: finds the people of the synthetic scene by the colour of their clothes, without a model.

For tests and examples of whole flows. Everybody there has one vivid hue and the background has none, so
people who stand before one another are still told apart.
"""

from typing import Unpack

import cv2
import numpy as np
from numpy.typing import NDArray

import videoflow as vf
from videoflow.media import Detections, Frame

VIVID = 120
NOT_BLACK = 30
HUES = 180
HUE_GAP = 4
LEAST_PIXELS = 30
HEAD_SHARE = 0.2


class ColorDetector(vf.Processor):
    """Finds one person per vivid hue: the box of their clothes, and a fifth more above it for the head."""

    def __init__(self, **options: Unpack[vf.NodeOptions]) -> None:
        super().__init__(**options)

    def process(self, frame: Frame) -> Detections:
        """Returns the people of a BGR frame."""
        hsv = cv2.cvtColor(frame.image, cv2.COLOR_BGR2HSV)
        hue, vivid = hsv[..., 0], (hsv[..., 1] > VIVID) & (hsv[..., 2] > NOT_BLACK)
        boxes = []
        for group in hue_groups(np.bincount(hue[vivid], minlength=HUES)):
            box = clothes(vivid & group[hue])
            if box is not None:
                left, top, right, bottom = box
                boxes.append((left, max(0.0, top - HEAD_SHARE * (bottom - top)), right, bottom))
        return Detections.from_arrays(
            boxes, class_names=("person",), image_size=(frame.width, frame.height), source=frame.source
        )


def hue_groups(count: NDArray[np.intp]) -> list[NDArray[np.bool_]]:
    """Returns the groups of hues that are used, (180,) bool each; groups are `HUE_GAP` or more apart."""
    used = np.flatnonzero(count >= max(2, count.max() // 50))
    if not len(used):
        return []
    starts = np.flatnonzero(np.diff(used, prepend=used[-1] - HUES) > HUE_GAP)
    groups = []
    for place, start in enumerate(starts):
        end = starts[place + 1] if place + 1 < len(starts) else starts[0] + len(used)
        group = np.zeros(HUES, np.bool_)
        group[np.take(used, np.arange(start, end), mode="wrap")] = True
        groups.append(group)
    return groups


def clothes(mask: NDArray[np.bool_]) -> tuple[float, float, float, float] | None:
    """Returns the box around the larger patches of a mask, or None when there is too little of it."""
    _, _, patches, _ = cv2.connectedComponentsWithStats(mask.astype(np.uint8))
    areas = patches[1:, cv2.CC_STAT_AREA]
    if areas.sum() < LEAST_PIXELS:
        return None
    large = patches[1:][areas >= max(3, areas.max() // 30)]
    left, top = large[:, cv2.CC_STAT_LEFT], large[:, cv2.CC_STAT_TOP]
    right, bottom = left + large[:, cv2.CC_STAT_WIDTH], top + large[:, cv2.CC_STAT_HEIGHT]
    return float(left.min()), float(top.min()), float(right.max()), float(bottom.max())
