"""Finds engines and adapters by name, through entry points, so that nothing is imported unchosen.

Used by `Flow.run`, the engines and the command line. It refuses an unknown name with the nearest
known one.
"""

import difflib
from importlib.metadata import entry_points
from typing import Any, TypeAlias

from videoflow.errors import UsageError

ENGINES = "videoflow.engines"
ALLOCATORS = "videoflow.allocators"
DEVICES = "videoflow.devices"
Registered: TypeAlias = Any


def names(group: str) -> tuple[str, ...]:
    """Returns the names registered in a group, sorted."""
    return tuple(sorted(point.name for point in entry_points(group=group)))


def load(group: str, name: str) -> Registered:
    """Returns the object registered under a name, importing its module only now.

    Raises:
        UsageError: Nothing is registered under that name.
    """
    for point in entry_points(group=group):
        if point.name == name:
            return point.load()
    known = names(group)
    near = difflib.get_close_matches(name, known, n=1)
    raise UsageError(
        f"there is no {group.rsplit('.', 1)[-1].removesuffix('s')} named {name!r}",
        cause=f"known are {', '.join(known) or 'none (is videoflow installed?)'}",
        remedy=f"did you mean {near[0]!r}?" if near else f"choose one of {', '.join(known)}",
    )
