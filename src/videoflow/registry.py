"""Finds engines and adapters by name, through entry points, so that nothing is imported unchosen.

Used by `Flow.run`, the engines and the command line. It refuses an unknown name with the nearest
known one.
"""

import difflib
from importlib import import_module
from typing import TYPE_CHECKING, Any, TypeAlias

from videoflow.errors import UsageError

if TYPE_CHECKING:
    from importlib.metadata import EntryPoints

ENGINES = "videoflow.engines"
ALLOCATORS = "videoflow.allocators"
DEVICES = "videoflow.devices"
Registered: TypeAlias = Any


def names(group: str) -> tuple[str, ...]:
    """Returns the names registered in a group, sorted."""
    return tuple(sorted(point.name for point in _registered(group)))


def load(group: str, name: str) -> Registered:
    """Returns the object registered under a name, importing its module only now.

    Raises:
        UsageError: Nothing is registered under that name.
    """
    for point in _registered(group):
        if point.name == name:
            return point.load()
    known = names(group)
    near = difflib.get_close_matches(name, known, n=1)
    raise UsageError(
        f"there is no {group.rsplit('.', 1)[-1].removesuffix('s')} named {name!r}",
        cause=f"known are {', '.join(known) or 'none (is videoflow installed?)'}",
        remedy=f"did you mean {near[0]!r}?" if near else f"choose one of {', '.join(known)}",
    )


def _registered(group: str) -> "EntryPoints":
    """Returns the entry points of a group; what reads them loads readers of mail and of archives with it."""
    found: EntryPoints = import_module("importlib.metadata").entry_points(group=group)
    return found
