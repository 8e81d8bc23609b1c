"""A burst says what the walk says, input by input."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pytest

from tests.planner.building import Graph, threads_facts
from tests.worker.channels import RUN
from tests.worker.driver import Bench, Replica
from tests.worker.test_core import keep
from videoflow.backends.coverage import Coverage, Origin
from videoflow.backends.messaging import Delivery, DeliveryToken, Envelope, Kind, Writer
from videoflow.backends.runtime import SourcePosition
from videoflow.planner import plan_flow
from videoflow.worker import channel_id, make_program, subscription_id
from videoflow.worker._linger import NEVER
from videoflow.worker.core import actions
from videoflow.worker.core._burst import BurstWalk, walks_in_bursts
from videoflow.worker.core._walk import Outcome, Walk

MOST = 1.0, 100  # seconds, items
COUNT = 12
FUSED: dict[str, Any] = {"options": {"fuse": "one"}}


def called(node: str, value: int) -> Sequence[tuple[str, Any, str | None]]:
    """What a node makes of a number: some skip, some give a key, one has two ports."""
    if node == "fork":
        return [(port, value, None) for port in ("out", "odd") if port == "out" or value % 2]
    if node == "left" and value % 3 == 0:
        return []
    return [("out", value + 1, "key" if value % 4 == 0 else None)]


def fates_of(fates: Sequence[actions.InnerFate]) -> dict[int, Any]:
    found: dict[int, Coverage] = {}
    for fate in fates:
        intervals = ((fate.origin.ordinal, fate.last),)
        edge = found.setdefault(fate.edge, Coverage())
        edge.close_intervals(fate.origin.node, fate.origin.epoch, intervals, fate.fate)
    return {edge: coverage.records() for edge, coverage in found.items()}


def walked(walk: Walk, envelope: Envelope, call: Callable[..., Any]) -> Outcome:
    """Returns what the walk makes of one delivery."""
    ordinal = envelope.origin.ordinal
    element = actions.Element(
        envelope.publication_id,
        envelope.origin,
        values=(ordinal,),
        last=ordinal,
        source=envelope.source,
        event_time=envelope.event_time,
    )
    steps = walk.input(element, suspect=False)
    answer: Any = None
    while True:
        try:
            action = steps.send(answer)
        except StopIteration as ended:
            outcome: Outcome = ended.value
            return outcome
        assert isinstance(action, actions.Call)
        answer = call(action.node, action.element, action.attempt)


@pytest.mark.parametrize("stops_at", [None, 0, 5])
def test_a_burst_says_what_the_walk_says(stops_at: int | None) -> None:
    graph = Graph()
    graph.source("source")
    graph.step("fork", "source", ports=("out", "odd"), **FUSED)
    graph.step("left", "fork", **FUSED)
    graph.step("right", ("fork.odd",), **FUSED)
    graph.sink("rows", "left")
    graph.sink("more", "right")
    plan = plan_flow(graph.spec(), threads_facts())
    program = make_program(plan, plan.task("fork"), RUN)
    assert walks_in_bursts(program)
    channels = tuple(channel_id(ref, "flow", RUN) for ref in program.channels)
    walk = Walk(program, channels, 0, 1)
    burst = BurstWalk(program, channels, walk.writer, MOST)
    (_, planned) = program.subscriptions[0]
    subscription = subscription_id(planned, "flow", RUN, 0)
    deliveries = [
        Delivery(
            DeliveryToken(subscription, str(n), (0, n), 1, 1),
            Envelope(
                subscription.channel,
                f"p{n}",
                Kind.DATA,
                Writer("source", 0, 1),
                f"i{n}",
                Origin("source", 0, n),
                source="source",
                event_time=n / 8,
            ),
            0.0,
        )
        for n in range(COUNT)
    ]
    failure = actions.Failure(actions.Disposition.TRANSIENT, "not now")

    def call(node: str, element: actions.Element, attempt: int) -> actions.Returned | actions.Failure:
        if (node, element.origin.ordinal) == ("left", stops_at):
            return failure
        return actions.Returned(called(node, element.values[0]))

    made = burst.run(deliveries, lambda delivery: delivery.envelope.origin.ordinal, call, NEVER)
    through = COUNT if stops_at is None else stops_at
    assert (made.inputs, made.answers is None) == (through, stops_at is None)
    publications: list[Any] = []
    inner: list[actions.InnerFate] = []
    for delivery in deliveries[:through]:
        outcome = walked(walk, delivery.envelope, call)
        publications += outcome.publications
        inner += outcome.inner
    assert made.publications == publications
    assert fates_of(made.inner) == fates_of(inner)
    if stops_at is not None:
        assert made.answers is not None
        assert [type(answer) for answer in made.answers] == [actions.Returned, actions.Failure]


class Watched(Bench):
    """Keeps what the sink asks for, and what it is answered."""

    def __init__(self, *arguments: Any) -> None:
        self.asked: list[tuple[actions.Action, Any]] = []
        super().__init__(*arguments)

    def perform(self, replica: Replica, action: actions.Action) -> Any:
        answer = super().perform(replica, action)
        if replica.task.name == "sink":
            self.asked.append((action, answer))
        return answer


@pytest.mark.parametrize("ordered", [False, True])
def test_what_came_is_settled_before_more_is_asked_for_where_there_was_no_more(ordered: bool) -> None:
    graph = Graph()
    graph.source("source")
    graph.step("sink", "source", options={"ordered": ordered})
    bench = Watched(plan_flow(graph.spec(), threads_facts()), {"source": range(COUNT)}, {"sink": keep}, 0)
    bench.run()
    settled, short = True, 0
    for action, answer in bench.asked:
        if isinstance(action, actions.Settle):
            settled = True
        elif isinstance(action, actions.Pull) and isinstance(answer, actions.Pulled):
            assert settled, "it asked for more"
            counts = [len(deliveries) for deliveries in answer.deliveries]
            settled = not any(counts) or any(count >= action.max_items for count in counts)
            short += not settled
    assert short > 1


@pytest.mark.parametrize("fails", [False, True])
def test_what_a_source_has_answered_is_not_answered_for_the_nodes_behind_it(fails: bool) -> None:
    graph = Graph()
    graph.source("source", **FUSED)
    graph.step("step", "source", **FUSED)
    graph.sink("sink", "step")
    plan = plan_flow(graph.spec(), threads_facts())
    program = make_program(plan, plan.task("source"), RUN)
    channels = tuple(channel_id(ref, "flow", RUN) for ref in program.channels)
    burst = BurstWalk(program, channels, Writer("source", 0, 1), MOST)
    answer = actions.Failure(actions.Disposition.POISON, "odd") if fails else actions.Returned(())
    items: Iterator[Any] = iter([actions.ItemReady(7, [("out", 1, None)]), actions.SourceEnded()])
    made = burst.produce(SourcePosition(0, -1, None), lambda _: next(items), lambda *_: answer, NEVER)
    assert made.answers == ([answer] if fails else None)
    assert isinstance(made.item, actions.ItemReady if fails else actions.SourceEnded)
    assert made.position == SourcePosition(0, -1 if fails else 0, None if fails else 7)
    assert [p.envelope.kind for _, said in made.publications for p in said] == ([] if fails else [Kind.SKIP])
