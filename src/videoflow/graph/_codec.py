"""Values of node arguments as JSON and back, by annotation.

Used by argument capture and by the worker that makes a node again. It refuses a value whose type is not the
annotated one, and a type that has no JSON form; whether a value came back the same its caller compares.

JSON stands for itself. Where an annotation leaves the type open, tuples and paths carry a tag, and the arm of
an ambiguous union its number.
"""

import dataclasses
import math
from collections.abc import Callable, Collection, Iterable, Mapping, MutableMapping, MutableSequence, Sequence
from collections.abc import Set as AbstractSet
from enum import Enum
from fractions import Fraction
from os import PathLike
from pathlib import Path, PurePath
from typing import Any, Literal, get_args

from videoflow.graph._annotations import FINITE, Mismatch, bare, field_types, is_open, is_union, shown
from videoflow.graph._options import describe
from videoflow.graph._types import Annotation, Json, Value, origin_of

TUPLE_TAG, PATH_TAG, ARM_TAG, VALUE_TAG = "$tuple", "$path", "$arm", "value"
_INTEGER_LIMIT = 2**63
_OPEN_SEQUENCES = (Sequence, Collection, Iterable)
_MAPPINGS = (dict, Mapping, MutableMapping)


def encode(value: Value, wanted: Annotation) -> Json:
    """Returns a value as JSON data.

    Raises:
        Mismatch: The annotation does not admit the value, or it has no JSON form.
    """
    wanted = bare(wanted)
    origin = origin_of(wanted)
    if is_open(wanted):
        return _encode_open(value)
    if is_union(wanted):
        return _encode_union(value, wanted)
    if origin is Literal:
        if any(value == choice and type(value) is type(choice) for choice in get_args(wanted)):
            return value.name if isinstance(value, Enum) else value
        raise Mismatch(describe(wanted), shown(value))
    base = origin or wanted
    if not isinstance(base, type):
        raise Mismatch(f"a type that has a JSON form, which {describe(wanted)} has not", shown(value))
    if base in _OPEN_SEQUENCES or base is MutableSequence:
        return _encode_open_sequence(value, wanted)
    if base in _MAPPINGS:
        return _encode_mapping(value, wanted)
    if base in _CONTAINERS:
        return _encode_container(value, wanted, base)
    return _encode_plain(value, base)


def decode(data: Json, wanted: Annotation) -> Value:
    """Returns the value that `encode` made JSON data of.

    Raises:
        Mismatch: The data is not of the annotated type.
    """
    wanted = bare(wanted)
    origin = origin_of(wanted)
    if is_open(wanted):
        return _decode_open(data)
    if is_union(wanted):
        return _decode_union(data, wanted)
    if origin is Literal:
        for choice in get_args(wanted):
            if data == (choice.name if isinstance(choice, Enum) else choice) and (
                isinstance(choice, Enum) or type(data) is type(choice)
            ):
                return choice
        raise Mismatch(describe(wanted), shown(data))
    base = origin or wanted
    if base in _OPEN_SEQUENCES or base is MutableSequence:
        return _decode_open_sequence(data, wanted)
    if base in _MAPPINGS:
        return _decode_mapping(data, wanted)
    if base in _CONTAINERS:
        return _decode_container(data, wanted, base)
    return _decode_plain(data, base)


# --- without an annotation ---------------------------------------------------------------------------------


def _encode_open(value: Value) -> Json:
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, Enum) or dataclasses.is_dataclass(value):
        raise Mismatch(
            f"an annotation: {type(value).__name__} is restored by the annotated type", shown(value)
        )
    if isinstance(value, int | float | str):
        return _encode_plain(value, type(value))
    if isinstance(value, PurePath):
        return {PATH_TAG: _text(str(value))}
    if type(value) is tuple:
        return {TUPLE_TAG: _each(value, Any)}
    if type(value) is list:
        return _each(value, Any)
    if type(value) is dict:
        return _encode_mapping(value, dict[str, Any])
    raise Mismatch("a value that has a JSON form", shown(value))


def _decode_open(data: Json) -> Value:
    if isinstance(data, list):
        return [_decode_open(part) for part in data]
    if not isinstance(data, dict):
        return data
    if data.keys() == {TUPLE_TAG}:
        return tuple(_decode_open(part) for part in data[TUPLE_TAG])
    if data.keys() == {PATH_TAG}:
        return Path(data[PATH_TAG])
    return {key: _decode_open(part) for key, part in data.items()}


# --- unions ------------------------------------------------------------------------------------------------


def _encode_union(value: Value, wanted: Annotation) -> Json:
    arms = get_args(wanted)
    for number, arm in enumerate(arms):
        try:
            data = encode(value, arm)
        except Mismatch:
            continue
        if data is None and value is None:
            return None
        first = _first_arm(data, arms)
        return data if first == number else {ARM_TAG: number, VALUE_TAG: data}
    raise Mismatch(describe(wanted), shown(value))


def _decode_union(data: Json, wanted: Annotation) -> Value:
    arms = get_args(wanted)
    if isinstance(data, dict) and data.keys() == {ARM_TAG, VALUE_TAG}:
        return decode(data[VALUE_TAG], arms[data[ARM_TAG]])
    number = _first_arm(data, arms)
    if number is None:
        raise Mismatch(describe(wanted), shown(data))
    return decode(data, arms[number])


def _first_arm(data: Json, arms: tuple[Any, ...]) -> int | None:
    for number, arm in enumerate(arms):
        try:
            decode(data, arm)
        except Mismatch:
            continue
        return number
    return None


# --- containers --------------------------------------------------------------------------------------------


def _each(values: Iterable[Any], wanted: Annotation, work: Callable[[Any, Any], Any] = encode) -> list[Any]:
    return _zipped([(value, wanted) for value in values], work)


def _zipped(pairs: list[tuple[Any, Any]], work: Callable[[Any, Any], Any]) -> list[Any]:
    done = []
    for number, (value, wanted) in enumerate(pairs):
        try:
            done.append(work(value, wanted))
        except Mismatch as mismatch:
            raise mismatch.within(f"[{number}]") from None
    return done


def _argument(wanted: Annotation, number: int = 0) -> Annotation:
    arguments = get_args(wanted)
    return arguments[number] if number < len(arguments) else Any


def _encode_open_sequence(value: Value, wanted: Annotation) -> Json:
    if isinstance(value, str | bytes) or not isinstance(value, list | tuple):
        raise Mismatch(describe(wanted), shown(value))
    data = _each(value, _argument(wanted))
    return {TUPLE_TAG: data} if isinstance(value, tuple) else data


def _decode_open_sequence(data: Json, wanted: Annotation) -> Value:
    if isinstance(data, dict) and data.keys() == {TUPLE_TAG}:
        return tuple(_each(data[TUPLE_TAG], _argument(wanted), decode))
    if not isinstance(data, list):
        raise Mismatch(describe(wanted), shown(data))
    return _each(data, _argument(wanted), decode)


def _encode_mapping(value: Value, wanted: Annotation) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise Mismatch(describe(wanted), shown(value))
    data: dict[str, Any] = {}
    for key, part in value.items():
        name = encode(key, _argument(wanted) if get_args(wanted) else str)
        if isinstance(name, bool) or not isinstance(name, str | int):
            raise Mismatch("keys that are text, whole numbers or enum members", shown(key))
        try:
            data[str(name)] = encode(part, _argument(wanted, 1))
        except Mismatch as mismatch:
            raise mismatch.within(f"[{key!r}]") from None
    return data


def _decode_mapping(data: Json, wanted: Annotation) -> dict[Any, Any]:
    if not isinstance(data, dict):
        raise Mismatch(describe(wanted), shown(data))
    key_type = bare(_argument(wanted)) if get_args(wanted) else str
    result = {}
    for key, part in data.items():
        name = int(key) if key_type is int else decode(key, key_type)
        result[name] = decode(part, _argument(wanted, 1))
    return result


_CONTAINERS: Mapping[Any, type] = {
    list: list,
    tuple: tuple,
    set: set,
    frozenset: frozenset,
    AbstractSet: frozenset,
}


def _encode_container(value: Value, wanted: Annotation, base: Annotation) -> Json:
    if not isinstance(value, base):
        raise Mismatch(describe(wanted), shown(value))
    if base is tuple:
        return _zipped(_tuple_pairs(list(value), wanted), encode)
    data = _each(value, _argument(wanted))
    return data if base is list else sorted(data, key=repr)


def _decode_container(data: Json, wanted: Annotation, base: Annotation) -> Value:
    if not isinstance(data, list):
        raise Mismatch(describe(wanted), shown(data))
    pairs = _tuple_pairs(data, wanted) if base is tuple else [(part, _argument(wanted)) for part in data]
    return _CONTAINERS[base](_zipped(pairs, decode))


def _tuple_pairs(values: list[Any], wanted: Annotation) -> list[tuple[Any, Any]]:
    arguments = get_args(wanted)
    if not arguments:
        return [(value, Any) for value in values]
    if len(arguments) == 2 and arguments[1] is Ellipsis:
        return [(value, arguments[0]) for value in values]
    if len(arguments) != len(values):
        raise Mismatch(f"{describe(wanted)}, {len(arguments)} long", f"{len(values)} values")
    return list(zip(values, arguments, strict=True))


# --- single values and records -----------------------------------------------------------------------------


def _text(value: str) -> str:
    try:
        value.encode()
    except UnicodeEncodeError:
        raise Mismatch("text that can be written as UTF-8", shown(value)) from None
    return str(value)


def _encode_plain(value: Value, base: type) -> Json:
    if base is int or base is float:
        return _encode_number(value, base)
    if base is type(None) and value is None:
        return None
    if base is bool and isinstance(value, bool):
        return value
    if base is str and isinstance(value, str) and not isinstance(value, Enum):
        return _text(value)
    if isinstance(value, Enum) and isinstance(value, base) and issubclass(base, Enum):
        return value.name
    if isinstance(value, PurePath) and (issubclass(base, PurePath) or base is PathLike):
        return _text(str(value))
    if base is Fraction and isinstance(value, Fraction):
        return str(value)
    if isinstance(value, base):
        return _encode_record(value, base)
    raise Mismatch(describe(base), shown(value))


def _encode_number(value: Value, base: type) -> int | float:
    if isinstance(value, bool | Enum) or not isinstance(value, int | float):
        raise Mismatch(describe(base), shown(value))
    if isinstance(value, int):
        if not -_INTEGER_LIMIT <= value < _INTEGER_LIMIT:
            raise Mismatch("a whole number of 64 bits", shown(value))
        return int(value) if base is int else float(value)
    if base is int:
        raise Mismatch(describe(base), shown(value))
    if not math.isfinite(value):
        raise Mismatch(FINITE, shown(value))
    return float(value)


def _record_fields(base: type) -> list[str] | None:
    if dataclasses.is_dataclass(base):
        return [field.name for field in dataclasses.fields(base) if field.init]
    names = getattr(base, "_fields", None) or getattr(base, "__struct_fields__", None)
    return list(names) if names else None


def _encode_record(value: Value, base: type) -> dict[str, Any]:
    names = _record_fields(base)
    if names is None or type(value) is not base:
        raise Mismatch("a value that has a JSON form", shown(value))
    hints = field_types(base)
    data = {}
    for name in names:
        try:
            data[name] = encode(getattr(value, name), hints.get(name, Any))
        except Mismatch as mismatch:
            raise mismatch.within(f".{name}") from None
    return data


def _decode_plain(data: Json, base: Annotation) -> Value:
    if not isinstance(base, type):
        raise Mismatch(f"a type that has a JSON form, which {describe(base)} has not", shown(data))
    if base is type(None) and data is None:
        return None
    if issubclass(base, Enum) and isinstance(data, str) and data in base.__members__:
        return base[data]
    if base is float and isinstance(data, int | float) and not isinstance(data, bool):
        return float(data)
    if base in (bool, int, str) and type(data) is base:
        return data
    if isinstance(data, str) and (issubclass(base, PurePath) or base is PathLike):
        kind: Annotation = Path if base is PathLike else base
        return kind(data)
    if isinstance(data, str) and base is Fraction:
        return _decode_fraction(data)
    names = _record_fields(base)
    if names is not None and isinstance(data, dict) and set(data) == set(names):
        hints = field_types(base)
        return base(**{name: decode(data[name], hints.get(name, Any)) for name in names})
    raise Mismatch(describe(base), shown(data))


def _decode_fraction(data: str) -> Fraction:
    try:
        return Fraction(data)
    except (ValueError, ZeroDivisionError):
        raise Mismatch("a fraction", shown(data)) from None
