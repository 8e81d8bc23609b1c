"""Classes by value, over cloudpickle: the one place that uses it.

Used by the local engine for classes that have no importable name, and by the workers that it starts, over
their inherited socket and nowhere else. It refuses to go on without cloudpickle, by name.
"""

import dataclasses
import sys
from collections.abc import Mapping
from typing import Any

import msgspec

from videoflow.errors import LibraryMissing, UsageError

_MAIN = "__main__"


def dump_classes(classes: Mapping[str, Any]) -> bytes:
    """Returns node classes by value, with the record classes of the notebook that their values may be of.

    Args:
        classes: Node name → class.

    Raises:
        LibraryMissing: cloudpickle is not installed.
        UsageError: A class holds something that cannot be sent, such as an open file.
    """
    try:
        import cloudpickle
    except ImportError as error:
        raise LibraryMissing(
            "classes made in a notebook need cloudpickle to be sent to a process",
            cause=str(error),
            remedy="pip install 'videoflow[notebook]', or run with engine='threads'",
        ) from error
    try:
        data: bytes = cloudpickle.dumps((dict(classes), _record_classes()))
    except Exception as error:  # objects of the user say how they are sent, and may raise anything
        raise UsageError(
            f"the classes of {', '.join(classes)} cannot be sent to a process",
            cause=f"{type(error).__name__}: {error}",
            remedy="move them to a module, or keep open files and locks out of what they refer to",
        ) from error
    return data


def load_classes(data: bytes) -> dict[str, Any]:
    """Returns node name → class, and lets values of the notebook's record classes be found by name.

    Raises:
        LibraryMissing: cloudpickle is not installed.
    """
    try:
        import cloudpickle
    except ImportError as error:
        raise LibraryMissing("the worker cannot load classes of a notebook", cause=str(error)) from error
    classes, records = cloudpickle.loads(data)
    for name, cls in records.items():
        setattr(sys.modules[_MAIN], name, cls)
    return dict(classes)


def _record_classes() -> dict[str, type]:
    return {
        name: found
        for name, found in vars(sys.modules[_MAIN]).items()
        if isinstance(found, type)
        and found.__module__ == _MAIN
        and (dataclasses.is_dataclass(found) or issubclass(found, msgspec.Struct))
    }
