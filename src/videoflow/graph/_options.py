"""The options that every node takes, and their types.

Used by the metaclass of nodes, which takes them out before `__init__`, and by the compiler, which resolves
them. It refuses an unknown option with the nearest known one, and a value of the wrong type; what a value
means for the graph is the compiler's to judge.
"""

import difflib
import types
from collections.abc import Mapping
from typing import Any, Literal, TypedDict, Union, get_args, get_type_hints

from videoflow.errors import ArgumentInvalid
from videoflow.graph._types import Annotation, Value, origin_of
from videoflow.graph._values import Batch, ByTime, Last, Resources, Session, Tumbling

Disposition = Literal["poison", "transient", "fatal"]
"""What an exception means: put the input aside, try again, or fail the run."""


class NodeOptions(TypedDict, total=False):
    """The options of a node, for `**options: Unpack[vf.NodeOptions]`; all may be left out."""

    name: str | None
    replicas: int
    partition_by: str | None
    ordered: bool | None
    join: ByTime | None
    missing: Literal["skip", "none"] | None
    window: Last | Tumbling | Session | None
    batch: Batch | None
    fuse: str | Literal[False] | None
    resources: Resources
    on_error: Mapping[str, Disposition]
    retries: int
    timeout_seconds: float | None
    lookahead: int
    deterministic: bool | None
    image: str | None


OPTION_TYPES: Mapping[str, Any] = get_type_hints(NodeOptions)


def take_options(owner: str, keywords: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Returns (options, the other keywords).

    Raises:
        ArgumentInvalid: An option of the wrong type.
    """
    options = {name: value for name, value in keywords.items() if name in OPTION_TYPES}
    for name, value in options.items():
        if not _fits(value, OPTION_TYPES[name]):
            raise ArgumentInvalid(
                f"{owner}: option {name} cannot be {value!r}",
                cause=f"it takes {describe(OPTION_TYPES[name])}, not {type(value).__name__}",
                remedy=f"change {name}= where {owner} is made",
            )
    return options, {name: value for name, value in keywords.items() if name not in OPTION_TYPES}


def nearest(name: str, known: Mapping[str, Any] | list[str] | tuple[str, ...]) -> str:
    """Returns a sentence with the nearest known name, or with all of them."""
    near = difflib.get_close_matches(name, list(known), n=1)
    return f"did you mean {near[0]!r}?" if near else f"known are {', '.join(sorted(known)) or 'none'}"


def describe(wanted: Annotation) -> str:
    """Returns a type in words that a user would write."""
    if wanted is None or wanted is type(None):
        return "None"
    origin = origin_of(wanted)
    if origin is Literal:
        return " or ".join(repr(choice) for choice in get_args(wanted))
    if origin in (Union, types.UnionType):
        return " or ".join(describe(arm) for arm in get_args(wanted))
    if origin is None:
        return getattr(wanted, "__name__", str(wanted))
    inner = ", ".join("..." if arm is Ellipsis else describe(arm) for arm in get_args(wanted))
    return f"{getattr(origin, '__name__', origin)}[{inner}]"


def _fits(value: Value, wanted: Annotation) -> bool:
    origin = origin_of(wanted)
    if origin is Literal:
        return any(value == choice and type(value) is type(choice) for choice in get_args(wanted))
    if origin in (Union, types.UnionType):
        return any(_fits(value, arm) for arm in get_args(wanted))
    if origin is not None:  # the one mapping, on_error
        key_type, value_type = get_args(wanted)
        return isinstance(value, Mapping) and all(
            _fits(key, key_type) and _fits(choice, value_type) for key, choice in value.items()
        )
    if wanted is float:
        return isinstance(value, int | float) and not isinstance(value, bool)
    if wanted is int:
        return isinstance(value, int) and not isinstance(value, bool)
    return isinstance(value, wanted)
