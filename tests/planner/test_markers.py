"""Markers in a plan: channels of their own, a subscription for each replica, counted and said."""

from typing import Any

import pytest

from tests.planner.building import MIB, Graph, threads_facts
from videoflow.backends.messaging import Reliability
from videoflow.errors import FlowInvalid
from videoflow.graph.spec import LatestSpec
from videoflow.planner import plan_flow
from videoflow.planner.explain import explain_mermaid, explain_text, plain_text
from videoflow.planner.plan import Plan


def alerts(item_bytes: int = 1000, replicas: int = 2, **options: object) -> Graph:
    graph = Graph()
    graph.source("camera", traits={"max_item_bytes": MIB})
    graph.step("alert", "camera", ports=("out", "events"), traits={"max_item_bytes": item_bytes})
    parted = {"replicas": replicas, "ordered": True, "partition_by": "key", **options}
    graph.step("clips", "camera", options=parted, traits={"controlled": True})
    graph.sink("sink", "clips")
    graph.control("clips", "alert.events")
    return graph


def planned(graph: Graph, **facts: Any) -> Plan:
    return plan_flow(graph.spec(), threads_facts(**facts))


def test_markers_have_a_live_channel_and_a_broadcast_to_each_replica_beside_the_inputs() -> None:
    plan = planned(alerts())
    task = plan.task("clips")
    assert [given.name for given in task.inputs] == ["camera"]
    (control,) = task.controls
    (subscription,) = control.subscriptions
    assert (control.node, subscription.broadcast, subscription.exclusive) == ("clips", True, False)
    assert subscription.channel.reliability is Reliability.LIVE
    assert subscription.channel.partitions == 1
    assert subscription.latest == LatestSpec(capacity=256)
    channel = next(c for c in plan.channels if c.ref == subscription.channel)
    assert channel.readers == (subscription.reader,)
    assert channel.bound_items >= 256 + 2 * subscription.credit_items
    assert channel.bound_bytes >= channel.bound_items * 1000
    (edge,) = plan.controls
    assert (edge.parent, edge.port, edge.child, edge.replicas) == ("alert", "events", "clips", 2)
    assert Plan.from_json(plan.to_json()) == plan


def test_inputs_are_sized_as_if_there_were_no_markers() -> None:
    graph = alerts()
    graph.controls.clear()
    without, with_markers = planned(graph), planned(alerts())
    for task in without.tasks:
        assert with_markers.task(task.name).inputs == task.inputs


def test_large_markers_wait_in_smaller_numbers_and_the_plan_says_why() -> None:
    plan = planned(alerts(item_bytes=8 * MIB))
    (subscription,) = plan.task("clips").controls[0].subscriptions
    assert subscription.latest == LatestSpec(capacity=8)
    assert "max_item_bytes on the class of alert" in subscription.why
    tight = planned(alerts(item_bytes=8 * MIB), budget=120 * MIB)
    (fewer,) = tight.task("clips").controls[0].subscriptions
    assert fewer.latest is not None
    assert fewer.latest.capacity < 8
    assert tight.memory_bytes <= 120 * MIB


def test_a_port_that_is_read_live_and_gives_markers_has_one_live_channel_with_room_for_both() -> None:
    graph = alerts()
    graph.sink("shown", ("alert.events", LatestSpec(capacity=3)))
    plan = planned(graph)
    (channel,) = [c for c in plan.channels if (c.ref.node, c.ref.port) == ("alert", "events")]
    assert len(channel.readers) == 2
    assert channel.bound_items > 256 + 2 * 32


def test_an_explanation_says_it_and_lists_it_outside_identity() -> None:
    plan = planned(alerts())
    text = plain_text(explain_text(plan))
    assert "alert.events → clips (markers)" in text
    assert "all of them to each of 2 replicas" in text
    assert "the latest 256" in text
    assert any("the markers of alert.events" in sentence for sentence in plan.outside_identity)
    assert '-.->|"events, markers, memory"|' in explain_mermaid(plan)


def test_a_document_with_impossible_markers_is_refused_by_name() -> None:
    graph = Graph()
    graph.source("camera")
    graph.step("alert", "camera", options={"fuse": "one"})
    graph.sink("clips", "alert", options={"fuse": "one"}, traits={"controlled": True})
    graph.sink("deaf", "camera")
    graph.control("clips", "alert")
    graph.control("deaf", "alert")
    graph.control("camera", "alert")
    with pytest.raises(FlowInvalid) as caught:
        planned(graph)
    causes = {problem.node: problem.cause for problem in caught.value.problems}
    assert "its markers come from alert, in the same fused task 'one'" in causes["clips"]
    assert "has no on_control" in causes["deaf"]
    assert "a source takes no markers" in causes["camera"]
