"""What a flow asks of its backends: by its edges, its nodes and its words; and what `explain` says of it."""

from dataclasses import replace
from typing import Any

import msgspec
import pytest

from tests.planner.building import GIB, MESSAGING, MIB, PAYLOAD, Graph, local_facts, threads_facts
from videoflow.backends.outcomes import known
from videoflow.errors import IncompatibleProfile
from videoflow.graph.spec import ChannelRequirementSpec, LatestSpec, RequirementsSpec, ResourcesSpec
from videoflow.planner import Guarantee, PlanFacts, plan_flow
from videoflow.planner.explain import explain_text, plain_text
from videoflow.planner.plan import Plan


def cameras(**stated: Any) -> Graph:
    """A camera that is read in both ways, a stateful counter with two partitions, and a hook."""
    graph = Graph()
    graph.source("camera")
    options = {"replicas": 2, "partition_by": "key", "ordered": True}
    graph.step("count", "camera", options=options, traits={"stateful": True})
    graph.sink("hook", "count", traits={"effect_key_seconds": 60.0})
    graph.sink("screen", ("camera", LatestSpec()))
    graph.requirements = RequirementsSpec(**stated)
    return graph


def planned(graph: Graph, facts: PlanFacts | None = None) -> Plan:
    return plan_flow(graph.spec(), facts or local_facts())


def misses(graph: Graph, facts: PlanFacts | None = None) -> list[tuple[str, str]]:
    with pytest.raises(IncompatibleProfile) as caught:
        planned(graph, facts)
    return [(miss.subject, miss.guarantee) for miss in caught.value.misses]


def test_edges_say_what_their_channels_must_be() -> None:
    plan = planned(cameras())
    assert [(c.channel, c.profile, c.partitions, c.key) for c in plan.admitted.channels] == [
        ("camera", "reliable_work", 2, "key"),
        ("camera", "live_latest", 1, None),
        ("count", "reliable_work", 1, None),
    ]
    assert [(c.bound_items, c.bound_bytes) for c in plan.admitted.channels] == [
        (c.bound_items, c.bound_bytes) for c in plan.channels
    ]
    assert any(note.startswith("camera is written once for each of") for note in plan.notes)


def test_the_document_of_a_plan_holds_what_was_admitted() -> None:
    plan = planned(cameras(isolated=True))
    assert Plan.from_json(plan.to_json()) == plan
    assert ("the run", "execution.isolates_crash") in [(g.subject, g.rests_on) for g in plan.admitted.grounds]


def test_lost_servers_are_asked_of_every_lossless_edge_and_of_a_live_one_by_name() -> None:
    everywhere = misses(cameras(tolerated_failures=1))
    assert [subject for subject, guarantee in everywhere if guarantee == Guarantee.MESSAGE_COPIES] == [
        "channel camera",
        "channel count",
    ]
    named = ChannelRequirementSpec(channel="camera", profile="live_latest", tolerated_failures=1)
    assert ("channel camera", Guarantee.MESSAGE_COPIES) in misses(cameras(channels=(named,)))


def test_of_two_figures_for_one_channel_the_stronger_holds() -> None:
    named = ChannelRequirementSpec(channel="count", tolerated_failures=1)
    with pytest.raises(IncompatibleProfile) as caught:
        planned(cameras(tolerated_failures=2, channels=(named,)))
    wanted = {miss.wanted for miss in caught.value.misses if miss.guarantee == Guarantee.MESSAGE_COPIES}
    assert wanted == {"5 (so that 2 may be lost)"}


@pytest.mark.parametrize("profile", ["replay_archive", "durable_control"])
def test_no_engine_of_one_machine_keeps_archives_or_control_records(profile: str) -> None:
    named = ChannelRequirementSpec(channel="count", profile=profile, horizon_seconds=1.0)
    for facts in (local_facts(), threads_facts()):
        assert ("channel count", Guarantee.PROFILE) in misses(cameras(channels=(named,)), facts)


def test_effects_once_in_the_whole_flow_ask_every_sink_even_one_that_no_channel_reaches() -> None:
    graph = Graph()
    graph.source("camera", options={"fuse": "all"})
    graph.sink("file", "camera", options={"fuse": "all"})
    graph.requirements = RequirementsSpec(exactly_once_effects=True)
    assert misses(graph) == [("sink file", Guarantee.EFFECT_KEY)]
    assert misses(cameras(exactly_once_effects=True)) == [
        ("sink hook", Guarantee.EFFECT_HORIZON),
        ("sink screen", Guarantee.EFFECT_KEY),
    ]


def test_effects_once_of_one_channel_ask_its_sinks_alone() -> None:
    once = ChannelRequirementSpec(channel="count", exactly_once_effects=True, horizon_seconds=60.0)
    [channel] = [c for c in planned(cameras(channels=(once,))).admitted.channels if c.exactly_once_effects]
    assert channel.channel == "count"
    later = ChannelRequirementSpec(channel="count", exactly_once_effects=True, horizon_seconds=61.0)
    assert misses(cameras(channels=(later,))) == [("channel count into hook", Guarantee.EFFECT_HORIZON)]


def test_accelerators_are_not_passed_over() -> None:
    assert misses(resourceful(2, gpus=1)) == [
        ("workload detect/0", Guarantee.ALLOCATOR),
        ("workload detect/1", Guarantee.ALLOCATOR),
    ]


def resourceful(replicas: int, **resources: Any) -> Graph:
    graph = Graph()
    graph.source("camera")
    graph.step("detect", "camera", options={"replicas": replicas, "resources": ResourcesSpec(**resources)})
    graph.sink("log", "detect")
    return graph


def test_a_replica_that_no_host_can_hold_is_refused_and_shared_processors_are_a_note() -> None:
    two = replace(local_facts(), cpus=2.0)
    assert misses(resourceful(1, cpus=2.5), two) == [("task detect", Guarantee.PROCESSORS)]
    assert any("share them" in note for note in planned(resourceful(2, cpus=2.0), two).notes)


def test_processors_of_their_own_must_all_be_there() -> None:
    graph = resourceful(2, cpus=2.0)
    graph.requirements = RequirementsSpec(dedicated_cpus=True)
    six = replace(local_facts(), cpus=6.0)
    assert planned(graph, six).tasks
    assert misses(graph, replace(six, cpus=5.5)) == [("the run", Guarantee.ALL_PROCESSORS)]


def test_memory_that_nodes_ask_for_is_counted_beside_the_buffers() -> None:
    graph = resourceful(2, memory_bytes=GIB)
    facts = replace(local_facts(budget=GIB), max_item_bytes={"camera": MIB})
    buffers = planned(resourceful(2), facts).memory_bytes
    enough = replace(facts, available_bytes=known(2 * GIB + buffers, 0.0))
    assert planned(graph, enough).memory_bytes == buffers
    less = replace(facts, available_bytes=known(2 * GIB + buffers - 1, 0.0))
    assert misses(graph, less) == [("task detect", Guarantee.MEMORY)]


@pytest.mark.parametrize("free", [4 * MIB, 40 * MIB, 100 * MIB])
def test_buffers_follow_a_payload_store_that_is_smaller_than_the_budget(free: int) -> None:
    graph = resourceful(2)
    facts = replace(local_facts(budget=GIB), max_item_bytes={"camera": MIB})
    small = replace(facts, payload=msgspec.structs.replace(facts.payload, free_bytes=known(free, 0.0)))
    if free < 5 * MIB:
        assert misses(graph, small) == [("the flow", Guarantee.PAYLOAD_ROOM)]
    else:
        assert planned(graph, small).memory_bytes <= free < planned(graph, facts).memory_bytes


def test_a_limit_of_subscriptions_counts_partitions() -> None:
    facts = local_facts()

    def limited(most: int) -> PlanFacts:
        return replace(facts, messaging=msgspec.structs.replace(facts.messaging, maximum_subscriptions=most))

    assert planned(cameras(), limited(4)).admitted.channels
    assert misses(cameras(), limited(3)) == [("the flow", Guarantee.SUBSCRIPTIONS)]


def test_what_is_missing_is_said_before_any_size_is_judged() -> None:
    blind = replace(
        threads_facts(messaging=msgspec.structs.replace(MESSAGING, profiles=frozenset())),
        payload=msgspec.structs.replace(PAYLOAD, free_bytes=known(0, 0.0)),
        memory_budget_bytes=1,
    )
    assert {guarantee for _, guarantee in misses(cameras(), blind)} == {Guarantee.PROFILE}


def test_explain_says_what_was_required_admitted_and_what_it_rests_on() -> None:
    once = ChannelRequirementSpec(channel="count", exactly_once_effects=True, horizon_seconds=60.0)
    plan = planned(cameras(isolated=True, durable_control=True, channels=(once,)))
    sections = {section.title: section for section in explain_text(plan)}
    assert [row.cells for row in sections["Required"].rows] == [
        ("the flow", "durable_control", "yes"),
        ("the flow", "isolated", "yes"),
        ("channel count", "horizon_seconds", "60"),
        ("channel count", "exactly_once_effects", "yes"),
    ]
    channels = {row.cells[:2]: row.cells for row in sections["Admitted channels"].rows}
    assert channels["camera x2", "reliable_work"][2:4] == ("shm", "processes of one host")
    assert "messaging.durability" in channels["count", "reliable_work"][4]
    assert channels["camera", "live_latest"][4] == (
        "messaging.splits_retention, messaging.profiles, payload.maximum_object_bytes"
    )
    rests = {(row.cells[0], row.cells[4]) for row in sections["What that rests on"].rows}
    assert ("the run", "runtime.survives_process") in rests
    assert ("channel count into hook", "effect_key_seconds of the sink") in rests
    assert "Required" in plain_text(list(sections.values()))


def test_a_flow_that_states_nothing_has_no_such_section() -> None:
    assert "Required" not in [section.title for section in explain_text(planned(cameras()))]
