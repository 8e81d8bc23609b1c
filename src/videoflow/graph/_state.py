"""Keyed state of a node: an overlay per attempt over what is committed.

Used by nodes as `ctx.state`, and by the worker, which keeps or drops what an attempt changed. It refuses keys
that are not text, and values that no edge would carry.
"""

from collections.abc import Callable, Iterator, MutableMapping
from enum import Enum
from typing import Any

from videoflow.errors import ValueRefused
from videoflow.graph._types import Value


class Deleted(Enum):
    """Says that a key was deleted; its one member is `DELETED`."""

    DELETED = "deleted"


DELETED = Deleted.DELETED


class State(MutableMapping[str, Any]):
    """A mapping of text to values; only assignment and `del` change it.

    Reading a list or a dict gives a copy, so that changing it changes nothing until it is assigned again.
    Arrays are shared and read-only.

    Example:
        >>> state = State({"count": 1}, lambda value: value)
        >>> state.begin()
        >>> state["count"] += 1
        >>> state.keep()
        {'count': 2}
    """

    def __init__(self, committed: dict[str, Any], freeze: Callable[[Any], Any], node: str = "") -> None:
        """Starts from what is committed, which `keep` changes in place.

        Args:
            committed: The committed view.
            freeze: Returns a value as an edge would carry it, or raises `ValueRefused`.
            node: Whose state it is, for errors.
        """
        self._committed = committed
        self._freeze = freeze
        self._whose = f"node {node}: " if node else ""
        self._overlay: dict[str, Any] = {}

    def begin(self) -> None:
        """Begins an attempt, without what an earlier one left."""
        self._overlay = {}

    def rollback(self) -> None:
        """Drops what the attempt changed."""
        self._overlay = {}

    def changes(self) -> dict[str, Any]:
        """Returns what the attempt changed so far: key → value or `DELETED`."""
        return dict(self._overlay)

    def keep(self) -> dict[str, Any]:
        """Puts what the attempt changed into the committed view; returns key → value or `DELETED`."""
        changes, self._overlay = self._overlay, {}
        for key, value in changes.items():
            if value is DELETED:
                self._committed.pop(key, None)
            else:
                self._committed[key] = value
        return changes

    def __getitem__(self, key: str) -> Value:
        value = self._overlay[key] if key in self._overlay else self._committed[key]
        if value is DELETED:
            raise KeyError(key)
        return _unshared(value)

    def __setitem__(self, key: str, value: Value) -> None:
        if not isinstance(key, str):
            raise TypeError(f"a key of ctx.state is text, not {type(key).__name__}: {key!r}")
        key.encode()  # a lone surrogate raises here, in the node, and not when the state is committed
        try:
            frozen = self._freeze(value)
        except ValueRefused as error:
            raise self._refused(key, error) from error.__cause__
        self._overlay[key] = _unshared(frozen)

    def __delitem__(self, key: str) -> None:
        if key not in self:
            raise KeyError(key)
        if key in self._committed:
            self._overlay[key] = DELETED
        else:
            del self._overlay[key]

    def __contains__(self, key: object) -> bool:
        if key in self._overlay:
            return self._overlay[key] is not DELETED
        return key in self._committed

    def __iter__(self) -> Iterator[str]:
        for key in self._committed:
            if self._overlay.get(key) is not DELETED:
                yield key
        for key, value in self._overlay.items():
            if key not in self._committed and value is not DELETED:
                yield key

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def __repr__(self) -> str:
        return f"State({dict(self)!r})"

    def _refused(self, key: str, error: ValueRefused) -> ValueRefused:
        """Returns what to say of a value that cannot be kept, by the name of its key."""
        path = error.where.removeprefix("value")
        return ValueRefused(
            f"{self._whose}ctx.state[{key!r}]{path} cannot be kept",
            cause=f"{error.message.removeprefix(f'value{path}: ')}, and kept in no state",
            effect="the state is what it was before this input",
            remedy=error.remedy.replace("emit ", "keep "),
        )


def _unshared(value: Value) -> Value:
    if isinstance(value, list):
        return [_unshared(part) for part in value]
    if isinstance(value, dict):
        return {key: _unshared(part) for key, part in value.items()}
    return value
