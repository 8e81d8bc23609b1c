"""What the planner makes of `batch=`: who may say it, and what room it takes."""

from typing import Any

import pytest

from tests.planner.building import Graph, threads_facts
from videoflow.errors import FlowInvalid
from videoflow.graph.spec import BatchSpec
from videoflow.planner import plan_flow
from videoflow.planner.plan import Plan, SubscriptionPlan

BATCH = BatchSpec(max_items=8, max_wait_seconds=0.02, group_by="shape")


def planned(graph: Graph) -> Plan:
    return plan_flow(graph.spec(), threads_facts())


def one(**parts: Any) -> Graph:
    graph = Graph()
    graph.source("camera")
    graph.step("work", "camera", **parts)
    graph.sink("log", "work")
    return graph


@pytest.mark.parametrize("keeps", ["stateful", "flushes"])
def test_what_a_node_keeps_belongs_to_one_input(keeps: str) -> None:
    options = {"batch": BATCH, "ordered": True}
    assert planned(one(options=options)).task("work").batch_items == 8
    with pytest.raises(FlowInvalid, match="belongs to one input"):
        planned(one(options=options, traits={keeps: True}))


def test_only_the_first_of_a_fused_task_gathers_inputs() -> None:
    def graph(first: BatchSpec | None, second: BatchSpec | None) -> Graph:
        made = Graph()
        made.source("camera")
        made.step("a", "camera", options={"fuse": "g", "batch": first})
        made.step("b", "a", options={"fuse": "g", "batch": second})
        made.sink("log", "b")
        return made

    assert planned(graph(BATCH, None)).task("a").nodes == ("a", "b")
    with pytest.raises(
        FlowInvalid, match="b: it cannot be fused as 'g': a would hand it one input at a time"
    ):
        planned(graph(None, BATCH))


def test_the_plan_says_how_inputs_are_given() -> None:
    (said,) = [why for why in planned(one(options={"batch": BATCH})).task("work").why if "in one call" in why]
    assert said.startswith("work is given up to 8 inputs of one shape in one call")
    assert said.endswith("the first waits 0.02 s for others at most")


def test_a_batch_in_order_and_the_ways_beside_it_have_room_for_the_rest_of_it() -> None:
    def planned_with(batch: BatchSpec | None) -> dict[str, SubscriptionPlan]:
        graph = Graph()
        graph.source("camera")
        graph.step("work", "camera", options={"ordered": True, "batch": batch})
        graph.step("other", "camera", options={"ordered": True})
        graph.sink("log", "work", "other")
        plan = planned(graph)
        return {s.reader: s for task in plan.tasks for given in task.inputs for s in given.subscriptions}

    alone, together = planned_with(None), planned_with(BATCH)
    assert together["work/0"].hold_items == alone["work/0"].hold_items + 7
    assert "7 that it waits for (lookahead, batch)" in together["work/0"].why


def test_what_meets_a_batch_has_room_for_what_the_batch_waits_for() -> None:
    def room(batch: BatchSpec | None) -> int:
        graph = Graph()
        graph.source("camera", traits={"max_item_bytes": 1 << 26})
        graph.step("before", "camera", options={"ordered": True}, traits={"max_item_bytes": 1000})
        graph.step("work", "before", options={"ordered": True, "batch": batch})
        graph.sink("log", "camera", "work")
        found = next(channel for channel in planned(graph).channels if channel.ref.node == "camera")
        return found.bound_bytes // found.item_bytes

    assert room(BATCH) == room(None) + 7
