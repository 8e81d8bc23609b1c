"""Arithmetic on boxes: overlap and suppression. Used by the detector and the tracker; plain NumPy.

A box is left, top, right, bottom in pixels, +y down. Boxes of no area overlap nothing. It refuses nothing:
its callers pass arrays that they made.
"""

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.floating]


def overlaps(first: FloatArray, second: FloatArray) -> NDArray[np.float64]:
    """Returns the intersection over union of every pair of boxes.

    Args:
        first: (N, 4) boxes.
        second: (M, 4) boxes.

    Returns:
        (N, M) float64 in 0..1.

    Example:
        >>> overlaps(np.array([[0, 0, 2, 2.0]]), np.array([[1, 0, 3, 2.0], [5, 5, 6, 6]])).round(3)
        array([[0.333, 0.   ]])
    """
    one = first.astype(np.float64)[:, None, :]
    two = second.astype(np.float64)[None, :, :]
    low = np.maximum(one[..., :2], two[..., :2])
    high = np.minimum(one[..., 2:], two[..., 2:])
    shared = np.clip(high - low, 0.0, None).prod(axis=-1)
    total = areas(one) + areas(two) - shared
    return np.asarray(np.divide(shared, total, out=np.zeros_like(shared), where=total > 0))


def areas(boxes: FloatArray) -> NDArray[np.float64]:
    """Returns the areas of (..., 4) boxes in square pixels; 0 for a box turned inside out."""
    sides = np.clip(boxes[..., 2:].astype(np.float64) - boxes[..., :2], 0.0, None)
    return np.asarray(sides.prod(axis=-1))


def suppress(
    boxes: FloatArray, scores: FloatArray, class_id: NDArray[np.integer], iou: float
) -> NDArray[np.intp]:
    """Returns which boxes stay after greedy non-maximum suppression within each class.

    The best box of a class stays and removes those of its class that overlap it by more than `iou`; then
    the best of the rest, and so on. Equal scores are taken in their order.

    Args:
        boxes: (N, 4) boxes.
        scores: (N,) scores.
        class_id: (N,) classes.
        iou: Overlap above which the worse box goes, in 0..1.

    Returns:
        (K,) positions of the boxes that stay, best first.

    Example:
        >>> boxes = np.array([[0, 0, 10, 10.0], [1, 0, 11, 10], [1, 0, 11, 10]])
        >>> suppress(boxes, np.array([0.5, 0.9, 0.3]), np.array([0, 0, 1]), iou=0.5)
        array([1, 2])
    """
    order = np.argsort(-scores, kind="stable")
    clash = overlaps(boxes[order], boxes[order]) > iou
    clash &= class_id[order][:, None] == class_id[order][None, :]
    alive = np.ones(len(order), np.bool_)
    for place in range(len(order)):
        if alive[place]:
            alive[place + 1 :] &= ~clash[place, place + 1 :]
    return np.asarray(order[alive])
