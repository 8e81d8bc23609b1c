"""Read-only arrays and their checks, for the value types of `videoflow.media`.

Nothing here copies pixels. A check that fails says what it was given. Used by the value types. They refuse
an array of another shape, type or range with the shape received.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from numpy.typing import DTypeLike, NDArray

    MakeArray = Callable[[tuple[int, ...], DTypeLike], NDArray[Any]]


def require_array(name: str, value: object) -> np.ndarray[Any, Any]:
    """Return `value` if it is a NumPy array, as a base-class array.

    Args:
        name: The field that is being checked, for the message.
        value: What the caller gave.

    Raises:
        TypeError: `value` is not an array.
    """
    if not isinstance(value, np.ndarray):
        raise TypeError(f"{name}: expected a numpy.ndarray, got {type(value).__name__}")
    return value.view(np.ndarray) if type(value) is not np.ndarray else value


def read_only(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Return a read-only view of `array` over the same bytes, or `array` if it is read-only already."""
    if not array.flags.writeable:
        return array
    view = array.view()
    view.flags.writeable = False
    return view


def check_column(name: str, value: object, dtype: type[np.generic], length: int) -> np.ndarray[Any, Any]:
    """Check one array of shape (length,) and of exactly `dtype`; return it read-only.

    Raises:
        TypeError: Not an array.
        ValueError: Another shape or dtype; the message has both.
    """
    array = require_array(name, value)
    if array.dtype != np.dtype(dtype) or array.shape != (length,):
        raise ValueError(
            f"{name}: expected shape ({length},) {np.dtype(dtype).name}, got {array.shape} {array.dtype.name}"
        )
    return read_only(array)


def same_array(left: np.ndarray[Any, Any], right: np.ndarray[Any, Any]) -> bool:
    """Tell whether two arrays have one shape, dtype and content; NaN equals NaN."""
    if left is right:
        return True
    if left.dtype != right.dtype or left.shape != right.shape:
        return False
    return bool(np.array_equal(left, right, equal_nan=left.dtype.kind in "fc"))


def same_arrays(left: Mapping[str, np.ndarray[Any, Any]], right: Mapping[str, np.ndarray[Any, Any]]) -> bool:
    """Tell whether two mappings hold equal arrays under equal names."""
    return left.keys() == right.keys() and all(same_array(left[key], right[key]) for key in left)
