"""The core alone, stepped by hand under seeded orders: its purity is shown, not said."""

import ast
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

import videoflow.worker.core
from tests.planner.building import Graph, threads_facts
from tests.worker.driver import Bench, Function, Killed
from videoflow.backends.coverage import Cause
from videoflow.backends.messaging import Completed, CompletedReason, Kind, Terminal
from videoflow.planner import plan_flow
from videoflow.worker.core.actions import Element

ITEMS = list(range(30))
SEEDS = range(10)


def keep(element: Element) -> Sequence[tuple[str, Any, str | None]]:
    return [("out", element.values[0], None)]


def nothing(_: Element) -> Sequence[tuple[str, Any, str | None]]:
    return []


def run(
    graph: Graph,
    functions: Mapping[str, Function],
    seed: int,
    *,
    fuse: bool = True,
    deaths: float = 0.0,
) -> Bench:
    plan = plan_flow(graph.spec(), threads_facts(fuse=fuse))
    sources = {task.name: ITEMS for task in plan.tasks if not task.inputs}
    bench = Bench(plan, sources, functions, seed, deaths=deaths)
    bench.run()
    return bench


def diamond(**left: Any) -> Graph:
    graph = Graph()
    graph.source("source")
    graph.step("left", "source", options={"replicas": 2, **left})
    graph.step("right", "source")
    graph.step("meet", "source", "left", "right")
    graph.sink("sink", "meet")
    return graph


def consumed(bench: Bench, node: str = "sink") -> list[Any]:
    return [element.values[0] for name, element in bench.calls if name == node]


@pytest.mark.parametrize("seed", SEEDS)
def test_a_diamond_pairs_by_trace_and_delivers_in_order(seed: int) -> None:
    functions = {
        "left": lambda e: [("out", e.values[0] * 10, None)],
        "right": lambda e: [("out", -e.values[0], None)],
        "meet": lambda e: [("out", list(e.values), None)],
        "sink": nothing,
    }
    bench = run(diamond(), functions, seed)
    assert consumed(bench) == [[n, n * 10, -n] for n in ITEMS]
    assert {replica.kind for replica in bench.replicas} == {Kind.END}


@pytest.mark.parametrize("seed", SEEDS)
def test_a_skipped_branch_skips_the_group_or_is_none(seed: int) -> None:
    functions = {
        "left": lambda e: [("out", e.values[0], None)] if e.values[0] % 3 else [],
        "right": keep,
        "meet": lambda e: [("out", list(e.values), None)],
        "sink": nothing,
    }
    bench = run(diamond(), functions, seed)
    assert consumed(bench) == [[n, n, n] for n in ITEMS if n % 3]

    graph = Graph()
    graph.source("source")
    graph.step("left", "source")
    graph.sink("sink", "source", "left", options={"missing": "none", "missing_chosen": True})
    bench = run(graph, functions, seed)
    calls = [element for name, element in bench.calls if name == "sink"]
    assert [e.values for e in calls] == [(n, n if n % 3 else None) for n in ITEMS]
    assert [dict(e.missing) for e in calls] == [{} if n % 3 else {"left": Cause.SKIPPED} for n in ITEMS]


@pytest.mark.parametrize("seed", SEEDS)
def test_a_fan_out_keeps_its_order_below_replicas(seed: int) -> None:
    graph = Graph()
    graph.source("source")
    graph.step("split", "source", many={"out": 4}, options={"replicas": 2})
    graph.step("work", "split", options={"replicas": 2})
    graph.sink("sink", "work")
    functions = {
        "split": lambda e: [("out", (e.values[0], k), None) for k in range(e.values[0] % 4)],
        "work": keep,
        "sink": nothing,
    }
    bench = run(graph, functions, seed)
    assert consumed(bench) == [(n, k) for n in ITEMS for k in range(n % 4)]


@pytest.mark.parametrize("seed", SEEDS)
def test_fused_and_unfused_make_the_same_publications(seed: int) -> None:
    graph = Graph()
    graph.source("source")
    graph.step("first", "source", options={"fuse": "together"}, many={"out": 3})
    graph.step("second", "first", options={"fuse": "together"})
    graph.sink("sink", "second")
    functions = {
        "first": lambda e: [("out", (e.values[0], k), None) for k in range(e.values[0] % 3)],
        "second": lambda e: [("out", e.values[0], None)] if e.values[0] != (4, 0) else [],
        "sink": nothing,
    }
    fused = run(graph, functions, seed)
    apart = run(graph, functions, seed, fuse=False)
    assert len(fused.plan.tasks) == 3
    assert len(apart.plan.tasks) == 4
    assert (
        consumed(fused)
        == consumed(apart)
        == [(n, k) for n in ITEMS for k in range(n % 3) if (n, k) != (4, 0)]
    )
    ids = [[(e.publication_id, e.kind) for e in log(bench, "second")] for bench in (fused, apart)]
    assert sorted(ids[0]) == sorted(ids[1])


def log(bench: Bench, node: str) -> Sequence[Any]:
    return next(found.envelopes for channel, found in bench.logs.items() if channel.node == node)


@pytest.mark.parametrize("seed", SEEDS)
def test_a_poisoned_input_is_put_aside_and_its_neighbours_are_not(seed: int) -> None:
    def fails_on_seven(element: Element) -> Sequence[tuple[str, Any, str | None]]:
        if element.values[0] == 7:
            raise ValueError("seven")
        return keep(element)

    graph = Graph()
    graph.source("source")
    graph.step("work", "source", options={"replicas": 2})
    graph.sink("sink", "work")
    bench = run(graph, {"work": fails_on_seven, "sink": nothing}, seed)
    assert consumed(bench) == [n for n in ITEMS if n != 7]
    assert [(a.node, a.element.origin.ordinal) for a in bench.put_aside] == [("work", 7)]
    settled = next(r.settled for s, r in bench.readings.items() if s.reader.startswith("work"))
    assert [how for how in settled.values() if how != Completed(CompletedReason.DELIVERED)] == [
        Terminal(bench.asides[0].record_id)
    ]


@pytest.mark.parametrize("seed", SEEDS)
def test_a_fatal_node_aborts_what_waits_for_it_and_the_rest_drains(seed: int) -> None:
    def dies_on_twelve(element: Element) -> Sequence[tuple[str, Any, str | None]]:
        if element.values[0] == 12:
            raise RuntimeError("twelve")
        return keep(element)

    graph = Graph()
    graph.source("source")
    graph.step("left", "source", options={"replicas": 2})
    graph.step("right", "source")
    graph.sink("meet", "left", "right")
    graph.sink("sink", "right")
    bench = run(graph, {"left": dies_on_twelve, "right": keep, "meet": nothing, "sink": nothing}, seed)
    assert bench.failed == "left"
    kinds = {replica.task.name: replica.kind for replica in bench.replicas}
    assert kinds["left"] is Kind.ABORT
    assert kinds["meet"] is Kind.ABORT
    assert kinds["sink"] is Kind.END
    assert 12 not in consumed(bench, "meet")
    assert consumed(bench, "meet") == sorted(consumed(bench, "meet"))
    assert consumed(bench) == list(range(len(consumed(bench))))
    for reading in bench.readings.values():
        assert len(reading.settled) == len(reading.log.envelopes)


def test_outputs_of_a_stateful_task_are_committed_before_they_are_published() -> None:
    graph = Graph()
    graph.source("source")
    graph.step("count", "source", options={"ordered": True}, traits={"stateful": True, "flushes": True})
    graph.sink("sink", "count")
    for seed in SEEDS:
        bench = run(graph, {"count": keep, "sink": nothing}, seed)
        assert consumed(bench) == [*ITEMS, "count flushed"]
        assert bench.commits > 0


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("fuse", [True, False])
def test_whatever_dies_nothing_is_lost_or_said_twice(seed: int, fuse: bool) -> None:
    often = {"retries": 50}
    graph = Graph()
    graph.source("source")
    graph.step("split", "source", many={"out": 4}, options={"replicas": 2, **often})
    graph.step("work", "split", options={"replicas": 2, **often})
    stateful = {"stateful": True, "flushes": True}
    graph.step("total", "work", options={"ordered": True, **often}, traits=stateful)
    graph.step("left", "source", options={"fuse": "side", **often})
    graph.step("right", "left", options={"fuse": "side", **often})
    graph.step("meet", "left", "right", "source", options=often)
    graph.sink("sink", "total", options=often)
    graph.sink("other", "meet", options=often)
    functions = {
        "split": lambda e: [("out", (e.values[0], k), None) for k in range(e.values[0] % 4)],
        "work": keep,
        "total": keep,
        "left": keep,
        "right": lambda e: [("out", -e.values[0], None)] if e.values[0] % 5 else [],
        "meet": lambda e: [("out", list(e.values), None)],
        "sink": nothing,
        "other": nothing,
    }
    bench = run(graph, functions, seed, fuse=fuse, deaths=0.03)
    assert sum(replica.deaths for replica in bench.replicas) > 0
    assert not bench.put_aside
    wanted: list[Any] = [(n, k) for n in ITEMS for k in range(n % 4)] + ["total flushed"]
    assert said(bench, "total") == wanted
    assert said(bench, "meet") == [[n, -n, n] for n in ITEMS if n % 5]
    assert without_repetition(consumed(bench)) == wanted
    for reading in bench.readings.values():
        assert len(reading.settled) == len(reading.log.envelopes)


@pytest.mark.parametrize("seed", range(20))
def test_a_sink_with_checkpoints_writes_everything_once_whatever_dies(seed: int) -> None:
    often = {"retries": 50}
    graph = Graph()
    graph.source("source")
    graph.step("work", "source", options={"replicas": 2, **often})
    durable = {"checkpoints": True, "holds_items": 5}
    graph.sink("file", "work", options=often, traits=durable)
    functions = {"work": lambda e: [("out", e.values[0], None)] if e.values[0] % 4 else [], "file": nothing}
    bench = run(graph, functions, seed, deaths=0.03)
    assert sum(replica.deaths for replica in bench.replicas) > 0
    assert bench.written["file"] == [n for n in ITEMS if n % 4]


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("ordered", [True, False])
def test_a_killer_is_put_aside_within_its_budget_and_its_neighbours_are_not(seed: int, ordered: bool) -> None:
    def kills(element: Element) -> Sequence[tuple[str, Any, str | None]]:
        if element.values[0] == 11:
            raise Killed
        return keep(element)

    graph = Graph()
    graph.source("source")
    graph.step("first", "source", options={"fuse": "both", "ordered": ordered, "retries": 2})
    graph.step("second", "first", options={"fuse": "both", "retries": 2})
    graph.sink("sink", "second")
    bench = run(graph, {"first": keep, "second": kills, "sink": nothing}, seed)
    assert consumed(bench) == [n for n in ITEMS if n != 11]
    (aside,) = bench.put_aside
    assert (aside.node, aside.element.origin.ordinal, aside.attempts) == ("second", 11, 3)
    deaths = next(replica.deaths for replica in bench.replicas if replica.task.name == "first")
    assert deaths == 4, "the first death leaves no record, then one for each attempt of the budget"


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("traits", [{}, {"stateful": True}, {"checkpoints": True, "holds_items": 5}])
def test_what_was_put_aside_is_settled_as_that_whatever_dies(seed: int, traits: dict[str, Any]) -> None:
    tried: set[int] = set()

    def refuses_once(element: Element) -> Sequence[tuple[str, Any, str | None]]:
        """Would take at a second attempt what was put aside at the first: what stands is the letter."""
        (number, _) = element.values
        if number % 3 == 0 and number not in tried:
            tried.add(number)
            raise ValueError(str(number))
        return nothing(element)

    often = {"retries": 50}
    graph = Graph()
    graph.source("source")
    graph.step("work", "source", options={"replicas": 2, **often})
    graph.sink("meet", "work", "source", options=often, traits=traits)
    bench = run(graph, {"work": keep, "meet": refuses_once}, seed, deaths=0.03)
    letters = {aside.origin[2] for aside in bench.asides}
    for name, reading in bench.readings.items():
        if not name.reader.startswith("meet"):
            continue
        settled = {reading.log.envelopes[at].origin.ordinal: how for at, how in reading.settled.items()}
        terminal = {ordinal for ordinal, how in settled.items() if isinstance(how, Terminal)}
        assert terminal == letters, name


@pytest.mark.parametrize("seed", range(20))
def test_a_live_source_that_dies_opens_a_new_epoch_behind_the_old_one(seed: int) -> None:
    graph = Graph()
    graph.source("source", traits={"resumable": False})
    graph.step("work", "source", options={"replicas": 2, "retries": 50})
    graph.sink("meet", "work", "source", options={"retries": 50})
    bench = run(graph, {"work": keep, "meet": nothing}, seed, deaths=0.03)
    pairs = [element.values for name, element in bench.calls if name == "meet"]
    kept = without_repetition(pairs)
    assert all(left == right for left, right in kept)
    assert [left for left, _ in kept] == sorted(left for left, _ in kept)
    for reading in bench.readings.values():
        assert len(reading.settled) == len(reading.log.envelopes)


def said(bench: Bench, node: str) -> list[Any]:
    found = next(log for channel, log in bench.logs.items() if channel.node == node)
    return [found.values[e.publication_id] for e in found.envelopes if e.kind is Kind.DATA]


def without_repetition(values: Sequence[Any]) -> list[Any]:
    """A sink without checkpoints is at least once: after a death it sees some again, in order."""
    kept: list[Any] = []
    for value in values:
        if value not in kept:
            kept.append(value)
    return kept


def test_the_core_imports_neither_time_nor_threads_nor_a_backend() -> None:
    allowed = (
        "videoflow.backends",
        "videoflow.errors",
        "videoflow.graph.spec",
        "videoflow.planner.plan",
        "videoflow.ids",
        "videoflow.worker.core",
    )
    plain = {
        "abc",
        "collections",
        "collections.abc",
        "dataclasses",
        "enum",
        "heapq",
        "typing",
        "zlib",
        "msgspec",
    }
    folder = Path(videoflow.worker.core.__file__).parent
    for path in folder.glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            modules = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            modules += [node.module] if isinstance(node, ast.ImportFrom) and node.module else []
            for module in modules:
                assert module.startswith(allowed) or module in plain, f"{path.name}: {module}"
                assert not module.startswith("videoflow.backends.memory")
