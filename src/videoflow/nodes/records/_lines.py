"""A value on an edge as one line of JSON, or as a few words.

Used by the sinks for values. A line depends on the value and on where it comes from alone, so that every
engine, and every restart, writes the same bytes. It refuses arrays too large for a line.
"""

import base64
import dataclasses
import math
from collections.abc import Mapping
from fractions import Fraction
from typing import Any, TypeAlias

import msgspec
import numpy as np

from videoflow.media import Detections, Frame

Value: TypeAlias = Any
"""What an edge carries, of any type."""

LARGEST_ARRAY = 65_536
_FRAME_FIELDS = ("index", "source", "time_seconds", "width", "height", "pixel_format", "key_frame", "corrupt")


def line_of(value: Value, *, source: str, index: int | None, time_seconds: float | None) -> bytes:
    r"""Returns one line of JSON, with its newline: sorted keys, shortest floats.

    Args:
        value: Anything that an edge carries. Its own fields stand in the line; what has none is `value`.
        source: Where it comes from; the value's own source, if it has one, stands in its place.
        index: Number of its frame or source item; the value's own index, if it has one, stands in its place.
        time_seconds: When it was, likewise.

    Raises:
        ValueError: It holds an array of more than 65 536 entries.

    Example:
        >>> line_of({"mean": 0.1}, source="street.mp4", index=3, time_seconds=0.12)
        b'{"index":3,"mean":0.1,"source":"street.mp4","time_seconds":0.12}\n'
        >>> line_of(7, source="street.mp4", index=3, time_seconds=None)
        b'{"index":3,"source":"street.mp4","time_seconds":null,"value":7}\n'
    """
    place = {"source": source, "index": index, "time_seconds": _plain(time_seconds)}
    fields = fields_of(value)
    if fields.get("source") == "":
        del fields["source"]
    return msgspec.json.encode(place | fields, order="sorted") + b"\n"


def fields_of(value: Value) -> dict[str, Any]:
    """Returns a value as JSON-like fields; what has no fields is the field `value`.

    Raises:
        ValueError: It holds an array of more than 65 536 entries.
    """
    plain = _plain(value)
    return plain if isinstance(plain, dict) else {"value": plain}


def words_of(value: Value) -> str:
    """Returns a value in a few words, for a terminal.

    Example:
        >>> words_of({"up": 3, "down": 1, "source": "street.mp4"})
        'up=3 down=1'
    """
    if isinstance(value, Detections):
        return _counted(value)
    if isinstance(value, Frame):
        return f"frame {value.index}, {value.width}x{value.height}{', corrupt' if value.corrupt else ''}"
    fields = {key: found for key, found in fields_of(value).items() if key not in ("source", "time_seconds")}
    if fields.keys() == {"value"}:
        return _short(fields["value"])
    return " ".join(f"{key}={_short(found)}" for key, found in fields.items())


def _counted(detections: Detections) -> str:
    names = [row["class_name"] or f"class {row['class_id']}" for row in detections.rows()]
    counts = [f"{names.count(name)} {name}" for name in dict.fromkeys(names)]
    return ", ".join(counts) or "nothing"


def _short(value: Value) -> str:
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def _plain(value: Value) -> Value:
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, np.ndarray):
        return _listed(value)
    if isinstance(value, bytes):
        return base64.b64encode(value).decode("ascii")
    if isinstance(value, Fraction):
        return f"{value.numerator}/{value.denominator}"
    if isinstance(value, list | tuple):
        return [_plain(entry) for entry in value]
    if isinstance(value, Mapping):
        return {str(key): _plain(entry) for key, entry in value.items()}
    return {key: _plain(entry) for key, entry in _record(value).items()}


def _record(value: Value) -> dict[str, Any]:
    if isinstance(value, Detections):
        return {"source": value.source, "image_size": value.image_size, "detections": value.rows()}
    if isinstance(value, Frame):
        return {name: getattr(value, name) for name in _FRAME_FIELDS}
    if dataclasses.is_dataclass(value):
        return {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
    if isinstance(value, msgspec.Struct):
        return {name: getattr(value, name) for name in value.__struct_fields__}
    raise TypeError(f"a value of type {type(value).__name__} has no line of JSON")


def _listed(array: np.ndarray[Any, Any]) -> Value:
    if array.size > LARGEST_ARRAY:
        raise ValueError(
            f"an array of shape {array.shape} is too large for a line of JSON,"
            f" which takes up to {LARGEST_ARRAY} entries"
        )
    if array.dtype not in (np.float16, np.float32):
        return _plain(array.tolist())
    # The shortest text that means the same number of this type, which is not that of the float64.
    shortest = np.array([float(str(entry)) for entry in array.ravel()], object)
    return _plain(shortest.reshape(array.shape).tolist())
