"""What can be wrong with a graph: ports that are not there, joins that never meet, groups that cannot fuse.

Used by the compiler, which reports all of it at once. It needs the document alone. It refuses nothing
itself: it returns every problem that it finds.
"""

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from videoflow.errors import Problem
from videoflow.graph._node_checks import later
from videoflow.graph._options import nearest
from videoflow.graph.spec import (
    CodeKind,
    ControlSpec,
    EdgeSpec,
    FlowSpec,
    NodeKind,
    NodeSpec,
    OptionsSpec,
    PortRef,
)

Scope = tuple[str, ...]


@dataclass
class Lineage:
    """Where the items of each node come from; by node, in topological order.

    Attributes:
        sources: The producers that they derive from.
        flushes: The nodes above whose flush starts items of its own.
        scopes: The fan-out ports between the sources and the node's inputs.
    """

    sources: dict[str, frozenset[str]] = field(default_factory=dict)
    flushes: dict[str, frozenset[str]] = field(default_factory=dict)
    scopes: dict[str, Scope] = field(default_factory=dict)

    def sources_of(self, edge: EdgeSpec) -> frozenset[str]:
        """Returns the producers above an edge."""
        return frozenset().union(*(self.sources.get(ref.node, frozenset()) for ref in edge.parents))

    def flushes_of(self, edge: EdgeSpec) -> frozenset[str]:
        """Returns the flushing nodes above an edge."""
        return frozenset().union(*(self.flushes.get(ref.node, frozenset()) for ref in edge.parents))


def trace_lineage(spec: FlowSpec) -> Lineage:
    """Returns the lineage of a graph without cycles."""
    lineage = Lineage()
    nodes, inputs = {node.name: node for node in spec.nodes}, _inputs(spec)
    for node in spec.nodes:
        edges = inputs[node.name]
        own = frozenset({node.name})
        sources = frozenset().union(*(lineage.sources_of(edge) for edge in edges))
        flushes = frozenset().union(*(lineage.flushes_of(edge) for edge in edges))
        lineage.sources[node.name] = own if node.kind is NodeKind.PRODUCER else sources
        lineage.flushes[node.name] = flushes | own if node.traits.flushes and node.ports else flushes
        above = [_port_scope(nodes, lineage, ref) for edge in edges for ref in edge.parents]
        lineage.scopes[node.name] = min(above, key=len, default=())
    return lineage


def check_graph(
    spec: FlowSpec, lineage: Lineage, later_ports: Mapping[str, tuple[str, ...]]
) -> Iterator[Problem]:
    """Yields what is wrong with a graph without cycles.

    Args:
        spec: The graph.
        lineage: Where its items come from.
        later_ports: Node → ports that are named and not built yet.
    """
    nodes, inputs = {node.name: node for node in spec.nodes}, _inputs(spec)
    for edge in spec.edges:
        for ref in edge.parents:
            yield from _check_port(nodes, ref, edge.child, later_ports.get(ref.node, ()))
        yield from _check_merge(nodes, edge, lineage)
    for control in spec.controls:
        for ref in control.parents:
            yield from _check_port(nodes, ref, control.child, later_ports.get(ref.node, ()))
        yield from check_markers(spec, control)
    for node in spec.nodes:
        if len(inputs[node.name]) > 1:
            yield from check_join(node, inputs[node.name], nodes, lineage)
    yield from _check_groups(spec)
    yield from _check_outputs(spec)


def _inputs(spec: FlowSpec) -> dict[str, tuple[EdgeSpec, ...]]:
    inputs: dict[str, tuple[EdgeSpec, ...]] = {node.name: () for node in spec.nodes}
    for edge in spec.edges:
        inputs[edge.child] += (edge,)
    return inputs


def _port_scope(nodes: Mapping[str, NodeSpec], lineage: Lineage, ref: PortRef) -> Scope:
    scope = lineage.scopes.get(ref.node, ())
    return (*scope, f"{ref.node}.{ref.port}") if ref.port in nodes[ref.node].many else scope


def _check_port(
    nodes: Mapping[str, NodeSpec], ref: PortRef, child: str, later_ports: tuple[str, ...]
) -> Iterator[Problem]:
    ports = nodes[ref.node].ports
    if ref.port in ports:
        return
    if ref.port in later_ports:
        yield later(child, f"the port {ref.node}.{ref.port}", f"read {ref.node} itself")
    else:
        yield Problem(child, f"{ref.node} has no port {ref.port!r}", nearest(ref.port, ports))


def check_markers(spec: FlowSpec, control: ControlSpec) -> Iterator[Problem]:
    """Yields why a node cannot have its markers."""
    node = spec.node(control.child)
    if len(set(control.parents)) < len(control.parents):
        yield Problem(node.name, f"its markers {control.name} name a port twice", "name it once")
    label = node.options.fuse
    inside = {ref.node for ref in control.parents if label and spec.node(ref.node).options.fuse == label}
    if inside:
        yield Problem(
            node.name,
            f"its markers come from {_listed(inside)}, and both carry the label {label!r}: "
            "markers go from one task to another",
            "take the label off one of them",
        )


def _check_merge(nodes: Mapping[str, NodeSpec], edge: EdgeSpec, lineage: Lineage) -> Iterator[Problem]:
    if len(edge.parents) < 2:
        return
    if len(set(edge.parents)) < len(edge.parents):
        yield Problem(edge.child, f"the merged input {edge.name} names a port twice", "name it once")
        return
    for number, ref in enumerate(edge.parents):
        for other in edge.parents[:number]:
            common = lineage.sources[ref.node] & lineage.sources[other.node]
            if common:
                yield Problem(
                    edge.child,
                    f"the merged parents {other} and {ref} both derive from {_listed(common)}, "
                    "so that two items would have one identity",
                    "wire them as two inputs, which joins them, or read them with two nodes",
                )
    scopes = {_port_scope(nodes, lineage, ref) for ref in edge.parents}
    if len(scopes) > 1:
        yield Problem(
            edge.child,
            f"the merged parents {edge.name} have different numbers of items per source item",
            "merge before the node that emits several, or read them with two nodes",
        )


def check_join(
    node: NodeSpec, edges: tuple[EdgeSpec, ...], nodes: Mapping[str, NodeSpec], lineage: Lineage
) -> Iterator[Problem]:
    """Yields why several inputs cannot be joined by trace."""
    first = edges[0]
    for edge in edges[1:]:
        mine, its = lineage.sources_of(first), lineage.sources_of(edge)
        if mine != its:
            yield Problem(
                node.name,
                f"its inputs {first.name} (from {_listed(mine)}) and {edge.name} (from {_listed(its)}) "
                "have no common source to be joined by",
                "use vf.merge or ByTime (later)",
            )
    scope = lineage.scopes.get(node.name) or min(_scopes(edges, nodes, lineage), key=len)
    for edge in edges:
        for own in {_port_scope(nodes, lineage, ref) for ref in edge.parents}:
            if own[: len(scope)] != scope or len(own) > len(scope) + 1:
                yield Problem(
                    node.name,
                    f"its input {edge.name} has the items of {_listed(set(own))}, and others have those of "
                    f"{_listed(set(scope)) if scope else 'the source'}: they never meet",
                    "join below the same node, or one node that emits several apart",
                )
    if len({lineage.flushes_of(edge) for edge in edges}) > 1 and node.options.missing != "none":
        flushing = frozenset().union(*(lineage.flushes_of(edge) for edge in edges))
        yield Problem(
            node.name,
            f"what {_listed(flushing)} flushes at the end has no partner in this join",
            'say missing="none", and it is called with None for the others',
        )
    if any(edge.latest for edge in edges) and not node.options.missing_chosen:
        yield Problem(
            node.name,
            "one of the inputs that it joins is live, so items may be missing there",
            'choose missing="skip" or missing="none"',
        )
    key = node.options.partition_by
    if node.options.replicas > 1 and key not in (None, "key", "source"):
        yield Problem(
            node.name,
            f"partition_by={key!r} reads an attribute, and what it joins may differ in that",
            'partition a join by "key" or "source", or leave it out',
        )


def _scopes(edges: tuple[EdgeSpec, ...], nodes: Mapping[str, NodeSpec], lineage: Lineage) -> Iterator[Scope]:
    for edge in edges:
        for ref in edge.parents:
            yield _port_scope(nodes, lineage, ref)


def check_watched(spec: FlowSpec, lineage: Lineage, watched: Sequence[PortRef]) -> Iterator[Problem]:
    """Yields why several ports cannot be watched trace by trace; they meet as in a join."""
    if len(watched) < 2:
        return
    eye = NodeSpec(
        name="watch",
        kind=NodeKind.CONSUMER,
        code=CodeKind.MODULE,
        module="",
        qualname="",
        options=OptionsSpec(missing="none", missing_chosen=True),
    )
    edges = tuple(EdgeSpec(child=eye.name, input=n, parents=(port,)) for n, port in enumerate(watched))
    yield from check_join(eye, edges, {node.name: node for node in spec.nodes}, lineage)


def _check_groups(spec: FlowSpec) -> Iterator[Problem]:
    groups: dict[str, list[NodeSpec]] = {}
    for node in spec.nodes:
        if isinstance(node.options.fuse, str) and node.options.fuse:
            groups.setdefault(node.options.fuse, []).append(node)
    for label, members in groups.items():
        for name, cause, remedy in _group_faults(spec, members):
            yield Problem(name, f"it cannot be fused as {label!r}: {cause}", remedy)


def _group_faults(spec: FlowSpec, members: list[NodeSpec]) -> Iterator[tuple[str, str, str]]:
    entry, names = members[0], {node.name for node in members}
    for node in members[1:]:
        edges = spec.inputs(node.name)
        outside = {str(ref) for edge in edges for ref in edge.parents if ref.node not in names}
        if outside or not edges:
            reads = f"reads {_listed(outside)} from outside" if outside else "is a source"
            yield (
                node.name,
                f"a group has one node where it begins, here {entry.name}, and {node.name} {reads}",
                "give it another label",
            )
        if any(edge.latest for edge in edges) and not outside:
            yield node.name, "an edge inside the group is live", "take .latest() away, or the label"
        if node.options.replicas != entry.options.replicas:
            yield (
                node.name,
                f"replicas={node.options.replicas}, and {entry.name} has replicas={entry.options.replicas}",
                "give both the same number",
            )
        if node.options.partition_by is not None:
            yield (
                node.name,
                "partition_by belongs to the node where the group begins",
                f"set it on {entry.name}",
            )


def _check_outputs(spec: FlowSpec) -> Iterator[Problem]:
    readers = {_whole(spec, path): node.name for node in spec.nodes for path in node.traits.inputs}
    writers: dict[str, str] = {}
    for node in spec.nodes:
        for path in node.traits.outputs:
            whole = _whole(spec, path)
            if whole in writers:
                yield Problem(node.name, f"{writers[whole]} writes {path} too", "write to another path")
            if whole in readers:
                yield Problem(node.name, f"it writes {path}, which {readers[whole]} reads", "write elsewhere")
            writers.setdefault(whole, node.name)


def _whole(spec: FlowSpec, path: str) -> str:
    """Returns a path so that two names of one file are equal; symbolic links are followed."""
    return os.path.realpath(os.path.join(spec.folder, path))


def _listed(names: frozenset[str] | set[str]) -> str:
    return ", ".join(sorted(names)) or "no source"
