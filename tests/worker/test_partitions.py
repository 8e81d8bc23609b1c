"""The core with its input shared or in parts: by key, by trace, with lists, under seeded deaths."""

from collections.abc import Sequence
from typing import Any

import pytest

from tests.planner.building import Graph
from tests.worker.driver import Bench
from tests.worker.test_core import ITEMS, consumed, keep, nothing, run, without_repetition
from videoflow.backends.coverage import Cause, FateKind
from videoflow.backends.messaging import Kind
from videoflow.worker.core.actions import Element

SEEDS = range(6)
Outputs = Sequence[tuple[str, Any, str | None]]


def keyed(element: Element) -> Outputs:
    return [("out", element.values[0], f"key {element.values[0] % 5}")]


def thirds(element: Element) -> Outputs:
    return keyed(element) if element.values[0] % 3 else []


def crops(element: Element) -> Outputs:
    number = element.values[0]
    return [("out", number * 100 + k, None) for k in range(number % 4)]


def odd(element: Element) -> Outputs:
    return keep(element) if element.values[0] % 2 else []


def together(element: Element) -> Outputs:
    return [("out", list(element.values), None)]


def partitioned() -> Graph:
    graph = Graph()
    graph.source("source")
    graph.step("name", "source", options={"replicas": 2})
    options = {"replicas": 3, "ordered": True, "partition_by": "key"}
    graph.step("track", "name", options=options, traits={"stateful": True})
    graph.sink("sink", "track")
    return graph


def joined(replicas: int, missing: str = "skip") -> Graph:
    graph = Graph()
    graph.source("source")
    graph.step("crop", "source", many={"out": 4}, options={"replicas": 2})
    graph.step("pick", "crop", options={"replicas": 2})
    graph.step("pair", "crop", "pick", options={"replicas": replicas, "missing": missing})
    graph.step("all", "source", "pair", options={"replicas": replicas, "missing": missing})
    graph.sink("sink", "all")
    return graph


def by_key(bench: Bench, node: str) -> dict[str, list[Any]]:
    found: dict[str, list[Any]] = {}
    for name, element in bench.calls:
        if name == node:
            found.setdefault(element.key, []).append(element.values[0])
    return found


@pytest.mark.parametrize("deaths", [0.0, 0.02])
@pytest.mark.parametrize("seed", SEEDS)
def test_each_key_is_seen_in_order_by_one_owner_and_nothing_is_lost(seed: int, deaths: float) -> None:
    functions = {"name": thirds, "track": keep, "sink": nothing}
    bench = run(partitioned(), functions, seed, deaths=deaths)
    wanted = [n for n in ITEMS if n % 3]
    assert without_repetition(consumed(bench)) == wanted
    seen = by_key(bench, "track")
    for key, values in seen.items():
        assert without_repetition(values) == [n for n in wanted if f"key {n % 5}" == key]
    assert {replica.kind for replica in bench.replicas} == {Kind.END}


@pytest.mark.parametrize("seed", SEEDS)
def test_what_one_partition_has_is_elsewhere_for_the_others(seed: int) -> None:
    bench = run(partitioned(), {"name": thirds, "track": keep, "sink": nothing}, seed)
    readings = [r for s, r in bench.readings.items() if s.reader.startswith("track/")]
    assert len(readings) == 3
    totals: dict[FateKind, int] = {}
    for reading in readings:
        closed = reading.coverage.origin("source", 0)
        assert closed.closed.intervals() == ((0, len(ITEMS) - 1),)
        for fate, ordinals in closed.fates.items():
            totals[fate.kind] = totals.get(fate.kind, 0) + len(ordinals)
    delivered = sum(1 for n in ITEMS if n % 3)
    assert totals[FateKind.DELIVERED] == delivered
    assert totals[FateKind.SKIPPED] == len(ITEMS) - delivered
    assert totals[FateKind.ELSEWHERE] == 2 * len(ITEMS)


@pytest.mark.parametrize("deaths", [0.0, 0.02])
@pytest.mark.parametrize("replicas", [1, 3])
@pytest.mark.parametrize("seed", SEEDS)
def test_joins_below_a_fan_out_meet_by_trace_and_lists_are_whole(
    seed: int, replicas: int, deaths: float
) -> None:
    functions = {"crop": crops, "pick": odd, "pair": together, "all": together, "sink": nothing}
    bench = run(joined(replicas), functions, seed, deaths=deaths)
    wanted = [[n, [[c, c] for c in (n * 100 + k for k in range(n % 4)) if c % 2]] for n in ITEMS]
    assert without_repetition(consumed(bench)) == wanted


@pytest.mark.parametrize("seed", SEEDS)
def test_a_skipped_element_of_a_list_is_none_where_the_join_says_so(seed: int) -> None:
    functions = {"crop": crops, "pick": odd, "pair": together, "all": together, "sink": nothing}
    bench = run(joined(2, "none"), functions, seed)
    wanted = [[n, [[c, c if c % 2 else None] for c in (n * 100 + k for k in range(n % 4))]] for n in ITEMS]
    assert consumed(bench) == wanted


@pytest.mark.parametrize("fuse", [False, True])
def test_what_a_node_flushes_meets_no_partner_in_a_join(fuse: bool) -> None:
    options = {"fuse": "group"} if fuse else {}
    graph = Graph()
    graph.source("source")
    graph.step("pick", "source", options=options)
    graph.step(
        "count", "pick", options={**options, "ordered": True}, traits={"stateful": True, "flushes": True}
    )
    graph.step("meet", "pick", "count", options={**options, "missing": "none"})
    graph.sink("sink", "meet")
    functions = {"pick": odd, "count": keep, "meet": together, "sink": nothing}
    bench = run(graph, functions, 0)
    assert bench.failed is None
    assert consumed(bench) == [*([n, n] for n in ITEMS if n % 2), [None, "count flushed"]]
    [met] = [e for name, e in bench.calls if name == "meet" and e.missing]
    assert met.missing == {"pick": Cause.SKIPPED}


@pytest.mark.parametrize("deaths", [0.0, 0.03])
@pytest.mark.parametrize("seed", SEEDS)
def test_what_replicas_answer_by_chance_is_said_once(seed: int, deaths: float) -> None:
    graph = Graph()
    graph.source("source")
    options = {"replicas": 2, "deterministic": False}
    graph.step("guess", "source", options=options, traits={"max_item_bytes": 100})
    graph.step("left", "guess")
    graph.step("meet", "guess", "left")
    graph.sink("sink", "meet")
    guesses: list[int] = []

    def guess(element: Element) -> Outputs:
        guesses.append(element.values[0])
        return [("out", [element.values[0], len(guesses)], None)]

    functions = {"guess": guess, "left": keep, "meet": together, "sink": nothing}
    bench = run(graph, functions, seed, deaths=deaths)
    found = without_repetition(consumed(bench))
    assert [met[0][0] for met in found] == ITEMS
    assert all(left == right for left, right in found)
    assert (len(guesses) > len(ITEMS)) == (deaths > 0)
    assert bench.once == {}, "an answer is kept whose input is settled"


def test_parents_with_different_keys_fail_the_run_by_name() -> None:
    graph = Graph()
    graph.source("source")
    graph.step("left", "source")
    graph.step("right", "source")
    graph.step("meet", "left", "right", options={"replicas": 2, "partition_by": "key"})
    graph.sink("sink", "meet")
    functions = {
        "left": lambda e: [("out", e.values[0], "a")],
        "right": lambda e: [("out", e.values[0], f"key {e.values[0]}")],
        "meet": together,
        "sink": nothing,
    }
    bench = run(graph, functions, 0)
    assert bench.failed == "meet"
    assert all(Kind.ABORT in log.ended.values() for c, log in bench.logs.items() if c.node == "meet")


class Zone:
    """An item with an attribute."""

    def __init__(self, zone: str) -> None:
        self.zone = zone


def test_an_item_without_the_attribute_is_put_aside_with_the_reason() -> None:
    graph = Graph()
    graph.source("source")
    graph.step("mark", "source")
    graph.step("watch", "mark", options={"replicas": 2, "partition_by": "zone", "ordered": True})
    graph.sink("sink", "watch")
    functions = {
        "mark": lambda e: [("out", Zone("a") if e.values[0] % 2 else e.values[0], None)],
        "watch": lambda e: [("out", e.values[0].zone, None)],
        "sink": nothing,
    }
    bench = run(graph, functions, 0)
    assert consumed(bench) == ["a"] * (len(ITEMS) // 2)
    assert len(bench.put_aside) == len(ITEMS) // 2
    assert "has no zone" in bench.put_aside[0].failure.error
