"""Searches: many schedules of many graphs, until something breaks or enough were seen.

Used by the nightly command and by tests. A schedule in which nothing was injected is judged too, and not
counted.
"""

import contextlib
import gc
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from videoflow.simulation._generated import generate
from videoflow.simulation._rarity import Rarity
from videoflow.simulation._schedule import Schedule
from videoflow.simulation._simulate import Result, Simulation
from videoflow.simulation._table import Table, cells
from videoflow.simulation._wishes import FEATURES, WISHES

LEAST_OF_A_GRAPH = 6
MOST_OF_A_GRAPH = 48
_USUAL_STEPS, _USUAL_SHARE, _BY_SIZE = 76, 22, 2.0
_GRAPH_SEED = 1_000_003
ALL_CELLS = tuple(cells())


@dataclass(frozen=True)
class Found:
    """A schedule that broke a promise.

    Attributes:
        graph: Seed of the graph.
        schedule: The schedule, which is replayed as it is; None: the run without faults broke it.
        violations: What may not be, in sentences.
    """

    graph: int
    schedule: Schedule | None
    violations: tuple[str, ...]


@dataclass
class Search:
    """What a search has seen so far.

    Attributes:
        counted: Schedules in which something was injected.
        empty: Schedules in which nothing was.
        graphs: Different graphs.
        table: What was hit.
        found: Schedules that broke a promise.
    """

    counted: int = 0
    empty: int = 0
    graphs: int = 0
    table: Table = field(default_factory=Table)
    found: list[Found] = field(default_factory=list)


def graph_of(seed: int, features: frozenset[str] = FEATURES) -> Simulation:
    """Returns the random graph of a seed."""
    often = WISHES[seed % len(WISHES)]
    return Simulation(generate(random.Random(seed * _GRAPH_SEED), features, often=often))


def explore(
    schedules: int,
    seed: int = 0,
    *,
    features: frozenset[str] = FEATURES,
    most_found: int = 1,
    step: int = 1,
    told: Callable[[Search], None] | None = None,
) -> Search:
    """Runs schedules of random graphs.

    Args:
        schedules: How many are to count.
        seed: Of the first graph.
        features: What graphs may have.
        most_found: Ends when so many broke a promise.
        step: From one graph's seed to the next one's, where several processes share a search.
        told: Called after each graph.
    """
    search = Search()
    graph = seed
    with _collecting_between_runs() as collect:
        while search.counted < schedules and len(search.found) < most_found:
            _search_one(search, graph, features, schedules, most_found, collect)
            graph += step
            if told is not None:
                told(search)
    return search


def _search_one(
    search: Search,
    graph: int,
    features: frozenset[str],
    schedules: int,
    most_found: int,
    collect: Callable[..., object],
) -> None:
    """Adds what schedules of one graph come to."""
    simulation, first = graph_of(graph, features), graph * MOST_OF_A_GRAPH
    collect()
    search.graphs += 1
    if simulation.broken:
        search.found.append(Found(graph, None, simulation.broken))
        return
    rarity = Rarity(search.table.counts, ALL_CELLS)
    share = share_of(simulation, rarity.wanted(simulation.cells))
    for number in range(first, first + share):
        result = simulation.run(simulation.schedule(number, rarity))
        collect(0)
        if result.counts:
            search.counted += 1
            search.table.add(result.hits)
        else:
            search.empty += 1
        if result.violations:
            search.found.append(Found(graph, result.schedule, result.violations))
        if search.counted >= schedules or len(search.found) >= most_found:
            return


def share_of(simulation: Simulation, wanted: float = 1.0) -> int:
    """Returns how many schedules a graph gets: the fewer the longer a run of it takes.

    Args:
        simulation: Of the graph.
        wanted: How much it is wanted, compared with usual ones.
    """
    share = wanted * _USUAL_SHARE * (_USUAL_STEPS / max(1, simulation.steps)) ** _BY_SIZE
    return max(LEAST_OF_A_GRAPH, min(MOST_OF_A_GRAPH, int(share)))


@contextlib.contextmanager
def _collecting_between_runs() -> Iterator[Callable[..., object]]:
    """Looks for cycles of garbage only where it is told to: what a run leaves is small, and still cached."""
    was_enabled = gc.isenabled()
    gc.disable()
    gc.freeze()
    try:
        yield gc.collect
    finally:
        gc.unfreeze()
        if was_enabled:
            gc.enable()


def results(simulation: Simulation, count: int, seed: int = 0) -> Iterator[Result]:
    """Yields what comes of so many schedules of one flow."""
    for number in range(seed, seed + count):
        yield simulation.run(simulation.schedule(number))
