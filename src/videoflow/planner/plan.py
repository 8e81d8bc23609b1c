"""The plan: which tasks run, over which channels, with which bounds, and why.

Made by the planner, written to `plan.json`, run by the engines, shown by `explain`: the same
document. It holds no code and no run id.
"""

from enum import StrEnum

import msgspec

from videoflow.backends.messaging import Reliability
from videoflow.graph.spec import FlowSpec, LatestSpec
from videoflow.planner._admitted import CompositionPlan
from videoflow.planner._costs import FlowCosts

PLAN_SCHEMA = 1


class CommitOrder(StrEnum):
    """The two orders of rule 5, and how the two ends of a flow commit."""

    STATELESS = "stateless"
    OUTBOX = "outbox"


class InputMode(StrEnum):
    """How a task takes its inputs.

    `SOURCE`: it has none. `COMPETING`: replicas share single messages. `ORDERED`: one owner, by ordinal
    within each origin. `JOIN`: one owner; inputs meet by trace, in order.
    """

    SOURCE = "source"
    COMPETING = "competing"
    ORDERED = "ordered"
    JOIN = "join"


class Transport(StrEnum):
    """How an edge is carried."""

    FUSED = "fused"
    MEMORY = "memory"
    SHM = "shm"


class ChannelRef(msgspec.Struct, frozen=True, kw_only=True):
    """A channel without its run: node, port and layout.

    Attributes:
        node: Who writes it.
        port: Which port.
        reliability: Whether items may be evicted.
        key: What partitions are computed from: `key`, `source`, an attribute of the item, or `trace:<n>`,
            the source item and the first n fan-outs; None for one partition.
        partitions: How many there are.
    """

    node: str
    port: str
    reliability: Reliability = Reliability.RELIABLE
    key: str | None = None
    partitions: int = 1


class SubscriptionPlan(msgspec.Struct, frozen=True, kw_only=True):
    """One task input on one channel.

    Attributes:
        channel: What is read.
        reader: `<task>/<input>`, the reader name of the subscription.
        exclusive: One owner in channel order, or competing.
        credit_items: Leased and unsettled at most.
        credit_bytes: The same in bytes.
        spread: W of rule 4, or None.
        hold_items: What an ordered reader or join must be able to hold (rule 4); 0 where it holds nothing.
        latest: Set for a live edge.
        scope: Number of fan-outs on its traces.
        broadcast: Every replica of the task has one of its own: it carries markers.
        why: How the figures came about, in words.
    """

    channel: ChannelRef
    reader: str
    exclusive: bool
    credit_items: int
    credit_bytes: int
    spread: int | None = None
    hold_items: int = 0
    latest: LatestSpec | None = None
    scope: int = 0
    broadcast: bool = False
    why: str = ""


class ControlPlan(msgspec.Struct, frozen=True, kw_only=True):
    """The markers of one node of a task: one subscription, or several for `merge`."""

    node: str
    name: str
    subscriptions: tuple[SubscriptionPlan, ...]


class InputPlan(msgspec.Struct, frozen=True, kw_only=True):
    """One input of a task's entry node: one subscription, or several for `merge`."""

    index: int
    name: str
    subscriptions: tuple[SubscriptionPlan, ...]


class OutputPlan(msgspec.Struct, frozen=True, kw_only=True):
    """One port of a task that other tasks read: the channels (layouts) that carry it."""

    node: str
    port: str
    channels: tuple[ChannelRef, ...]


class TaskPlan(msgspec.Struct, frozen=True, kw_only=True):
    """One or more nodes that run in one process.

    Attributes:
        name: That of its entry node.
        nodes: In topological order; the first is the entry.
        replicas: Running copies.
        mode: How inputs are taken.
        order: How it commits.
        inputs: By position.
        outputs: Ports read by other tasks.
        max_item_bytes: Largest item of any port, for reserving payload space.
        prefetch: Messages that a replica keeps leased beyond the one in work.
        checkpoint_items: Most inputs kept unsettled for checkpoints.
        why: Why these nodes are together and commit as they do.
        step_bytes: Payload space that one replica reserves for all outputs of one input.
        batch_items: Inputs that one replica may have in work at once.
        publish_window: Publications that one replica may have in flight; it sends in order, and nothing
            after one that was refused.
        controls: The markers of its nodes.
    """

    name: str
    nodes: tuple[str, ...]
    replicas: int
    mode: InputMode
    order: CommitOrder
    inputs: tuple[InputPlan, ...]
    outputs: tuple[OutputPlan, ...]
    max_item_bytes: int
    prefetch: int = 1
    checkpoint_items: int = 0
    why: tuple[str, ...] = ()
    step_bytes: int = 0
    batch_items: int = 1
    publish_window: int = 1
    controls: tuple[ControlPlan, ...] = ()

    @property
    def answers_once(self) -> bool:
        """Whether replicas that share its input record each answer before they publish it."""
        return self.mode is InputMode.COMPETING and self.order is CommitOrder.OUTBOX

    @property
    def partitions(self) -> int:
        """How many parts its input is cut into, one for each replica; 1 where replicas compete."""
        return 1 if self.mode in (InputMode.SOURCE, InputMode.COMPETING) else self.replicas


class ChannelPlan(msgspec.Struct, frozen=True, kw_only=True):
    """One channel.

    Attributes:
        ref: Its name.
        writer: The task that writes it; one slot per replica.
        slots: Number of writers.
        bound_items: Unsettled items of one partition at most.
        bound_bytes: Unsettled bytes of one partition at most.
        item_bytes: The largest item on it.
        transport: How it is carried.
        readers: Reader names of its subscriptions.
        why: How the figures came about.
    """

    ref: ChannelRef
    writer: str
    slots: int
    bound_items: int
    bound_bytes: int
    item_bytes: int
    transport: Transport
    readers: tuple[str, ...]
    why: str = ""


class EdgePlan(msgspec.Struct, frozen=True, kw_only=True):
    """One edge as the user drew it, and how it is carried."""

    parent: str
    port: str
    child: str
    input: int
    transport: Transport
    reader: str | None
    why: str = ""


class ControlEdgePlan(msgspec.Struct, frozen=True, kw_only=True):
    """An edge of markers as the user drew it, and how it is carried to each replica of the child's task."""

    parent: str
    port: str
    child: str
    replicas: int
    transport: Transport
    reader: str
    why: str = ""


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """A flow, planned for one engine.

    Attributes:
        engine: For which engine.
        spec: The flow.
        tasks: In topological order.
        channels: By writer in the order of `tasks`.
        edges: Every edge of the flow that carries inputs.
        memory_bytes: What the buffers need at most.
        memory_budget_bytes: What they may use.
        outside_identity: What makes results differ between runs (rule 18), in words.
        notes: Other things worth knowing, such as at-least-once sinks.
        admitted: What the backends guarantee, and what each guarantee rests on.
        controls: Every edge of markers.
        costs: The measurements on which nodes were fused, or None where there were none.
        schema: Version of this document.
    """

    engine: str
    spec: FlowSpec
    tasks: tuple[TaskPlan, ...]
    channels: tuple[ChannelPlan, ...]
    edges: tuple[EdgePlan, ...]
    memory_bytes: int
    memory_budget_bytes: int
    outside_identity: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    admitted: CompositionPlan = CompositionPlan()
    controls: tuple[ControlEdgePlan, ...] = ()
    costs: FlowCosts | None = None
    schema: int = PLAN_SCHEMA

    def task(self, name: str) -> TaskPlan:
        """Returns the task of that name."""
        return next(task for task in self.tasks if task.name == name)

    def task_of(self, node: str) -> TaskPlan:
        """Returns the task that runs a node."""
        return next(task for task in self.tasks if node in task.nodes)

    def to_json(self) -> bytes:
        """Returns the document, indented."""
        return msgspec.json.format(msgspec.json.encode(self), indent=2)

    @staticmethod
    def from_json(document: bytes) -> "Plan":
        """Reads a document; raises `msgspec.ValidationError` for anything else."""
        return msgspec.json.decode(document, type=Plan)
