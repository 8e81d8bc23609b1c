"""What is refused of a run: sizes, engines, hosts, clocks, devices; each beside what is admitted."""

from tests.planner.building import GIB, MIB, threads_facts
from tests.planner.compositions import (
    CLUSTER,
    DEVICES,
    HOSTS,
    OBJECTS,
    ONE_HOST,
    RECORDS,
    compose,
    wanting,
    working,
)
from tests.planner.refusal_parts import (
    BIG,
    UNREAD,
    WASTEFUL,
    Case,
    change,
    channels,
    device,
    flow,
    joining,
    planned,
)
from videoflow.backends.allocation import Sharing
from videoflow.backends.outcomes import Durability, known
from videoflow.planner import (
    CompositionRequirements,
)

SIZES = [
    Case(
        "more channels than the adapter says it can carry",
        lambda: compose(channels(9)),
        "as many as it says",
        lambda: compose(channels(8)),
    ),
    Case(
        "more subscriptions than the adapter says it can carry",
        lambda: compose(channels(2, subscriptions=9)),
        "as many as it says",
        lambda: compose(channels(2, subscriptions=8)),
    ),
    Case(
        "buffers that at their worst are larger than the payload store",
        lambda: compose(WASTEFUL),
        "a store with room for them",
        lambda: compose(WASTEFUL, payload=change(OBJECTS, free_bytes=known(9 * GIB, 0.0))),
    ),
    Case(
        "buffers of a flow that do not fit the payload store even at their least",
        lambda: planned(flow(), payload=change(threads_facts().payload, free_bytes=known(MIB, 0.0))),
        "a store with room for the least; the bounds then follow it",
        lambda: planned(flow(), payload=change(threads_facts().payload, free_bytes=known(32 * MIB, 0.0))),
    ),
    Case(
        "buffers in a payload store whose free space could not be read",
        lambda: compose(BIG, payload=change(OBJECTS, free_bytes=UNREAD)),
        "the same, read",
        lambda: compose(BIG),
    ),
    Case(
        "items larger than the payload store takes",
        lambda: compose(wanting(item_bytes=GIB + 1)),
        "as large as it takes",
        lambda: compose(wanting(item_bytes=GIB)),
    ),
    Case(
        "items larger than a message, without payloads",
        lambda: compose(wanting(item_bytes=MIB + 1), payload_refs_in_use=False),
        "as large as a message",
        lambda: compose(wanting(item_bytes=MIB), payload_refs_in_use=False),
    ),
    Case(
        "a memory budget that the flow does not fit into",
        lambda: planned(flow(), memory_budget_bytes=MIB),
        "one that it does",
        lambda: planned(flow(), memory_budget_bytes=32 * MIB),
    ),
    Case(
        "a memory budget beyond what the machine has",
        lambda: planned(flow(), memory_budget_bytes=2 * GIB, available_bytes=known(GIB, 0.0)),
        "one within it",
        lambda: planned(flow(), memory_budget_bytes=GIB, available_bytes=known(GIB, 0.0)),
    ),
    Case(
        "any flow, where the available memory could not be read",
        lambda: planned(flow(), available_bytes=UNREAD),
        "the same, read",
        lambda: planned(flow()),
    ),
]
ENGINES = [
    Case(
        "an engine of several hosts with backends of one",
        lambda: compose(
            wanting(),
            messaging=change(CLUSTER, crosses_hosts=False),
            payload=change(OBJECTS, crosses_hosts=False),
            runtime=change(RECORDS, crosses_hosts=False),
        ),
        "an engine of one host with the same backends",
        lambda: compose(
            wanting(),
            messaging=change(CLUSTER, crosses_hosts=False),
            payload=change(OBJECTS, crosses_hosts=False),
            runtime=change(RECORDS, crosses_hosts=False),
            execution=ONE_HOST,
        ),
    ),
    Case(
        "an engine of several processes with run records of one",
        lambda: compose(wanting(), runtime=change(RECORDS, shared=False), execution=ONE_HOST),
        "shared records",
        lambda: compose(wanting(), execution=ONE_HOST),
    ),
    Case(
        "nodes isolated from each other's crashes, in threads",
        lambda: compose(
            CompositionRequirements(isolated=True),
            execution=change(HOSTS, engine="threads", isolates_crash=False, can_interrupt=False),
        ),
        "in processes",
        lambda: compose(CompositionRequirements(isolated=True)),
    ),
    Case(
        "fused nodes on an engine that does not fuse",
        lambda: compose(working(nodes=("detect", "track")), execution=change(HOSTS, fuses=False)),
        "the same nodes apart",
        lambda: compose(working(), execution=change(HOSTS, fuses=False)),
    ),
    Case(
        "larger batches than the engine makes",
        lambda: compose(working(batch_items=33)),
        "as large as it makes",
        lambda: compose(working(batch_items=32)),
    ),
    Case(
        "state and outputs in one commit, on a store that writes one record at a time",
        lambda: compose(working(is_outbox=True), runtime=change(RECORDS, atomic_commit=False)),
        "a stateless task on the same store",
        lambda: compose(working(), runtime=change(RECORDS, atomic_commit=False)),
    ),
    Case(
        "state and outputs in one commit, without a run store",
        lambda: compose(working(is_outbox=True), runtime=None),
        "a stateless task without one",
        lambda: compose(working(), runtime=None),
    ),
    Case(
        "more processors for one replica than the host has",
        lambda: compose(working(cpus=9.0)),
        "as many as it has",
        lambda: compose(working(cpus=8.0)),
    ),
    Case(
        "processors of their own for more replicas than the host has processors for",
        lambda: compose(change(working(cpus=4.0, replicas=3), dedicated_cpus=True), execution=ONE_HOST),
        "shared processors",
        lambda: compose(working(cpus=4.0, replicas=3), execution=ONE_HOST),
    ),
    Case(
        "processors on a host that could not be looked at",
        lambda: compose(working(cpus=1.0), execution=change(HOSTS, processors=UNREAD)),
        "the same, read",
        lambda: compose(working(cpus=1.0)),
    ),
    Case(
        "replicas and buffers that need more memory than the host has",
        lambda: compose(
            change(BIG, tasks=working(memory_bytes=6 * GIB, replicas=2).tasks), execution=ONE_HOST
        ),
        "one replica less",
        lambda: compose(change(BIG, tasks=working(memory_bytes=6 * GIB).tasks), execution=ONE_HOST),
    ),
    Case(
        "one replica that needs more memory than the largest host has",
        lambda: compose(working(memory_bytes=17 * GIB, replicas=2)),
        "replicas that fit one host each",
        lambda: compose(working(memory_bytes=16 * GIB, replicas=2)),
    ),
    Case(
        "a join tolerance below the uncertainty of the clocks",
        lambda: compose(joining(0.014)),
        "as much as they may be apart",
        lambda: compose(joining(0.015)),
    ),
    Case(
        "a join by time of sources whose clocks say nothing of their uncertainty",
        lambda: compose(joining(1.0, uncertainty_seconds=UNREAD)),
        "sources that say it",
        lambda: compose(joining(1.0)),
    ),
    Case(
        "accelerators from an engine that allocates none",
        lambda: compose(device(), allocation=None),
        "one that does",
        lambda: compose(device()),
    ),
    Case(
        "a MIG slice and a second device from an allocator that has neither",
        lambda: compose(
            device(device_count=2, sharing=Sharing.ISOLATED_MIG),
            allocation=change(DEVICES, isolated_mig=False, multi_device=False),
        ),
        "one whole device from it",
        lambda: compose(device(), allocation=change(DEVICES, isolated_mig=False, multi_device=False)),
    ),
    Case(
        "processes, processors and clocks, and no engine is named",
        lambda: compose(
            CompositionRequirements(
                isolated=True, dedicated_cpus=True, tasks=working().tasks, joins=joining(1.0).joins
            ),
            execution=None,
        ),
        "channels alone",
        lambda: compose(wanting(), execution=None),
    ),
]
SEVERAL = [
    Case(
        "several things that are missing, and one that could not be read",
        lambda: compose(
            change(
                channels(2),
                durable_control=True,
                channels=tuple(change(c, tolerated_failures=1) for c in channels(2).channels),
            ),
            messaging=change(CLUSTER, durability=Durability.STREAM, copies=known(1, 0.0)),
            payload=change(OBJECTS, copies=UNREAD),
            runtime=change(RECORDS, survives_process=False),
        ),
        "nothing of it asked",
        lambda: compose(channels(2), messaging=change(CLUSTER, durability=Durability.STREAM)),
    ),
]
