"""The core with markers beside its input, stepped by hand under seeded orders and deaths."""

from collections.abc import Sequence
from typing import Any

import pytest

from tests.planner.building import Graph, threads_facts
from tests.worker.driver import Bench, Killed
from tests.worker.test_core import ITEMS, consumed, keep, nothing, run, without_repetition
from videoflow.backends.messaging import Completed, CompletedReason, Kind, Terminal
from videoflow.planner import plan_flow
from videoflow.worker.core.actions import Element

SEEDS = range(4)
Outputs = Sequence[tuple[str, Any, str | None]]
CONTROLLED = {"controlled": True}
OFTEN = {"retries": 50}
READERS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "competing": ({"replicas": 2}, {}),
    "ordered": ({"ordered": True}, {}),
    "stateful": ({"ordered": True}, {"stateful": True}),
    "partitioned": ({"replicas": 3, "ordered": True, "partition_by": "key"}, {"stateful": True}),
    "by chance": ({"replicas": 2, "deterministic": False}, {"max_item_bytes": 100}),
}


def watched(reader: str, retries: int = 50) -> Graph:
    """A node whose markers are what its source makes: what it has read, it has been given as a marker."""
    options, traits = READERS[reader]
    graph = Graph()
    graph.source("source")
    graph.step("work", "source", options={"retries": retries, **options}, traits={**traits, **CONTROLLED})
    graph.sink("sink", "work", options=OFTEN)
    graph.control("work", "source")
    return graph


def given(bench: Bench, node: str = "work") -> dict[str, list[Any]]:
    """Replica → the markers that its node took, in order."""
    found: dict[str, list[Any]] = {r.owner: [] for r in bench.replicas if node in r.task.nodes}
    for name, owner, value in bench.markers:
        if name == node:
            found[owner].append(value)
    return found


@pytest.mark.parametrize("deaths", [0.0, 0.03])
@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize("seed", SEEDS)
def test_every_replica_is_given_every_marker_and_the_results_are_as_without(
    seed: int, reader: str, deaths: float
) -> None:
    bench = run(watched(reader), {"work": keep, "sink": nothing}, seed, deaths=deaths)
    replicas = given(bench)
    assert len(replicas) == READERS[reader][0].get("replicas", 1)
    for owner, markers in replicas.items():
        assert sorted(set(markers)) == ITEMS, owner
        if not deaths:
            assert markers == ITEMS
    assert sorted(set(consumed(bench))) == ITEMS
    if deaths == 0.0:
        assert sorted(consumed(bench)) == ITEMS
    assert {replica.kind for replica in bench.replicas} == {Kind.END}


@pytest.mark.parametrize("seed", SEEDS)
def test_a_sink_that_makes_checkpoints_settles_its_markers_with_them(seed: int) -> None:
    graph = Graph()
    graph.source("source")
    graph.sink("sink", "source", options=OFTEN, traits={"checkpoints": True, "holds_items": 5, **CONTROLLED})
    graph.control("sink", "source")
    bench = run(graph, {"sink": nothing}, seed, deaths=0.03)
    assert set(given(bench, "sink")["sink-0"]) == set(ITEMS)
    assert bench.written["sink"] == ITEMS
    (reading,) = [r for s, r in bench.readings.items() if s.slot == 0]
    assert len(reading.settled) == len(ITEMS)


@pytest.mark.parametrize("node", ["first", "second"])
@pytest.mark.parametrize("entry", ["source", "step"])
@pytest.mark.parametrize("seed", range(3))
def test_any_node_of_a_fused_task_takes_markers(seed: int, entry: str, node: str) -> None:
    graph = Graph()
    graph.source("ticks")
    fused = {"fuse": "one", **OFTEN}
    if entry == "source":
        graph.source("source", options=fused)
    else:
        graph.source("source")
    graph.step("first", "source", options=fused, traits=CONTROLLED)
    graph.step("second", "first", options=fused, traits=CONTROLLED)
    graph.sink("sink", "second", options=OFTEN)
    graph.control(node, "ticks")
    bench = run(graph, {"first": keep, "second": keep, "sink": nothing}, seed, deaths=0.02)
    (markers,) = given(bench, node).values()
    assert set(markers) <= set(ITEMS)
    assert without_repetition(consumed(bench)) == ITEMS
    assert {name for name, _, _ in bench.markers} <= {node}


@pytest.mark.parametrize("seed", SEEDS)
def test_a_task_ends_with_its_inputs_though_its_markers_go_on(seed: int) -> None:
    graph = Graph()
    graph.source("source")
    graph.source("ticks")
    graph.step("work", "source", traits={"flushes": True, **CONTROLLED}, options={"ordered": True})
    graph.sink("sink", "work", options=OFTEN)
    graph.control("work", "ticks")
    plan = plan_flow(graph.spec(), threads_facts())
    bench = Bench(plan, {"source": ITEMS, "ticks": []}, {"work": keep, "sink": nothing}, seed)
    bench.replicas = [replica for replica in bench.replicas if replica.task.name != "ticks"]
    bench.run()
    assert consumed(bench) == [*ITEMS, "work flushed"]
    assert {replica.kind for replica in bench.replicas} == {Kind.END}


def settled_markers(bench: Bench) -> dict[Any, Any]:
    """Marker → how it was settled, over all replicas."""
    found = {}
    for name, reading in bench.readings.items():
        if name.slot is not None:
            for position, how in reading.settled.items():
                envelope = reading.log.envelopes[position]
                found[name.slot, reading.log.values[envelope.publication_id]] = how
    return found


@pytest.mark.parametrize("reader", ["competing", "stateful"])
@pytest.mark.parametrize("seed", range(3))
def test_a_poisonous_marker_is_put_aside_and_is_no_input(seed: int, reader: str) -> None:
    def refuses_seven(element: Element) -> Outputs:
        if element.values[0] == 7:
            raise ValueError("no sevens")
        return ()

    functions = {"work": keep, "work:markers": refuses_seven, "sink": nothing}
    bench = run(watched(reader), functions, seed)
    settled = settled_markers(bench)
    slots = {slot for slot, _ in settled}
    assert len(bench.put_aside) == len(slots)
    for aside in bench.put_aside:
        assert (aside.node, aside.element.marker, aside.element.values) == (
            "work",
            "source.out (marker)",
            (7,),
        )
    for (_, value), how in settled.items():
        assert isinstance(how, Terminal) if value == 7 else how == Completed(CompletedReason.DELIVERED)
    assert sorted(consumed(bench)) == ITEMS


@pytest.mark.parametrize("seed", SEEDS)
def test_a_marker_that_ends_its_process_is_put_aside_after_as_many_attempts_as_an_input(seed: int) -> None:
    def kills_on_seven(element: Element) -> Outputs:
        if element.values[0] == 7:
            raise Killed
        return ()

    bench = run(
        watched("ordered", retries=2), {"work": keep, "work:markers": kills_on_seven, "sink": nothing}, seed
    )
    assert [aside.attempts for aside in bench.put_aside] == [3]
    deaths = next(replica.deaths for replica in bench.replicas if replica.task.name == "work")
    assert deaths == 4, "the first death leaves no record, then one for each attempt of the budget"
    assert [aside.element.values for aside in bench.put_aside] == [(7,)]
    assert sorted(set(given(bench)["work-0"])) == [n for n in ITEMS if n != 7]
    assert consumed(bench) == ITEMS


@pytest.mark.parametrize("seed", range(3))
def test_a_marker_that_fails_for_a_while_is_tried_again_and_a_fatal_one_ends_the_run(seed: int) -> None:
    failures = iter([OSError("busy"), OSError("busy")])

    def busy_at_first(element: Element) -> Outputs:
        error = next(failures, None) if element.values[0] == 7 else None
        if error is not None:
            raise error
        return ()

    bench = run(watched("ordered"), {"work": keep, "work:markers": busy_at_first, "sink": nothing}, seed)
    assert given(bench) == {"work-0": ITEMS}

    def fatal(element: Element) -> Outputs:
        raise RuntimeError("no more")

    bench = run(watched("ordered"), {"work": keep, "work:markers": fatal, "sink": nothing}, seed)
    assert bench.failed == "work"
    assert {replica.kind for replica in bench.replicas if replica.task.name != "source"} == {Kind.ABORT}
