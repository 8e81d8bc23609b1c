"""Ports and edges: what a node reads, as the user wrote it.

Used when a node is called with its parents, and read by the compiler. It refuses a parent that is no node or
port, and a node that is wired twice; everything about the graph as a whole is the compiler's to judge.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Union

from videoflow.errors import UsageError
from videoflow.graph._types import Value

if TYPE_CHECKING:
    from videoflow.graph._node import Node


@dataclass(frozen=True, eq=False, repr=False)
class Port:
    """An output port of a node, to be read by another.

    Attributes:
        node: The node that writes it.
        name: Its name among the ports of the node.
    """

    node: "Node"
    name: str

    def __repr__(self) -> str:
        return f"<port {self.name} of {self.node!r}>"

    def latest(
        self, *, key: str | None = None, max_age_seconds: float | None = None, capacity: int = 1
    ) -> "Latest":
        """Returns a live edge: when the reader is behind, the oldest item of the same key is dropped.

        Args:
            key: How items are told apart: `key`, `source` or an attribute of the item; None: all alike.
            max_age_seconds: Nothing older than this reaches the reader.
            capacity: How many items of one key wait at most.
        """
        return Latest(Merged((self,)), key, max_age_seconds, capacity)


@dataclass(frozen=True, eq=False)
class Merged:
    """The items of several ports as one stream, each port in its own order; made by `videoflow.merge`.

    Attributes:
        ports: The merged ports, in order.
    """

    ports: tuple[Port, ...]

    def latest(
        self, *, key: str | None = None, max_age_seconds: float | None = None, capacity: int = 1
    ) -> "Latest":
        """Returns a live edge from the merged stream; the arguments are those of `Port.latest`."""
        return Latest(self, key, max_age_seconds, capacity)


@dataclass(frozen=True, eq=False)
class Latest:
    """A live edge, made by `.latest()`.

    Attributes:
        of: What is read.
        key: How items are told apart.
        max_age_seconds: Nothing older reaches the reader.
        capacity: How many items of one key wait at most.
    """

    of: Merged
    key: str | None = None
    max_age_seconds: float | None = None
    capacity: int = 1


Source = Union["Node", Port, Merged, Latest]
"""What can stand as a parent in `child(parent)`."""


@dataclass(frozen=True, eq=False)
class Input:
    """One input of a node: the ports that it reads, and how."""

    ports: tuple[Port, ...]
    latest: Latest | None = None


def first_port(node: "Node") -> Port:
    """Returns the port that stands for a node.

    Raises:
        UsageError: The node has no ports.
    """
    ports = node.ports
    if not ports:
        raise UsageError(
            f"{node!r} cannot be a parent",
            cause="a consumer has no outputs",
            remedy="wire what the consumer reads",
        )
    return Port(node, ports[0])


def as_merged(source: Value) -> Merged:
    """Returns a parent as the ports that it stands for; the caller has dealt with live edges.

    Raises:
        UsageError: It is no node or port.
    """
    if isinstance(source, Merged):
        return source
    if isinstance(source, Port):
        return Merged((source,))
    if hasattr(type(source), "_videoflow_kind"):
        return Merged((first_port(source),))
    shown = f"the class {source.__name__}" if isinstance(source, type) else repr(source)
    raise UsageError(
        f"{shown} cannot be a parent",
        cause=f"a parent is a node, a port, vf.merge(...) or .latest(...), not {type(source).__name__}",
        remedy="make the node first, then wire it: Child(...)(parent)",
    )


def as_input(source: Value) -> Input:
    """Returns a parent as an input."""
    if isinstance(source, Latest):
        return Input(source.of.ports, source)
    return Input(as_merged(source).ports)


def merge(*parents: Source) -> Merged:
    """Returns one stream of the items of all parents, each in its own order; `source` says whose.

    Args:
        *parents: Nodes and ports; other merged streams are taken apart.

    Raises:
        UsageError: A parent is no node or port, or is a live edge, or there is none.
    """
    ports: list[Port] = []
    for parent in parents:
        if isinstance(parent, Latest):
            raise UsageError(
                "a live edge cannot be merged",
                cause="how items may be dropped is said of the whole stream",
                remedy="write vf.merge(a, b).latest(...)",
            )
        ports += as_merged(parent).ports
    if not ports:
        raise UsageError("vf.merge needs parents", remedy="write vf.merge(a, b)")
    return Merged(tuple(ports))


def as_markers(source: Value) -> tuple[Port, ...]:
    """Returns the ports whose items are markers.

    Raises:
        UsageError: It is no node or port, or a live edge.
    """
    if isinstance(source, Latest):
        raise UsageError(
            "markers cannot be a live edge",
            cause="they never slow their writer, and the oldest are dropped where too many wait",
            remedy="write .control(markers), without .latest(...)",
        )
    return as_merged(source).ports
