"""What a composition of backends must give: for each channel, each task, each join, and the run as a whole.

Made by `_requiring` of a flow, or by hand by who certifies a composition; judged by `plan_composition`.
"""

from enum import StrEnum

import msgspec

from videoflow.backends.allocation import WorkloadRequest
from videoflow.backends.capabilities import Profile
from videoflow.backends.messaging import Bounds
from videoflow.backends.outcomes import Observation


class Effects(StrEnum):
    """How often the effects of a channel's readers may happen."""

    AT_LEAST_ONCE = "at_least_once"
    EXACTLY_ONCE = "exactly_once"


class SinkDeclaration(msgspec.Struct, frozen=True, kw_only=True):
    """What a sink says of the place that it writes to.

    Attributes:
        sink: Its name.
        effect_key_seconds: How long that place recognises a repeated idempotency key: 0, it takes none;
            None: for ever.
    """

    sink: str
    effect_key_seconds: float | None = 0.0


class ChannelRequirement(msgspec.Struct, frozen=True, kw_only=True):
    """What one channel must guarantee.

    Attributes:
        channel: `node` or `node.port`.
        profile: Name of a messaging profile.
        partitions: Into how many logs it is cut.
        key: What they are computed from, or None.
        subscriptions: How many read it; partitions count. A live or reliable channel has at least one.
        is_direct: Its nodes call each other: there is no channel.
        bounds: Items and bytes of a partition, or None where they are not chosen yet.
        item_bytes: Its largest item, or None where nothing is known of it.
        tolerated_failures: So many stores may fail at once without loss.
        horizon_seconds: How long after it was accepted an item may be replayed; None: as long as the run.
        effects: How often the effects of its readers may happen.
        sinks: What the sinks say that read it.
    """

    channel: str
    profile: str = Profile.RELIABLE_WORK
    partitions: int = 1
    key: str | None = None
    subscriptions: int = 1
    is_direct: bool = False
    bounds: Bounds | None = None
    item_bytes: int | None = None
    tolerated_failures: int = 0
    horizon_seconds: float | None = None
    effects: Effects = Effects.AT_LEAST_ONCE
    sinks: tuple[SinkDeclaration, ...] = ()

    @property
    def identity(self) -> tuple[str, str, int, str | None]:
        """What makes two statements speak of one channel."""
        return self.channel, self.profile, self.partitions, self.key


class TaskRequirement(msgspec.Struct, frozen=True, kw_only=True):
    """What one task needs.

    Attributes:
        task: Its name.
        nodes: Its nodes; several are called directly.
        replicas: Running copies.
        is_outbox: It commits state, positions and outputs together.
        batch_items: Inputs of one call.
        cpus: Processors of one replica.
        memory_bytes: Memory of one replica beside items in flight, or None where nobody said.
        step_bytes: Payload space that one replica keeps for its next outputs.
    """

    task: str
    nodes: tuple[str, ...]
    replicas: int = 1
    is_outbox: bool = False
    batch_items: int = 1
    cpus: float = 0.0
    memory_bytes: int | None = None
    step_bytes: int = 0


class JoinRequirement(msgspec.Struct, frozen=True, kw_only=True):
    """What a join by event time needs of the clocks.

    Attributes:
        node: Which join.
        tolerance_seconds: How far apart members of a group may be.
        uncertainty_seconds: How far its sources may be wrong about one instant, the engine's hosts apart.
    """

    node: str
    tolerance_seconds: float
    uncertainty_seconds: Observation[float]


class CompositionRequirements(msgspec.Struct, frozen=True, kw_only=True):
    """What a flow asks of the backends that will run it.

    Attributes:
        channels: What single channels must guarantee.
        tasks: What tasks need.
        joins: Joins by event time.
        workloads: What is asked of the allocator of accelerators.
        exactly_once: Sinks whose effects must happen once, whatever they read.
        horizon_seconds: How long after it was accepted an item may be replayed to them; None: as long as
            the run.
        durable_control: The state of the run survives its controller and its workers.
        restart_safe: A run can go on after all of its processes have died.
        isolated: A node that ends its process leaves the others running, and a call that hangs is ended.
        dedicated_cpus: The processors of all replicas together must be there.
    """

    channels: tuple[ChannelRequirement, ...] = ()
    tasks: tuple[TaskRequirement, ...] = ()
    joins: tuple[JoinRequirement, ...] = ()
    workloads: tuple[WorkloadRequest, ...] = ()
    exactly_once: tuple[SinkDeclaration, ...] = ()
    horizon_seconds: float | None = None
    durable_control: bool = False
    restart_safe: bool = False
    isolated: bool = False
    dedicated_cpus: bool = False

    @property
    def buffer_bytes(self) -> int:
        """What items in flight take at their worst, as far as bounds are chosen."""
        rooms = [
            channel.bounds.size_bytes * channel.partitions
            for channel in dict.fromkeys(self.channels)
            if channel.bounds is not None
        ]
        return sum(rooms) + sum(task.replicas * task.step_bytes for task in self.tasks)
