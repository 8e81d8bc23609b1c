"""Names of nodes: the user's, or the class in snake case, numbered when taken.

Used by the compiler. It refuses names that no channel or file can be called after, and names given twice.
"""

import re
from collections.abc import Mapping, Sequence

from videoflow.errors import Problem
from videoflow.graph._node import Node

NAME = re.compile(r"[a-z][a-z0-9_-]{0,40}")
_LONGEST = 41


def names_of(nodes: Sequence[Node], problems: list[Problem]) -> Mapping[int, str]:
    """Returns `id(node)` → name; adds what is wrong to the problems."""
    names: dict[int, str] = {}
    taken: dict[str, Node] = {}
    for node in nodes:
        given = node._videoflow_record.options.get("name")
        if given is None:
            continue
        if not NAME.fullmatch(given):
            problems.append(
                Problem(
                    given or type(node).__qualname__,
                    f"{given!r} is no name of a node",
                    "use a lower-case letter, then up to 40 of a-z, 0-9, _ and -",
                )
            )
        if given in taken:
            first, second = type(taken[given]).__qualname__, type(node).__qualname__
            problems.append(
                Problem(given, f"two nodes have this name, {first} and {second}", "name them differently")
            )
        taken.setdefault(given, node)
        names[id(node)] = given
    for node in nodes:
        if id(node) not in names:
            name = _free(snake_case(type(node).__name__), taken)
            taken[name] = node
            names[id(node)] = name
    return names


def snake_case(text: str) -> str:
    """Returns the name of a class as a name of a node.

    >>> snake_case("VideoSource"), snake_case("HTTPSink"), snake_case("_Mine2")
    ('video_source', 'http_sink', 'mine2')
    """
    parted = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", text)
    return _legal(re.sub(r"[^a-z0-9_]+", "_", parted.lower()).strip("_")) or "node"


def flow_name(text: str) -> str:
    """Returns a file's stem as the name of a flow.

    >>> flow_name("01-People count"), flow_name("<ipython-input-3>")
    ('people-count', 'ipython-input-3')
    """
    return _legal(re.sub(r"[^a-z0-9_]+", "-", text.lower()).strip("-_")) or "flow"


def _legal(text: str) -> str:
    start = re.search(r"[a-z]", text)
    return text[start.start() :][:_LONGEST] if start else ""


def _free(name: str, taken: Mapping[str, Node]) -> str:
    number, free = 1, name
    while free in taken:
        number += 1
        suffix = f"_{number}"
        free = name[: _LONGEST - len(suffix)] + suffix
    return free
