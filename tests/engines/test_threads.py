"""The threads engine: what a user sees of a flow that works, fails, stops or is looked at."""

from typing import Any

import pytest

import videoflow as vf
from tests.engines.flows import (
    Batches,
    Endless,
    FailsOn,
    FailsOnce,
    Numbers,
    OpensNot,
    Repeat,
    Rows,
    Total,
    negative,
    odd_only,
    same,
)
from videoflow.graph.report import RunReport, Verdict


def rows(report: RunReport, node: str = "rows") -> list[Any]:
    assert all(edge.closed for edge in report.edges), [e for e in report.edges if not e.closed]
    return list(report.values[node])


def test_values_pass_in_order_through_replicas_and_joins() -> None:
    numbers = Numbers(50, name="numbers")
    left = same(replicas=2, name="left")(numbers)
    right = negative(name="right")(numbers)
    report = vf.Flow([Rows(name="rows")(numbers, left, right)]).run()
    assert report.verdict is Verdict.COMPLETE
    assert report.exit_status == 0
    assert rows(report) == [[n, n, -n] for n in range(50)]


def test_a_skip_closes_its_place_and_is_in_the_ledger() -> None:
    numbers = Numbers(20, name="numbers")
    odd = odd_only(name="odd")(numbers)
    flow = vf.Flow([Rows(name="rows")(odd), Rows(name="both", missing="none")(numbers, odd)])
    report = flow.run()
    assert rows(report) == list(range(1, 20, 2))
    assert rows(report, "both") == [[n, n if n % 2 else None] for n in range(20)]
    edge = next(e for e in report.edges if (e.parent, e.child) == ("odd", "rows"))
    assert (edge.announced, edge.delivered, edge.skipped) == (20, 10, {"skipped": 10})


@pytest.mark.parametrize("fuse", [True, False])
def test_a_fan_out_is_delivered_in_order_fused_or_not(fuse: bool) -> None:
    repeated = Repeat(name="repeat", fuse="pair")(Numbers(20, name="numbers"))
    flow = vf.Flow([Rows(name="rows")(same(name="same", fuse="pair")(repeated))])
    report = flow.run(fuse=fuse)
    assert rows(report) == [[n, k] for n in range(20) for k in range(n % 4)]
    assert {edge.transport for edge in report.edges} == ({"memory", "fused"} if fuse else {"memory"})


def test_state_is_kept_and_flushed_once() -> None:
    report = vf.Flow([Rows(name="rows")(Total(name="total")(Numbers(10, name="numbers")))]).run()
    assert rows(report) == [0, 1, 3, 6, 10, 15, 21, 28, 36, 45, {"final": 45}]


def test_a_checkpointing_sink_makes_everything_durable_at_the_end() -> None:
    report = vf.Flow([Batches(name="rows")(Numbers(23, name="numbers"))]).run()
    assert report.verdict is Verdict.COMPLETE
    assert rows(report) == list(range(23))


def test_a_poisoned_input_becomes_a_dead_letter_and_the_rest_completes() -> None:
    failing = FailsOn(7, name="failing", replicas=2, on_error={"ValueError": "poison"})
    report = vf.Flow([Rows(name="rows")(failing(Numbers(20, name="numbers")))]).run()
    assert report.verdict is Verdict.INCOMPLETE
    assert report.exit_status == 1
    assert rows(report) == [n for n in range(20) if n != 7]
    (letter,) = report.dead_letters
    assert letter.node == "failing"
    assert letter.label.startswith("7-")
    assert "cannot do 7" in letter.error
    edge = next(e for e in report.edges if e.child == "failing")
    assert (edge.delivered, edge.dead_lettered) == (19, 1)


def test_dead_letters_can_be_allowed() -> None:
    failing = FailsOn(7, name="failing", on_error={"ValueError": "poison"})
    report = vf.Flow([Rows(name="rows")(failing(Numbers(20)))]).run(allow_dead_letters=1)
    assert report.verdict is Verdict.COMPLETE


def test_a_transient_failure_is_tried_again_in_place() -> None:
    report = vf.Flow([Rows(name="rows")(FailsOnce(name="once")(Numbers(11)))]).run()
    assert report.verdict is Verdict.COMPLETE
    assert rows(report) == [[n, 2 if n % 5 == 0 else 1] for n in range(11)]
    assert next(n for n in report.nodes if n.node == "once").errors == 3


def test_a_fatal_failure_names_the_node_and_abandons_what_waits_for_it() -> None:
    numbers = Numbers(200, name="numbers")
    failing = FailsOn(12, name="failing", on_error={"ValueError": "fatal"})(numbers)
    flow = vf.Flow([Rows(name="rows")(failing), Rows(name="others")(numbers)])
    report = flow.start("threads").wait()
    assert report.verdict is Verdict.FAILED
    assert report.exit_status == 4
    assert report.failure is not None
    assert report.failure.node == "failing"
    assert "cannot do 12" in report.failure.cause
    assert "flows.py" in report.failure.where
    assert rows(report) == list(range(12))
    assert rows(report, "others") == list(range(len(report.values["others"])))


@pytest.mark.parametrize(
    ("answer", "cause"),
    [
        (OSError("no room"), "OSError: no room"),
        (99, "checkpoint returns how many of the oldest unsettled inputs are durable now"),
    ],
    ids=["raises", "boasts"],
)
def test_a_sink_whose_checkpoint_fails_is_blamed_and_not_the_worker(
    answer: int | OSError, cause: str
) -> None:
    class Keeper(vf.Consumer):
        holds_items = 4

        def consume(self, number: int, ctx: vf.Context) -> None: ...

        def checkpoint(self, ctx: vf.Context) -> int:
            if isinstance(answer, OSError):
                raise answer
            return answer

    with pytest.raises(vf.NodeFailed) as failed:
        vf.Flow([Keeper(name="keeper")(Numbers(5))]).run("threads")
    assert failed.value.node == "keeper"
    assert failed.value.cause.startswith(cause)
    assert "defect" not in failed.value.remedy


def test_a_node_that_cannot_be_opened_ends_the_run() -> None:
    flow = vf.Flow([Rows(name="rows")(OpensNot(name="shut")(Numbers(20)))])
    report = flow.start("threads").wait()
    assert report.failure is not None
    assert report.failure.node == "shut"
    assert "no model here" in report.failure.cause
    assert rows(report) == []
    with pytest.raises(vf.FlowError, match="shut") as caught:
        flow.run()
    assert isinstance(caught.value.__cause__, FileNotFoundError)
    assert isinstance(caught.value.report, RunReport)
    assert caught.value.report.verdict is Verdict.FAILED


def test_stop_ends_at_an_item_boundary_and_drains() -> None:
    flow = vf.Flow([Rows(name="rows")(same()(Endless(name="endless")))])
    handle = flow.start("threads")
    while not any(node.node == "rows" and node.items > 5 for node in handle.status().nodes):
        assert handle.wait_for(0.01) is None
    handle.stop()
    report = handle.wait()
    assert report.verdict is Verdict.STOPPED
    assert report.exit_status == 0
    kept = rows(report)
    assert kept == list(range(len(kept)))
    assert report.sources[0].outcome == "stopped"


def test_watch_yields_trace_by_trace_and_leaving_stops() -> None:
    numbers = Numbers(30, name="numbers")
    odd = odd_only(name="odd")(numbers)
    seen = list(vf.Flow([Rows()(odd)]).watch(numbers, odd))
    assert seen == [(n, n if n % 2 else None) for n in range(30)]
    endless = Endless(name="endless")
    for count, (value,) in enumerate(vf.Flow([Rows()(endless)]).watch(endless)):
        assert value == count
        if count == 10:
            break


def test_a_live_edge_loses_nothing_silently() -> None:
    numbers = Numbers(300, name="numbers")
    report = vf.Flow([Rows(name="rows")(numbers.latest(capacity=2)), Rows(name="all")(numbers)]).run()
    kept = rows(report)
    assert kept == sorted(kept)
    assert rows(report, "all") == list(range(300))
    edge = next(e for e in report.edges if e.child == "rows")
    assert edge.announced == 300 == edge.delivered + sum(edge.dropped.values())
    assert edge.delivered == len(kept)


def test_merge_is_one_stream_with_each_source_in_order() -> None:
    merged = vf.merge(Numbers(30, name="first"), negative()(Numbers(20, name="second")))
    report = vf.Flow([Rows(name="rows")(merged)]).run()
    kept = rows(report)
    assert [n for n in kept if n > 0] == list(range(1, 30))
    assert [-n for n in kept if n < 0] == list(range(1, 20))
    assert len(kept) == 50


def test_a_flow_runs_again_with_fresh_nodes() -> None:
    flow = vf.Flow([Rows(name="rows")(Total()(Numbers(5)))])
    assert rows(flow.run()) == rows(flow.run()) == [0, 1, 3, 6, 10, {"final": 10}]
