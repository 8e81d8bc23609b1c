"""From the raw outputs of a detection model to scored boxes. Used by the detector core; plain NumPy.

Two kinds of output are known: `ssd` (encodings relative to anchors, and class scores with a background
column) and `yolo` (centre, size and class scores in one array). Boxes come out in pixels of the model's
input. Anchors and encodings follow W. Liu et al., "SSD: Single Shot MultiBox Detector", 2016, with the
scales of the TensorFlow object detection API. It refuses nothing: the session has checked the outputs of the
model.
"""

from collections.abc import Sequence
from functools import cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from videoflow.nodes.vision._boxes import suppress

SSD_STRIDES = (16, 32, 64, 128, 256, 512)
SSD_SCALES = (0.2, 0.95)
SSD_RATIOS = (1.0, 2.0, 0.5, 3.0, 1 / 3)
SSD_POSITION_SCALE = 10.0
SSD_SIZE_SCALE = 5.0
CANDIDATES = 400
Wanted = Sequence[int] | None


class Boxes(NamedTuple):
    """Scored boxes: `xyxy` (N, 4) float32 pixels, `confidence` (N,) float32, `class_id` (N,) int32."""

    xyxy: NDArray[np.float32]
    confidence: NDArray[np.float32]
    class_id: NDArray[np.int32]

    def pick(self, which: NDArray[np.intp]) -> "Boxes":
        """Returns the boxes at these positions."""
        return Boxes(self.xyxy[which], self.confidence[which], self.class_id[which])


@cache
def ssd_anchors(size: int) -> NDArray[np.float64]:
    """Returns the anchors of a square input as centre x, centre y, width, height in units of its side.

    Each cell of the finest grid has three anchors: a small square and two of the grid's scale with the
    ratios 2 and 1/2. Each cell of the others has one per ratio, and a square between its scale and the next.

    Args:
        size: Side of the input in pixels; 300 gives 1917 anchors.

    Returns:
        (A, 4) float64, by grid, then row, column, shape.
    """
    first, last = SSD_SCALES
    steps = len(SSD_STRIDES) - 1
    scales = [first + (last - first) * k / steps for k in range(steps + 1)] + [1.0]
    grids = []
    for level, stride in enumerate(SSD_STRIDES):
        scale, between = scales[level], float(np.sqrt(scales[level] * scales[level + 1]))
        shapes = (
            [(0.1, 1.0), (scale, 2.0), (scale, 0.5)]
            if level == 0
            else [(scale, ratio) for ratio in SSD_RATIOS] + [(between, 1.0)]
        )
        sides = np.array([(s * np.sqrt(ratio), s / np.sqrt(ratio)) for s, ratio in shapes])
        cells = -(-size // stride)
        middle = (np.arange(cells) + 0.5) / cells
        grid = np.empty((cells, cells, len(shapes), 4))
        grid[..., 0] = middle[None, :, None]
        grid[..., 1] = middle[:, None, None]
        grid[..., 2:] = sides
        grids.append(grid.reshape(-1, 4))
    anchors = np.concatenate(grids)
    anchors.flags.writeable = False
    return anchors


def decode_ssd(
    encodings: NDArray[np.float32], scores: NDArray[np.float32], size: int, wanted: Wanted, floor: float
) -> Boxes:
    """Returns the boxes of one picture from an SSD's outputs, before suppression.

    Args:
        encodings: (A, 4) float32: y, x, height, width relative to the anchors, times 10, 10, 5, 5.
        scores: (A, C + 1) float32 in 0..1; column 0 is the background, which is left out.
        size: Side of the square input in pixels.
        wanted: The class ids looked for, the background not counted; None for all.
        floor: Least score that a box needs.

    Returns:
        At most one box per anchor, of its best wanted class.
    """
    class_id, confidence, kept = _best_class(scores[:, 1:], wanted, floor)
    anchors, raw = ssd_anchors(size)[kept], encodings[kept].astype(np.float64)
    centre = raw[:, 1::-1] / SSD_POSITION_SCALE * anchors[:, 2:] + anchors[:, :2]
    half = np.exp(raw[:, :1:-1] / SSD_SIZE_SCALE) * anchors[:, 2:] / 2
    xyxy = np.concatenate([centre - half, centre + half], axis=1) * size
    return Boxes(xyxy.astype(np.float32), confidence, class_id)


def decode_yolo(output: NDArray[np.float32], wanted: Wanted, floor: float) -> Boxes:
    """Returns the boxes of one picture from a one-array output, before suppression.

    Args:
        output: (4 + C, A) float32: centre x, centre y, width, height in input pixels, then class scores.
        wanted: The class ids looked for; None for all.
        floor: Least score that a box needs.

    Returns:
        At most one box per column, of its best wanted class.
    """
    class_id, confidence, kept = _best_class(output[4:].T, wanted, floor)
    raw = output[:4].T[kept]
    half = raw[:, 2:] / 2
    return Boxes(np.concatenate([raw[:, :2] - half, raw[:, :2] + half], axis=1), confidence, class_id)


def _best_class(
    scores: NDArray[np.float32], wanted: Wanted, floor: float
) -> tuple[NDArray[np.int32], NDArray[np.float32], NDArray[np.intp]]:
    columns = np.arange(scores.shape[1]) if wanted is None else np.asarray(wanted)
    best = scores[:, columns].argmax(axis=1)
    class_id = columns[best].astype(np.int32)
    confidence = scores[np.arange(len(scores)), class_id]
    kept = np.flatnonzero(confidence >= floor)
    return class_id[kept], confidence[kept], kept


def select(boxes: Boxes, nms_iou: float) -> Boxes:
    """Returns the boxes that stay after suppression within each class, best first.

    Args:
        boxes: Scored boxes; only the best `CANDIDATES` are looked at.
        nms_iou: Overlap above which the worse of two boxes of a class goes.
    """
    ordered = np.argsort(-boxes.confidence, kind="stable")[:CANDIDATES]
    some = boxes.pick(ordered)
    return some.pick(suppress(some.xyxy, some.confidence, some.class_id, nms_iou))
