"""From a flow, cut into tasks and channels, to what it asks of the backends.

What edges and nodes need goes first: a lossless edge is reliable work, a live edge is live latest. What the
flow states beside that is added and never takes anything away.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import msgspec

from videoflow.backends.capabilities import ExecutionCapabilities, Profile
from videoflow.backends.messaging import Bounds, Reliability
from videoflow.backends.outcomes import known
from videoflow.errors import FlowInvalid, Problem
from videoflow.graph.spec import ChannelRequirementSpec, FlowSpec, NodeKind, PortRef, RequirementsSpec
from videoflow.planner._accelerators import requests_of
from videoflow.planner._facts import PlanFacts
from videoflow.planner._fitting import Fit
from videoflow.planner._ports import Port, describe_ports
from videoflow.planner._requirements import (
    ChannelRequirement,
    CompositionRequirements,
    Effects,
    SinkDeclaration,
    TaskRequirement,
)
from videoflow.planner._tasks import Task
from videoflow.planner._wiring import Wiring
from videoflow.planner.plan import ChannelRef, CommitOrder

_PROFILES = {Reliability.RELIABLE: Profile.RELIABLE_WORK, Reliability.LIVE: Profile.LIVE_LATEST}


@dataclass(frozen=True)
class _Stated:
    """What is stated of one channel, by the flow as a whole and by name."""

    tolerated_failures: int
    horizon_seconds: float | None
    exactly_once_effects: bool


def requirements_of(wiring: Wiring, facts: PlanFacts, fitted: Fit | None = None) -> CompositionRequirements:
    """Returns what a flow asks of the backends.

    Args:
        wiring: The flow, cut.
        facts: Item sizes.
        fitted: Its bounds, once they are chosen.

    Raises:
        FlowInvalid: It states something of a channel that it does not have.
    """
    spec, stated = wiring.spec, wiring.spec.requirements
    _check_names(spec, stated)
    ports = describe_ports(wiring, facts)
    channels = [_channel(wiring, ports, fitted, channel) for channel in wiring.writers]
    asking = [(task.name, task.replicas, task.nodes) for task in wiring.tasks]
    return CompositionRequirements(
        channels=(*channels, *_beside(wiring, channels)),
        tasks=tuple(_task(task, fitted) for task in wiring.tasks),
        workloads=tuple(requests_of(spec.flow_id, "", asking, facts.gpu_sharing)),
        exactly_once=_sinks(wiring.tasks) if stated.exactly_once_effects else (),
        horizon_seconds=stated.horizon_seconds,
        durable_control=stated.durable_control,
        restart_safe=stated.restart_safe,
        isolated=stated.isolated,
        dedicated_cpus=stated.dedicated_cpus,
    )


def execution_on(facts: PlanFacts) -> ExecutionCapabilities:
    """Returns what the engine guarantees on the machine at hand."""
    return msgspec.structs.replace(
        facts.execution, processors=known(facts.cpus, 0.0), memory_bytes=facts.available_bytes
    )


def _check_names(spec: FlowSpec, stated: RequirementsSpec) -> None:
    read = {str(port) for port in spec.ports_read()}
    problems = [
        Problem(
            spec.flow_id,
            f"it requires something of the channel {each.channel!r}, which nothing reads",
            "name a port that another node reads",
        )
        for each in stated.channels
        if each.channel not in read
    ]
    if problems:
        raise FlowInvalid(problems)


def _channel(
    wiring: Wiring, ports: dict[PortRef, Port], fitted: Fit | None, channel: ChannelRef
) -> ChannelRequirement:
    port, readings = PortRef(node=channel.node, port=channel.port), wiring.readers(channel)
    profile = _PROFILES[channel.reliability]
    stated = _stated(wiring.spec.requirements, str(port), profile)
    room = None if fitted is None else fitted.rooms[channel]
    return ChannelRequirement(
        channel=str(port),
        profile=profile,
        partitions=channel.partitions,
        key=channel.key,
        subscriptions=len(readings) * channel.partitions
        + sum(reading.task.replicas for reading in wiring.markers_on(channel)),
        bounds=None if room is None else Bounds(room.items, room.size_bytes),
        item_bytes=ports[port].item_bytes,
        tolerated_failures=stated.tolerated_failures,
        horizon_seconds=stated.horizon_seconds,
        effects=Effects.EXACTLY_ONCE if stated.exactly_once_effects else Effects.AT_LEAST_ONCE,
        sinks=_sinks(tuple(reading.task for reading in readings)),
    )


def _stated(requirements: RequirementsSpec, port: str, profile: Profile) -> _Stated:
    """Adds up what the flow states: of failures the most; live edges are asked only by name."""
    own = [c for c in requirements.channels if c.channel == port and c.profile in (None, profile)]
    failures = [each.tolerated_failures for each in own]
    if profile is not Profile.LIVE_LATEST:
        failures.append(requirements.tolerated_failures)
    horizons = [each.horizon_seconds for each in own if each.horizon_seconds is not None]
    return _Stated(
        max(failures, default=0),
        max(horizons, default=requirements.horizon_seconds),
        any(each.exactly_once_effects for each in own),
    )


def _beside(wiring: Wiring, channels: list[ChannelRequirement]) -> Iterator[ChannelRequirement]:
    """Yields what is stated of channels that the edges alone would not make."""
    made = {channel.channel for channel in channels}
    profiles = {(channel.channel, channel.profile) for channel in channels}
    for each in wiring.spec.requirements.channels:
        is_direct = each.channel not in made
        if is_direct or (each.profile is not None and (each.channel, each.profile) not in profiles):
            yield _by_name(wiring, each, is_direct=is_direct)


def _by_name(wiring: Wiring, stated: ChannelRequirementSpec, *, is_direct: bool) -> ChannelRequirement:
    requirements, horizon = wiring.spec.requirements, stated.horizon_seconds
    readers = tuple(r.task for r in wiring.readings if str(r.parent) == stated.channel)
    return ChannelRequirement(
        channel=stated.channel,
        profile=stated.profile or Profile.RELIABLE_WORK,
        subscriptions=0,
        is_direct=is_direct,
        tolerated_failures=max(stated.tolerated_failures, requirements.tolerated_failures),
        horizon_seconds=requirements.horizon_seconds if horizon is None else horizon,
        effects=Effects.EXACTLY_ONCE if stated.exactly_once_effects else Effects.AT_LEAST_ONCE,
        sinks=_sinks(readers),
    )


def _sinks(tasks: tuple[Task, ...]) -> tuple[SinkDeclaration, ...]:
    nodes = dict.fromkeys(
        (node.name, node.traits.effect_key_seconds)
        for task in tasks
        for node in task.nodes
        if node.kind is NodeKind.CONSUMER
    )
    return tuple(SinkDeclaration(sink=name, effect_key_seconds=kept) for name, kept in nodes)


def _task(task: Task, fitted: Fit | None) -> TaskRequirement:
    memory = [node.options.resources.memory_bytes for node in task.nodes]
    said = [size_bytes for size_bytes in memory if size_bytes is not None]
    return TaskRequirement(
        task=task.name,
        nodes=tuple(node.name for node in task.nodes),
        replicas=task.replicas,
        is_outbox=task.order is CommitOrder.OUTBOX,
        batch_items=task.batch,
        cpus=max(node.options.resources.cpus for node in task.nodes),
        memory_bytes=sum(said) if said else None,
        step_bytes=0 if fitted is None else fitted.sizing.reserves[task.name] // task.replicas,
    )
