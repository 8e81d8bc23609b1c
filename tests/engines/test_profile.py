"""The profile of a run: where its time went, what limits it, and what mending that would gain."""

from html import unescape
from pathlib import Path

import pytest

import videoflow as vf
from tests.engines.flows import Numbers, Rows
from tests.engines.measured_flows import Heavy, chain
from tests.planner.building import threads_facts
from videoflow.engines._profile import make_profile
from videoflow.faults import Fault, FaultAction
from videoflow.graph.report import ProfileReport, TaskTimes
from videoflow.planner import plan_flow
from videoflow.worker import Part, Spending, Spent


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A home folder of its own: what one test measures would fuse the nodes of another."""
    monkeypatch.setenv("VIDEOFLOW_HOME", str(tmp_path / "home"))


def profile_of(engine: str) -> ProfileReport:
    found = chain().run(engine, profile=True).profile
    assert found is not None
    return found


def adds_up(task: TaskTimes) -> bool:
    waits = task.starved_seconds + task.blocked_seconds + task.paused_seconds
    return task.work_seconds + waits == pytest.approx(task.seconds, rel=1e-6)


@pytest.mark.parametrize("engine", ["threads", "local"])
def test_a_run_says_where_its_time_went(engine: str) -> None:
    found = profile_of(engine)
    assert [task.task for task in found.tasks] == ["numbers", "same", "heavy", "end"]
    assert all(adds_up(task) for task in found.tasks)
    assert [(node.node, node.items) for node in found.nodes] == [
        ("numbers", 200),
        ("same", 200),
        ("heavy", 200),
        ("end", 200),
    ]
    assert [(hop.parent, hop.child, hop.items) for hop in found.hops] == [
        ("numbers", "same", 200),
        ("same", "heavy", 200),
        ("heavy", "end", 200),
    ]
    assert all(hop.encode_seconds > 0 and hop.publish_seconds > 0 for hop in found.hops)
    assert all(hop.decode_seconds > 0 and hop.settle_seconds > 0 for hop in found.hops)
    assert all(hop.processor_seconds > 0 for hop in found.hops)
    starved = {task.task: task.starved_seconds for task in found.tasks}
    assert all(0 <= hop.starved_seconds <= starved[hop.task] for hop in found.hops)
    assert max(found.nodes, key=lambda node: node.seconds).node == "heavy"
    assert found.items == 200
    assert found.bottleneck.rate == pytest.approx(200 / found.seconds)


@pytest.mark.nightly
def test_what_an_incarnation_spent_that_died_is_added() -> None:
    faults: dict[str, tuple[Fault, ...]] = {"heavy": (Fault("process.after", FaultAction.CRASH, 60),)}
    found = chain().run("local", profile=True, faults=faults).profile
    assert found is not None
    assert all(adds_up(task) for task in found.tasks)
    assert {node.node: node.items for node in found.nodes}["end"] == 200


def test_a_run_that_is_not_profiled_measures_nothing() -> None:
    assert chain().run().profile is None


def test_fused_nodes_are_told_apart() -> None:
    one = Heavy(name="one", fuse="both")(Numbers(50, name="numbers"))
    two = Heavy(name="two", fuse="both")(one)
    found = vf.Flow([Rows(name="rows")(two)], name="fused").run(profile=True).profile
    assert found is not None
    assert [(hop.parent, hop.child) for hop in found.hops] == [("numbers", "one"), ("two", "rows")]
    assert {node.node: node.task for node in found.nodes}["two"] == "one"


# What limits a run, from made-up figures ----------------------------------------------------------


ABOVE = {"same": "numbers", "heavy": "same", "end": "heavy"}


def judged(
    work: dict[str, float],
    around: dict[str, float],
    *,
    processors: float = 8.0,
    seconds: float = 10.0,
    crowded: float = 1.0,
) -> ProfileReport:
    """The profile of a chain whose nodes took so long, and what is around them."""
    spendings = {
        node: Spending(
            seconds,
            work[node] + around.get(node, 0.0),
            {
                Part.CALL: {node: Spent(310, work[node])},
                Part.DECODE: {
                    above: Spent(310, around.get(node, 0.0), around.get(node, 0.0) / crowded)
                    for above in ("numbers", "same", "heavy")
                    if around.get(node) and ABOVE[node] == above
                },
                Part.STARVED: {"": Spent(0, seconds - work[node] - around.get(node, 0.0))},
            },
        )
        for node in work
    }
    return make_profile(plan_flow(chain().compile(), threads_facts()), spendings, processors)


def test_the_busiest_node_is_named_with_what_mending_it_gains_and_who_is_next() -> None:
    found = judged({"numbers": 1.0, "same": 1.0, "heavy": 9.6, "end": 5.5}, {}).bottleneck
    assert (found.kind, found.node, found.next_limit) == ("node", "heavy", "end")
    assert found.share == pytest.approx(0.96)
    assert found.rate == pytest.approx(31.0)
    assert found.mended_rate == pytest.approx(31.0 * 9.6 / 5.5)
    assert found.text == (
        "heavy is the bottleneck: its task was at work 96% of the time. Twice as fast, it would raise the "
        "flow from 31 to 54.1 items/s at most; then end is the limit."
    )


def test_mending_gains_no_more_than_the_processors_give() -> None:
    work = {"numbers": 1.0, "same": 1.0, "heavy": 9.6, "end": 5.5}
    found = judged(work, {}, processors=2.0).bottleneck
    assert (found.kind, found.node, found.next_limit) == ("node", "heavy", "processors")
    assert found.mended_rate == pytest.approx(31.0 * 9.6 / 6.15)
    assert found.text.endswith("then the processors are the limit.")


def test_processors_that_are_used_up_are_named_before_a_node() -> None:
    work = {"numbers": 5.0, "same": 4.0, "heavy": 7.0, "end": 3.6}
    found = judged(work, {}, processors=2.0).bottleneck
    assert (found.kind, found.node, found.next_limit) == ("processors", "heavy", "processors")
    assert found.mended_rate == pytest.approx(31.0 * 9.8 / 8.05)
    assert "2.0 of 2 were busy" in found.text


def test_a_task_that_mostly_hands_over_is_not_blamed_on_its_node() -> None:
    found = judged({"numbers": 1.0, "same": 0.5, "heavy": 2.0, "end": 1.0}, {"same": 9.0}).bottleneck
    assert (found.kind, found.node, found.next_limit) == ("hand-over", "same", "heavy")
    assert "fused with a neighbour" in found.text


def test_threads_that_wait_for_each_other_are_told_where_they_would_not() -> None:
    work, around = {"numbers": 1.0, "same": 0.5, "heavy": 2.0, "end": 1.0}, {"same": 9.0, "heavy": 6.0}
    assert "interpreter" not in judged(work, around, crowded=2.0).bottleneck.text
    found = judged(work, around, crowded=5.0).bottleneck
    assert found.text.endswith(
        "Handing over took 5 times as long as it used a processor: threads wait for one interpreter, and "
        "--engine local has several."
    )


def test_where_nothing_is_busy_nothing_is_named() -> None:
    found = judged({"numbers": 1.0, "same": 0.5, "heavy": 2.0, "end": 1.0}, {}).bottleneck
    assert (found.kind, found.node) == ("none", "")
    assert "20% of the time" in found.text


def test_a_profile_survives_the_report_as_a_document() -> None:
    report = chain().run(profile=True)
    assert report.profile is not None
    assert report.profile.bottleneck.text in unescape(report._repr_html_())
    assert vf.RunReport.from_json(report.to_json()).profile == report.profile
