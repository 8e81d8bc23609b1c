"""Annotations looked at as data: what they admit, and what does not fit them.

Used by the codec of arguments and by the parser of command lines. It refuses nothing itself.
"""

import dataclasses
import re
import types
import typing
from typing import Any, NewType, TypeVar, Union, get_args, get_type_hints

from videoflow.graph._types import Annotation, Value, origin_of

FINITE = "a finite number, as JSON has no other"
_ADDRESS = re.compile(r" at 0x[0-9a-f]+")


class Mismatch(Exception):
    """A value that an annotation does not admit; `wanted` and `found` in words."""

    def __init__(self, wanted: str, found: str, where: str = "") -> None:
        super().__init__(wanted, found, where)
        self.wanted = wanted
        self.found = found
        self.where = where

    def within(self, where: str) -> "Mismatch":
        """Returns the same, seen from one container further out."""
        return Mismatch(self.wanted, self.found, f"{where}{self.where}")


def bare(wanted: Annotation) -> Annotation:
    """Returns an annotation without what says nothing about JSON: `Annotated`, `NewType`, `Final`."""
    while True:
        if isinstance(wanted, NewType):
            wanted = wanted.__supertype__
        elif origin_of(wanted) in (typing.Annotated, typing.Final, typing.ClassVar):
            wanted = get_args(wanted)[0]
        elif origin_of(wanted) is dataclasses.InitVar or isinstance(wanted, dataclasses.InitVar):
            wanted = wanted.type
        elif type(wanted).__name__ == "TypeAliasType":
            wanted = wanted.__value__
        else:
            return wanted


def is_open(wanted: Annotation) -> bool:
    """Whether an annotation admits any type."""
    return wanted is Any or wanted is object or isinstance(wanted, TypeVar)


def is_union(wanted: Annotation) -> bool:
    """Whether an annotation is a union, in either spelling."""
    return origin_of(wanted) in (Union, types.UnionType)


def shown(value: Value) -> str:
    """Returns a value and its type, short, without addresses in memory."""
    text = _ADDRESS.sub("", repr(value))
    return f"{text if len(text) <= 60 else text[:57] + '...'} ({type(value).__name__})"


def field_types(cls: type) -> dict[str, Any]:
    """Returns the annotations of a class; those that cannot be resolved are open."""
    try:
        return get_type_hints(cls)
    except (NameError, TypeError, AttributeError):
        return {}
