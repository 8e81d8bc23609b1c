"""From the nodes that a user wired to the document that everything else reads.

Used by `Flow`. It refuses a graph with anything wrong in it, and says all of it at once.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import msgspec

from videoflow.errors import FlowInvalid, NotYet, Problem
from videoflow.graph._code import code_reference
from videoflow.graph._folder import within_folder
from videoflow.graph._graph_checks import check_graph, check_watched, trace_lineage
from videoflow.graph._naming import NAME, names_of
from videoflow.graph._node import Node
from videoflow.graph._node_checks import check_node
from videoflow.graph._requirements import Requirements, check_requirements, requirements_spec
from videoflow.graph._resolve import options_of
from videoflow.graph._traits import many_of, traits_of
from videoflow.graph._wiring import Input, Port
from videoflow.graph.spec import (
    ControlSpec,
    EdgeSpec,
    FlowSpec,
    LatestSpec,
    NodeKind,
    NodeSpec,
    PortRef,
    RequirementsSpec,
)

_NOTHING_ASKED = Requirements()


@dataclass(frozen=True)
class Compiled:
    """A flow as a document, and the objects that it was made of.

    Attributes:
        spec: The document.
        nodes: Name → node.
    """

    spec: FlowSpec
    nodes: dict[str, Node]

    def reference(self, port: Port) -> PortRef | None:
        """Returns a port by name, or None if its node is not part of the flow."""
        for name, node in self.nodes.items():
            if node is port.node:
                return PortRef(node=name, port=port.name)
        return None

    def refuse_unwatchable(self, watched: Sequence[PortRef]) -> None:
        """Refuses ports that cannot be watched together.

        Raises:
            FlowInvalid: They have no common source, or different numbers of items per source item.
            NotYet: They are below a node that emits several items.
        """
        _raise_all(list(check_watched(self.spec, trace_lineage(self.spec), watched)))


def compile_flow(
    ends: Sequence[Node],
    flow_id: str,
    folder: str,
    requirements: Requirements = _NOTHING_ASKED,
    *,
    watching: bool = False,
) -> Compiled:
    """Returns the compiled flow.

    Args:
        ends: The sinks, and other nodes that the flow must contain.
        flow_id: Name of the flow.
        folder: What relative paths are relative to.
        requirements: What the backends must give.
        watching: Ends need not be consumers.

    Raises:
        FlowInvalid: The graph has problems; it carries all of them.
        NotYet: All that is wrong is that some of it is not built yet.
    """
    problems = list(_flow_problems(flow_id, ends))
    nodes, cycles = _in_order(ends)
    names = names_of(nodes, problems)
    problems += _cycle_problems(cycles, names)
    if not watching:
        problems += _end_problems(ends, names)
    unique, keys = _told_apart(nodes, names)
    specs = []
    for name, node in unique.items():
        with within_folder(folder):
            made = _node_spec(name, node)
        problems += check_node(node, made)
        specs.append(made)
    edges = [edge for name, node in unique.items() for edge in _edges(name, node, keys)]
    controls = tuple(control for name, node in unique.items() for control in _controls(name, node, keys))
    spec = FlowSpec(flow_id=flow_id, folder=folder, nodes=tuple(specs), edges=tuple(edges), controls=controls)
    if not cycles:
        lineage = trace_lineage(spec)
        later_ports = {name: node.later_ports for name, node in unique.items()}
        problems += check_graph(spec, lineage, later_ports)
        scoped = [msgspec.structs.replace(node, scope=lineage.scopes[node.name]) for node in specs]
        spec = msgspec.structs.replace(spec, nodes=tuple(scoped))
    spec = msgspec.structs.replace(spec, requirements=_requirements_spec(requirements, spec, problems))
    _raise_all(problems)
    return Compiled(spec, unique)


def _flow_problems(flow_id: str, ends: Sequence[Node]) -> Iterator[Problem]:
    if not NAME.fullmatch(flow_id):
        remedy = "use a lower-case letter, then up to 40 of a-z, 0-9, _ and -"
        yield Problem(flow_id, f"{flow_id!r} is no name of a flow", remedy)
    if not ends:
        yield Problem(flow_id, "the flow has no sinks", "write vf.Flow([Sink(...)(node)])")


def _told_apart(nodes: Sequence[Node], names: Mapping[int, str]) -> tuple[dict[str, Node], dict[int, str]]:
    """Returns name → node, and the other way round.

    A name given twice is a problem already; the checks still need one for each node.
    """
    unique: dict[str, Node] = {}
    keys: dict[int, str] = {}
    for node in nodes:
        name = names[id(node)]
        keys[id(node)] = name if name not in unique else f"{name} (again, {len(unique)})"
        unique[keys[id(node)]] = node
    return unique, keys


def _requirements_spec(stated: Requirements, spec: FlowSpec, problems: list[Problem]) -> RequirementsSpec:
    found = list(check_requirements(stated, spec))
    problems += found
    return RequirementsSpec() if found else requirements_spec(stated)


def _raise_all(problems: Sequence[Problem]) -> None:
    if not problems:
        return
    found = list(dict.fromkeys(problems))
    if any(problem.code != NotYet.code for problem in found):
        raise FlowInvalid(found)
    shown = "\n".join(f"{each.node}: {each.cause} ({each.remedy})" for each in found)
    raise NotYet(
        f"the flow uses {len(found)} thing{'s' if len(found) != 1 else ''} that is not built yet",
        cause=shown,
        effect="nothing was started",
        remedy="see each line",
        problems=found,
    )


def _in_order(ends: Iterable[Node]) -> tuple[list[Node], list[list[Node]]]:
    """Returns the nodes above the ends, parents first, and the cycles that were met.

    Iterative, since a long chain of nodes is no mistake.
    """
    order: list[Node] = []
    cycles: list[list[Node]] = []
    state: dict[int, bool] = {}  # False while the node is on the path, True when it is done
    for end in ends:
        path: list[tuple[Node, list[Node]]] = []
        if id(end) not in state:
            state[id(end)] = False
            path.append((end, _parents(end)))
        while path:
            node, waiting = path[-1]
            if not waiting:
                path.pop()
                state[id(node)] = True
                order.append(node)
                continue
            parent = waiting.pop(0)
            if id(parent) not in state:
                state[id(parent)] = False
                path.append((parent, _parents(parent)))
            elif not state[id(parent)]:
                on_path = [step for step, _ in path]
                start = next(number for number, step in enumerate(on_path) if step is parent)
                cycles.append(on_path[start:])
    return order, cycles


def _parents(node: Node) -> list[Node]:
    markers = node._videoflow_record.markers or ()
    return [*_read_by(node), *(port.node for port in markers)]


def _read_by(node: Node) -> list[Node]:
    return [port.node for each in node._videoflow_record.inputs or () for port in each.ports]


def _cycle_problems(cycles: Iterable[Sequence[Node]], names: Mapping[int, str]) -> list[Problem]:
    problems = []
    for cycle in cycles:
        shown, circle = [names[id(node)] for node in cycle], names[id(cycle[0])]
        for node, parent in zip(cycle, [*cycle[1:], cycle[0]], strict=True):
            reads = any(parent is one for one in _read_by(node))
            circle += f" {'reads' if reads else 'takes markers of'} {names[id(parent)]}"
        problems.append(Problem(shown[0], f"a cycle: {circle}", "wire each node to nodes made before it"))
    return problems


def _end_problems(ends: Iterable[Node], names: Mapping[int, str]) -> list[Problem]:
    return [
        Problem(names[id(end)], "it ends the flow and is no consumer", "end with a sink, such as Collect()")
        for end in ends
        if end._videoflow_kind is not NodeKind.CONSUMER
    ]


def _node_spec(name: str, node: Node) -> NodeSpec:
    code, module, qualname = code_reference(type(node))
    traits = traits_of(node)
    return NodeSpec(
        name=name,
        kind=node._videoflow_kind,
        code=code,
        module=module,
        qualname=qualname,
        arguments=node._videoflow_record.arguments,
        ports=tuple(node.ports),
        many=many_of(node),
        options=options_of(node, traits),
        traits=traits,
    )


def _edges(name: str, node: Node, keys: Mapping[int, str]) -> list[EdgeSpec]:
    return [
        EdgeSpec(
            child=name,
            input=number,
            parents=tuple(PortRef(node=keys[id(port.node)], port=port.name) for port in each.ports),
            latest=_latest(each),
        )
        for number, each in enumerate(node._videoflow_record.inputs or ())
    ]


def _controls(name: str, node: Node, keys: Mapping[int, str]) -> list[ControlSpec]:
    markers = node._videoflow_record.markers
    if markers is None:
        return []
    parents = tuple(PortRef(node=keys[id(port.node)], port=port.name) for port in markers)
    return [ControlSpec(child=name, parents=parents)]


def _latest(each: Input) -> LatestSpec | None:
    live = each.latest
    if live is None:
        return None
    return LatestSpec(key=live.key, max_age_seconds=live.max_age_seconds, capacity=live.capacity)
