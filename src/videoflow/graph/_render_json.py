"""A run report as JSON; what JSON cannot hold is described in its place.

Used by `RunReport.to_json`. It refuses nothing, so that a report is always written: an array of more than a
thousand elements, and any value without a JSON form, becomes an object that says what was left out.
"""

from collections.abc import Mapping
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np

if TYPE_CHECKING:
    from videoflow.graph.report import RunReport

_MOST_ELEMENTS = 1000


def report_json(report: "RunReport") -> bytes:
    """Returns the report as an indented JSON document."""
    document: dict[str, Any] = {name: getattr(report, name) for name in report.__struct_fields__}
    document["values"] = {name: _plain(value) for name, value in report.values.items()}
    return msgspec.json.format(msgspec.json.encode(document, enc_hook=_plain), indent=2)


def _plain(value: object) -> object:
    """Returns a value that JSON holds: containers keep their shape, large arrays are described."""
    match value:
        case np.generic():
            return value.item()
        case np.ndarray() if value.size <= _MOST_ELEMENTS:
            return value.tolist()
        case np.ndarray():
            return {"left_out": "array", "shape": list(value.shape), "dtype": value.dtype.name}
        case Fraction():
            return str(value)
        case Mapping():
            return {str(key): _plain(item) for key, item in value.items()}
        case list() | tuple():
            return [_plain(item) for item in value]
        case None | bool() | int() | float() | str():
            return value
        case bytes() | memoryview():
            return {"left_out": "bytes", "size": len(value)}
    fields: Any = getattr(value, "__dataclass_fields__", None) or getattr(value, "__struct_fields__", ())
    names: tuple[str, ...] = tuple(fields)
    if names:
        return {name: _plain(getattr(value, name)) for name in names}
    return {"left_out": type(value).__name__}
