"""A task as its core sees it: nodes in order, who feeds whom, and which channels carry what leaves.

Made from the plan by the core, and by whoever tests it. It refuses nothing: the planner did.
"""

from collections.abc import Sequence

import msgspec

from videoflow.graph.spec import NodeKind, NodeSpec, PortRef
from videoflow.planner.plan import ChannelRef, InputMode, Plan, SubscriptionPlan, TaskPlan


class InnerInput(msgspec.Struct, frozen=True):
    """One input of a node that is fed inside the task.

    Attributes:
        name: What the node calls it.
        parents: (node, port) within the task.
        edges: The number of the inner edge of each parent.
        deeper: Its items lie one fan-out below the node's own, and come as a list.
    """

    name: str
    parents: tuple[tuple[str, str], ...]
    edges: tuple[int, ...]
    deeper: bool = False


class NodeProgram(msgspec.Struct, frozen=True):
    """One node of a task.

    Attributes:
        spec: The node.
        input_names: By position.
        inner: Its inputs inside the task; empty for the entry node.
        ports: Port → (whether it may emit several items, channel numbers), for every declared port.
    """

    spec: NodeSpec
    input_names: tuple[str, ...]
    inner: tuple[InnerInput, ...]
    ports: dict[str, tuple[bool, tuple[int, ...]]]


class TaskProgram(msgspec.Struct, frozen=True):
    """One task.

    Attributes:
        run_id: Of the run.
        task: Its plan.
        nodes: In topological order; the entry first.
        channels: What the task writes, by number.
        subscriptions: What it reads: (input position, subscription), by number.
        inner_edges: (parent, port, child, input) by number, for the ledger.
        live_keys: Per channel: attributes of its items that live readers tell them apart by.
        above: Per input of the entry: the nodes that its items may have begun at.
        controls: The markers that it reads: (node that they go to, subscription), by number.
    """

    run_id: str
    task: TaskPlan
    nodes: tuple[NodeProgram, ...]
    channels: tuple[ChannelRef, ...]
    subscriptions: tuple[tuple[int, SubscriptionPlan], ...]
    inner_edges: tuple[tuple[str, str, str, int], ...]
    live_keys: tuple[tuple[str, ...], ...] = ()
    above: tuple[frozenset[str], ...] = ()
    controls: tuple[tuple[str, SubscriptionPlan], ...] = ()

    @property
    def entry(self) -> NodeProgram:
        """The node that the task's inputs go to."""
        return self.nodes[0]

    @property
    def deeper(self) -> tuple[bool, ...]:
        """Per input: whether its items lie one fan-out below the entry's own, and come as a list."""
        depth = len(self.entry.spec.scope)
        return tuple(any(s.scope > depth for s in given.subscriptions) for given in self.task.inputs)

    @property
    def flushing(self) -> tuple[NodeProgram, ...]:
        """Nodes that have something to say at the end."""
        return tuple(node for node in self.nodes if node.spec.traits.flushes)

    @property
    def checkpointing(self) -> NodeProgram | None:
        """The sink whose checkpoints decide what may be settled, or None."""
        if self.task.mode is InputMode.SOURCE:
            return None
        return next((node for node in self.nodes if node.spec.traits.checkpoints), None)


def make_program(plan: Plan, task: TaskPlan, run_id: str) -> TaskProgram:
    """Returns the program of one task of a plan."""
    channels: list[ChannelRef] = []
    numbers: dict[tuple[str, str], tuple[int, ...]] = {}
    for output in task.outputs:
        first = len(channels)
        channels += output.channels
        numbers[output.node, output.port] = tuple(range(first, len(channels)))
    edges: list[tuple[str, str, str, int]] = []
    nodes = [_node_program(plan, task, name, numbers, edges) for name in task.nodes]
    subscriptions = tuple((given.index, s) for given in task.inputs for s in given.subscriptions)
    live_keys = tuple(_live_keys(plan, channel) for channel in channels)
    above = tuple(_above(plan, edge.parents) for edge in plan.spec.inputs(task.nodes[0]))
    controls = tuple((control.node, s) for control in task.controls for s in control.subscriptions)
    return TaskProgram(
        run_id, task, tuple(nodes), tuple(channels), subscriptions, tuple(edges), live_keys, above, controls
    )


def _above(plan: Plan, parents: Sequence[PortRef]) -> frozenset[str]:
    found: set[str] = set()
    waiting = [parent.node for parent in parents]
    while waiting:
        name = waiting.pop()
        if name not in found:
            found.add(name)
            waiting += [ref.node for edge in plan.spec.inputs(name) for ref in edge.parents]
    return frozenset(found)


def _scope_of(plan: Plan, ref: PortRef) -> int:
    parent = plan.spec.node(ref.node)
    return len(parent.scope) + (ref.port in parent.many)


def _live_keys(plan: Plan, channel: ChannelRef) -> tuple[str, ...]:
    keys = {
        subscription.latest.key
        for task in plan.tasks
        for given in task.inputs
        for subscription in given.subscriptions
        if subscription.latest is not None and subscription.channel == channel
    }
    return tuple(sorted(key for key in keys if key is not None and key not in ("key", "source")))


def _node_program(
    plan: Plan,
    task: TaskPlan,
    name: str,
    numbers: dict[tuple[str, str], tuple[int, ...]],
    edges: list[tuple[str, str, str, int]],
) -> NodeProgram:
    spec = plan.spec.node(name)
    inputs = plan.spec.inputs(name)
    inner: list[InnerInput] = []
    if name != task.nodes[0]:
        for given in inputs:
            first = len(edges)
            edges += [(ref.node, ref.port, name, given.input) for ref in given.parents]
            parents = tuple((ref.node, ref.port) for ref in given.parents)
            numbers_of = tuple(range(first, len(edges)))
            below = [_scope_of(plan, ref) for ref in given.parents]
            deeper = len(inputs) > 1 and any(scope > len(spec.scope) for scope in below)
            inner.append(InnerInput(given.name, parents, numbers_of, deeper))
    ports = {
        port: (port in spec.many, numbers.get((name, port), ()))
        for port in (spec.ports if spec.kind is not NodeKind.CONSUMER else ())
    }
    return NodeProgram(spec, tuple(given.name for given in inputs), tuple(inner), ports)
