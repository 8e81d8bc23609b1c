"""The graph of a replay: the node that failed, what is below it, and stand-ins for what is above.

Used by `replay_flow`. A fan-out above the failed node whose items are gathered below it is made again, with
all its elements: those of which there is a letter have its values, the others say nothing. It refuses what
would be called for elements of which there is no letter.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from videoflow.backends.runtime import DeadLetter
from videoflow.errors import UsageError
from videoflow.graph import Merged, Node, Port
from videoflow.graph.spec import ControlSpec, EdgeSpec, FlowSpec, NodeSpec, PortRef
from videoflow.nodes.replayed import Elements, Letter, Letters, Parent, Together


def nodes_below(spec: FlowSpec, failed: NodeSpec) -> list[NodeSpec]:
    """Returns a node and what is below it, in topological order."""
    found = {failed.name}
    for node in spec.nodes:
        if any(ref.node in found for edge in spec.inputs(node.name) for ref in edge.parents):
            found.add(node.name)
    return [node for node in spec.nodes if node.name in found]


def is_gathered(spec: FlowSpec, failed: NodeSpec, below: Sequence[NodeSpec]) -> bool:
    """Returns whether a node below gathers the fan-out that the failed node is in.

    Raises:
        UsageError: It would be called for elements of which there is no letter.
    """
    shared = min(_shared(node.scope, failed.scope) for node in below)
    depth = len(failed.scope)
    if shared == depth:
        return False
    above = [ref for edge in spec.inputs(failed.name) for ref in edge.parents]
    gathers = any(len(_port_scope(spec, ref)) > depth for ref in above)
    if depth - shared > 1 or (gathers and failed.options.missing == "none"):
        through = " and ".join(failed.scope[shared:])
        why = (
            f"what lies below gathers the items of {through} one after the other"
            if depth - shared > 1
            else f"it is given lists, and what lies below gathers the items of {through}"
        )
        raise UsageError(
            f"the letters of {failed.name} cannot be replayed",
            cause=f"{why}: where there is no letter, an empty list would be given that was never made",
            effect="nothing was started",
            remedy="run the flow again",
        )
    return True


def belonging_together(letters: Sequence[DeadLetter], *, gathered: bool) -> list[Together]:
    """Returns letters as the stand-ins read them: each alone, or those of one fan-out together."""
    if not gathered:
        return [Together([_letter(letter, -1)]) for letter in letters]
    found: dict[object, Together] = {}
    for letter in letters:
        *above, (_, _, k, n) = letter.path
        whole = found.setdefault((letter.origin, tuple(above)), Together([], n))
        whole.letters.append(_letter(letter, k))
    return list(found.values())


def _letter(letter: DeadLetter, k: int) -> Letter:
    return Letter(letter.members, letter.source, letter.event_time, k)


class Replaying:
    """Wires the nodes that run again to each other, and to stand-ins.

    Args:
        spec: The flow that was run.
        failed: The node whose letters they are.
        nodes: Name → node that runs again.
        path: Where the letters are.
        width: The most elements of a fan-out that is made again; 0: none is.
    """

    def __init__(
        self, spec: FlowSpec, failed: NodeSpec, nodes: dict[str, Node], path: Path, width: int
    ) -> None:
        self._spec, self._failed, self._nodes = spec, failed, nodes
        self._path = str(path)
        self._taken = {node.name for node in spec.nodes}
        self._letters = Letters(self._path, name=self._free("letters"))
        self._elements = self._letters_below(width) if width else None
        self._stands: dict[tuple[str, bool], Node] = {}
        self._fed: dict[str, dict[str, str]] = {}
        for edge in spec.inputs(failed.name):
            ref = edge.parents[0]  # of a merged input the letter does not say which
            self._fed.setdefault(ref.node, {})[ref.port] = edge.name

    def _letters_below(self, width: int) -> Node:
        made: Any = Elements(self._path, width, name=self._free("elements"))
        wired: Node = made(self._letters)
        return wired

    def wire(self) -> None:
        """Wires everything, markers too."""
        for name, node in self._nodes.items():
            wire: Any = node
            scope = self._spec.node(name).scope
            wire(*(self._port(self._one_of(edge), scope) for edge in self._spec.inputs(name)))
            markers = tuple(self._markers(self._spec.control(name)))
            if markers:
                wire.control(Merged(markers))

    def _one_of(self, edge: EdgeSpec) -> PortRef:
        """Returns what is read of a merged input: what runs again, or what the letters stand for."""
        return next((ref for ref in edge.parents if ref.node in self._nodes), edge.parents[0])

    def _markers(self, control: ControlSpec | None) -> Iterator[Port]:
        """Yields the markers that are made again; of others there is nothing to say."""
        for ref in control.parents if control is not None else ():
            if ref.node in self._nodes:
                yield Port(self._nodes[ref.node], ref.port)

    def _port(self, ref: PortRef, scope: tuple[str, ...]) -> Port:
        """Returns what is read in the place of a port, by a node with this scope."""
        if ref.node in self._nodes:
            return Port(self._nodes[ref.node], ref.port)
        own = _port_scope(self._spec, ref)
        deep = self._failed.scope in (own, scope)
        within = self._elements is not None and deep
        if (ref.node, within) not in self._stands:
            self._stands[ref.node, within] = self._stand_in(ref.node, within=within)
        return Port(self._stands[ref.node, within], ref.port)

    def _stand_in(self, name: str, *, within: bool) -> Node:
        above = self._spec.node(name)
        speaks = within or self._elements is None
        own = self._fed.get(name, {}) if speaks else {}
        deeper = len(above.scope) + 1 > len(self._failed.scope)
        made: Any = Parent(
            self._path,
            list(above.ports),
            {port: most for port, most in above.many.items() if deeper and port in own},
            own,
            self._failed.options.missing == "none",
            name=name if (name, not within) not in self._stands else self._free(name),
        )
        wired: Node = made(self._elements if within else self._letters)
        return wired

    def _free(self, stem: str) -> str:
        name = next(
            name
            for name in (stem, *(f"{stem[:36]}-{number}" for number in range(len(self._taken) + 1)))
            if name not in self._taken
        )
        self._taken.add(name)
        return name


def _port_scope(spec: FlowSpec, ref: PortRef) -> tuple[str, ...]:
    node = spec.node(ref.node)
    return (*node.scope, f"{ref.node}.{ref.port}") if ref.port in node.many else node.scope


def _shared(one: tuple[str, ...], other: tuple[str, ...]) -> int:
    pairs = zip(one, other, strict=False)
    return next((number for number, (a, b) in enumerate(pairs) if a != b), min(len(one), len(other)))
