"""Effect keys: one for each input of a sink, whatever happens to it; and what the plan makes of them."""

from collections.abc import Mapping
from typing import Any

import pytest

import videoflow as vf
from tests.planner.building import Graph, threads_facts
from tests.state.nodes import Numbers, Rows
from videoflow.planner import plan_flow
from videoflow.planner.explain import explain_text
from videoflow.planner.plan import CommitOrder, InputMode
from videoflow.testing import drive


class TriesTwice(vf.Processor):
    """Fails at the first attempt at every third number, and says under which keys it worked."""

    max_item_bytes = 4096
    keys: Mapping[int, list[str]] = {}

    def process(self, number: int, ctx: vf.Context) -> list[Any]:
        if ctx.attempt == 1 and number % 3 == 0:
            raise OSError(ctx.effect_key)
        return [number, ctx.attempt, ctx.effect_key]


class Early(vf.Consumer):
    def open(self, ctx: vf.Context) -> None:
        assert ctx.effect_key

    def consume(self, number: int) -> None: ...


def test_a_key_is_that_of_the_input_at_every_attempt_and_of_no_other() -> None:
    first = TriesTwice(name="first")
    flow = vf.Flow([Rows(name="rows")(first(Numbers(9, name="numbers")))], name="keys")
    rows = flow.run().values["rows"]
    assert [row[1] for row in rows] == [2, 1, 1] * 3
    keys = [row[2] for row in rows]
    assert len(set(keys)) == 9
    failed = drive(TriesTwice(), [1])[0][2]
    assert len(failed) == 32
    assert failed not in keys, "a key of one run is one of another"


def test_a_failed_attempt_had_the_key_of_the_one_that_succeeded() -> None:
    flow = vf.Flow(
        [Rows(name="rows")(TriesTwice(name="first", retries=0)(Numbers(4, name="numbers")))], name="keys"
    )
    report = flow.run()
    failed = [letter.error.removeprefix("OSError: ") for letter in report.dead_letters]
    assert len(set(failed)) == 2
    assert not set(failed) & {row[2] for row in report.values["rows"]}


def test_there_is_no_key_where_there_is_no_input() -> None:
    with pytest.raises(vf.UsageError, match="outside of a call"):
        drive(Early(), [1])


def planned(**traits: Any) -> Any:
    graph = Graph()
    graph.source("camera")
    graph.sink("hook", "camera", traits={"effect_key_seconds": None, **traits})
    graph.sink(
        "pair", "camera", options={"ordered": False, "replicas": 2}, traits={"effect_key_seconds": 60.0}
    )
    graph.sink("plain", "camera")
    graph.sink("file", "camera", traits={"checkpoints": True, "holds_items": 4, "stateful": True})
    return plan_flow(graph.spec(), threads_facts())


def test_a_sink_with_a_key_commits_what_is_done_before_it_settles() -> None:
    plan = planned()
    assert plan.task("hook").order is CommitOrder.OUTBOX
    assert plan.task("hook").mode is InputMode.ORDERED
    assert plan.task("pair").answers_once
    assert plan.task("plain").order is CommitOrder.STATELESS


def test_explain_says_how_often_an_effect_happens_and_what_is_kept() -> None:
    sections = {section.title: section for section in explain_text(planned())}
    rows = {row.cells[0]: row.cells[1] for row in sections["Effects of sinks"].rows}
    assert rows == {
        "hook": "once",
        "pair": "once, if repeated within 60 s",
        "plain": "at least once",
        "file": "once",
    }
    assert [row.cells for row in sections["What nodes keep"].rows] == [
        ("file", "ctx.state", "64 MiB", "the run")
    ]
    assert any("plain is at-least-once" in sentence for sentence in sections["Worth knowing"].sentences)


@pytest.mark.parametrize("kept", [-1.0, float("nan"), "for ever"])
def test_how_long_a_key_is_known_is_seconds_or_for_ever(kept: Any) -> None:
    class Odd(vf.Consumer):
        effect_key_seconds = kept

        def consume(self, number: int) -> None: ...

    with pytest.raises(vf.FlowInvalid, match="effect_key_seconds"):
        vf.Flow([Odd(name="odd")(Numbers(name="numbers"))], name="f").compile()
