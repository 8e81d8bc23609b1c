"""Copies of plain values, several times as fast as `copy.deepcopy`, which looks for cycles."""

from typing import TypeVar

T = TypeVar("T")


def copied(value: T) -> T:
    """Returns a copy that shares nothing that could change; only for what JSON can hold."""
    if isinstance(value, dict):
        return {key: copied(inner) for key, inner in value.items()}  # type: ignore[return-value] # a dict is a dict
    if isinstance(value, list):
        return [copied(inner) for inner in value]  # type: ignore[return-value] # and a list a list
    return value
