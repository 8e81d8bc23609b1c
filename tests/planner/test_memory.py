"""The memory budget: what is counted, how buffers give way, and what is refused."""

from typing import Any

import pytest

from tests.planner.building import GIB, MIB, Graph, threads_facts
from videoflow.backends.outcomes import UnknownReason, known, unknown
from videoflow.errors import MemoryShort, UnobservableState
from videoflow.graph.spec import LatestSpec
from videoflow.planner import plan_flow
from videoflow.planner.plan import Plan

FULL_HD = 1920 * 1080 * 3


def drawing() -> Graph:
    graph = Graph()
    graph.source("camera")
    graph.step("blur", "camera", options={"replicas": 4})
    graph.step("draw", "camera", "blur")
    graph.sink("video", "draw", traits={"checkpoints": True, "stateful": True, "holds_items": 4})
    graph.sink("screen", ("draw", LatestSpec()))
    return graph


def planned(budget: int, **facts: Any) -> Plan:
    return plan_flow(drawing().spec(), threads_facts(budget=budget, sizes={"camera": FULL_HD}, **facts))


def parts(plan: Plan) -> int:
    channels = sum(channel.bound_bytes for channel in plan.channels)
    return channels + sum(task.replicas * task.step_bytes for task in plan.tasks)


@pytest.mark.parametrize("budget", [4 * GIB, GIB, 240 * MIB, 200 * MIB, 150 * MIB])
def test_the_sum_of_the_parts_is_what_the_plan_says_and_fits(budget: int) -> None:
    plan = planned(budget)
    assert plan.memory_bytes == parts(plan)
    assert plan.memory_bytes <= plan.memory_budget_bytes == budget


def test_buffers_shrink_towards_what_is_needed_before_spreads_do() -> None:
    wide, narrow = planned(4 * GIB), planned(200 * MIB)
    assert narrow.memory_bytes < wide.memory_bytes
    spreads = [plan.task("blur").inputs[0].subscriptions[0].spread for plan in (wide, narrow)]
    assert spreads == [10, 10]
    assert any("lowered to fit the memory budget" in channel.why for channel in narrow.channels)
    assert not any("lowered to fit the memory budget" in channel.why for channel in wide.channels)


def test_spreads_shrink_before_a_flow_is_refused() -> None:
    tight = planned(140 * MIB)
    [blur] = tight.task("blur").inputs[0].subscriptions
    assert blur.spread == 5
    assert "lowered to fit the memory budget" in blur.why


def test_what_does_not_fit_names_the_largest_buffers_and_what_to_do() -> None:
    with pytest.raises(MemoryShort) as caught:
        planned(100 * MIB)
    error = caught.value
    assert error.exit_status == 3
    assert "the memory budget is 100 MiB" in error.message
    assert "blur.out: 6 items of up to 5.9 MiB = 35.6 MiB" in error.cause
    assert "fewer replicas of blur" in error.remedy
    wanted = int(error.remedy.split('"')[1].removesuffix(" MiB"))
    assert planned(wanted * MIB).memory_bytes <= wanted * MIB
    with pytest.raises(MemoryShort):
        planned((wanted - 1) * MIB)


def test_a_budget_beyond_what_is_available_is_refused() -> None:
    with pytest.raises(MemoryShort) as caught:
        planned(4 * GIB, available=known(3 * GIB, 0.0))
    assert "the memory budget is 4 GiB, and 3 GiB are available" in caught.value.message
    assert '--memory-bytes "768 MiB"' in caught.value.remedy
    assert planned(3 * GIB, available=known(3 * GIB, 0.0)).memory_budget_bytes == 3 * GIB


def test_memory_that_cannot_be_read_is_not_taken_for_enough() -> None:
    with pytest.raises(UnobservableState, match="the available memory could not be read"):
        planned(GIB, available=unknown(UnknownReason.MALFORMED, 0.0, "no such file"))


def test_every_bound_stays_at_or_above_what_its_readers_must_hold() -> None:
    for budget in (4 * GIB, 200 * MIB, 140 * MIB):
        plan = planned(budget)
        bounds = {channel.ref: channel for channel in plan.channels}
        for task in plan.tasks:
            for subscription in (s for entry in task.inputs for s in entry.subscriptions):
                channel = bounds[subscription.channel]
                assert channel.bound_items >= subscription.hold_items
                assert channel.bound_bytes >= subscription.hold_items * channel.item_bytes
                assert subscription.credit_bytes >= subscription.hold_items * channel.item_bytes
