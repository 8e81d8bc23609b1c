"""No seeded schedule of the model of credits deadlocks at the planner's bounds; below them, some do."""

from collections.abc import Callable

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.planner.building import Graph, threads_facts
from tests.planner.credits import Schedule, play
from tests.planner.graphs import flows
from videoflow.errors import FlowInvalid
from videoflow.planner import SizingDefaults, plan_flow
from videoflow.planner.plan import ChannelPlan, Plan, SubscriptionPlan

# Nothing is given beyond what is needed: credits are holds, and bounds are the least.
TIGHT = SizingDefaults(prefetch=1, credit_items=1, credit_bytes=1 << 40, item_bytes=1, interleave_items=1)
SAVES = {"checkpoints": True, "stateful": True, "holds_items": 3}
TWO = {"replicas": 2}
ORDERED = {"ordered": True}


def one_stage() -> Graph:
    graph = Graph()
    graph.source("camera")
    graph.step("a", "camera", options=TWO)
    graph.sink("video", "a", traits=SAVES)
    return graph


def two_stages() -> Graph:
    graph = Graph()
    graph.source("camera")
    graph.step("a", "camera", options=TWO)
    graph.step("b", "a", options=TWO)
    graph.sink("video", "b", traits=SAVES)
    return graph


def diamond() -> Graph:
    graph = Graph()
    graph.source("camera", ports=("out", "a", "b"))
    graph.step("a", "camera.a", options=TWO)
    graph.step("b", "camera.b", options=TWO)
    graph.step("draw", "camera", "a", "b")
    graph.sink("video", "draw", traits=SAVES)
    return graph


def crops() -> Graph:
    graph = Graph()
    graph.source("camera")
    graph.step("crop", "camera", options=TWO, many={"out": 4})
    graph.step("name", "crop", options=TWO)
    graph.sink("video", "name", traits=SAVES)
    graph.sink("log", "crop")
    return graph


def lookahead() -> Graph:
    graph = Graph()
    graph.source("camera", ports=("out", "other"))
    graph.step("smooth", "camera", options={**ORDERED, "lookahead": 5})
    graph.step("a", "camera.other", options=TWO)
    graph.step("draw", "smooth", "a")
    graph.sink("log", "draw")
    return graph


def merged_once() -> Graph:
    graph = Graph()
    graph.source("x")
    graph.source("y")
    graph.step("both", ("x", "y"), options=ORDERED)
    graph.step("a", "both", options=TWO)
    graph.step("track", "a", options=ORDERED)
    graph.step("draw", "both", "track")
    graph.sink("log", "draw")
    return graph


def merged_apart() -> Graph:
    graph = Graph()
    graph.source("x")
    graph.source("y")
    graph.step("p", ("x", "y"), options=ORDERED)
    graph.step("q", ("x", "y"), options=TWO)
    graph.step("draw", "p", "q")
    graph.sink("log", "draw")
    return graph


def merged_apart_twice() -> Graph:
    graph = Graph()
    graph.source("x")
    graph.source("y")
    graph.step("p", ("x", "y"), options=ORDERED)
    graph.step("q", ("x", "y"), options=ORDERED)
    graph.step("after_p", "p", options=ORDERED)
    graph.step("after_q", "q", options=ORDERED)
    graph.step("one", "p", "after_q")
    graph.step("two", "q", "after_p")
    graph.sink("log", "one")
    graph.sink("log2", "two")
    return graph


GRAPHS = [
    one_stage,
    two_stages,
    diamond,
    crops,
    lookahead,
    merged_once,
    merged_apart,
    merged_apart_twice,
]


def tight(graph: Graph) -> Plan:
    return plan_flow(graph.spec(), threads_facts(defaults=TIGHT))


def schedules(count: int) -> list[Schedule]:
    """Half of them delay one item as long as possible; half of them have crashes and skips."""
    return [
        Schedule(
            seed,
            items=16 + 8 * (seed % 3),
            crashes=seed % 4 < 2,
            skips=seed % 4 in (1, 2),
            delayed=seed % 5 if seed % 2 else None,
        )
        for seed in range(count)
    ]


def changed(
    plan: Plan,
    *,
    subscription: Callable[[SubscriptionPlan], SubscriptionPlan] = lambda found: found,
    channel: Callable[[ChannelPlan], ChannelPlan] = lambda found: found,
) -> Plan:
    replace = msgspec.structs.replace
    tasks = tuple(
        replace(
            task,
            inputs=tuple(
                replace(entry, subscriptions=tuple(map(subscription, entry.subscriptions)))
                for entry in task.inputs
            ),
        )
        for task in plan.tasks
    )
    return replace(plan, tasks=tasks, channels=tuple(map(channel, plan.channels)))


def with_credit(plan: Plan, reader: str, change: int) -> Plan:
    """The same plan where one reader may lease so many items more or less."""

    def subscription(found: SubscriptionPlan) -> SubscriptionPlan:
        items = found.credit_items + (change if found.reader == reader else 0)
        return msgspec.structs.replace(found, credit_items=items)

    return changed(plan, subscription=subscription)


def with_bound(plan: Plan, node: str, change: int) -> Plan:
    """The same plan where the channels of one node hold so many items more or less."""

    def channel(found: ChannelPlan) -> ChannelPlan:
        items = found.bound_items + (change if found.ref.node == node else 0)
        return msgspec.structs.replace(found, bound_items=items)

    return changed(plan, channel=channel)


@pytest.mark.parametrize("graph", GRAPHS, ids=lambda graph: graph.__name__)
def test_no_schedule_deadlocks_at_the_least_bounds_that_the_planner_gives(graph: Callable[[], Graph]) -> None:
    plan = tight(graph())
    for schedule in schedules(10):
        stuck = play(plan, schedule)
        assert stuck is None, f"{schedule}\n{stuck}"


@pytest.mark.parametrize(
    ("graph", "reader", "slack"), [(one_stage, "video/0", 1), (two_stages, "video/0", 2)]
)
def test_a_credit_below_the_hold_deadlocks(graph: Callable[[], Graph], reader: str, slack: int) -> None:
    """The spread counts the late item itself, so each stage leaves one item of slack, and not one more."""
    plan = tight(graph())
    late = [Schedule(seed, items=40, crashes=False, skips=False, delayed=seed % 8) for seed in range(12)]
    assert all(play(with_credit(plan, reader, -slack), schedule) is None for schedule in late)
    assert any(play(with_credit(plan, reader, -slack - 1), schedule) is not None for schedule in late)


def test_a_spread_wider_than_the_hold_below_it_was_made_for_deadlocks() -> None:
    def wider(found: SubscriptionPlan) -> SubscriptionPlan:
        return msgspec.structs.replace(found, spread=None if found.spread is None else 2 * found.spread)

    plan = tight(two_stages())
    late = [Schedule(seed, items=60, crashes=False, skips=False, delayed=seed % 8) for seed in range(12)]
    assert any(play(changed(plan, subscription=wider), schedule) is not None for schedule in late)


@pytest.mark.parametrize(
    ("graph", "nodes"),
    [
        (crops, ["name"]),
        (lookahead, ["camera"]),
        (merged_apart, ["p", "q"]),
        (merged_apart_twice, ["p", "q"]),
    ],
)
def test_channels_without_the_room_that_they_were_given_deadlock(
    graph: Callable[[], Graph], nodes: list[str]
) -> None:
    plan = tight(graph())
    for node in nodes:
        room = max(channel.bound_items for channel in plan.channels if channel.ref.node == node)
        assert room > 1
        plan = with_bound(plan, node, 1 - room)
    assert any(play(plan, schedule) is not None for schedule in schedules(16))


def test_a_join_of_one_merged_stream_deadlocks_where_it_holds_only_what_one_source_needs() -> None:
    plan = with_bound(tight(merged_once()), "track", -8)
    assert min(channel.bound_items for channel in plan.channels if channel.ref.node == "track") == 1
    plan = with_credit(plan, "draw/0", -1)
    assert any(play(plan, schedule) is not None for schedule in schedules(16))


@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(graph=flows(), seed=st.integers(0, 1 << 16), delayed=st.none() | st.integers(0, 5))
def test_no_random_flow_deadlocks(graph: Graph, seed: int, delayed: int | None) -> None:
    plan = tight_or_refused(graph)
    schedule = Schedule(seed, items=12, crashes=bool(seed % 2), skips=bool(seed % 3), delayed=delayed)
    stuck = None if plan is None else play(plan, schedule)
    assert stuck is None, f"{graph.spec()}\n{stuck}"


def tight_or_refused(graph: Graph) -> Plan | None:
    """None for the one kind of flow that no bounds are enough for."""
    try:
        return tight(graph)
    except FlowInvalid as refusal:
        if "merged in different nodes" in refusal.cause:
            return None
        raise
