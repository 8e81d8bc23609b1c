"""What the refusals are made of: one camera, one detector, one log, and backends that lack one thing."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import msgspec

from tests.planner.building import GIB, MIB, Graph, threads_facts
from tests.planner.compositions import (
    CLUSTER,
    DAY,
    OBJECTS,
    RECORDS,
    wanting,
    working,
)
from videoflow.backends.allocation import WorkloadRequest
from videoflow.backends.capabilities import Profile
from videoflow.backends.messaging import Bounds
from videoflow.backends.outcomes import UnknownReason, known, unknown
from videoflow.graph.spec import LatestSpec, RequirementsSpec
from videoflow.planner import (
    ChannelRequirement,
    CompositionRequirements,
    Effects,
    JoinRequirement,
    SinkDeclaration,
    plan_flow,
)

change = msgspec.structs.replace
UNREAD = unknown(UnknownReason.TIMEOUT, 0.0, "no answer in 5 s")
DENIED = unknown(UnknownReason.AUTH, 0.0, "not permitted to read the server's settings")
YES, NO = known(True, 0.0), known(False, 0.0)


@dataclass(frozen=True)
class Case:
    """A refusal: what is asked in vain, and what is admitted that is nearly the same."""

    asked: str
    refused: Callable[[], object]
    beside: str
    admitted: Callable[[], object]


def flow(
    *, fused: bool = False, live: bool = False, options: dict[str, Any] | None = None, **stated: Any
) -> Graph:
    """A camera, a detector and a log; what is stated goes into its requirements."""
    graph = Graph()
    label = {"fuse": "all"} if fused else {}
    graph.source("camera")
    graph.step("detect", "camera", options={**label, **(options or {})})
    graph.sink("log", ("detect", LatestSpec()) if live else "detect", options=label)
    graph.requirements = RequirementsSpec(**stated)
    return graph


def planned(graph: Graph, **facts: Any) -> object:
    return plan_flow(graph.spec(), replace(threads_facts(sizes={"camera": MIB}), **facts))


def both(first: dict[str, Any], second: dict[str, Any]) -> CompositionRequirements:
    parts = (first, second)
    return CompositionRequirements(channels=tuple(ChannelRequirement(channel="camera", **p) for p in parts))


def joining(tolerance: float, **parts: Any) -> CompositionRequirements:
    join = {"node": "pair", "tolerance_seconds": tolerance, "uncertainty_seconds": known(0.01, 0.0), **parts}
    return CompositionRequirements(joins=(JoinRequirement(**join),))


def device(**parts: Any) -> CompositionRequirements:
    return CompositionRequirements(workloads=(WorkloadRequest("flow", "", "detect/0", **parts),))


def once(*kept: float | None, horizon: float | None = None) -> CompositionRequirements:
    sinks = tuple(SinkDeclaration(sink=f"hook{n}", effect_key_seconds=s) for n, s in enumerate(kept))
    return wanting("alarm", effects=Effects.EXACTLY_ONCE, sinks=sinks, horizon_seconds=horizon)


def archive(**parts: Any) -> CompositionRequirements:
    return wanting(profile="replay_archive", **{"horizon_seconds": DAY, "subscriptions": 0, **parts})


def channels(count: int, subscriptions: int = 1) -> CompositionRequirements:
    names = [f"step{number}" for number in range(count)]
    return CompositionRequirements(
        channels=tuple(ChannelRequirement(channel=n, subscriptions=subscriptions) for n in names)
    )


RESTART = CompositionRequirements(restart_safe=True)
CONTROL = CompositionRequirements(durable_control=True)
ONE_LOST = wanting(tolerated_failures=1)
BIG = wanting(bounds=Bounds(256, 6 * GIB))
WASTEFUL = CompositionRequirements(
    channels=(ChannelRequirement(channel="camera", bounds=Bounds(64, 3 * GIB)),),
    tasks=working(replicas=3, step_bytes=2 * GIB).tasks,
)
LOSSY = change(CLUSTER, adapter="core", profiles=frozenset({Profile.LIVE_LATEST}))
CACHE = change(OBJECTS, adapter="cache", evictable=YES)
EPHEMERAL = change(OBJECTS, adapter="pool", durable=NO)
PRIVATE = change(RECORDS, adapter="memory", shared=False, survives_process=False, crosses_hosts=False)
