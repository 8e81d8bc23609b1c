"""What holds of every plan, whatever the flow: random flows, with live edges and labels, both engines."""

from collections.abc import Iterator

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.planner.building import GIB, MIB, Graph, local_facts, threads_facts
from tests.planner.graphs import flows
from videoflow.errors import FlowInvalid, MemoryShort
from videoflow.planner import PlanFacts, plan_flow
from videoflow.planner.explain import explain_mermaid, explain_text, plain_text
from videoflow.planner.plan import CommitOrder, InputMode, Plan, SubscriptionPlan, TaskPlan, Transport

QUICK = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
budgets = st.sampled_from([64 * GIB, 2 * GIB, 512 * MIB])
item_sizes = st.sampled_from([100, 691_200, 6_220_800])


def planned(graph: Graph, facts: PlanFacts) -> Plan | None:
    """None where the flow is refused, which may only be for one of two reasons."""
    try:
        return plan_flow(graph.spec(), facts)
    except MemoryShort as refusal:
        if "the largest buffers" in refusal.cause:
            return None
        raise
    except FlowInvalid as refusal:
        if "merged in different nodes" in refusal.cause:
            return None
        raise


def subscriptions(plan: Plan) -> Iterator[tuple[TaskPlan, SubscriptionPlan]]:
    for task in plan.tasks:
        for entry in task.inputs:
            for subscription in entry.subscriptions:
                yield task, subscription


@QUICK
@given(graph=flows(latest=True, labels=True, steps=7), budget=budgets, item=item_sizes, threads=st.booleans())
def test_every_plan_covers_its_flow(graph: Graph, budget: int, item: int, threads: bool) -> None:
    facts = (threads_facts if threads else local_facts)(budget=budget, sizes={"x": item, "y": item})
    plan = planned(graph, facts)
    if plan is None:
        return
    transport = Transport.MEMORY if threads else Transport.SHM
    drawn = [(p.node, p.port, e.child, e.input) for e in plan.spec.edges for p in e.parents]
    assert [(e.parent, e.port, e.child, e.input) for e in plan.edges] == drawn
    assert {e.transport for e in plan.edges} <= {transport, Transport.FUSED}
    assert sorted(node for task in plan.tasks for node in task.nodes) == sorted(
        n.name for n in plan.spec.nodes
    )
    read = [(s.channel, s.reader) for _, s in subscriptions(plan)]
    assert sorted(read, key=str) == sorted(((c.ref, r) for c in plan.channels for r in c.readers), key=str)
    assert len(set(read)) == len(read)
    over_channels = [edge for edge in plan.edges if edge.transport is not Transport.FUSED]
    assert len(over_channels) == len(read)
    assert {c.ref for c in plan.channels} == {
        ref for t in plan.tasks for o in t.outputs for ref in o.channels
    }


@QUICK
@given(graph=flows(latest=True, labels=True, steps=7), budget=budgets, item=item_sizes)
def test_credits_have_holds_and_bounds_have_credits(graph: Graph, budget: int, item: int) -> None:
    plan = planned(graph, threads_facts(budget=budget, sizes={"x": item, "y": item}))
    if plan is None:
        return
    channels = {channel.ref: channel for channel in plan.channels}
    for task, subscription in subscriptions(plan):
        channel = channels[subscription.channel]
        assert 1 <= subscription.hold_items <= subscription.credit_items or not subscription.exclusive
        assert subscription.credit_items <= channel.bound_items
        assert subscription.credit_bytes <= channel.bound_bytes
        assert subscription.credit_bytes >= subscription.hold_items * channel.item_bytes
        assert (subscription.spread is not None) == (task.mode is InputMode.COMPETING)
        if subscription.spread is not None:
            assert subscription.spread > task.replicas * task.batch_items
            assert task.replicas * (task.prefetch + task.batch_items) <= max(
                subscription.spread, 2 * task.replicas * task.batch_items
            )
            assert subscription.credit_items >= task.replicas * task.batch_items
    for channel in plan.channels:
        burst = plan.spec.node(channel.ref.node).many.get(channel.ref.port, 1)
        assert channel.bound_items >= burst
        assert channel.bound_bytes >= burst * channel.item_bytes


@QUICK
@given(graph=flows(latest=True, labels=True, steps=7), budget=budgets, item=item_sizes)
def test_memory_is_the_sum_of_its_parts_and_within_the_budget(graph: Graph, budget: int, item: int) -> None:
    plan = planned(graph, threads_facts(budget=budget, sizes={"x": item, "y": item}))
    if plan is None:
        return
    steps = sum(task.replicas * task.step_bytes for task in plan.tasks)
    assert plan.memory_bytes == sum(channel.bound_bytes for channel in plan.channels) + steps
    assert plan.memory_bytes <= plan.memory_budget_bytes


@QUICK
@given(graph=flows(latest=True, labels=True, steps=7))
def test_state_is_read_by_one_owner_and_committed_first(graph: Graph) -> None:
    plan = planned(graph, threads_facts())
    if plan is None:
        return
    for task in plan.tasks:
        if any(plan.spec.node(node).traits.stateful for node in task.nodes):
            assert task.order is CommitOrder.OUTBOX
            assert task.mode in (InputMode.ORDERED, InputMode.JOIN)
            assert task.replicas == 1


@QUICK
@given(graph=flows(latest=True, labels=True, steps=7))
def test_labels_only_take_edges_from_channels(graph: Graph) -> None:
    fused, apart = planned(graph, threads_facts()), planned(graph, threads_facts(fuse=False))
    if fused is None or apart is None:
        return
    assert len(apart.tasks) == len(apart.spec.nodes)
    assert {channel.ref for channel in fused.channels} <= {channel.ref for channel in apart.channels}
    inner = [edge for edge in fused.edges if edge.transport is Transport.FUSED]
    over = [subscription for _, subscription in subscriptions(fused)]
    assert len(inner) + len(over) == len(list(subscriptions(apart)))


@QUICK
@given(graph=flows(latest=True, labels=True, steps=7))
def test_a_plan_reads_back_as_it_was_written_and_planning_again_gives_the_same(graph: Graph) -> None:
    plan = planned(graph, threads_facts())
    if plan is None:
        return
    assert Plan.from_json(plan.to_json()) == plan
    assert planned(graph, threads_facts()) == plan


@QUICK
@given(graph=flows(latest=True, labels=True, steps=7))
def test_every_plan_can_be_explained(graph: Graph) -> None:
    plan = planned(graph, threads_facts())
    if plan is None:
        return
    text, drawn = plain_text(explain_text(plan)), explain_mermaid(plan)
    for node in plan.spec.nodes:
        assert node.name in text
        assert f'"{node.name}' in drawn
    assert drawn.count("-->") + drawn.count("-.->") == len(plan.edges)
