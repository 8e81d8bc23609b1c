"""The end of a node in a core stepped by hand: last words that fail, and a source that fails again."""

from collections.abc import Callable, Sequence
from typing import Any

import pytest

from tests.planner.building import Graph, threads_facts
from tests.worker.driver import Bench, Function, Replica
from tests.worker.test_core import ITEMS, consumed, keep, nothing, run
from videoflow.backends.coverage import Cause, Origin
from videoflow.backends.messaging import Delivery, DeliveryToken, Envelope, Kind, Writer
from videoflow.backends.outcomes import Accepted, Durability
from videoflow.planner import plan_flow
from videoflow.worker.core.actions import (
    BurstOutcome,
    Disposition,
    Element,
    FailRun,
    Failure,
    Produce,
    Progress,
    Publish,
    Pull,
    Pulled,
    Release,
    Settle,
)


def flushing(flush: Function) -> Bench:
    graph = Graph()
    graph.source("source")
    graph.step(
        "count", "source", options={"ordered": True, "retries": 2}, traits={"stateful": True, "flushes": True}
    )
    graph.sink("sink", "count")
    return run(graph, {"count": keep, "count:flush": flush, "sink": nothing}, 0)


def failing_flush(error: Exception, times: int) -> tuple[Bench, int]:
    tried = [0]

    def flush(_: Element) -> Sequence[tuple[str, Any, str | None]]:
        tried[0] += 1
        if tried[0] <= times:
            raise error
        return [("out", "last", None)]

    return flushing(flush), tried[0]


def test_a_flush_that_fails_for_now_is_tried_again() -> None:
    bench, tried = failing_flush(OSError("busy"), 2)
    assert (consumed(bench), tried, bench.put_aside) == ([*ITEMS, "last"], 3, [])


@pytest.mark.parametrize(("error", "attempts"), [(OSError("busy"), 3), (ValueError("poison"), 1)])
def test_a_flush_that_fails_for_good_is_put_aside(error: Exception, attempts: int) -> None:
    bench, tried = failing_flush(error, 100)
    assert (consumed(bench), tried) == (ITEMS, attempts)
    assert [(aside.node, aside.attempts) for aside in bench.put_aside] == [("count", attempts)]


def test_a_flush_that_is_fatal_fails_the_run() -> None:
    bench, tried = failing_flush(RuntimeError("fatal"), 100)
    assert (bench.failed, tried, bench.put_aside) == ("count", 1, [])


def test_a_source_that_fails_when_it_starts_again_is_told_with_what_came_first() -> None:
    graph = Graph()
    graph.source("source")
    graph.sink("sink", "source")
    plan = plan_flow(graph.spec(), threads_facts())
    steps = Bench(plan, {"source": ITEMS}, {}, 0).replicas[0].steps
    failures = iter([Failure(Disposition.TRANSIENT, "bad"), Failure(Disposition.FATAL, "odd")])
    action = next(steps)
    while not isinstance(action, FailRun):
        action = steps.send(BurstOutcome(item=next(failures)) if isinstance(action, Produce) else [])
    assert action.failure.cause == "odd; it was started again after bad"


def test_an_epoch_that_ended_is_over_for_a_reader_that_starts_again_before_the_next_one_begins() -> None:
    graph = Graph()
    graph.source("camera", traits={"resumable": False})
    graph.source("file")
    graph.step("step", ("camera", "file"), options={"ordered": True})
    graph.sink("sink", "step")
    plan = plan_flow(graph.spec(), threads_facts())
    bench = Bench(plan, {"camera": [1, 2], "file": [10, 20]}, {"step": keep, "sink": nothing}, 0)
    bench.item_seconds = 1.0
    camera, file, step, _ = bench.replicas
    said = bench.logs[camera.channels[0]].envelopes

    def until(replica: Replica, reached: Callable[[], bool]) -> None:
        while not reached():
            assert replica.step()

    until(camera, lambda: len(said) == 1)
    camera.die()
    until(camera, lambda: said[-1].kind is Kind.EPOCH_END)
    while step.step():
        pass
    until(file, lambda: len(bench.logs[file.channels[0]].envelopes) == 1)
    until(step, lambda: len(bench.readings[step.subscriptions[0]].settled) == 2)
    step.die()
    bench.run()
    assert bench.failed is None
    assert sorted(element.values[0] for node, element in bench.calls if node == "sink") == [1, 2, 10, 20]


def test_items_that_were_dropped_together_out_of_turn_are_said_to_be_dropped_and_none_between_them() -> None:
    graph = Graph()
    graph.source("source")
    graph.step("step", "source")
    graph.sink("sink", "step")
    bench = Bench(
        plan_flow(graph.spec(), threads_facts()), {"source": []}, {"step": keep, "sink": nothing}, 0
    )
    step = next(replica for replica in bench.replicas if replica.task.name == "step")
    (subscription,) = step.subscriptions
    dropped = Envelope(
        subscription.channel,
        "dropped",
        Kind.SKIP,
        Writer("source", 0, 1),
        "dropped",
        Origin("source", 0, 6),
        intervals=((2, 3), (6, 6)),
        cause=Cause.DROPPED,
    )
    delivery = Delivery(DeliveryToken(subscription, "dropped", (0, 5), 1, 1), dropped, 0.0)
    action = next(step.steps)
    while not isinstance(action, Publish):
        answer = Pulled([[delivery]], [Progress()]) if isinstance(action, Pull) else None
        action = step.steps.send(() if isinstance(action, Release) else answer)
    assert [publication.envelope.intervals for publication in action.publications] == [((2, 3),), ((6, 6),)]
    settle = step.steps.send([Accepted("", number, False, Durability.HOST) for number in range(2)])
    assert isinstance(settle, Settle)
    assert [token for token, _ in settle.settlements] == [delivery.token]
