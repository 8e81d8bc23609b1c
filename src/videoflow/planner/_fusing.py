"""Fuses cheap one-to-one chains where measured costs say that it gains, and says why, or why not.

Used by `make_tasks`, after labels. A pair of nodes is considered where each is the other's only neighbour on
that side. It refuses to fuse what was not measured, and what its author separated.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from videoflow.graph.spec import EdgeSpec, FlowSpec, NodeKind, NodeSpec, PortRef
from videoflow.planner._costs import FlowCosts
from videoflow.planner._facts import PlanFacts
from videoflow.planner._words import list_text, time_text

Members = tuple[NodeSpec, ...]
Refused = Callable[[Members], str | None]
"""Judges by rule 20 whether nodes can be one task; returns why not."""

_CHEAP_SHARE = 0.25  # of a hop: what the shorter nodes of a task may take together
_PACE_SHARE = 0.8  # of the time per item without fusing: what a fused task may take


@dataclass
class Grouping:
    """How nodes were put together.

    Attributes:
        groups: The nodes of each task; the first is the entry.
        fused: Entry → why its nodes share a process, a sentence for each that joined.
        apart: Node → why it did not join the task of its only parent.
    """

    groups: list[Members]
    fused: dict[str, list[str]] = field(default_factory=dict)
    apart: dict[str, str] = field(default_factory=dict)


def fuse_cheap(spec: FlowSpec, groups: Sequence[Members], facts: PlanFacts, refused: Refused) -> Grouping:
    """Returns the groups with those put together that gain by it.

    Args:
        spec: The flow.
        groups: By label, entries first.
        facts: With what was measured.
        refused: Rule 20.
    """
    made = Grouping(list(groups))
    if not facts.fuse or facts.costs is None:
        return made
    pace = _Pace(spec, groups, facts, facts.costs)
    for above, edge, below in _pairs(spec, groups):
        group = next(members for members in made.groups if above in members)
        joined = (*group, below)
        why = refused(joined) or _separated(spec, above, edge, below) or pace.against(joined, edge)
        if why is not None:
            made.apart[below.name] = why
            continue
        made.groups.remove((below,))
        made.groups[made.groups.index(group)] = joined
        said = made.fused.setdefault(joined[0].name, [])
        said.append(f"{below.name} joins {list_text([n.name for n in group])}: {pace.gain(joined, edge)}")
    return made


def could_be_measured(spec: FlowSpec, groups: Sequence[Members], refused: Refused) -> bool:
    """Whether some pair of nodes would be fused if it were found to be cheap."""
    return any(
        not refused((above, below)) and _separated(spec, above, edge, below) is None
        for above, edge, below in _pairs(spec, groups)
    )


def _pairs(spec: FlowSpec, groups: Sequence[Members]) -> Iterator[tuple[NodeSpec, EdgeSpec, NodeSpec]]:
    """Yields node, edge and node where the one reads nothing else and nothing else reads the other."""
    inside = {node.name: members for members in groups for node in members}
    for below in spec.nodes:
        inputs = spec.inputs(below.name)
        if len(inputs) != 1 or len(inputs[0].parents) != 1:
            continue
        above = spec.node(inputs[0].parents[0].node)
        if len(_readers(spec, above)) == 1 and inside[above.name] is not inside[below.name]:
            yield above, inputs[0], below


def _readers(spec: FlowSpec, node: NodeSpec) -> list[str]:
    read = [edge.child for edge in spec.edges if any(parent.node == node.name for parent in edge.parents)]
    return read + [
        control.child for control in spec.controls if any(p.node == node.name for p in control.parents)
    ]


def _separated(spec: FlowSpec, above: NodeSpec, edge: EdgeSpec, below: NodeSpec) -> str | None:
    """Returns what keeps two neighbours apart beyond rule 20, whatever they cost."""
    for node in (above, below):
        found = _keeps_apart(spec, node)
        if found is not None:
            return f"{node.name} {found}"
    if above.options.resources != below.options.resources:
        return f"it asks for other resources than {above.name}"
    stated = {channel.channel for channel in spec.requirements.channels}
    if str(edge.parents[0]) in stated or above.name in stated:
        return f"the flow requires something of the channel {edge.parents[0]}"
    return "the flow requires that nodes are isolated" if spec.requirements.isolated else None


def _keeps_apart(spec: FlowSpec, node: NodeSpec) -> str | None:
    """Returns what a node has that keeps it by itself, as the rest of a sentence about it."""
    options, traits = node.options, node.traits
    markers = spec.control(node.name) is not None or any(
        ref.node == node.name for control in spec.controls for ref in control.parents
    )
    reasons: Mapping[str, bool] = {
        "says fuse=False": options.fuse is False,
        f"is where its label {options.fuse!r} says": isinstance(options.fuse, str),
        "is a source, which goes on while others work": node.kind is NodeKind.PRODUCER,
        "may make several items of one": bool(node.many),
        "works in batches": options.batch is not None,
        "asks for accelerators": bool(options.resources.gpus),
        "has a time limit, after which its process is ended": options.timeout_seconds is not None,
        "takes or makes markers": markers,
        "waits for further inputs": bool(options.lookahead),
        "makes checkpoints": traits.checkpoints,
        "has an effect key": traits.effect_key_seconds != 0,
        "may answer differently when it runs again": not options.deterministic,
        "has its input partitioned": options.partition_by is not None,
    }
    return next((reason for reason, holds in reasons.items() if holds), None)


class _Pace:
    """The time per source item of tasks, and of the flow without fusing; what is unknown counts as 0."""

    def __init__(self, spec: FlowSpec, groups: Sequence[Members], facts: PlanFacts, costs: FlowCosts) -> None:
        self._spec, self._costs = spec, costs
        stages = {members[0].name: self._stage(members) for members in groups}
        slowest = max(stages, key=lambda name: stages[name])
        shared = sum(self._seconds(node) for node in spec.nodes) + sum(
            self._hop(edge, parent) or 0.0
            for members in groups
            for edge in spec.inputs(members[0].name)
            for parent in edge.parents
        )
        self._limit = max(stages[slowest], shared / facts.cpus)
        by_stage = stages[slowest] >= self._limit
        self._by = f"one every {time_text(self._limit)}, the pace of " + (
            slowest if by_stage else f"{facts.cpus:g} processors"
        )

    def against(self, members: Members, edge: EdgeSpec) -> str | None:
        """Returns why nodes, the last of which reads that edge, do not gain by being one task."""
        unknown = [node.name for node in members if node.name not in self._costs.nodes]
        if unknown:
            return f"no profiled run has measured {list_text(unknown)} as it is now"
        hop = self._hop(edge, edge.parents[0])
        if hop is None:
            return f"no profiled run has measured handing over from {edge.name}"
        if self._is_cheap(members, hop) or self._stage(members) <= _PACE_SHARE * self._limit:
            return None
        each = list_text([f"{node.name} {time_text(self._seconds(node))}" for node in members])
        return f"at work at once they are quicker: {each} an item, and handing over {time_text(hop)}"

    def gain(self, members: Members, edge: EdgeSpec) -> str:
        """Returns what is gained, in words."""
        hop = self._hop(edge, edge.parents[0]) or 0.0
        own = sum(self._seconds(node) for node in members)
        what = f"{time_text(own)} an item together, in run {self._costs.run_id}"
        saved = f"which saves a hop of {time_text(hop)}"
        pace = "" if self._is_cheap(members, hop) else f"; the flow takes {self._by}"
        return f"{what}, {saved}{pace}"

    def _is_cheap(self, members: Members, hop: float) -> bool:
        each = [self._seconds(node) for node in members]
        return sum(each) - max(each) <= _CHEAP_SHARE * hop

    def _seconds(self, node: NodeSpec) -> float:
        found = self._costs.nodes.get(node.name)
        return found.seconds if found is not None else 0.0

    def _hop(self, edge: EdgeSpec, parent: PortRef) -> float | None:
        found = self._costs.nodes.get(edge.child)
        return None if found is None else found.hops.get(str(parent))

    def _stage(self, members: Members) -> float:
        """Returns what one replica of a task takes per item: its nodes, and its half of each hop."""
        names = {node.name for node in members}
        hops = [
            self._hop(edge, parent) or 0.0
            for edge in self._spec.edges
            for parent in edge.parents
            if (edge.child in names) != (parent.node in names)
        ]
        own = sum(self._seconds(node) for node in members)
        return (own + sum(hops) / 2) / members[0].options.replicas
