"""Spreads, holds, credits and bounds: the figures of rule 4, and the sentences that explain them."""

from typing import Any

import pytest

from tests.planner.building import MIB, Graph, threads_facts
from videoflow.backends.messaging import Reliability
from videoflow.graph.spec import BatchSpec, LatestSpec
from videoflow.planner import SizingDefaults, plan_flow
from videoflow.planner.plan import ChannelPlan, Plan, SubscriptionPlan

FRAME = 640 * 360 * 3
SAVES = {"checkpoints": True, "stateful": True}


def planned(graph: Graph, **facts: Any) -> Plan:
    return plan_flow(graph.spec(), threads_facts(**{"sizes": {"camera": FRAME}, **facts}))


def reading(plan: Plan, reader: str, channel: str = "") -> SubscriptionPlan:
    """The subscription of that name, on the channel of that node where there are several."""
    [found] = [
        subscription
        for task in plan.tasks
        for entry in task.inputs
        for subscription in entry.subscriptions
        if subscription.reader == reader and channel in ("", subscription.channel.node)
    ]
    return found


def channel(plan: Plan, node: str, port: str = "out") -> ChannelPlan:
    [found] = [c for c in plan.channels if (c.ref.node, c.ref.port) == (node, port)]
    return found


def stages(count: int) -> Graph:
    graph = Graph()
    above = graph.source("camera")
    for name in "abcdef"[:count]:
        above = graph.step(name, above, options={"replicas": 2})
    graph.sink("video", above, traits={**SAVES, "holds_items": 31})
    return graph


def test_three_parallel_stages_before_a_video_file_need_92_frames() -> None:
    """Spread of each: 2 x 2 replicas x (4 prefetched + 1 in work) = 20, of three stages 60. The writer of the
    video needs 1 to go on with, and keeps 31 (a fragment of 30 and 1 in the encoder): 92."""
    plan = planned(stages(3))
    assert [reading(plan, f"{name}/0").spread for name in "abc"] == [20, 20, 20]
    video = reading(plan, "video/0")
    assert video.hold_items == 92
    assert video.credit_items >= 92
    assert video.credit_bytes >= 92 * FRAME
    assert channel(plan, "c").bound_items >= 92
    assert channel(plan, "c").bound_bytes >= 92 * FRAME
    for figure in (
        "1 to go on with",
        "60 that may come out of turn",
        "20 behind a, 20 behind b and 20 behind c",
    ):
        assert figure in video.why
    assert "31 kept until a checkpoint = 92 items" in video.why
    assert reading(plan, "a/0").why == "spread 20: 2 x 2 replicas x (4 prefetched + 1 in work)"


@pytest.mark.parametrize(("stage_count", "hold"), [(0, 32), (1, 52), (2, 72), (4, 112)])
def test_each_stage_adds_its_spread_once(stage_count: int, hold: int) -> None:
    assert reading(planned(stages(stage_count)), "video/0").hold_items == hold


def test_a_task_with_several_inputs_is_named_once_with_its_sum() -> None:
    graph = Graph()
    graph.source("left")
    graph.source("right")
    graph.step("both", ("left", "right"))
    graph.sink("log", "both")
    plan = planned(graph, sizes={"left": FRAME, "right": FRAME})
    assert "20 that may come out of turn (20 behind both)" in reading(plan, "log/0").why


def test_one_replica_has_a_spread_too_since_a_redelivery_is_overtaken() -> None:
    graph = Graph()
    graph.source("camera")
    graph.step("a", "camera")
    graph.sink("log", "a")
    assert reading(planned(graph), "a/0").spread == 10
    assert reading(planned(graph), "log/0").hold_items == 11


def test_batches_widen_the_spread() -> None:
    graph = Graph()
    graph.source("camera")
    batch = BatchSpec(max_items=8, max_wait_seconds=0.02)
    graph.step("a", "camera", options={"replicas": 2, "batch": batch}, traits={"max_item_bytes": 1000})
    graph.sink("log", "a")
    plan = planned(graph)
    assert reading(plan, "a/0").spread == 2 * 2 * (4 + 8)
    assert channel(plan, "camera").bound_items >= 16


def test_an_ordered_task_restores_the_order() -> None:
    graph = Graph()
    graph.source("camera")
    graph.step("a", "camera", options={"replicas": 2})
    graph.step("track", "a", options={"ordered": True})
    graph.sink("log", "track")
    plan = planned(graph)
    assert reading(plan, "track/0").hold_items == 21
    assert reading(plan, "log/0").hold_items == 1


def test_a_join_holds_on_each_input_what_that_path_puts_out_of_turn() -> None:
    graph = Graph()
    graph.source("camera")
    graph.step("a", "camera", options={"replicas": 2})
    graph.step("b", "a", options={"replicas": 3})
    graph.step("draw", "camera", "a", "b")
    graph.sink("log", "draw")
    plan = planned(graph)
    assert [reading(plan, f"draw/{index}").hold_items for index in range(3)] == [1, 21, 51]
    assert reading(plan, "log/0").hold_items == 1


def test_a_port_with_several_items_multiplies_what_is_out_of_turn() -> None:
    graph = Graph()
    graph.source("camera")
    graph.step("a", "camera", options={"replicas": 2}, traits={"max_item_bytes": 1000})
    graph.step("crop", "a", options={"replicas": 2}, many={"out": 8}, traits={"max_item_bytes": 1000})
    graph.step("name", "crop", options={"replicas": 2})
    graph.sink("log", "name", traits={**SAVES, "holds_items": 5})
    plan = planned(graph)
    hold = 1 + (20 + 20) * 8 + 20 + 5
    assert reading(plan, "log/0").hold_items == hold
    assert channel(plan, "crop").bound_items >= 8


def test_a_channel_has_room_for_a_whole_statement_beside_what_a_checkpoint_keeps() -> None:
    tight = SizingDefaults(credit_items=1)
    graph = Graph()
    graph.source("camera")
    graph.step("crop", "camera", options={"ordered": True}, many={"out": 64}, traits={"max_item_bytes": 1000})
    graph.sink("log", "crop", traits={**SAVES, "holds_items": 30})
    plan = planned(graph, defaults=tight)
    assert reading(plan, "log/0").hold_items == 31
    assert channel(plan, "crop").bound_items == 30 + 64


def test_a_path_beside_one_that_looks_ahead_has_room_for_what_it_waits_for() -> None:
    tight = SizingDefaults(credit_items=1)
    graph = Graph()
    graph.source("camera")
    graph.step("smooth", "camera", options={"ordered": True, "lookahead": 12})
    graph.step("draw", "camera", "smooth")
    graph.sink("log", "draw")
    plan = planned(graph, defaults=tight)
    assert reading(plan, "smooth/0").hold_items == 13
    assert reading(plan, "draw/0").hold_items == 1
    assert channel(plan, "camera").bound_items == 13
    assert "look ahead" in channel(plan, "camera").why
    assert channel(plan, "smooth").bound_items == 1


def test_credits_default_to_256_items_and_64_mib() -> None:
    graph = Graph()
    graph.source("camera")
    graph.sink("log", "camera")
    plan = planned(graph, sizes={"camera": 1000})
    assert reading(plan, "log/0").credit_items == 256
    assert channel(plan, "camera").bound_bytes == 256 * 1000
    large = planned(graph, sizes={"camera": 6_220_800})
    assert reading(large, "log/0").credit_bytes == channel(large, "camera").bound_bytes == 64 * MIB


def test_a_spread_is_lowered_until_it_fits_the_bytes_of_the_reader_below() -> None:
    graph = Graph()
    graph.source("camera")
    graph.step("a", "camera", options={"replicas": 2})
    graph.step("b", "a", options={"replicas": 2})
    graph.sink("video", "b")
    plan = planned(graph, sizes={"camera": 6_220_800})
    assert [reading(plan, f"{name}/0").spread for name in "ab"] == [10, 10]
    assert "lowered so that items of 5.9 MiB fit 64 MiB" in reading(plan, "a/0").why
    assert reading(plan, "video/0").hold_items == 21
    assert channel(plan, "b").bound_bytes >= 21 * 6_220_800


def test_a_spread_is_never_lowered_under_one_more_than_what_is_in_work() -> None:
    graph = Graph()
    graph.source("camera")
    graph.step("a", "camera", options={"replicas": 4})
    graph.sink("video", "a")
    plan = planned(graph, sizes={"camera": 60 * MIB})
    assert reading(plan, "a/0").spread == 5
    assert plan.task("a").prefetch == 0
    assert any("none takes the whole spread" in sentence for sentence in plan.task("a").why)


def test_small_results_of_large_inputs_do_not_lower_the_spread() -> None:
    graph = Graph()
    graph.source("camera")
    graph.step("detect", "camera", options={"replicas": 2}, traits={"max_item_bytes": 10_000})
    graph.step("track", "detect", options={"ordered": True})
    graph.sink("log", "track")
    assert reading(planned(graph, sizes={"camera": 24 * MIB}), "detect/0").spread == 20


@pytest.mark.parametrize(
    ("sizes", "traits", "expected"),
    [
        ({"camera": 5}, {"max_item_bytes": 7}, (5, 7)),
        ({"camera": 5}, {}, (5, 5)),
        ({}, {}, (16 * MIB, 16 * MIB)),
        ({}, {"max_item_bytes": 9}, (16 * MIB, 9)),
    ],
)
def test_where_the_largest_item_of_a_port_comes_from(
    sizes: dict[str, int], traits: dict[str, Any], expected: tuple[int, int]
) -> None:
    graph = Graph()
    graph.source("camera")
    graph.step("a", "camera", traits=traits)
    graph.sink("log", "a")
    plan = planned(graph, sizes=sizes)
    assert (channel(plan, "camera").item_bytes, channel(plan, "a").item_bytes) == expected


def test_the_largest_of_several_inputs_counts() -> None:
    graph = Graph()
    graph.source("camera")
    graph.step("small", "camera", traits={"max_item_bytes": 10})
    graph.step("both", "small", "camera")
    graph.sink("log", "both")
    assert channel(planned(graph), "both").item_bytes == FRAME


def test_a_live_edge_keeps_its_capacity_and_prefetches_nothing() -> None:
    graph = Graph()
    graph.source("camera")
    graph.step("a", ("camera", LatestSpec(capacity=3)), options={"replicas": 2})
    graph.sink("log", ("a", LatestSpec()))
    plan = planned(graph)
    [live] = [c for c in plan.channels if c.ref.node == "camera"]
    assert live.ref.reliability is Reliability.LIVE
    assert live.bound_items == 2 + 3
    assert plan.task("a").prefetch == 0
    assert reading(plan, "a/0").spread == 4
    assert reading(plan, "a/0").credit_items == 2


@pytest.mark.parametrize(("key", "keys"), [(None, 1), ("source", 2), ("key", 16), ("camera_id", 16)])
def test_a_live_edge_has_room_for_each_of_its_keys(key: str | None, keys: int) -> None:
    graph = Graph()
    graph.source("left")
    graph.source("right")
    graph.step("both", ("left", "right"), options={"ordered": True})
    graph.sink("screen", ("both", LatestSpec(key=key, capacity=2)))
    plan = planned(graph)
    assert channel(plan, "both").bound_items == 1 + 2 * keys
    assert any("counted for 16" in note for note in plan.notes) is (keys == 16)


def test_a_long_chain_of_diamonds_is_planned_in_no_time() -> None:
    graph = Graph()
    above = graph.source("camera")
    for number in range(40):
        left = graph.step(f"left{number}", above)
        right = graph.step(f"right{number}", above)
        above = graph.step(f"join{number}", left, right)
    graph.sink("log", above)
    assert len(planned(graph).tasks) == 122


def test_a_task_reserves_the_space_of_its_largest_step() -> None:
    graph = Graph()
    graph.source("camera")
    graph.step(
        "crop",
        "camera",
        ports=("out", "events"),
        many={"out": 8},
        options={"replicas": 2},
        traits={"max_item_bytes": 1000},
    )
    graph.sink("log", "crop", "camera")
    graph.sink("events", "crop.events")
    plan = planned(graph)
    assert plan.task("crop").step_bytes == 8 * 1000 + 1000
    assert plan.task("camera").step_bytes == FRAME
    assert plan.task("log").step_bytes == 0
