"""Whether a composition gives what is asked, judged by hand: typed apart from the planner, to compare.

Every demand of the contracts is one yes, no or unread. It knows no message and no remedy.
"""

from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

from videoflow.backends.allocation import allocation_rejections
from videoflow.backends.capabilities import (
    AllocationCapabilities,
    ExecutionCapabilities,
    MessagingCapabilities,
    PayloadCapabilities,
    RuntimeCapabilities,
)
from videoflow.backends.outcomes import Known, Observation
from videoflow.planner import (
    ChannelRequirement,
    CompositionRequirements,
    Effects,
    SinkDeclaration,
    TaskRequirement,
)

T = TypeVar("T")
Answer = bool | None
RANK = {"memory": 0, "host": 1, "stream": 2, "stream-quorum": 3}


class Composition:
    """What is composed, by contract."""

    def __init__(
        self,
        messaging: MessagingCapabilities,
        payload: PayloadCapabilities | None,
        runtime: RuntimeCapabilities | None,
        allocation: AllocationCapabilities | None,
        execution: ExecutionCapabilities | None,
    ) -> None:
        self.messaging = messaging
        self.payload = payload
        self.runtime = runtime
        self.allocation = allocation
        self.execution = execution


def verdict(asked: CompositionRequirements, given: Composition) -> str:
    """`admitted`, `refused` or `unread`."""
    answers = list(_answers(asked, given))
    if False in answers:
        return "refused"
    return "unread" if None in answers else "admitted"


def _seen(observation: Observation[T], is_enough: Callable[[T], bool]) -> Answer:
    return is_enough(observation.value) if isinstance(observation, Known) else None


def _at_most(observation: Observation[float], most: float) -> Answer:
    return _seen(observation, lambda value: value <= most)


def _answers(asked: CompositionRequirements, given: Composition) -> Iterator[Answer]:
    channels = set(asked.channels)
    names = {(c.channel, c.profile, c.partitions, c.key) for c in channels}
    yield len(names) == len(channels)
    if not given.messaging.splits_retention:
        yield len({(c.channel, c.profile) for c in channels}) == len({c.channel for c in channels})
    for channel in channels:
        yield from _channel(channel, given)
    yield from _numbers(channels, given.messaging)
    yield from _room(asked, channels, given)
    yield from _records(asked, channels, given)
    for sink in asked.exactly_once:
        yield _once(sink, asked.horizon_seconds)
    for workload in asked.workloads:
        yield given.allocation is not None and not allocation_rejections([workload], given.allocation)
    if given.execution is None:
        yield not (asked.isolated or asked.dedicated_cpus or asked.joins or asked.tasks)
    else:
        yield from _engine(asked, channels, given, given.execution)


def _channel(channel: ChannelRequirement, given: Composition) -> Iterator[Answer]:
    messaging, payload, failures = given.messaging, given.payload, channel.tolerated_failures
    if channel.is_direct or channel.profile not in (
        "live_latest",
        "reliable_work",
        "durable_control",
        "replay_archive",
    ):
        yield False
        return
    lasting = channel.profile in ("durable_control", "replay_archive")
    yield channel.subscriptions > 0 or lasting
    yield channel.profile in messaging.profiles
    rank = RANK[messaging.durability]
    if channel.profile == "reliable_work" and given.execution and given.execution.crosses_processes:
        yield rank >= 1
    if lasting:
        yield rank >= 2
    if failures:
        yield rank == 3
        yield _seen(messaging.copies, lambda copies: copies > 2 * failures)
    if channel.profile == "replay_archive":
        horizon = channel.horizon_seconds
        yield horizon is not None and _seen(messaging.retention_seconds, lambda kept: not kept < horizon)
    if channel.effects is Effects.EXACTLY_ONCE:
        yield bool(channel.sinks)
        for sink in channel.sinks:
            yield _once(sink, channel.horizon_seconds)
    limit = messaging.maximum_envelope_bytes
    if payload is not None:
        limit = payload.maximum_object_bytes
        yield from _payload(channel.profile, failures, payload)
    yield channel.item_bytes is None or channel.item_bytes <= limit


def _payload(profile: str, failures: int, payload: PayloadCapabilities) -> Iterator[Answer]:
    if profile != "live_latest" or failures:
        yield _seen(payload.evictable, lambda evicts: not evicts)
    if profile in ("durable_control", "replay_archive"):
        yield _seen(payload.durable, bool)
    if profile == "replay_archive" or failures:
        yield _seen(payload.persistent_volume, bool)
    if failures:
        yield _seen(payload.copies, lambda copies: copies > 2 * failures)


def _once(sink: SinkDeclaration, horizon: float | None) -> bool:
    if sink.effect_key_seconds is None:
        return True
    return horizon is not None and sink.effect_key_seconds >= horizon and sink.effect_key_seconds > 0


def _numbers(channels: Iterable[ChannelRequirement], messaging: MessagingCapabilities) -> Iterator[Answer]:
    real = [channel for channel in channels if not channel.is_direct]
    if messaging.maximum_channels is not None:
        yield len(real) <= messaging.maximum_channels
    if messaging.maximum_subscriptions is not None:
        yield sum(channel.subscriptions for channel in real) <= messaging.maximum_subscriptions


def _buffers(asked: CompositionRequirements, channels: Iterable[ChannelRequirement]) -> int:
    total = sum(c.bounds.size_bytes * c.partitions for c in channels if c.bounds)
    return total + sum(task.step_bytes * task.replicas for task in asked.tasks)


def _room(
    asked: CompositionRequirements, channels: set[ChannelRequirement], given: Composition
) -> Iterator[Answer]:
    if given.payload is not None and any(channel.bounds for channel in channels):
        yield _seen(given.payload.free_bytes, lambda free: _buffers(asked, channels) <= free)


def _records(
    asked: CompositionRequirements, channels: set[ChannelRequirement], given: Composition
) -> Iterator[Answer]:
    runtime = given.runtime
    lasting = any(channel.profile in ("durable_control", "replay_archive") for channel in channels)
    if asked.durable_control or asked.restart_safe or lasting:
        yield runtime is not None and runtime.shared and runtime.survives_process
    if asked.restart_safe:
        yield RANK[given.messaging.durability] >= 2
        if given.payload is not None:
            yield _seen(given.payload.durable, bool)
    for task in asked.tasks:
        yield runtime is not None or not task.is_outbox
    failures = max((channel.tolerated_failures for channel in channels), default=0)
    if failures and runtime is not None:
        yield _seen(runtime.copies, lambda copies: copies > 2 * failures)


def _engine(
    asked: CompositionRequirements,
    channels: set[ChannelRequirement],
    given: Composition,
    engine: ExecutionCapabilities,
) -> Iterator[Answer]:
    if engine.crosses_hosts:
        yield given.messaging.crosses_hosts
        yield given.payload is None or given.payload.crosses_hosts
        yield given.runtime is None or given.runtime.crosses_hosts
    elif engine.crosses_processes:
        yield given.messaging.crosses_processes
        yield given.payload is None or given.payload.crosses_processes
        yield given.runtime is None or given.runtime.shared
    if asked.isolated:
        yield engine.isolates_crash and engine.can_interrupt
    for task in asked.tasks:
        yield from _task(task, given, engine)
    if asked.dedicated_cpus and not engine.crosses_hosts:
        total = sum(task.cpus * task.replicas for task in asked.tasks)
        yield _seen(engine.processors, lambda there: there >= total)
    if not engine.crosses_hosts and any(task.memory_bytes is not None for task in asked.tasks):
        own = sum((task.memory_bytes or 0) * task.replicas for task in asked.tasks)
        yield _seen(engine.memory_bytes, lambda free: own + _buffers(asked, channels) <= free)
    for join in asked.joins:
        if isinstance(join.uncertainty_seconds, Known):
            rest = join.tolerance_seconds - join.uncertainty_seconds.value
            yield _at_most(engine.clock_uncertainty_seconds, rest)
        else:
            yield None


def _task(task: TaskRequirement, given: Composition, engine: ExecutionCapabilities) -> Iterator[Answer]:
    if task.is_outbox and given.runtime is not None:
        yield given.runtime.atomic_commit
    yield engine.fuses or len(task.nodes) == 1
    yield (
        task.batch_items == 1
        or engine.maximum_batch_items is None
        or (task.batch_items <= engine.maximum_batch_items)
    )
    if task.cpus:
        yield _seen(engine.processors, lambda there: task.cpus <= there)
    if task.memory_bytes is not None and engine.crosses_hosts:
        needed = task.memory_bytes
        yield _seen(engine.memory_bytes, lambda there: needed <= there)
