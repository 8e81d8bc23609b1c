"""Live figures: what could not be read is not taken for nothing."""

from tests.planner.building import Graph, threads_facts
from videoflow.backends.messaging import SubscriptionId, SubscriptionStatus
from videoflow.backends.outcomes import Known, Observation, Unknown, UnknownReason
from videoflow.engines._live import Queue, queues_of, summed
from videoflow.planner import plan_flow
from videoflow.worker import NodeFigures


def test_a_queue_with_an_input_that_cannot_be_read_is_unknown_and_keeps_the_drops_that_were_seen() -> None:
    graph = Graph()
    left, right = graph.source("left"), graph.source("right")
    graph.sink("joined", left, right)
    graph.sink("alone", left)
    plan = plan_flow(graph.spec(), threads_facts())

    def observe(name: SubscriptionId) -> Observation[SubscriptionStatus]:
        if name.channel.node == "right":
            return Unknown(UnknownReason.UNREACHABLE, 0.0)
        return Known(
            SubscriptionStatus(
                available=3,
                leased=0,
                unresolved=0,
                settled_floors={},
                drained=False,
                finished=False,
                aborted=False,
                evicted=2,
            ),
            0.0,
        )

    assert queues_of(plan, "run", observe) == {"joined": Queue(None, 2), "alone": Queue(3, 2)}


def test_figures_of_replicas_are_added_and_their_own_left_alone() -> None:
    first, second = NodeFigures(items=2, seconds=1.0), NodeFigures(items=3, expected=9)
    total = summed([("task", {"node": first}), ("task", {"node": second})])
    assert total["task"]["node"] == NodeFigures(items=5, seconds=1.0, expected=9)
    assert first.items == 2
