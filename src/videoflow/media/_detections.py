"""`Detections`: the boxes of one frame. Made by detectors and trackers, read by counters and annotators.

A value: it never changes, and its arrays are read-only. It refuses arrays of another dtype or length;
`Detections.from_arrays` converts them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any, NoReturn, TypedDict

import numpy as np
from numpy.typing import NDArray

from videoflow.errors import NotYet
from videoflow.media._arrays import check_column, read_only, require_array, same_array, same_arrays

if TYPE_CHECKING:
    from typing import Unpack

    from numpy.typing import ArrayLike

_ARRAYS = ("xyxy", "confidence", "class_id", "track_id")


class _Rest(TypedDict, total=False):
    class_names: Sequence[str]
    image_size: tuple[int, int]
    source: str
    data: dict[str, np.ndarray[Any, Any]]


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Detections:
    """The boxes found in one frame; N of them, in an order that the maker chose.

    Attributes:
        xyxy: (N, 4) float32: left, top, right, bottom in pixels of the upright frame; origin top left, +y
            down.
        confidence: (N,) float32 in 0..1.
        class_id: (N,) int32, a position in `class_names`.
        track_id: (N,) int64; -1 where the box belongs to no track.
        class_names: Names in lower case, by class id.
        image_size: Width and height in pixels of the frame that the boxes lie in; (0, 0) when unknown.
        source: Address of the frame's source.
        data: Further arrays whose first axis is N.

    Example:
        >>> import numpy as np
        >>> found = Detections.from_arrays(
        ...     [[10, 20, 30, 60], [0, 0, 5, 5]], confidence=[0.9, 0.4], class_id=[1, 0],
        ...     class_names=["bicycle", "person"], image_size=(512, 288))
        >>> len(found), found.xyxy.dtype.name, found.xyxy.shape
        (2, 'float32', (2, 4))
        >>> found.of("person").rows()[0]["xyxy"]
        [10.0, 20.0, 30.0, 60.0]
        >>> len(found[found.confidence > 0.95])
        0
        >>> found.track_id
        array([-1, -1])
    """

    xyxy: NDArray[np.float32]
    confidence: NDArray[np.float32]
    class_id: NDArray[np.int32]
    track_id: NDArray[np.int64]
    class_names: tuple[str, ...] = ()
    image_size: tuple[int, int] = (0, 0)
    source: str = ""
    data: dict[str, np.ndarray[Any, Any]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Check every array, and make them read-only without copying them."""
        xyxy = require_array("xyxy", self.xyxy)
        if xyxy.dtype != np.float32 or xyxy.ndim != 2 or xyxy.shape[1] != 4:
            raise ValueError(f"xyxy: expected shape (N, 4) float32, got {xyxy.shape} {xyxy.dtype.name}")
        count = len(xyxy)
        names = tuple(self.class_names)
        unlike = [name for name in names if name != name.lower()]
        if unlike:
            raise ValueError(f"class_names: expected lower case, got {unlike[0]!r}")
        width, height = self.image_size
        canonical: dict[str, Any] = {
            "xyxy": read_only(xyxy),
            "confidence": check_column("confidence", self.confidence, np.float32, count),
            "class_id": check_column("class_id", self.class_id, np.int32, count),
            "track_id": check_column("track_id", self.track_id, np.int64, count),
            "class_names": names,
            "image_size": (width, height),
            "data": {key: _check_data(key, value, count) for key, value in self.data.items()},
        }
        class_id = canonical["class_id"]
        if names and count and not 0 <= int(class_id.min()) <= int(class_id.max()) < len(names):
            raise ValueError(
                f"class_id: expected 0 to {len(names) - 1} for {len(names)} class names,"
                f" got {class_id.min()} to {class_id.max()}"
            )
        for key, value in canonical.items():
            object.__setattr__(self, key, value)

    @classmethod
    def empty(
        cls, *, class_names: Sequence[str] = (), image_size: tuple[int, int] = (0, 0), source: str = ""
    ) -> Detections:
        """Return detections without a box: a frame in which nothing was found.

        Args:
            class_names: Names in lower case, by class id.
            image_size: Width and height of the frame in pixels.
            source: Address of the frame's source.
        """
        return cls.from_arrays([], class_names=class_names, image_size=image_size, source=source)

    @classmethod
    def from_arrays(
        cls,
        xyxy: ArrayLike,
        *,
        confidence: ArrayLike | None = None,
        class_id: ArrayLike | None = None,
        track_id: ArrayLike | None = None,
        **rest: Unpack[_Rest],
    ) -> Detections:
        """Return detections from anything that NumPy can make into the declared arrays.

        Args:
            xyxy: N boxes of left, top, right, bottom in pixels; an empty list for none.
            confidence: N values in 0..1; None for 1 each.
            class_id: N positions in `class_names`; None for 0 each.
            track_id: N track numbers; None for -1 each.
            rest: The attributes `class_names`, `image_size`, `source` and `data`.

        Raises:
            ValueError: Shapes that do not fit; the message has the shape received.
        """
        boxes = np.asarray(xyxy, np.float32)
        if boxes.size == 0:
            boxes = boxes.reshape(0, 4)
        count = len(boxes) if boxes.ndim else 0
        return cls(
            xyxy=boxes,
            confidence=_column(confidence, 1, np.dtype(np.float32), count),
            class_id=_column(class_id, 0, np.dtype(np.int32), count),
            track_id=_column(track_id, -1, np.dtype(np.int64), count),
            class_names=tuple(rest.get("class_names", ())),
            image_size=rest.get("image_size", (0, 0)),
            source=rest.get("source", ""),
            data=rest.get("data", {}),
        )

    def of(self, name: str) -> Detections:
        """Return the detections of one class.

        Args:
            name: A class name, in lower case.

        Raises:
            ValueError: No class has this name.
        """
        if name not in self.class_names:
            if not len(self) and not self.class_names:
                return self
            raise ValueError(
                f"no class is named {name!r}; the names are {', '.join(self.class_names) or 'none'}"
            )
        return self[self.class_id == self.class_names.index(name)]

    def rows(self) -> list[dict[str, Any]]:
        """Return one JSON-like dict per box; floats are the shortest that mean the same float32.

        Each has `xyxy`, `confidence`, `class_id`, `class_name` (None without names), `track_id` (-1: none),
        and the entries of `data`.
        """
        rows = []
        for k in range(len(self)):
            kind = int(self.class_id[k])
            row: dict[str, Any] = {
                "xyxy": _plain(self.xyxy[k]),
                "confidence": _plain(self.confidence[k]),
                "class_id": kind,
                "class_name": self.class_names[kind] if self.class_names else None,
                "track_id": int(self.track_id[k]),
            }
            row.update({key: _plain(value[k]) for key, value in self.data.items()})
            rows.append(row)
        return rows

    def to_supervision(self) -> NoReturn:
        """Refuse by name: conversion to `supervision.Detections` comes later.

        Raises:
            NotYet: Always.
        """
        raise _later("Detections.to_supervision")

    @classmethod
    def from_supervision(cls, detections: object) -> NoReturn:
        """Refuse by name: conversion from `supervision.Detections` comes later.

        Args:
            detections: A `supervision.Detections`.

        Raises:
            NotYet: Always.
        """
        raise _later("Detections.from_supervision")

    def __len__(self) -> int:
        return len(self.xyxy)

    def __getitem__(self, which: int | slice | Sequence[int] | np.ndarray[Any, Any]) -> Detections:
        """Return some of the detections.

        Args:
            which: A bool mask of shape (N,), positions, a slice, or one position.
        """
        chosen = [which] if isinstance(which, int | np.integer) else which
        if isinstance(chosen, list | tuple):
            chosen = np.asarray(chosen) if chosen else np.zeros(0, np.int64)
        return Detections(
            xyxy=self.xyxy[chosen],
            confidence=self.confidence[chosen],
            class_id=self.class_id[chosen],
            track_id=self.track_id[chosen],
            class_names=self.class_names,
            image_size=self.image_size,
            source=self.source,
            data={key: value[chosen] for key, value in self.data.items()},
        )

    def __repr__(self) -> str:
        width, height = self.image_size
        return f"Detections({len(self)} boxes in {width}x{height}, source={self.source!r})"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Detections):
            return NotImplemented
        return (
            (self.class_names, self.image_size, self.source)
            == (other.class_names, other.image_size, other.source)
            and all(same_array(getattr(self, name), getattr(other, name)) for name in _ARRAYS)
            and same_arrays(self.data, other.data)
        )

    def __hash__(self) -> int:
        return hash((self.class_names, self.image_size, self.source, len(self)))

    def __reduce__(self) -> tuple[Any, ...]:
        return Detections, tuple(getattr(self, entry.name) for entry in fields(self))


def _check_data(key: str, value: object, count: int) -> np.ndarray[Any, Any]:
    array = require_array(f"data[{key!r}]", value)
    if array.ndim == 0 or len(array) != count or array.dtype.hasobject:
        raise ValueError(
            f"data[{key!r}]: expected a first axis of {count} and no objects,"
            f" got {array.shape} {array.dtype.name}"
        )
    return read_only(array)


def _column(
    value: ArrayLike | None, default: int, dtype: np.dtype[Any], count: int
) -> np.ndarray[Any, np.dtype[Any]]:
    return np.full(count, default, dtype) if value is None else np.asarray(value, dtype)


def _plain(value: np.ndarray[Any, Any] | np.generic) -> object:
    if isinstance(value, np.ndarray):
        return [_plain(entry) for entry in value]
    if isinstance(value, np.float16 | np.float32):
        return float(str(value))
    plain: object = value.item()
    return plain


def _later(what: str) -> NotYet:
    return NotYet(
        message=f"{what} is not there yet",
        cause="conversion to and from the supervision library comes with a later issue",
        effect="nothing was converted",
        remedy="use the arrays xyxy, confidence, class_id and track_id",
    )
