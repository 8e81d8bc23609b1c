"""How nodes become tasks: labels, ways of taking inputs, commit orders, and what is refused."""

import dataclasses
from typing import Any

import msgspec
import pytest

from tests.planner.building import MESSAGING, Graph, threads_facts
from videoflow.backends.messaging import Reliability
from videoflow.errors import FlowInvalid, IncompatibleProfile
from videoflow.graph.spec import BatchSpec, LatestSpec
from videoflow.planner import SizingDefaults, plan_flow
from videoflow.planner.plan import CommitOrder, InputMode, Plan, Transport


def planned(graph: Graph, **facts: Any) -> Plan:
    return plan_flow(graph.spec(), threads_facts(**facts))


def problems(graph: Graph, **facts: Any) -> list[tuple[str, str]]:
    with pytest.raises(FlowInvalid) as caught:
        planned(graph, **facts)
    return [(problem.node, problem.cause) for problem in caught.value.problems]


def test_each_node_is_a_task_and_is_read_over_a_channel() -> None:
    graph = Graph()
    graph.source("camera")
    graph.step("detect", "camera")
    graph.sink("log", "detect")
    plan = planned(graph)
    assert [(task.name, task.nodes) for task in plan.tasks] == [
        ("camera", ("camera",)),
        ("detect", ("detect",)),
        ("log", ("log",)),
    ]
    assert [(c.ref.node, c.writer, c.readers) for c in plan.channels] == [
        ("camera", "camera", ("detect/0",)),
        ("detect", "detect", ("log/0",)),
    ]
    assert {edge.transport for edge in plan.edges} == {Transport.MEMORY}


def test_a_port_that_nobody_reads_has_no_channel() -> None:
    graph = Graph()
    graph.source("camera", ports=("out", "events"))
    graph.sink("log", "camera.events")
    assert [(c.ref.node, c.ref.port) for c in planned(graph).channels] == [("camera", "events")]


def labelled(graph: Graph) -> Graph:
    graph.source("camera")
    graph.step("track", "camera", options={"fuse": "people", "ordered": True}, traits={"stateful": True})
    graph.step("count", "track", options={"fuse": "people"})
    graph.sink("log", "count")
    return graph


def test_nodes_with_one_label_are_one_task_with_direct_calls_inside() -> None:
    plan = planned(labelled(Graph()))
    assert plan.task("track").nodes == ("track", "count")
    assert [(edge.parent, edge.child, edge.transport, edge.reader) for edge in plan.edges] == [
        ("camera", "track", Transport.MEMORY, "track/0"),
        ("track", "count", Transport.FUSED, None),
        ("count", "log", Transport.MEMORY, "log/0"),
    ]
    assert [c.ref.node for c in plan.channels] == ["camera", "count"]


def test_labels_can_be_turned_off_to_compare() -> None:
    plan = planned(labelled(Graph()), fuse=False)
    assert [task.nodes for task in plan.tasks] == [("camera",), ("track",), ("count",), ("log",)]


def test_fusing_off_for_one_node_is_no_label() -> None:
    graph = Graph()
    graph.source("camera")
    graph.step("a", "camera", options={"fuse": False})
    graph.sink("b", "a", options={"fuse": False})
    assert [task.nodes for task in planned(graph).tasks] == [("camera",), ("a",), ("b",)]


def test_a_fused_port_is_still_written_for_readers_outside() -> None:
    graph = labelled(Graph())
    graph.sink("watch", "track")
    plan = planned(graph)
    assert [(c.ref.node, c.writer, c.readers) for c in plan.channels] == [
        ("camera", "camera", ("track/0",)),
        ("track", "track", ("watch/0",)),
        ("count", "track", ("log/0",)),
    ]


def test_a_label_over_two_beginnings_is_refused_with_both_named() -> None:
    graph = Graph()
    graph.source("camera")
    graph.step("a", "camera", options={"fuse": "g"})
    graph.step("b", "camera", options={"fuse": "g"})
    graph.sink("log", "a")
    graph.sink("log2", "b")
    [(node, cause)] = problems(graph)
    assert node == "b"
    assert "'g'" in cause
    assert "camera from outside" in cause


def test_every_reason_against_a_label_is_listed() -> None:
    graph = Graph()
    graph.source("camera")
    graph.step("a", "camera", options={"fuse": "g", "replicas": 2})
    graph.step("b", ("a", LatestSpec()), options={"fuse": "g", "partition_by": "key"})
    graph.sink("log", "b")
    causes = " / ".join(cause for node, cause in problems(graph) if node == "b")
    assert "is live" in causes
    assert "replicas=2" in causes
    assert "partition_by belongs to" in causes


def test_nodes_with_state_share_the_input_of_their_group_where_its_first_node_says_by_what() -> None:
    def graph(**first: Any) -> Graph:
        made = Graph()
        made.source("camera")
        options = {"fuse": "g", "replicas": 2}
        made.step("a", "camera", options={**options, **first})
        made.step("b", "a", options={**options, "ordered": True}, traits={"stateful": True})
        made.sink("log", "b")
        return made

    shared = graph(partition_by="source")
    assert planned(shared).task("a").partitions == 2
    assert [node for node, _ in problems(graph())] == ["b"]
    with pytest.raises(FlowInvalid, match="cannot compete"):
        planned(shared, fuse=False)


def test_a_sink_with_checkpoints_is_fused_where_it_speaks_for_the_whole_task() -> None:
    group: dict[str, Any] = {"options": {"fuse": "g"}}
    sink: dict[str, Any] = {**group, "traits": {"checkpoints": True, "holds_items": 4}}

    def causes(graph: Graph) -> str:
        return " / ".join(cause for node, cause in problems(graph) if node.startswith("file"))

    graph = Graph()
    graph.source("camera", **group)
    graph.sink("file", "camera", **sink)
    assert "camera has no input that could wait for them" in causes(graph)

    graph = Graph()
    graph.source("camera")
    graph.step("a", "camera", **group)
    graph.sink("file", "a", **sink)
    graph.sink("log", "a")
    assert "a is read outside, and would wait" in causes(graph)

    graph = Graph()
    graph.source("camera")
    graph.step("crop", "camera", many={"out": 4}, **group)
    graph.sink("file", "crop", **sink)
    graph.sink("file2", "crop", **sink)
    assert "file and file2 make checkpoints, each of its own inputs" in causes(graph)
    assert "a part durable of what crop.out makes of one input" in causes(graph)

    graph = Graph()
    graph.source("camera")
    graph.step("a", "camera", **group)
    graph.sink("file", "a", **sink)
    assert planned(graph).task("a").nodes == ("a", "file")


@pytest.mark.parametrize(
    ("options", "traits", "mode"),
    [
        ({}, {}, InputMode.COMPETING),
        ({"replicas": 3}, {}, InputMode.COMPETING),
        ({"ordered": True}, {}, InputMode.ORDERED),
        ({"ordered": True}, {"stateful": True}, InputMode.ORDERED),
        ({"deterministic": False}, {}, InputMode.ORDERED),
    ],
)
def test_how_a_processor_takes_its_input(
    options: dict[str, Any], traits: dict[str, Any], mode: InputMode
) -> None:
    graph = Graph()
    graph.source("camera")
    graph.step("a", "camera", options=options, traits=traits)
    graph.sink("log", "a")
    plan = planned(graph)
    assert plan.task("a").mode is mode
    assert plan.task("camera").mode is InputMode.SOURCE
    [reading] = plan.task("a").inputs[0].subscriptions
    assert reading.exclusive is (mode is InputMode.ORDERED)
    assert (reading.spread is None) is (mode is InputMode.ORDERED)


def test_consumers_read_in_order_unless_they_say_otherwise() -> None:
    graph = Graph()
    graph.source("camera")
    graph.sink("a", "camera")
    graph.sink("b", "camera", options={"ordered": False})
    plan = planned(graph)
    assert plan.task("a").mode is InputMode.ORDERED
    assert plan.task("b").mode is InputMode.COMPETING


def test_several_inputs_are_a_join_and_merged_ones_are_one_input() -> None:
    graph = Graph()
    graph.source("left")
    graph.source("right")
    graph.step("one", ("left", "right"))
    graph.step("two", ("left", "right"), "one")
    graph.sink("log", "two")
    plan = planned(graph)
    assert plan.task("one").mode is InputMode.COMPETING
    [merged] = plan.task("one").inputs
    assert [(s.channel.node, s.reader) for s in merged.subscriptions] == [
        ("left", "one/0"),
        ("right", "one/0"),
    ]
    assert plan.task("two").mode is InputMode.JOIN
    assert [entry.name for entry in plan.task("two").inputs] == ["left+right", "one"]


@pytest.mark.parametrize(
    ("options", "traits"),
    [
        ({"ordered": True}, {"stateful": True}),
        ({"ordered": True}, {"flushes": True}),
        ({"ordered": True}, {"checkpoints": True}),
        ({"deterministic": False}, {}),
    ],
)
def test_what_may_answer_otherwise_on_a_second_run_commits_first(
    options: dict[str, Any], traits: dict[str, Any]
) -> None:
    graph = Graph()
    graph.source("camera")
    graph.step("plain", "camera")
    graph.step("a", "plain", options=options, traits=traits)
    graph.sink("log", "a")
    plan = planned(graph)
    assert plan.task("a").order is CommitOrder.OUTBOX
    assert any("outbox" in reason and "a " in reason for reason in plan.task("a").why)
    assert plan.task("plain").order is CommitOrder.STATELESS


def test_a_source_with_state_fused_in_commits_first() -> None:
    graph = Graph()
    graph.source("camera", options={"fuse": "g"})
    graph.step("track", "camera", options={"fuse": "g", "ordered": True}, traits={"stateful": True})
    graph.sink("log", "track")
    task = planned(graph).task("camera")
    assert (task.mode, task.order) == (InputMode.SOURCE, CommitOrder.OUTBOX)


def test_ports_with_several_items_commit_first_where_they_are_not_accepted_together() -> None:
    graph = Graph()
    graph.source("camera")
    graph.step("crop", "camera", many={"out": 4})
    graph.sink("log", "crop")
    assert planned(graph).task("crop").order is CommitOrder.STATELESS
    one_by_one = msgspec.structs.replace(MESSAGING, atomic_append=False)
    assert planned(graph, messaging=one_by_one).task("crop").order is CommitOrder.OUTBOX


def test_live_and_lossless_readers_of_one_port_have_channels_of_their_own() -> None:
    graph = Graph()
    graph.source("camera")
    graph.sink("video", "camera")
    graph.sink("screen", ("camera", LatestSpec(max_age_seconds=0.5)))
    plan = planned(graph)
    assert {(c.ref.reliability, c.readers) for c in plan.channels} == {
        (Reliability.RELIABLE, ("video/0",)),
        (Reliability.LIVE, ("screen/0",)),
    }
    [output] = plan.task("camera").outputs
    assert [ref.reliability for ref in output.channels] == [Reliability.RELIABLE, Reliability.LIVE]


@pytest.mark.parametrize(
    ("traits", "reason"),
    [
        ({"stateful": True}, "keeps state"),
        ({"flushes": True}, "has a flush"),
        ({"checkpoints": True}, "makes checkpoints"),
        ({}, "is ordered"),
    ],
)
def test_replicas_that_cannot_compete_are_refused_with_the_reason(
    traits: dict[str, Any], reason: str
) -> None:
    graph = Graph()
    graph.source("camera")
    graph.step("a", "camera", options={"replicas": 2, "ordered": True}, traits=traits)
    graph.sink("log", "a")
    [(node, cause)] = problems(graph)
    assert node == "a"
    assert reason in cause


def test_all_problems_are_reported_at_once() -> None:
    graph = Graph()
    graph.source("camera", options={"replicas": 2})
    graph.step("a", "camera", options={"ordered": False}, traits={"stateful": True})
    graph.sink("b", "a", ("camera", LatestSpec()))
    graph.sink("c", ("a", "a"))
    assert [node for node, _ in problems(graph)] == ["camera", "a", "b", "c"]


def test_replicas_that_may_answer_differently_record_each_answer() -> None:
    graph = Graph()
    graph.source("camera")
    graph.step("a", "camera", options={"replicas": 2, "deterministic": False}, traits={"max_item_bytes": 100})
    graph.sink("log", "a")
    task = planned(graph).task("a")
    assert (task.mode, task.order, task.answers_once) == (InputMode.COMPETING, CommitOrder.OUTBOX, True)


def test_answers_too_large_to_be_recorded_are_refused_with_the_size() -> None:
    graph = Graph()
    graph.source("camera")
    graph.step("a", "camera", options={"replicas": 2, "deterministic": False})
    graph.sink("log", "a")
    [(node, cause)] = problems(graph)
    assert node == "a"
    assert "16 MiB" in cause


def test_partitions_have_a_layout_of_their_own_and_one_window() -> None:
    graph = Graph()
    graph.source("camera")
    options = {"replicas": 3, "ordered": True, "partition_by": "key"}
    graph.step("track", "camera", options=options, traits={"stateful": True, "max_item_bytes": 1000})
    graph.sink("log", "track")
    graph.sink("all", "camera")
    plan = planned(graph)
    task = plan.task("track")
    [subscription] = task.inputs[0].subscriptions
    assert (task.mode, task.partitions) == (InputMode.ORDERED, 3)
    assert (subscription.channel.key, subscription.channel.partitions) == ("key", 3)
    assert subscription.spread == 1 + 3 * SizingDefaults().prefetch
    layouts = [(ref.key, ref.partitions) for ref in plan.task("camera").outputs[0].channels]
    assert layouts == [(None, 1), ("key", 3)]
    [below] = plan.task("log").inputs[0].subscriptions
    assert below.hold_items == 1 + subscription.spread


def test_a_join_with_replicas_is_partitioned_by_what_it_joins() -> None:
    graph = Graph()
    graph.source("camera")
    graph.step("crop", "camera", many={"out": 4})
    graph.step("name", "crop")
    graph.step("draw", "crop", "name", options={"replicas": 2})
    graph.sink("log", "draw")
    task = planned(graph).task("draw")
    assert task.mode is InputMode.JOIN
    assert {s.channel.key for given in task.inputs for s in given.subscriptions} == {"trace:1"}


def test_a_join_by_an_attribute_is_refused() -> None:
    graph = Graph()
    graph.source("camera")
    graph.step("a", "camera", "camera", options={"replicas": 2, "partition_by": "zone"})
    graph.sink("log", "a")
    [(node, cause)] = problems(graph)
    assert node == "a"
    assert "reads an attribute" in cause


def test_an_engine_whose_backends_do_not_reach_is_refused_with_every_miss() -> None:
    graph = Graph()
    graph.source("camera")
    graph.sink("log", ("camera", LatestSpec()))
    facts = threads_facts(messaging=msgspec.structs.replace(MESSAGING, profiles=frozenset()))
    crossing = msgspec.structs.replace(facts.execution, crosses_processes=True)
    with pytest.raises(IncompatibleProfile) as caught:
        plan_flow(graph.spec(), dataclasses.replace(facts, execution=crossing))
    assert [miss.subject for miss in caught.value.misses] == [
        "channel camera",
        "messages",
        "payloads",
        "run records",
    ]


def test_a_batch_counts_as_work() -> None:
    graph = Graph()
    graph.source("camera")
    batch = BatchSpec(max_items=8, max_wait_seconds=0.02)
    graph.step("detect", "camera", options={"replicas": 2, "batch": batch})
    graph.sink("log", "detect")
    assert planned(graph).task("detect").batch_items == 8
