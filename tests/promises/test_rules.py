"""Rules of the worker that no other test would miss: what is said is what was kept, and said once."""

from itertools import count
from typing import Any

import pytest

import videoflow as vf
from tests.engines.flows import Numbers, Rows
from tests.planner.building import Graph, threads_facts
from tests.worker.driver import Bench, Function, Replica
from videoflow.backends.messaging import Kind
from videoflow.planner import plan_flow
from videoflow.worker.core import actions

ITEMS = list(range(30))
SEEDS = range(6)


class Watched(Bench):
    """A bench that counts how often each task is asked for its last words after they were committed."""

    flushed_again = 0

    def perform(self, replica: Replica, action: actions.Action) -> Any:
        committed = self.committed.get((replica.task.name, replica.slot))
        if isinstance(action, actions.Flush) and committed is not None and committed.flushed:
            self.flushed_again += 1
        return super().perform(replica, action)


def stateful_run(seed: int, work: Function) -> Watched:
    """A source, a stateful step whose results differ from call to call, and a sink; some of them die."""
    graph = Graph()
    graph.source("source")
    traits = {"stateful": True, "flushes": True}
    graph.step("count", "source", options={"ordered": True, "retries": 50}, traits=traits)
    graph.sink("sink", "count", options={"retries": 50})
    plan = plan_flow(graph.spec(), threads_facts())
    bench = Watched(plan, {"source": ITEMS}, {"count": work, "sink": lambda _: []}, seed, deaths=0.12)
    bench.run()
    return bench


@pytest.mark.parametrize("seed", SEEDS)
def test_what_is_published_is_what_was_committed_however_often_it_was_worked_out(seed: int) -> None:
    calls = count()
    bench = stateful_run(seed, lambda _: [("out", next(calls), None)])
    assert next(calls) > len(ITEMS), "nobody died between its work and its commit"
    committed = {p.envelope.publication_id: p.value for p in bench.outbox.values()}
    log = next(log for channel, log in bench.logs.items() if channel.node == "count")
    published = {e.publication_id: log.values[e.publication_id] for e in log.envelopes if e.kind is Kind.DATA}
    assert len(published) == len(ITEMS) + 1
    assert published == {name: committed[name] for name in published}


@pytest.mark.parametrize("seed", SEEDS)
def test_nobody_is_asked_for_last_words_that_were_committed(seed: int) -> None:
    assert stateful_run(seed, lambda e: [("out", e.values[0], None)]).flushed_again == 0


class Adds(vf.Processor):
    """The sum so far, which it writes down before it fails."""

    def process(self, number: int, ctx: vf.Context) -> int:
        total = int(ctx.state.get("total", 0)) + number
        ctx.state["total"] = total
        if ctx.attempt == 1 and number % 3 == 0:
            raise OSError("not yet")
        return total


def test_an_attempt_that_failed_leaves_nothing_in_the_state() -> None:
    report = vf.Flow([Rows(name="rows")(Adds(name="adds")(Numbers(7)))]).run()
    assert report.values["rows"] == [0, 1, 3, 6, 10, 15, 21]
