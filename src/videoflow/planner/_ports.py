"""What is known of every port before any bound is chosen: item size, fan-out, sources above it.

Used by sizing and admission. It refuses nothing; a size that nobody knows is assumed, and said to be.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from videoflow.graph.spec import FlowSpec, NodeKind, NodeSpec, PortRef
from videoflow.planner._facts import PlanFacts
from videoflow.planner._wiring import Wiring


@dataclass(frozen=True)
class Port:
    """One output port.

    Attributes:
        item_bytes: Its largest item.
        burst: The most items that one input of the task makes on it.
        depth: Fan-outs passed since the source, this one included.
        scope: Their names, `node.port`.
        sources: Producers above it.
    """

    item_bytes: int
    burst: int
    scope: tuple[str, ...]
    sources: frozenset[str]


def describe_ports(wiring: Wiring, facts: PlanFacts) -> dict[PortRef, Port]:
    """Describes every port of a flow."""
    sizes = _item_bytes(wiring.spec, facts)
    sources: dict[str, frozenset[str]] = {}
    ports: dict[PortRef, Port] = {}
    for node in wiring.spec.nodes:
        parents = [parent for edge in wiring.spec.inputs(node.name) for parent in edge.parents]
        above = frozenset[str]().union(*(sources[parent.node] for parent in parents))
        sources[node.name] = above | ({node.name} if node.kind is NodeKind.PRODUCER else frozenset())
        is_entry = wiring.task_of(node.name).name == node.name
        arriving = 1 if is_entry else max((ports[parent].burst for parent in parents), default=1)
        for port in node.ports:
            ports[PortRef(node=node.name, port=port)] = Port(
                item_bytes=sizes[node.name],
                burst=arriving * node.many.get(port, 1),
                scope=output_scope(node, port),
                sources=sources[node.name],
            )
    return ports


def output_scope(node: NodeSpec, port: str) -> tuple[str, ...]:
    """Returns the fan-out ports between the sources and the readers of a port."""
    return (*node.scope, f"{node.name}.{port}") if port in node.many else node.scope


def _item_bytes(spec: FlowSpec, facts: PlanFacts) -> Mapping[str, int]:
    sizes: dict[str, int] = {}
    for node in spec.nodes:
        parents = [parent.node for edge in spec.inputs(node.name) for parent in edge.parents]
        inherited = max((sizes[parent] for parent in parents), default=facts.defaults.item_bytes)
        declared = facts.max_item_bytes.get(node.name, node.traits.max_item_bytes)
        sizes[node.name] = inherited if declared is None else declared
    return sizes


def size_reason(spec: FlowSpec, facts: PlanFacts, name: str) -> str:
    """Says where the largest item of a node's ports comes from."""
    node = spec.node(name)
    if name in facts.max_item_bytes:
        return "read from the source"
    if node.traits.max_item_bytes is not None:
        return "max_item_bytes of its class"
    return "as its largest input" if spec.inputs(name) else "assumed, nothing is known of it"
