"""Copies of plain values, several times as fast as `copy.deepcopy`, which looks for cycles."""

from typing import TypeVar, cast

T = TypeVar("T")


def copied(value: T) -> T:
    """Returns a copy that shares nothing that could change; only for what JSON can hold."""
    return cast("T", _copied(value))


def _copied(value: object) -> object:
    if isinstance(value, dict):
        return {key: _copied(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [_copied(inner) for inner in value]
    return value
