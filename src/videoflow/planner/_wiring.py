"""Which task reads which port over which channel; edges inside a task have none.

Used by everything in the planner that comes after the cut into tasks. It refuses nothing: the compiler
judged the edges.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from videoflow.backends.messaging import Reliability
from videoflow.graph.spec import ControlSpec, EdgeSpec, FlowSpec, PortRef
from videoflow.planner._tasks import Task
from videoflow.planner.plan import ChannelRef


@dataclass(frozen=True)
class Reading:
    """One subscription: a task input on one channel."""

    task: Task
    edge: EdgeSpec
    parent: PortRef
    channel: ChannelRef

    @property
    def reader(self) -> str:
        """Its name, `<task>/<input>`."""
        return f"{self.task.name}/{self.edge.input}"


@dataclass(frozen=True)
class MarkerReading:
    """The markers of a node on one channel: a subscription for each replica of its task."""

    task: Task
    control: ControlSpec
    parent: PortRef
    channel: ChannelRef

    @property
    def reader(self) -> str:
        """The name of its subscriptions, `<task>/<node>.markers`."""
        return f"{self.task.name}/{self.control.child}.markers"


@dataclass(frozen=True)
class Wiring:
    """A flow cut into tasks and channels.

    Attributes:
        spec: The flow.
        tasks: In topological order.
        writers: Channel → the task that writes it, by writer in the order of `tasks`.
        readings: Every subscription to inputs.
        markers: Every subscription to markers.
    """

    spec: FlowSpec
    tasks: tuple[Task, ...]
    writers: Mapping[ChannelRef, Task]
    readings: tuple[Reading, ...]
    markers: tuple[MarkerReading, ...] = ()

    def task_of(self, node: str) -> Task:
        """Returns the task that runs a node."""
        return next(task for task in self.tasks if task.has(node))

    def read_by(self, task: Task) -> tuple[Reading, ...]:
        """Returns the subscriptions of a task, by input."""
        return tuple(reading for reading in self.readings if reading.task is task)

    def readers(self, channel: ChannelRef) -> tuple[Reading, ...]:
        """Returns the subscriptions on a channel."""
        return tuple(reading for reading in self.readings if reading.channel == channel)

    def markers_on(self, channel: ChannelRef) -> tuple[MarkerReading, ...]:
        """Returns the subscriptions to markers on a channel."""
        return tuple(reading for reading in self.markers if reading.channel == channel)

    def written_by(self, task: Task) -> tuple[ChannelRef, ...]:
        """Returns the channels that a task writes."""
        return tuple(channel for channel, writer in self.writers.items() if writer is task)


def channel_of(task: Task, edge: EdgeSpec, parent: PortRef) -> ChannelRef:
    """Returns the channel that carries a parent of an edge to a task: one for each layout (rule 10)."""
    return ChannelRef(
        node=parent.node,
        port=parent.port,
        reliability=Reliability.RELIABLE if edge.latest is None else Reliability.LIVE,
        key=task.partition_key,
        partitions=task.partitions,
    )


def wire(spec: FlowSpec, tasks: tuple[Task, ...]) -> Wiring:
    """Cuts a flow: every parent of an edge whose two ends are in different tasks is one subscription."""
    readings = tuple(
        Reading(task, edge, parent, channel_of(task, edge, parent))
        for task in tasks
        for edge in spec.inputs(task.name)
        for parent in edge.parents
    )
    markers = tuple(
        MarkerReading(task, control, parent, _marker_channel(parent))
        for task in tasks
        for node in task.nodes
        if (control := spec.control(node.name)) is not None
        for parent in control.parents
    )
    channels = {reading.channel for reading in readings} | {reading.channel for reading in markers}
    read = sorted(channels, key=_by_layout)
    writers = {
        channel: task
        for task in tasks
        for node in task.nodes
        for port in node.ports
        for channel in read
        if (channel.node, channel.port) == (node.name, port)
    }
    return Wiring(spec, tasks, writers, readings, markers)


def _marker_channel(parent: PortRef) -> ChannelRef:
    return ChannelRef(node=parent.node, port=parent.port, reliability=Reliability.LIVE)


def _by_layout(channel: ChannelRef) -> tuple[bool, str, int]:
    return channel.reliability is Reliability.LIVE, channel.key or "", channel.partitions
