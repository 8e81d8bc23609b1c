"""Backends, described only, that guarantee everything; a test takes away what it is about."""

from typing import Any

import msgspec

from tests.planner.building import GIB, LOCAL, MESSAGING, PAYLOAD, RUNTIME
from videoflow.backends.allocation import GATED_FEATURES
from videoflow.backends.capabilities import AllocationCapabilities, Enforcement, Profile
from videoflow.backends.outcomes import Durability, known
from videoflow.planner import (
    ChannelRequirement,
    CompositionPlan,
    CompositionRequirements,
    TaskRequirement,
    plan_composition,
)

replace = msgspec.structs.replace
DAY = 86_400.0
CLUSTER = replace(
    MESSAGING,
    adapter="stream",
    profiles=frozenset(Profile),
    durability=Durability.STREAM_QUORUM,
    copies=known(5, 0.0),
    crosses_processes=True,
    crosses_hosts=True,
    maximum_channels=8,
    maximum_subscriptions=16,
    maximum_envelope_bytes=1 << 20,
    retention_seconds=known(DAY, 0.0),
)
OBJECTS = replace(
    PAYLOAD,
    adapter="objects",
    durable=known(True, 0.0),
    persistent_volume=known(True, 0.0),
    crosses_processes=True,
    crosses_hosts=True,
    maximum_object_bytes=GIB,
    free_bytes=known(8 * GIB, 0.0),
    copies=known(5, 0.0),
)
RECORDS = replace(
    RUNTIME, adapter="kv", shared=True, survives_process=True, crosses_hosts=True, copies=known(5, 0.0)
)
HOSTS = replace(
    LOCAL,
    engine="cluster",
    crosses_hosts=True,
    maximum_batch_items=32,
    processors=known(8.0, 0.0),
    memory_bytes=known(16 * GIB, 0.0),
    clock_uncertainty_seconds=known(0.005, 0.0),
)
ONE_HOST = replace(HOSTS, engine="one host", crosses_hosts=False)
DEVICES = AllocationCapabilities(
    adapter="devices",
    authority="the cluster",
    exclusive_device=True,
    isolated_mig=True,
    cooperative_sharing=True,
    memory_enforcement=Enforcement.HARDWARE,
    multi_device=True,
    topology_verification=True,
    elastic=True,
    admission_boundary="cluster",
    version_matrix=tuple((feature.value, "1.0") for feature in GATED_FEATURES),
)
_BACKENDS: dict[str, Any] = {
    "messaging": CLUSTER,
    "payload": OBJECTS,
    "runtime": RECORDS,
    "allocation": DEVICES,
    "execution": HOSTS,
    "payload_refs_in_use": True,
}


def compose(requirements: CompositionRequirements, **instead: Any) -> CompositionPlan:
    """Plans on backends that guarantee everything, but for what is given instead."""
    return plan_composition(requirements, **{**_BACKENDS, **instead})


def wanting(channel: str = "detect", **parts: Any) -> CompositionRequirements:
    return CompositionRequirements(channels=(ChannelRequirement(channel=channel, **parts),))


def working(task: str = "detect", **parts: Any) -> CompositionRequirements:
    return CompositionRequirements(tasks=(TaskRequirement(task=task, **{"nodes": (task,), **parts}),))
