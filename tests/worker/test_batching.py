"""Inputs that are given to a node together come to what they come to alone, and none waits in vain."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import pytest

from tests.planner.building import Graph, threads_facts
from tests.worker.driver import Bench, Function, Killed
from videoflow.backends.messaging import Kind
from videoflow.graph.spec import BatchSpec
from videoflow.planner import plan_flow
from videoflow.worker.core.actions import Element

SEEDS = range(2)


def shape_of(number: int) -> int:
    """One in four is not like its neighbours."""
    return 1 + (number % 4 == 1)


MOST, WAIT_SECONDS = 4, 2.0
ITEMS = [np.full(shape_of(number), number) for number in range(30)]
SMALL = {"max_item_bytes": 1000}
BATCH = BatchSpec(max_items=MOST, max_wait_seconds=WAIT_SECONDS)
SHAPED = BatchSpec(max_items=MOST, max_wait_seconds=WAIT_SECONDS, group_by="shape")


PATIENT = {"retries": 1000}  # who dies by chance is not to be put aside for it


def number_of(element: Element) -> int:
    """What an input is about."""
    found = element.values[0]
    return int(found[0] if isinstance(found, np.ndarray) else found)


def doubled(element: Element) -> Sequence[tuple[str, Any, str | None]]:
    return [("out", number_of(element) * 2, None)]


def some(element: Element) -> Sequence[tuple[str, Any, str | None]]:
    return [("out", element.values[0], None)] if number_of(element) % 5 else []


def nothing(_: Element) -> Sequence[tuple[str, Any, str | None]]:
    return []


def chain(batch: BatchSpec | None, **options: Any) -> Graph:
    """A source, a node that skips some, the one that gathers, a fan-out behind it in its task, a sink."""
    graph = Graph()
    graph.source("source")
    graph.step("some", "source", options=PATIENT)
    graph.step("work", "some", options={"batch": batch, "fuse": "one", **options}, traits=SMALL)
    behind = {"fuse": "one", "replicas": options.get("replicas", 1), "retries": options.get("retries", 3)}
    graph.step("split", "work", many={"out": 3}, options=behind, traits=SMALL)
    graph.sink("sink", "split")
    return graph


def joined(batch: BatchSpec | None, **options: Any) -> Graph:
    """The node that gathers joins two ways of the same items, one of which skips some."""
    graph = Graph()
    graph.source("source")
    graph.step("some", "source", options={"replicas": 2, **PATIENT})
    graph.step("work", "source", "some", options={"batch": batch, **options})
    graph.step("split", "work", many={"out": 3}, options=PATIENT)
    graph.sink("sink", "split")
    return graph


FUNCTIONS: Mapping[str, Function] = {
    "some": some,
    "work": doubled,
    "split": lambda e: [("out", (e.values[0], k), None) for k in range(e.values[0] % 3)],
    "sink": nothing,
}
SHAPES: Mapping[str, tuple[Callable[..., Graph], dict[str, Any]]] = {
    "unordered": (chain, {}),
    "replicas": (chain, {"replicas": 2}),
    "recorded": (chain, {"replicas": 2, "deterministic": False}),
    "in order": (chain, {"ordered": True}),
    "committed": (chain, {"deterministic": False}),
    "partitioned": (chain, {"ordered": True, "replicas": 2, "partition_by": "source"}),
    "joined": (joined, {}),
    "joined in parts": (joined, {"replicas": 2}),
}


def run(
    graph: Graph,
    seed: int,
    functions: Mapping[str, Function] = FUNCTIONS,
    *,
    deaths: float = 0.0,
    hurry: float = 0.0,
    refuses: Callable[[Sequence[Element]], bool] | None = None,
    items: Sequence[Any] = ITEMS,
) -> Bench:
    bench = Bench(plan_flow(graph.spec(), threads_facts()), {"source": items}, functions, seed, deaths=deaths)
    bench.hurry = hurry
    bench.refuses = refuses or bench.refuses
    bench.run()
    assert {replica.kind for replica in bench.replicas} == {Kind.END}
    return bench


def said(bench: Bench) -> dict[str, Any]:
    """What was said on every channel, by id, and what became of it at every reader."""
    found: dict[str, Any] = {}
    for channel, log in bench.logs.items():
        found[str(channel)] = {
            e.publication_id: (e.kind, e.input_id, e.path, e.cause, str(log.values[e.publication_id]))
            for e in log.envelopes
            if e.kind in (Kind.DATA, Kind.SKIP)
        }
    found |= {str(name): reading.coverage.records() for name, reading in bench.readings.items()}
    return found


def batches(bench: Bench) -> list[list[int]]:
    """The numbers that each call was given."""
    return [[number_of(element) for element in elements] for _, elements in bench.batches]


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("batch", [BATCH, SHAPED], ids=["any", "shaped"])
def test_what_is_said_of_an_input_is_what_is_said_of_it_alone(shape: str, batch: BatchSpec) -> None:
    make, options = SHAPES[shape]
    alone = said(run(make(None, **options), 0))
    for seed in SEEDS:
        bench = run(make(batch, **options), seed, hurry=0.2 * (seed % 2))
        assert said(bench) == alone
        found = batches(bench)
        assert max(map(len, found)) in (range(2, MOST + 1) if batch is SHAPED else (MOST,))
        if batch is SHAPED:
            shapes = [{shape_of(number) for number in one} for one in found]
            assert max(map(len, shapes)) == 1, "a call was given two shapes"
        if shape in ("in order", "committed", "joined"):
            numbers = [number for one in found for number in one]
            assert numbers == sorted(numbers)


@pytest.mark.parametrize("shape", SHAPES)
def test_deaths_change_nothing_and_a_suspect_is_called_alone(shape: str) -> None:
    make, options = SHAPES[shape]
    alone = said(run(make(None, **options), 0))
    together = suspects = 0
    for seed in SEEDS:
        graph = make(SHAPED, retries=1000, **options)
        bench = Bench(
            plan_flow(graph.spec(), threads_facts()), {"source": ITEMS}, FUNCTIONS, seed, deaths=0.03
        )

        def looks(elements: Sequence[Element], bench: Bench = bench) -> bool:
            read = [reading for name, reading in bench.readings.items() if name.reader.startswith("work/")]
            again = {
                reading.log.envelopes[position].origin
                for reading in read
                for position, tries in reading.counts.items()
                if tries > 1 and reading.log.envelopes[position].kind is Kind.DATA
            }
            assert not again.intersection(e.origin for e in elements), "a suspect was called with others"
            return False

        bench.refuses = looks
        bench.run()
        together += sum(len(one) > 1 for one in batches(bench))
        suspects += sum(len(reading.counts) for reading in bench.readings.values())
        assert said(bench) == alone
    assert together
    assert suspects


def test_a_batch_that_raises_takes_nobody_along() -> None:
    def work(element: Element) -> Sequence[tuple[str, Any, str | None]]:
        if number_of(element) == 13:
            raise ValueError("a bad one")
        return doubled(element)

    for shape in ("unordered", "replicas", "in order", "committed"):
        make, options = SHAPES[shape]
        for seed in SEEDS:
            bench = run(make(BATCH, **options), seed, {**FUNCTIONS, "work": work})
            assert [(p.node, number_of(p.element), p.attempts) for p in bench.put_aside] == [("work", 13, 1)]
            alone = run(make(None, **options), seed, {**FUNCTIONS, "work": work})
            assert said(bench) == said(alone)


def test_a_node_that_fails_for_several_alone_has_all_attempts_for_each() -> None:
    tried: dict[int, int] = {}

    def work(element: Element) -> Sequence[tuple[str, Any, str | None]]:
        number = number_of(element)
        tried[number] = tried.get(number, 0) + 1
        if number == 7:
            raise OSError("never")
        return doubled(element)

    bench = run(chain(BATCH, retries=2), 0, {**FUNCTIONS, "work": work}, refuses=lambda _: True)
    assert [(number_of(p.element), p.attempts) for p in bench.put_aside] == [(7, 3)]
    assert {number for number in tried if number != 7} == {n for n in range(30) if n % 5 and n != 7}
    assert tried[7] == 3


def test_who_kills_the_process_is_put_aside_alone() -> None:
    def work(element: Element) -> Sequence[tuple[str, Any, str | None]]:
        if number_of(element) == 13:
            raise Killed
        return doubled(element)

    for shape in ("unordered", "in order", "committed", "joined"):
        make, options = SHAPES[shape]
        for seed in SEEDS:
            bench = run(make(BATCH, **options), seed, {**FUNCTIONS, "work": work})
            assert [number_of(p.element) for p in bench.put_aside] == [13], shape
            done = {number_of(element) for name, element in bench.calls if name == "work"}
            assert done - {13} == {n for n in range(30) if n % 5 and n != 13}


@pytest.mark.parametrize("options", [{}, {"ordered": True}])
def test_the_oldest_goes_first_whatever_its_shape(options: dict[str, Any]) -> None:
    for seed in SEEDS:
        left = [number for number in range(30) if number % 5]
        for one in batches(run(chain(SHAPED, **options), seed)):
            assert one[0] == left[0], "somebody younger went before the oldest"
            left = [number for number in left if number not in one]


def test_nobody_waits_longer_than_it_may() -> None:
    for seed in range(10):
        bench = Bench(plan_flow(chain(SHAPED).spec(), threads_facts()), {"source": ITEMS}, FUNCTIONS, seed)
        bench.hurry = 0.9
        waited: list[float] = []
        bench.waited = waited.append
        bench.run()
        assert max(waited) <= WAIT_SECONDS, "somebody waited longer"
        assert max(map(len, bench.ends_of_waits.values())) == 1, "a wait was made longer"


def test_nobody_waits_for_more_when_no_more_can_come() -> None:
    for make, options in SHAPES.values():
        for seed in SEEDS:
            bench = run(make(BATCH, **options), seed, items=ITEMS[:-1])  # so that the last batch is not full
            assert bench.now == 0.0, "it waited at the end"


def test_a_replica_that_is_told_that_nothing_can_come_goes_on() -> None:
    bench = Bench(plan_flow(chain(BATCH).spec(), threads_facts()), {"source": ITEMS}, FUNCTIONS, 0)
    bench.held_up = True
    bench.run()
    assert bench.now == 0.0
    assert min(map(len, batches(bench))) < MOST
