"""`freeze`: one value domain for every engine, canonical and immutable where it can be.

Used where user code hands a value over. It refuses what not every engine can carry, with what to emit
instead.
"""

import datetime
import enum
import operator
import threading
from collections.abc import Callable
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np

from videoflow.errors import ValueRefused
from videoflow.wire._arrays import freeze_array
from videoflow.wire._types import RecordType, Value, record_type

_SMALLEST = -(2**63)
_LARGEST = 2**64 - 1
_MAXIMUM_DEPTH = 64
_MAXIMUM_CONTAINERS = 1_000_000

# A handler takes the value, its depth, and whether it lies within a dataclass or Struct.
_Handler = Callable[[Any, int, bool], Any]


class _Refused(Exception):
    """Carries a refusal up to `freeze`, gathering the path."""

    def __init__(self, cause: str, remedy: str = "") -> None:
        super().__init__(cause)
        self.cause = cause
        self.remedy = remedy
        self.path: list[str] = []


def freeze(value: Value) -> Value:
    """Returns a value as every engine carries it; called at every emission.

    Accepted are None, bool, int (of 64 bits, with or without sign), float, str, bytes, `Fraction`, list,
    tuple, dict with str keys, NumPy arrays and scalars, and dataclasses and Structs importable by name,
    nested at most 64 deep, with at most a million containers in all. Tuples become lists, except within a
    dataclass or Struct, whose class declares them; scalars become Python's; arrays become read-only (see
    `freeze_array`). Lists, dicts and mutable records come out as new objects, so that the emitter may go
    on with its own.

    >>> freeze({"boxes": (1, 2), "score": np.float32(0.5)})
    {'boxes': [1, 2], 'score': 0.5}

    Raises:
        ValueRefused: Anything else; the message has the path within the value and the type.
    """
    handler = _HANDLERS.get(type(value))
    if handler is _same or (handler is _int and _SMALLEST <= value <= _LARGEST):
        return value
    _counting.containers = 0
    try:
        return (handler or _handler_of(type(value)))(value, 0, False)
    except _Refused as refused:
        path = "value" + "".join(reversed(refused.path))
        raise ValueRefused(
            f"{path}: {refused.cause}", where=path, effect="the value was not sent", remedy=refused.remedy
        ) from refused.__cause__


def _freeze(value: Value, depth: int, inside: bool) -> Value:
    kind = type(value)
    return (_HANDLERS.get(kind) or _handler_of(kind))(value, depth, inside)


def _same(value: Value, _depth: int, _inside: bool) -> Value:
    return value


def _int(value: int, _depth: int, _inside: bool) -> int:
    if _SMALLEST <= value <= _LARGEST:
        return value
    raise _Refused("an int beyond 64 bits is carried by no edge", "emit it as a str, or as two numbers")


def _str(value: str, _depth: int, _inside: bool) -> str:
    if not value.isascii():
        try:
            value.encode()
        except UnicodeEncodeError as error:
            remedy = "emit bytes, or text without lone surrogates"
            raise _Refused("a str that is not Unicode text is carried by no edge", remedy) from error
    return value


def _fraction(value: Fraction, depth: int, inside: bool) -> Fraction:
    _int(value.numerator, depth, inside)
    _int(value.denominator, depth, inside)
    return value


def _list(value: Value, depth: int, inside: bool) -> list[Any]:
    depth = _deeper(depth)
    frozen = []
    for item in value:
        try:
            kind = type(item)
            frozen.append((_HANDLERS.get(kind) or _handler_of(kind))(item, depth, inside))
        except _Refused as refused:
            refused.path.append(f"[{len(frozen)}]")
            raise
    return frozen


def _tuple(value: tuple[Any, ...], depth: int, inside: bool) -> Value:
    frozen = _list(value, depth, inside)
    if not inside:
        return frozen
    return value if all(map(operator.is_, frozen, value)) else tuple(frozen)


def _dict(value: dict[Any, Any], depth: int, inside: bool) -> dict[str, Any]:
    depth = _deeper(depth)
    frozen: dict[str, Any] = {}
    for key, item in value.items():
        name = str(key) if isinstance(key, np.str_) else key
        if type(name) is not str:
            raise _Refused(
                f"a dict with a key of type {type(key).__name__} ({key!r}) is carried by no edge",
                "use str keys, or emit a list of pairs",
            )
        try:
            frozen[_str(name, depth, inside)] = _freeze(item, depth, inside)
        except _Refused as refused:
            refused.path.append(f"[{key!r}]")
            raise
    return frozen


def _array(value: np.ndarray[Any, Any], _depth: int, _inside: bool) -> np.ndarray[Any, Any]:
    try:
        return freeze_array(value)
    except ValueRefused as error:
        raise _Refused(str(error), error.remedy) from None


def _scalar(value: np.generic, depth: int, inside: bool) -> Value:
    plain = value.item()
    if type(plain) not in _PLAIN:
        raise _Refused(
            f"a NumPy scalar of type {type(value).__name__} is carried by no edge",
            "emit it as an array, or as float, int, str or bytes",
        )
    return _freeze(plain, depth, inside)


def _record(record: RecordType) -> _Handler:
    def handle(value: Value, depth: int, _inside: bool) -> Value:
        depth = _deeper(depth)
        frozen = {}
        changed = record.mutable
        for name in record.fields:
            try:
                field = getattr(value, name)
                frozen[name] = new = _freeze(field, depth, True)
            except AttributeError as error:
                raise _Refused(f"the field {name} of {record.name} is not set") from error
            except _Refused as refused:
                refused.path.append(f".{name}")
                raise
            changed = changed or new is not field
        _require_no_more(value, record)
        return record.build(frozen) if changed else value

    return handle


def _require_no_more(value: Value, record: RecordType) -> None:
    """Refuses attributes that are no fields: they would be there in one engine and missing in another."""
    for name in getattr(value, "__dict__", ()):
        if name not in record.fields and not isinstance(getattr(record.cls, name, None), cached_property):
            raise _Refused(
                f"the attribute {name} of a {record.name} is carried by no edge, since it is no field",
                f"declare {name} in the class, as field(init=False) if it is computed",
            )


def _deeper(depth: int) -> int:
    if depth >= _MAXIMUM_DEPTH:
        raise _Refused(
            f"a value nested deeper than {_MAXIMUM_DEPTH} is carried by no edge",
            "does it contain itself? emit a flatter value",
        )
    _counting.containers += 1
    if _counting.containers > _MAXIMUM_CONTAINERS:
        raise _Refused(
            f"a value of more than {_MAXIMUM_CONTAINERS} lists, dicts and records is carried by no edge",
            "does it name one list in many places? emit an array, or several items",
        )
    return depth + 1


class _Counting(threading.local):
    """How many containers the value has that this thread is freezing."""

    containers = 0


_counting = _Counting()


_REMEDIES: tuple[tuple[type, str], ...] = (
    (enum.Enum, "emit its .value"),
    (set, "emit sorted(value)"),
    (frozenset, "emit sorted(value)"),
    (bytearray, "emit bytes(value)"),
    (memoryview, "emit bytes(value), or a NumPy array"),
    (complex, "emit a list of two floats"),
    (tuple, "make it a dataclass, or emit tuple(value)"),
    (datetime.date, "emit value.isoformat()"),
)


def _record_type(kind: type) -> RecordType | None:
    try:
        return record_type(kind)
    except ValueRefused as error:
        raise _Refused(str(error), error.remedy) from error.__cause__


def _handler_of(kind: type) -> _Handler:
    """Finds, and keeps, how values of a class are frozen."""
    handler: _Handler | None = None
    if issubclass(kind, np.generic):
        handler = _scalar
    elif issubclass(kind, np.ndarray):
        handler = _array
    elif (record := _record_type(kind)) is not None:
        handler = _record(record)
    elif issubclass(kind, list):
        handler = _list
    elif issubclass(kind, dict):
        handler = _dict
    if handler is None:
        remedy = next((text for cls, text in _REMEDIES if issubclass(kind, cls)), "")
        raise _Refused(
            f"a value of type {kind.__module__}.{kind.__qualname__} is carried by no edge",
            remedy or "emit plain values, arrays, or a dataclass that holds them",
        )
    _HANDLERS[kind] = handler
    return handler


_HANDLERS: dict[type, _Handler] = {
    type(None): _same,
    bool: _same,
    int: _int,
    float: _same,
    str: _str,
    bytes: _same,
    Fraction: _fraction,
    list: _list,
    tuple: _tuple,
    dict: _dict,
    np.ndarray: _array,
}
_PLAIN = frozenset((bool, int, float, str, bytes))
