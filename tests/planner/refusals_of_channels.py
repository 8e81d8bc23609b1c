"""What is refused of channels: promises, survival, copies, effects; each beside what is admitted."""

from tests.planner.compositions import (
    CLUSTER,
    DAY,
    OBJECTS,
    RECORDS,
    compose,
    wanting,
)
from tests.planner.refusal_parts import (
    CACHE,
    CONTROL,
    DENIED,
    EPHEMERAL,
    LOSSY,
    NO,
    ONE_LOST,
    PRIVATE,
    RESTART,
    UNREAD,
    Case,
    archive,
    both,
    change,
    flow,
    once,
    planned,
)
from videoflow.backends.outcomes import Durability, known
from videoflow.graph.spec import ChannelRequirementSpec
from videoflow.planner import (
    CompositionRequirements,
    SinkDeclaration,
)

PROFILES = [
    Case(
        "a profile that does not exist",
        lambda: compose(wanting(profile="exactly_right")),
        "one that does",
        lambda: compose(wanting(profile="reliable_work")),
    ),
    Case(
        "reliable work on a transport without recoverable delivery",
        lambda: compose(wanting(), messaging=LOSSY),
        "a live edge on the same transport",
        lambda: compose(wanting(profile="live_latest"), messaging=LOSSY),
    ),
    Case(
        "reliable work between processes, with messages that end with the process that holds them",
        lambda: compose(wanting(), messaging=change(CLUSTER, durability=Durability.MEMORY)),
        "messages that survive workers",
        lambda: compose(wanting(), messaging=change(CLUSTER, durability=Durability.HOST)),
    ),
    Case(
        "reliable work with payloads in a store that evicts",
        lambda: compose(wanting(), payload=CACHE),
        "a live edge with the same store",
        lambda: compose(wanting(profile="live_latest"), payload=CACHE),
    ),
    Case(
        "reliable work with payloads in a store whose settings cannot be read",
        lambda: compose(wanting(), payload=change(OBJECTS, evictable=DENIED)),
        "the same store, read",
        lambda: compose(wanting(), payload=change(OBJECTS, evictable=NO)),
    ),
    Case(
        "references to payloads, and no payload store",
        lambda: compose(wanting(), payload=None),
        "values small enough for messages",
        lambda: compose(wanting(item_bytes=1024), payload=None, payload_refs_in_use=False),
    ),
    Case(
        "two retention classes of one port, on an adapter that writes a port to one channel",
        lambda: compose(
            both({}, {"profile": "live_latest"}), messaging=change(CLUSTER, splits_retention=False)
        ),
        "an adapter that gives each its own channel",
        lambda: compose(both({}, {"profile": "live_latest"})),
    ),
    Case(
        "two statements about one channel that differ",
        lambda: compose(both({"tolerated_failures": 1}, {"tolerated_failures": 2})),
        "one statement",
        lambda: compose(both({"tolerated_failures": 2}, {"tolerated_failures": 2})),
    ),
    Case(
        "live_latest of a channel that no edge reads live",
        lambda: planned(flow(channels=(ChannelRequirementSpec(channel="detect", profile="live_latest"),))),
        "the same channel, read with .latest()",
        lambda: planned(
            flow(live=True, channels=(ChannelRequirementSpec(channel="detect", profile="live_latest"),))
        ),
    ),
    Case(
        "reliable work of a channel that is only read live",
        lambda: planned(
            flow(live=True, channels=(ChannelRequirementSpec(channel="detect", profile="reliable_work"),))
        ),
        "the same channel, read without .latest()",
        lambda: planned(flow(channels=(ChannelRequirementSpec(channel="detect", profile="reliable_work"),))),
    ),
    Case(
        "a requirement of a channel between fused nodes",
        lambda: planned(flow(fused=True, channels=(ChannelRequirementSpec(channel="detect"),))),
        "the same nodes, not fused",
        lambda: planned(flow(channels=(ChannelRequirementSpec(channel="detect"),))),
    ),
    Case(
        "a requirement of a channel that the flow does not have",
        lambda: planned(flow(channels=(ChannelRequirementSpec(channel="detct"),))),
        "the name as it is",
        lambda: planned(flow(channels=(ChannelRequirementSpec(channel="detect"),))),
    ),
]
DURABLE = [
    Case(
        "a run that can go on after all its processes died, without a run store",
        lambda: compose(RESTART, runtime=None),
        "a durable, shared run store",
        lambda: compose(RESTART),
    ),
    Case(
        "a run that can go on, with messages and payloads that its processes hold",
        lambda: compose(RESTART, messaging=change(CLUSTER, durability=Durability.HOST), payload=EPHEMERAL),
        "messages and payloads that servers hold",
        lambda: compose(RESTART, messaging=change(CLUSTER, durability=Durability.STREAM)),
    ),
    Case(
        "durable control with records that only one process sees",
        lambda: compose(CONTROL, runtime=PRIVATE, execution=None),
        "the same records without durable control",
        lambda: compose(CompositionRequirements(), runtime=PRIVATE, execution=None),
    ),
    Case(
        "a channel of durable control without a durable shared store",
        lambda: compose(wanting(profile="durable_control"), runtime=None, payload=EPHEMERAL),
        "with one",
        lambda: compose(wanting(profile="durable_control")),
    ),
    Case(
        "an archive without a durable shared store",
        lambda: compose(archive(), runtime=None),
        "with one",
        lambda: compose(archive()),
    ),
    Case(
        "an archive with payloads that are on no volume, and messages that die with the workers",
        lambda: compose(
            archive(),
            payload=change(OBJECTS, persistent_volume=NO),
            messaging=change(CLUSTER, durability=Durability.HOST),
        ),
        "payloads on a volume, messages on a server",
        lambda: compose(archive(), messaging=change(CLUSTER, durability=Durability.STREAM)),
    ),
    Case(
        "an archive without a stated horizon",
        lambda: compose(archive(horizon_seconds=None)),
        "an archive of a day",
        lambda: compose(archive(horizon_seconds=DAY)),
    ),
    Case(
        "an archive for longer than the server keeps it",
        lambda: compose(archive(horizon_seconds=DAY + 1)),
        "exactly as long",
        lambda: compose(archive(horizon_seconds=DAY)),
    ),
    Case(
        "an archive whose retention could not be read",
        lambda: compose(archive(), messaging=change(CLUSTER, retention_seconds=UNREAD)),
        "the same, read",
        lambda: compose(archive()),
    ),
]
FAILURES = [
    Case(
        "one tolerated failure with one server, in memory",
        lambda: compose(
            ONE_LOST, messaging=change(CLUSTER, durability=Durability.MEMORY, copies=known(1, 0.0))
        ),
        "five copies on disks",
        lambda: compose(ONE_LOST),
    ),
    Case(
        "one tolerated failure, accepted by a single server on its disk",
        lambda: compose(ONE_LOST, messaging=change(CLUSTER, durability=Durability.STREAM)),
        "none tolerated, on the same server",
        lambda: compose(wanting(), messaging=change(CLUSTER, durability=Durability.STREAM)),
    ),
    Case(
        "two tolerated failures with four copies of everything",
        lambda: compose(
            wanting(tolerated_failures=2),
            messaging=change(CLUSTER, copies=known(4, 0.0)),
            payload=change(OBJECTS, copies=known(4, 0.0)),
            runtime=change(RECORDS, copies=known(4, 0.0)),
        ),
        "with five",
        lambda: compose(wanting(tolerated_failures=2)),
    ),
    Case(
        "one tolerated failure with payloads that are on no volume",
        lambda: compose(ONE_LOST, payload=change(OBJECTS, persistent_volume=NO)),
        "on a volume",
        lambda: compose(ONE_LOST),
    ),
    Case(
        "one tolerated failure, and the copies that there are could not be read back",
        lambda: compose(ONE_LOST, messaging=change(CLUSTER, copies=UNREAD)),
        "three, read back",
        lambda: compose(ONE_LOST, messaging=change(CLUSTER, copies=known(3, 0.0))),
    ),
]
EFFECTS = [
    Case(
        "exactly-once effects of a sink that declares no idempotency key",
        lambda: compose(once(0.0)),
        "at least once",
        lambda: compose(wanting("alarm", sinks=(SinkDeclaration(sink="hook0"),))),
    ),
    Case(
        "exactly-once effects with keys that are forgotten before an item may come again",
        lambda: compose(once(3600.0, horizon=DAY)),
        "keys that are remembered as long",
        lambda: compose(once(DAY, horizon=DAY)),
    ),
    Case(
        "exactly-once effects with keys for an hour, and no word on how late an item may come again",
        lambda: compose(once(3600.0)),
        "keys for ever",
        lambda: compose(once(None)),
    ),
    Case(
        "exactly-once effects of a channel that no sink reads",
        lambda: compose(once()),
        "one that a sink with a key reads",
        lambda: compose(once(None)),
    ),
    Case(
        "exactly-once effects of a whole flow, one of whose sinks has no key",
        lambda: compose(
            CompositionRequirements(
                exactly_once=(
                    SinkDeclaration(sink="hook", effect_key_seconds=None),
                    SinkDeclaration(sink="file"),
                )
            )
        ),
        "all with keys",
        lambda: compose(
            CompositionRequirements(exactly_once=(SinkDeclaration(sink="hook", effect_key_seconds=None),))
        ),
    ),
]
