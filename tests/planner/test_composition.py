"""Which compositions of backends are admitted, and that a refusal names everything that is missing."""

from typing import Any

import msgspec
import pytest

from tests.planner.building import LOCAL, MESSAGING, PAYLOAD, RUNTIME
from videoflow.backends.capabilities import Profile
from videoflow.backends.messaging import Bounds
from videoflow.backends.outcomes import Durability, UnknownReason, known, unknown
from videoflow.errors import IncompatibleProfile, UnobservableState
from videoflow.planner import (
    ChannelRequirement,
    CompositionPlan,
    CompositionRequirements,
    Effects,
    plan_composition,
)

replace = msgspec.structs.replace
ALL = frozenset(Profile)
CLUSTER = replace(
    MESSAGING,
    adapter="stream",
    profiles=ALL,
    durability=Durability.STREAM_QUORUM,
    copies=known(3, 0.0),
    crosses_processes=True,
    crosses_hosts=True,
)
OBJECTS = replace(
    PAYLOAD,
    adapter="objects",
    durable=known(True, 0.0),
    persistent_volume=known(True, 0.0),
    crosses_processes=True,
    crosses_hosts=True,
)
SHARED = replace(RUNTIME, adapter="kv", shared=True, survives_process=True, crosses_hosts=True)


def wanting(channel: str = "detect", **parts: Any) -> CompositionRequirements:
    return CompositionRequirements(channels=(ChannelRequirement(channel=channel, **parts),))


def missing(requirements: CompositionRequirements, *backends: Any, **more: Any) -> list[tuple[str, str]]:
    with pytest.raises(IncompatibleProfile) as caught:
        plan_composition(requirements, *backends, **more)
    assert all(miss.remedy for miss in caught.value.misses)
    return [(miss.subject, miss.guarantee) for miss in caught.value.misses]


def admitted(requirements: CompositionRequirements, *backends: Any, **more: Any) -> None:
    plan = plan_composition(requirements, *backends, **more)
    assert [channel.channel for channel in plan.channels] == [c.channel for c in requirements.channels]


def test_what_is_offered_is_admitted_as_asked() -> None:
    plan = plan_composition(wanting(bounds=Bounds(8, 100)), MESSAGING)
    assert isinstance(plan, CompositionPlan)
    [channel] = plan.channels
    assert (channel.channel, channel.profile, channel.bounds) == (
        "detect",
        Profile.RELIABLE_WORK,
        Bounds(8, 100),
    )
    assert (channel.copies, plan.notes) == (1, ())


def test_nothing_wanted_is_nothing_missing() -> None:
    admitted(CompositionRequirements(), MESSAGING)


def test_an_unknown_profile_is_refused_with_the_known_ones() -> None:
    with pytest.raises(IncompatibleProfile, match="reliable_work") as caught:
        plan_composition(wanting(profile="exactly_right"), MESSAGING)
    assert caught.value.exit_status == 2


def test_reliable_work_needs_recoverable_delivery() -> None:
    lossy = replace(MESSAGING, profiles=frozenset({Profile.LIVE_LATEST}))
    assert missing(wanting(), lossy) == [("channel detect", "profile")]
    admitted(wanting(profile="live_latest"), lossy)


def test_reliable_work_needs_payloads_that_stay() -> None:
    cache = replace(PAYLOAD, evictable=known(True, 0.0))
    assert missing(wanting(), MESSAGING, cache, payload_refs_in_use=True) == [
        ("channel detect", "evictable payloads")
    ]
    admitted(wanting(), MESSAGING, cache)
    admitted(wanting(), MESSAGING, PAYLOAD, payload_refs_in_use=True)
    admitted(wanting(profile="live_latest"), MESSAGING, cache, payload_refs_in_use=True)


def test_references_need_a_store() -> None:
    assert missing(wanting(), MESSAGING, payload_refs_in_use=True) == [("payloads", "payload store")]


def test_what_could_not_be_read_is_neither_admitted_nor_missing() -> None:
    unread = replace(PAYLOAD, evictable=unknown(UnknownReason.TIMEOUT, 0.0, "no answer in 5 s"))
    with pytest.raises(UnobservableState) as caught:
        plan_composition(wanting(), MESSAGING, unread, payload_refs_in_use=True)
    assert "channel detect: evictable payloads (timeout: no answer in 5 s)" in caught.value.cause
    assert missing(wanting(profile="replay_archive"), MESSAGING, unread, payload_refs_in_use=True) == [
        ("channel detect", "profile"),
        ("channel detect", "payloads on a volume"),
    ]


@pytest.mark.parametrize(
    "requirements",
    [
        CompositionRequirements(durable_control=True),
        wanting(profile="durable_control"),
    ],
)
def test_durable_control_needs_a_durable_shared_store(requirements: CompositionRequirements) -> None:
    assert [guarantee for _, guarantee in missing(requirements, CLUSTER)] == ["run store"]
    assert [guarantee for _, guarantee in missing(requirements, CLUSTER, None, RUNTIME)] == [
        "shared",
        "survives_process",
    ]
    admitted(requirements, CLUSTER, None, SHARED)


def test_going_on_after_all_died_needs_messages_and_payloads_outside_the_processes() -> None:
    requirements = CompositionRequirements(restart_safe=True)
    found = missing(requirements, MESSAGING, PAYLOAD, RUNTIME, payload_refs_in_use=True)
    assert [guarantee for _, guarantee in found] == [
        "shared",
        "survives_process",
        "durability",
        "durable payloads",
    ]
    admitted(requirements, CLUSTER, OBJECTS, SHARED, payload_refs_in_use=True)


def test_tolerated_failures_need_disks_and_copies_that_were_read_back() -> None:
    assert missing(wanting(tolerated_failures=1), MESSAGING) == [
        ("channel detect", "persistent storage"),
        ("channel detect", "copies"),
    ]
    assert missing(wanting(tolerated_failures=2), CLUSTER) == [("channel detect", "copies")]
    plan = plan_composition(wanting(tolerated_failures=1), CLUSTER)
    assert plan.channels[0].copies == 3
    unread = replace(CLUSTER, copies=unknown(UnknownReason.AUTH, 0.0))
    with pytest.raises(UnobservableState, match="copies"):
        plan_composition(wanting(tolerated_failures=1), unread)


def test_effects_happen_once_only_by_a_key_that_the_sink_declares() -> None:
    assert missing(wanting(effects=Effects.EXACTLY_ONCE), CLUSTER, None, SHARED) == [
        ("channel detect", "exactly_once")
    ]
    assert missing(wanting(effects=Effects.KEYED), CLUSTER) == [("channel detect", "run store")]
    admitted(wanting(effects=Effects.KEYED), CLUSTER, None, SHARED)


def test_bounds_beyond_the_payload_store_are_refused() -> None:
    small = replace(PAYLOAD, free_bytes=known(99, 0.0))
    wanted = wanting(bounds=Bounds(8, 100))
    assert missing(wanted, MESSAGING, small, payload_refs_in_use=True) == [
        ("channel detect", "payload bytes")
    ]
    enough = replace(PAYLOAD, free_bytes=known(100, 0.0))
    admitted(wanted, MESSAGING, enough, payload_refs_in_use=True)


def test_a_graph_beyond_the_limit_of_the_adapter_is_refused() -> None:
    two = CompositionRequirements(channels=(ChannelRequirement(channel="a"), ChannelRequirement(channel="b")))
    assert missing(two, replace(MESSAGING, maximum_channels=1)) == [("the flow", "channels")]
    admitted(two, replace(MESSAGING, maximum_channels=2))


def test_backends_must_reach_as_far_as_the_engine() -> None:
    found = missing(wanting(), MESSAGING, PAYLOAD, RUNTIME, execution=LOCAL, payload_refs_in_use=True)
    assert [subject for subject, _ in found] == ["messages", "payloads", "run state"]
    admitted(wanting(), CLUSTER, OBJECTS, SHARED, None, LOCAL, payload_refs_in_use=True)
    spread_out = replace(LOCAL, crosses_hosts=True)
    near = replace(CLUSTER, crosses_hosts=False)
    assert missing(wanting(), near, execution=spread_out) == [("messages", "crosses_hosts")]


def test_two_promises_for_one_port_are_two_logs_and_said() -> None:
    both = CompositionRequirements(
        channels=(
            ChannelRequirement(channel="camera"),
            ChannelRequirement(channel="camera", profile="live_latest"),
        )
    )
    plan = plan_composition(both, MESSAGING)
    assert [channel.profile for channel in plan.channels] == [Profile.RELIABLE_WORK, Profile.LIVE_LATEST]
    assert plan.notes == (
        "camera is written once for each of reliable_work, live_latest: one log cannot keep to both",
    )


def test_every_miss_of_every_channel_is_listed() -> None:
    requirements = CompositionRequirements(
        channels=(
            ChannelRequirement(channel="a", profile="nonsense"),
            ChannelRequirement(channel="b", tolerated_failures=1, effects=Effects.EXACTLY_ONCE),
        ),
        durable_control=True,
    )
    assert missing(requirements, MESSAGING) == [
        ("channel a", "profile"),
        ("channel b", "persistent storage"),
        ("channel b", "copies"),
        ("channel b", "exactly_once"),
        ("the run", "run store"),
    ]
