"""No composition is admitted that lacks a guarantee, none refused that gives all, nothing ever lessened."""

from collections import Counter
from collections.abc import Callable
from random import Random
from typing import Any, TypeVar

import msgspec

from tests.planner.building import GIB, MIB
from tests.planner.compositions import CLUSTER, DEVICES, HOSTS, OBJECTS, RECORDS
from tests.planner.judge import Composition, verdict
from videoflow.backends.allocation import WorkloadRequest
from videoflow.backends.capabilities import NOT_SAID, Profile
from videoflow.backends.messaging import Bounds
from videoflow.backends.outcomes import Durability, Observation, known
from videoflow.errors import IncompatibleProfile, UnobservableState
from videoflow.planner import (
    ChannelRequirement,
    CompositionPlan,
    CompositionRequirements,
    Effects,
    JoinRequirement,
    SinkDeclaration,
    TaskRequirement,
    plan_composition,
)

T = TypeVar("T")
Record = TypeVar("Record", bound=msgspec.Struct)
Draw = Callable[[Random], T]
CASES = 3000
UNUSUAL = 0.08


def mostly(usual: T, *others: T) -> Draw[T]:
    """The first is drawn nearly always, so that a composition is admitted now and then."""
    return lambda rng: rng.choice(others) if others and rng.random() < UNUSUAL else usual


def read(usual: T, *others: T) -> Draw[Observation[T]]:
    values: list[Observation[T]] = [known(value, 0.0) for value in others]
    return mostly(known(usual, 0.0), *values, NOT_SAID)


def made(kind: Callable[..., T], **parts: Draw[Any]) -> Draw[T]:
    return lambda rng: kind(**{name: draw(rng) for name, draw in parts.items()})


def changed(record: Record, **parts: Draw[Any]) -> Draw[Record]:
    return made(lambda **found: msgspec.structs.replace(record, **found), **parts)


def maybe(draw: Draw[T]) -> Draw[T | None]:
    return lambda rng: None if rng.random() < UNUSUAL else draw(rng)


def some(draw: Draw[T], at_most: int, chance: float = 0.5) -> Draw[tuple[T, ...]]:
    return lambda rng: tuple(draw(rng) for _ in range(at_most) if rng.random() < chance)


LIVE = frozenset({Profile.LIVE_LATEST})
MESSAGING = changed(
    CLUSTER,
    profiles=mostly(frozenset(Profile), LIVE, frozenset({Profile.RELIABLE_WORK, *LIVE})),
    durability=mostly(Durability.STREAM_QUORUM, *Durability),
    crosses_processes=mostly(True, False),
    crosses_hosts=mostly(True, False),
    copies=read(3, 1, 2, 5),
    maximum_channels=mostly(None, 1, 2),
    maximum_subscriptions=mostly(None, 2),
    splits_retention=mostly(True, False),
    retention_seconds=read(60.0, 59.0),
    maximum_envelope_bytes=mostly(MIB, MIB - 1),
)
PAYLOAD = changed(
    OBJECTS,
    durable=read(True, False),
    evictable=read(False, True),
    persistent_volume=read(True, False),
    crosses_processes=mostly(True, False),
    crosses_hosts=mostly(True, False),
    maximum_object_bytes=mostly(MIB, MIB - 1),
    free_bytes=read(2 * GIB, GIB, GIB - 1),
    copies=read(3, 1, 2, 5),
)
RUNTIME = changed(
    RECORDS,
    shared=mostly(True, False),
    survives_process=mostly(True, False),
    atomic_commit=mostly(True, False),
    crosses_hosts=mostly(True, False),
    copies=read(3, 1, 2, 5),
)
ALLOCATION = changed(DEVICES, multi_device=mostly(True, False))
EXECUTION = changed(
    HOSTS,
    isolates_crash=mostly(True, False),
    can_interrupt=mostly(True, False),
    crosses_processes=mostly(True, False),
    crosses_hosts=mostly(False, True),
    fuses=mostly(True, False),
    maximum_batch_items=mostly(None, 1, 4),
    processors=read(4.0, 1.0),
    memory_bytes=read(4 * GIB, 2 * GIB),
    clock_uncertainty_seconds=read(0.0, 1.0),
)
SINKS = made(
    SinkDeclaration,
    sink=mostly("hook", "file"),
    effect_key_seconds=mostly(None, 0.0, 59.0, 60.0),
)
CHANNELS = made(
    ChannelRequirement,
    channel=lambda rng: rng.choice(("camera", "detect")),
    profile=mostly("reliable_work", *Profile, "any"),
    partitions=mostly(1, 2),
    subscriptions=mostly(1, 0, 2),
    is_direct=mostly(False, False, True),
    bounds=mostly(None, Bounds(8, GIB // 2), Bounds(8, GIB)),
    item_bytes=mostly(None, MIB),
    tolerated_failures=mostly(0, 1, 2),
    horizon_seconds=mostly(60.0, None),
    effects=mostly(Effects.AT_LEAST_ONCE, Effects.EXACTLY_ONCE),
    sinks=some(SINKS, 1),
)
TASKS = made(
    TaskRequirement,
    task=mostly("detect"),
    nodes=mostly(("detect",), ("detect", "track")),
    replicas=mostly(1, 2),
    is_outbox=lambda rng: rng.random() < 0.5,
    batch_items=mostly(1, 4, 8),
    cpus=mostly(1.0, 0.0, 2.0),
    memory_bytes=mostly(None, GIB, 2 * GIB),
    step_bytes=mostly(0, 1),
)
JOINS = made(
    JoinRequirement,
    node=mostly("pair"),
    tolerance_seconds=mostly(2.0, 1.0),
    uncertainty_seconds=read(1.0, 3.0),
)
REQUIREMENTS = made(
    CompositionRequirements,
    channels=some(CHANNELS, 3),
    tasks=some(TASKS, 1),
    joins=some(JOINS, 1, chance=0.2),
    workloads=mostly((), (WorkloadRequest("flow", "", "detect/0", device_count=2),)),
    exactly_once=some(SINKS, 1, chance=0.2),
    horizon_seconds=mostly(None, 60.0),
    durable_control=mostly(False, True),
    restart_safe=mostly(False, True),
    isolated=mostly(False, True),
    dedicated_cpus=mostly(False, True),
)


BACKENDS = made(
    Composition,
    messaging=MESSAGING,
    payload=maybe(PAYLOAD),
    runtime=maybe(RUNTIME),
    allocation=maybe(ALLOCATION),
    execution=maybe(EXECUTION),
)


def planned(asked: CompositionRequirements, backends: Composition, refs: bool) -> CompositionPlan | str:
    try:
        return plan_composition(
            asked,
            backends.messaging,
            backends.payload,
            backends.runtime,
            backends.allocation,
            backends.execution,
            payload_refs_in_use=refs,
        )
    except IncompatibleProfile:
        return "refused"
    except UnobservableState:
        return "unread"


def test_the_planner_admits_what_is_given_and_nothing_else() -> None:
    seen: Counter[str] = Counter()
    for seed in range(CASES):
        rng = Random(seed)
        asked, backends = REQUIREMENTS(rng), BACKENDS(rng)
        plan = planned(asked, backends, refs=backends.payload is not None)
        expected = verdict(asked, backends)
        found = plan if isinstance(plan, str) else "admitted"
        assert found == expected, f"{found}, and {expected} is right: {seed}, {asked}, {vars(backends)}"
        seen[expected] += 1
        if isinstance(plan, CompositionPlan):
            check_not_lessened(asked, plan)
    assert min(seen[each] for each in ("admitted", "refused", "unread")) >= CASES // 50, seen


def check_not_lessened(asked: CompositionRequirements, plan: CompositionPlan) -> None:
    """Every channel that was asked for is there, with all that was asked of it."""
    wanted = list(dict.fromkeys(asked.channels))
    assert len(plan.channels) == len(wanted)
    for channel, admitted in zip(wanted, plan.channels, strict=True):
        assert (admitted.channel, admitted.profile, admitted.partitions, admitted.key) == channel.identity
        assert (admitted.bound_items, admitted.bound_bytes) == (
            (channel.bounds.items, channel.bounds.size_bytes) if channel.bounds else (None, None)
        )
        assert admitted.copies > 2 * channel.tolerated_failures, "fewer copies than were asked for"
        assert admitted.exactly_once_effects == (channel.effects is Effects.EXACTLY_ONCE)
        assert admitted.grounds, "a guarantee that rests on nothing"
