"""Texts of a command line as values, by annotation.

Used for the parameters of factories and for sizes. It refuses a text that is not of the type; its message
says what was wanted, with an example.
"""

import types
from collections.abc import Callable, Collection, Iterable, Sequence
from collections.abc import Set as AbstractSet
from enum import Enum
from fractions import Fraction
from pathlib import PurePath
from typing import Literal, get_args

import msgspec

from videoflow.graph._annotations import Mismatch, bare, is_open, is_union
from videoflow.graph._codec import decode
from videoflow.graph._options import describe
from videoflow.graph._types import Annotation, Value, origin_of

_TRUE, _FALSE = ("true", "yes", "on", "1"), ("false", "no", "off", "0")
_UNITS = {"b": 1, "kb": 10**3, "mb": 10**6, "gb": 10**9, "tb": 10**12}
_UNITS |= {"": 1, "kib": 2**10, "mib": 2**20, "gib": 2**30, "tib": 2**40}
_COLLECTIONS: dict[Annotation, Callable[[list[Value]], Value]] = {
    list: list,
    set: set,
    frozenset: frozenset,
    Sequence: list,
    Collection: list,
    Iterable: list,
    AbstractSet: frozenset,
}


class Unparsable(Exception):
    """A text that is not of the wanted type; `example` is one that is."""

    def __init__(self, wanted: str, example: str = "") -> None:
        super().__init__(wanted)
        self.example = example


def parse_bytes(text: str) -> int:
    """Returns a size such as `2 GiB`, `500 MB` or `4096` in bytes.

    >>> parse_bytes("2 GiB"), parse_bytes("1.5kb"), parse_bytes("4096")
    (2147483648, 1500, 4096)

    Raises:
        Unparsable: It is no size.
    """
    plain = text.strip().lower().replace("_", "")
    number = plain.rstrip("abcdefghijklmnopqrstuvwxyz ")
    try:
        size = int(float(number) * _UNITS[plain[len(number) :].strip()])
    except (ValueError, KeyError, OverflowError):
        size = -1
    if size < 0:
        raise Unparsable("a size", '"2 GiB"')
    return size


def parse(texts: Sequence[str], wanted: Annotation, *, is_size: bool = False) -> Value:
    """Returns the value that texts stand for.

    Args:
        texts: One for each time that the option was given, or each word after it.
        wanted: The type.
        is_size: Whole numbers may carry a unit of bytes.

    Raises:
        Unparsable: They do not stand for a value of that type.
    """
    wanted = bare(wanted)
    if is_union(wanted):
        return _parse_union(texts, wanted, is_size)
    base = origin_of(wanted) or wanted
    if base is tuple:
        return _parse_tuple([part for text in texts for part in _parts(text)], wanted)
    if base in _COLLECTIONS:
        return _COLLECTIONS[base](_parse_each(texts, wanted))
    if len(texts) != 1:
        raise Unparsable(f"{describe(wanted)}, once")
    return _parse_one(texts[0], wanted, is_size)


def _parse_union(texts: Sequence[str], wanted: Annotation, is_size: bool) -> Value:
    arms = [arm for arm in get_args(wanted) if arm is not types.NoneType]
    if types.NoneType in get_args(wanted) and list(texts) == ["none"]:
        return None
    last = Unparsable(describe(wanted))
    for arm in sorted(arms, key=lambda arm: bare(arm) is str):  # any text is a str: the others come first
        try:
            return parse(texts, arm, is_size=is_size)
        except Unparsable as error:
            last = error
    raise Unparsable(describe(wanted), last.example)


def _parse_each(texts: Sequence[str], wanted: Annotation) -> list[Value]:
    arguments = get_args(wanted)
    inner = bare(arguments[0]) if arguments else str
    if (origin_of(inner) or inner) is tuple:
        return [_parse_tuple(_parts(word), inner) for text in texts for word in text.split()]
    return [_parse_one(part, inner, is_size=False) for text in texts for part in _parts(text)]


def _parts(text: str) -> list[str]:
    return [part.strip() for part in text.split(",")] if text.strip() else []


def _parse_tuple(parts: list[str], wanted: Annotation) -> tuple[Value, ...]:
    arguments = get_args(wanted)
    if not arguments:
        return tuple(parts)
    if len(arguments) == 2 and arguments[1] is Ellipsis:
        arguments = (arguments[0],) * len(parts)
    example = ",".join(_example(bare(argument), number) for number, argument in enumerate(arguments))
    if len(parts) != len(arguments):
        count = f"{len(arguments)} value{'s' if len(arguments) != 1 else ''} with commas between them"
        raise Unparsable(f"{count}, not {len(parts)}", example)
    try:
        return tuple(parse([part], argument) for part, argument in zip(parts, arguments, strict=True))
    except Unparsable as error:
        raise Unparsable(f"{describe(wanted)}, and in it {error}", example) from None


def _parse_one(text: str, wanted: Annotation, is_size: bool) -> Value:
    if wanted is str or is_open(wanted):
        return text
    if wanted is int and is_size:
        return parse_bytes(text)
    if wanted in (int, float, Fraction):
        return _parse_number(text, wanted)
    if wanted is bool:
        return _parse_bool(text)
    if origin_of(wanted) is Literal:
        return _parse_choice(text, {_word(choice): choice for choice in get_args(wanted)})
    if isinstance(wanted, type) and issubclass(wanted, Enum):
        choices = {str(member.value): member for member in wanted}
        return _parse_choice(
            text, choices | {member.name.lower(): member for member in wanted}, list(choices)
        )
    if isinstance(wanted, type) and issubclass(wanted, PurePath):
        return wanted(text)
    return _parse_json(text, wanted)


def _parse_number(text: str, wanted: type) -> Value:
    try:
        return wanted(text)
    except (ValueError, ZeroDivisionError):
        words = {int: "a whole number", float: "a number", Fraction: "a number or a fraction"}
        raise Unparsable(words[wanted], _example(wanted)) from None


def _parse_bool(text: str) -> bool:
    if text.lower() in _TRUE:
        return True
    if text.lower() in _FALSE:
        return False
    raise Unparsable("true or false", "true")


def _parse_choice(text: str, choices: dict[str, Value], shown: list[str] | None = None) -> Value:
    for word, choice in choices.items():
        if text == word:
            return choice
    for word, choice in choices.items():
        if text.lower() == word.lower():
            return choice
    words = shown or list(choices)
    raise Unparsable(f"one of {', '.join(words)}", words[0])


def _parse_json(text: str, wanted: Annotation) -> Value:
    try:
        return decode(msgspec.json.decode(text), wanted)
    except (msgspec.DecodeError, Mismatch) as error:
        detail = error.wanted if isinstance(error, Mismatch) else str(error)
        raise Unparsable(f"{describe(wanted)} as JSON ({detail})") from None


def _word(choice: Value) -> str:
    return str(choice.value if isinstance(choice, Enum) else choice)


def _example(wanted: Annotation, number: int = 0) -> str:
    examples = {int: str(10 * (number + 1)), float: f"{number + 0.5}", bool: "true", Fraction: "1/25"}
    return examples.get(wanted, "text")
