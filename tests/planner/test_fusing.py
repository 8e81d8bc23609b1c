"""Cheap chains share a process where measured costs say that it gains, and nobody separated them."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.planner.building import Graph, local_facts, threads_facts
from tests.planner.graphs import flows
from videoflow.errors import FlowError
from videoflow.graph.spec import (
    BatchSpec,
    ChannelRequirementSpec,
    LatestSpec,
    RequirementsSpec,
    ResourcesSpec,
)
from videoflow.planner import FlowCosts, NodeCost, plan_flow
from videoflow.planner.plan import Plan, Transport

HOP = 100e-6
CHEAP = 5e-6


def costs(graph: Graph, seconds: dict[str, float] | None = None, *, hop: float = HOP) -> FlowCosts:
    """Costs of a whole flow: what is not said is cheap, and each hop costs the same."""
    spec = graph.spec()
    return FlowCosts(
        run_id="01RUN",
        nodes={
            node.name: NodeCost(
                seconds=(seconds or {}).get(node.name, CHEAP),
                hops={str(parent): hop for edge in spec.inputs(node.name) for parent in edge.parents},
            )
            for node in spec.nodes
        },
    )


def planned(graph: Graph, measured: FlowCosts | None, *, cpus: float = 64.0, fuse: bool = True) -> Plan:
    facts = threads_facts(cpus=cpus, fuse=fuse)
    return plan_flow(graph.spec(), replace(facts, costs=measured))


def tasks(plan: Plan) -> list[tuple[str, ...]]:
    return [task.nodes for task in plan.tasks]


def chain(*steps: str, **parts: dict[str, Any]) -> Graph:
    """A source, steps with such parts, and a sink that makes checkpoints and stays by itself."""
    graph = Graph()
    above = graph.source("camera")
    for name in steps:
        above = graph.step(name, above, **parts.get(name, {}))
    graph.sink("log", above, traits={"checkpoints": True, "stateful": True, "holds_items": 4})
    return graph


def why_apart(plan: Plan, child: str) -> str:
    return next(edge.why for edge in plan.edges if edge.child == child)


def test_a_cheap_chain_is_one_task_and_the_plan_says_why() -> None:
    graph = chain("one", "two", "three")
    plan = planned(graph, costs(graph))
    assert tasks(plan) == [("camera",), ("one", "two", "three"), ("log",)]
    assert [edge.transport for edge in plan.edges][1:3] == [Transport.FUSED, Transport.FUSED]
    assert plan.task("one").why[:2] == (
        "two joins one: 10 µs an item together, in run 01RUN, which saves a hop of 100 µs",
        "three joins one and two: 15 µs an item together, in run 01RUN, which saves a hop of 100 µs",
    )
    assert "not a direct call: camera is a source" in why_apart(plan, "one")
    assert "not a direct call: log makes checkpoints" in why_apart(plan, "log")
    assert Plan.from_json(plan.to_json()).costs == costs(graph)


def test_what_was_not_measured_is_not_fused_and_the_plan_says_so() -> None:
    graph = chain("one", "two", "three")
    plan = planned(graph, None)
    assert all(len(nodes) == 1 for nodes in tasks(plan))
    assert any("run it once with --profile" in note for note in plan.notes)
    known = costs(graph)
    part = FlowCosts(run_id="01RUN", nodes={k: v for k, v in known.nodes.items() if k != "two"})
    plan = planned(graph, part)
    assert all(len(nodes) == 1 for nodes in tasks(plan))
    assert "no profiled run has measured two as it is now" in why_apart(plan, "three")
    hopless = FlowCosts(run_id="01RUN", nodes={**known.nodes, "two": NodeCost(seconds=CHEAP)})
    plan = planned(graph, hopless)
    assert tasks(plan) == [("camera",), ("one",), ("two", "three"), ("log",)]
    assert "measured handing over from one" in why_apart(plan, "two")


def test_a_flow_in_which_nothing_could_be_fused_is_not_asked_to_be_measured() -> None:
    assert not any("--profile" in note for note in planned(chain("one"), None).notes)
    assert not any("--profile" in note for note in planned(chain("one", "two"), None, fuse=False).notes)


def test_who_turns_fusing_off_has_each_node_by_itself() -> None:
    graph = chain("one", "two", "three")
    plan = planned(graph, costs(graph), fuse=False)
    assert all(len(nodes) == 1 for nodes in tasks(plan))
    assert plan.costs is None


BATCHES = {
    "options": {"batch": BatchSpec(max_items=4, max_wait_seconds=0.1)},
    "traits": {"batches": True},
}
SEPARATED: dict[str, tuple[dict[str, Any], dict[str, Any], str]] = {
    "never fused, below": ({}, {"options": {"fuse": False}}, "two says fuse=False"),
    "never fused, above": ({"options": {"fuse": False}}, {}, "one says fuse=False"),
    "a label": ({}, {"options": {"fuse": "x"}}, "two is where its label 'x' says"),
    "two labels": ({"options": {"fuse": "y"}}, {"options": {"fuse": "x"}}, "label 'y' says"),
    "other replicas": ({"options": {"replicas": 2, "ordered": False}}, {}, "has replicas=2"),
    "other resources": ({}, {"options": {"resources": ResourcesSpec(cpus=2.0)}}, "other resources"),
    "another image": ({"options": {"image": "a"}}, {"options": {"image": "b"}}, "image"),
    "a time limit": ({"options": {"timeout_seconds": 1.0}}, {}, "time limit"),
    "batches below": ({}, BATCHES, "it says batch="),
    "batches above": (BATCHES, {}, "one works in batches"),
    "several items of one": ({"many": {"out": 3}}, {}, "several items of one"),
    "other answers": ({"options": {"deterministic": False}}, {}, "answer differently"),
    "lookahead": ({}, {"options": {"lookahead": 2, "ordered": True}}, "further inputs"),
    "an effect key": ({}, {"traits": {"effect_key_seconds": None}}, "effect key"),
}


CASES = tuple(SEPARATED)


@pytest.mark.parametrize("name", CASES)
def test_what_is_separated_stays_apart_however_cheap(name: str) -> None:
    above, below, reason = SEPARATED[name]
    graph = chain("one", "two", one=above, two=below)
    plan = planned(graph, costs(graph, dict.fromkeys(("one", "two"), 1e-9)))
    assert tasks(plan) == [("camera",), ("one",), ("two",), ("log",)]
    assert reason in why_apart(plan, "two")


def test_a_live_edge_is_not_fused() -> None:
    graph = Graph()
    graph.step("one", graph.source("camera"))
    graph.step("two", ("one", LatestSpec()))
    graph.sink("log", "two", traits={"checkpoints": True, "stateful": True, "holds_items": 4})
    plan = planned(graph, costs(graph))
    assert tasks(plan) == [("camera",), ("one",), ("two",), ("log",)]
    assert "its edge from one is live" in why_apart(plan, "two")


def test_markers_keep_nodes_apart() -> None:
    graph = chain("one", "two", two={"traits": {"controlled": True}})
    graph.source("switch")
    graph.control("two", "switch")
    plan = planned(graph, costs(graph))
    assert ("two",) in tasks(plan)
    assert "two takes or makes markers" in why_apart(plan, "two")


@pytest.mark.parametrize(
    ("requires", "reason"),
    [
        (RequirementsSpec(channels=(ChannelRequirementSpec(channel="one"),)), "requires something of"),
        (RequirementsSpec(isolated=True), "isolated"),
    ],
)
def test_what_a_flow_requires_keeps_nodes_apart(requires: RequirementsSpec, reason: str) -> None:
    graph = chain("one", "two")
    graph.requirements = requires
    facts = replace(local_facts(), costs=costs(graph))
    plan = plan_flow(graph.spec(), facts)
    assert ("one",) in tasks(plan)
    assert reason in why_apart(plan, "two")


def test_a_fan_out_and_a_join_are_not_chains() -> None:
    graph = Graph()
    graph.step("one", graph.source("camera"))
    graph.step("left", "one")
    graph.step("right", "one")
    graph.step("both", "left", "right")
    graph.step("after", "both")
    graph.sink("log", "after", traits={"checkpoints": True, "stateful": True, "holds_items": 4})
    found = tasks(planned(graph, costs(graph)))
    assert found == [("camera",), ("one",), ("left",), ("right",), ("both", "after"), ("log",)]


def test_two_long_nodes_work_at_once_and_the_plan_says_what_they_take() -> None:
    graph = chain("one", "two")
    plan = planned(graph, costs(graph, {"one": 0.004, "two": 0.003}))
    assert tasks(plan) == [("camera",), ("one",), ("two",), ("log",)]
    assert "at work at once they are quicker: one 4.0 ms and two 3.0 ms an item" in why_apart(plan, "two")


def test_a_short_node_joins_a_long_one() -> None:
    graph = chain("one", "two")
    assert tasks(planned(graph, costs(graph, {"one": 0.004})))[1] == ("one", "two")


def test_long_nodes_share_a_process_where_another_one_sets_the_pace() -> None:
    graph = chain("one", "two", "slow")
    measured = costs(graph, {"one": 0.004, "two": 0.003, "slow": 0.020})
    plan = planned(graph, measured)
    assert tasks(plan) == [("camera",), ("one", "two"), ("slow",), ("log",)]
    assert plan.task("one").why[0].endswith("the flow takes one every 20 ms, the pace of slow")


def test_the_pace_is_that_of_the_processors_where_they_are_few() -> None:
    graph = chain("one", "two", "three", "four")
    measured = costs(graph, dict.fromkeys(("one", "two", "three", "four"), 0.004))
    assert all(len(nodes) == 1 for nodes in tasks(planned(graph, measured)))
    plan = planned(graph, measured, cpus=1.0)
    assert tasks(plan)[1] == ("one", "two", "three")
    assert "the pace of 1 processors" in plan.task("one").why[0]


def test_a_task_does_not_grow_until_it_sets_the_pace_itself() -> None:
    """Each of eight nodes costs less than its hop; all of them in one process would be the slowest stage."""
    names = [f"n{number}" for number in range(8)]
    graph = chain(*names)
    plan = planned(graph, costs(graph, dict.fromkeys(names, 0.9 * HOP)))
    slowest = max(len(nodes) * 0.9 * HOP for nodes in tasks(plan))
    assert slowest <= 1.9 * HOP


def test_replicas_work_on_several_items_at_once() -> None:
    options = {"options": {"replicas": 2, "ordered": False}}
    graph = chain("one", "two", "slow", one=options, two=options)
    seconds = {"one": 0.008, "two": 0.006, "slow": 0.0085}
    assert tasks(planned(graph, costs(graph, seconds)))[1] == ("one",)
    assert tasks(planned(graph, costs(graph, {**seconds, "slow": 0.010})))[1] == ("one", "two")


@given(graph=flows(latest=True, labels=True, steps=7), data=st.data())
def test_costs_only_take_edges_from_channels_and_break_no_label(graph: Graph, data: st.DataObject) -> None:
    seconds = {node.name: data.draw(st.sampled_from([1e-6, 1e-4, 1e-2])) for node in graph.nodes}
    try:
        plain = planned(graph, None)
    except FlowError:
        return
    plan = planned(graph, costs(graph, seconds))
    assert {channel.ref for channel in plan.channels} <= {channel.ref for channel in plain.channels}
    live = {(edge.child, edge.name) for edge in plan.spec.edges if edge.latest is not None}
    fused = {e.child for e in plan.edges if e.transport is Transport.FUSED}
    assert not fused & {child for child, _ in live}
    for label in {node.options.fuse for node in plan.spec.nodes if isinstance(node.options.fuse, str)}:
        together = {node.name for node in plan.spec.nodes if node.options.fuse == label}
        assert any(set(nodes) == together for nodes in tasks(plan))
