"""From nodes to tasks: how they are grouped, how inputs are taken, how results are committed.

It judges the conditions of fusing and of replicas again, since a spec may come from anywhere, and reports
all problems of a flow at once. Used first by `plan_flow`. It refuses what cannot be fused or cannot compete.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from videoflow.errors import FlowInvalid, Problem
from videoflow.graph import EFFECT_KEY_REMEDY
from videoflow.graph.spec import FlowSpec, NodeKind, NodeSpec
from videoflow.planner._facts import PlanFacts
from videoflow.planner._fusing import Grouping, could_be_measured, fuse_cheap
from videoflow.planner._grouping import by_entry, circle_problems, entry_of, first_cause, groups_by_label
from videoflow.planner._words import count_text, list_text
from videoflow.planner.plan import CommitOrder, InputMode


@dataclass(frozen=True)
class Task:
    """One or more nodes that run together; the first is the entry.

    Attributes:
        nodes: In topological order.
        mode: How inputs are taken.
        order: How it commits.
        why: Why it is so.
        apart: Why it does not share the process of the only node that it reads, where that was considered.
    """

    nodes: tuple[NodeSpec, ...]
    mode: InputMode
    order: CommitOrder
    why: tuple[str, ...]
    apart: str = ""

    @property
    def entry(self) -> NodeSpec:
        """The node that takes the task's inputs."""
        return self.nodes[0]

    @property
    def name(self) -> str:
        """That of the entry."""
        return self.entry.name

    @property
    def replicas(self) -> int:
        """Running copies."""
        return self.entry.options.replicas

    @property
    def partitions(self) -> int:
        """How many parts its input is cut into, one for each replica; 1 where replicas compete."""
        return 1 if self.mode in (InputMode.SOURCE, InputMode.COMPETING) else self.replicas

    @property
    def partition_key(self) -> str | None:
        """What its partitions are computed from; a join's, unless it says otherwise, from the trace."""
        if self.partitions == 1:
            return None
        return self.entry.options.partition_by or f"trace:{len(self.entry.scope)}"

    @property
    def batch(self) -> int:
        """Inputs in work at once in one replica."""
        return max((node.options.batch.max_items for node in self.nodes if node.options.batch), default=1)

    @property
    def holds_items(self) -> int:
        """Inputs kept unsettled for checkpoints."""
        return sum(node.traits.holds_items for node in self.nodes)

    @property
    def lookahead(self) -> int:
        """Further inputs that its nodes wait for before they answer one."""
        return sum(node.options.lookahead for node in self.nodes)

    @property
    def gathers(self) -> int:
        """Further inputs that one waits for to be called with, where it is in order."""
        return 0 if self.mode is InputMode.COMPETING else self.batch - 1

    @property
    def answers_once(self) -> bool:
        """Whether replicas that share its input record each answer before they publish it."""
        return self.mode is InputMode.COMPETING and self.order is CommitOrder.OUTBOX

    def has(self, node: str) -> bool:
        """Returns whether the task runs a node."""
        return any(member.name == node for member in self.nodes)


def make_tasks(spec: FlowSpec, facts: PlanFacts) -> tuple[Task, ...]:
    """Returns the tasks of a flow in topological order.

    Raises:
        FlowInvalid: Nodes that cannot be fused, replicas that cannot compete, and the like; all of them.
        NotYet: Something that the design names and that is not built yet.
    """
    grouped = groups_by_label(spec, fuse=facts.fuse)
    shares = {n.name for _, (first, *others) in grouped if first.options.partition_by for n in others}
    problems = [p for node in spec.nodes for p in _node_problems(spec, node, shares=node.name in shares)]
    problems += _marker_problems(spec)
    groups: list[tuple[NodeSpec, ...]] = []
    for label, members in grouped:
        found, entry = entry_of(spec, label, members)
        problems += found
        if entry is not None:
            groups.append((entry, *(node for node in members if node is not entry)))
    problems = problems or list(circle_problems(spec, groups))
    if problems:
        raise FlowInvalid(problems)
    made = fuse_cheap(spec, groups, facts, lambda members: first_cause(spec, members))
    return tuple(_task(spec, facts, nodes, made) for nodes in by_entry(spec, made.groups))


def gain_is_unknown(spec: FlowSpec, tasks: Sequence[Task], facts: PlanFacts) -> bool:
    """Whether a profiled run would show if some of these tasks should be one."""
    groups = [task.nodes for task in tasks]
    unknown = facts.fuse and facts.costs is None
    return unknown and could_be_measured(spec, groups, lambda members: first_cause(spec, members))


def _node_problems(spec: FlowSpec, node: NodeSpec, *, shares: bool) -> list[Problem]:
    """Judges one node; `shares`: its replicas share the input of its group by the key of the first node."""
    options, inputs = node.options, spec.inputs(node.name)
    problems = []
    if node.kind is NodeKind.PRODUCER and options.replicas > 1:
        cause = "a source has one replica, since two would read the same thing twice"
        problems.append(Problem(node.name, cause, "make it replicas=1"))
    competes = options.replicas > 1 and options.partition_by is None and not shares
    if competes and node.kind is not NodeKind.PRODUCER:
        reason = _single_owner_reason(node)
        if reason is not None:
            cause = f"it {reason}, so that its {options.replicas} replicas cannot compete for its input"
            problems.append(Problem(node.name, cause, "make it replicas=1, or say partition_by="))
    key = options.partition_by
    if node.competes_without_effect_key(len(inputs)):
        cause = f"it is a sink with replicas={options.replicas}, and its class declares no effect key"
        problems.append(Problem(node.name, cause, EFFECT_KEY_REMEDY))
    if options.replicas > 1 and len(inputs) > 1 and key not in (None, "key", "source"):
        cause = f"partition_by={key!r} reads an attribute, and what it joins may differ in that"
        problems.append(Problem(node.name, cause, 'partition a join by "key" or "source", or leave it out'))
    if _keeps_state(node) and not options.ordered and node.kind is not NodeKind.PRODUCER:
        cause = f"it {_single_owner_reason(node)}, and ordered=False is for nodes without state"
        problems.append(Problem(node.name, cause, "take ordered=False away"))
    if options.batch is not None and _keeps_state(node):
        cause = f"it {_keeping_reason(node)}, and that belongs to one input: batch= is for nodes without"
        problems.append(Problem(node.name, cause, "take batch= away"))
    if len(inputs) > 1 and any(edge.latest for edge in inputs) and not options.missing_chosen:
        cause = "one of the inputs that it joins is live, so that items may be missing there"
        problems.append(Problem(node.name, cause, 'choose missing="skip" or missing="none"'))
    problems += [
        Problem(node.name, f"its merged input {edge.name} names a port twice", "name it once")
        for edge in inputs
        if len(set(edge.parents)) != len(edge.parents)
    ]
    return problems


def _marker_problems(spec: FlowSpec) -> Iterator[Problem]:
    """Yields why nodes of a document cannot have their markers."""
    for control in spec.controls:
        node = spec.node(control.child)
        if node.kind is NodeKind.PRODUCER:
            yield Problem(node.name, "a source takes no markers", "give them to a node that reads it")
        elif not node.traits.controlled:
            yield Problem(
                node.name, "it is given markers and has no on_control", "write on_control(self, marker)"
            )
        label = node.options.fuse
        inside = [r.node for r in control.parents if label and spec.node(r.node).options.fuse == label]
        if inside:
            cause = f"its markers come from {list_text(inside)}, in the same fused task {label!r}"
            yield Problem(node.name, cause, "take the label off one of them")


def _keeps_state(node: NodeSpec) -> bool:
    return node.traits.stateful or node.traits.flushes or node.traits.checkpoints


def _keeping_reason(node: NodeSpec) -> str | None:
    if node.traits.stateful:
        return "keeps state"
    if node.traits.flushes:
        return "has a flush"
    return "makes checkpoints" if node.traits.checkpoints else None


def _single_owner_reason(node: NodeSpec) -> str | None:
    return _keeping_reason(node) or ("is ordered" if node.options.ordered else None)


def _task(spec: FlowSpec, facts: PlanFacts, nodes: tuple[NodeSpec, ...], made: Grouping) -> Task:
    why = list(made.fused.get(nodes[0].name, ()))
    if len(nodes) > 1 and not why:
        label = nodes[0].options.fuse
        why.append(
            f"{list_text([n.name for n in nodes])} carry the label {label!r}: one process, direct calls"
        )
    order, reason = _order(facts, nodes)
    mode, taking = _mode(spec, nodes, order)
    whole = (*why, taking, *_batching(nodes[0], mode), reason)
    return Task(nodes, mode, order, whole, made.apart.get(nodes[0].name, ""))


def _batching(entry: NodeSpec, mode: InputMode) -> Iterator[str]:
    """Yields how the first node of a task is given several inputs at once."""
    batch = entry.options.batch
    if batch is None:
        return
    which = "" if batch.group_by is None else " of one shape"
    turn = "" if mode is InputMode.COMPETING else ", neighbours in their order"
    yield (
        f"{entry.name} is given up to {count_text(batch.max_items, 'input')}{which} in one call{turn}; the "
        f"first waits {batch.max_wait_seconds:g} s for others at most"
    )


def _mode(spec: FlowSpec, nodes: tuple[NodeSpec, ...], order: CommitOrder) -> tuple[InputMode, str]:
    entry = nodes[0]
    inputs = len(spec.inputs(entry.name))
    if entry.kind is NodeKind.PRODUCER:
        return InputMode.SOURCE, "a source: it numbers its items, and one replica reads the outside world"
    replicas, key = entry.options.replicas, entry.options.partition_by
    if inputs > 1:
        taking = f"a join: {inputs} inputs meet by the source item that they derive from"
        if replicas > 1:
            taking += f"; each of {replicas} replicas has its share, by {key or 'source item'}"
        return InputMode.JOIN, taking
    if key is not None and replicas > 1:
        return (
            InputMode.ORDERED,
            f"partitioned by {key}: each of {replicas} replicas owns its share, in order",
        )
    reasons: Mapping[str, str | None] = {node.name: _single_owner_reason(node) for node in nodes}
    for name, reason in reasons.items():
        if reason is not None:
            return InputMode.ORDERED, f"ordered: {name} {reason}, so one owner reads in order"
    if order is CommitOrder.OUTBOX and replicas == 1:
        return InputMode.ORDERED, "ordered: one owner reads, because results are committed before published"
    taking = (
        "no state and no order asked for" if replicas == 1 else f"{replicas} replicas compete for its input"
    )
    if order is CommitOrder.OUTBOX:
        taking += ", and each records what it answers, once per input, before it publishes"
    return InputMode.COMPETING, f"unordered: {taking}; results may overtake each other"


def _order(facts: PlanFacts, nodes: tuple[NodeSpec, ...]) -> tuple[CommitOrder, str]:
    reasons = []
    for node in nodes:
        if _keeps_state(node):
            reasons.append(f"{node.name} {_single_owner_reason(node)}")
        elif node.traits.effect_key_seconds != 0:
            reasons.append(f"{node.name} marks the inputs whose effects have happened")
        elif not node.options.deterministic:
            reasons.append(f"{node.name} may answer differently when it runs again")
        elif node.many and not facts.messaging.atomic_append:
            reasons.append(
                f"{node.name} emits several items and {facts.messaging.adapter} takes them one by one"
            )
    if reasons:
        return CommitOrder.OUTBOX, f"commits before it publishes (outbox): {list_text(reasons)}"
    if not any(node.ports for node in nodes):
        return CommitOrder.STATELESS, "settles an input once it is consumed (stateless): it keeps nothing"
    return CommitOrder.STATELESS, "publishes, then settles (stateless): a run again gives the same results"
