"""Graphs for tests of the simulation: random ones for Hypothesis, and small ones by hand."""

from collections.abc import Callable, Mapping
from typing import Any

from hypothesis import strategies as st

from videoflow.graph import Node, compile_flow
from videoflow.simulation import FEATURES, Schedule, Simulation, Subject, generate, subject_of
from videoflow.simulation import _library as library

Build = Callable[[], list[Node]]


def graphs(features: frozenset[str] = FEATURES) -> st.SearchStrategy[Subject]:
    """Random planned graphs, which Hypothesis makes smaller."""
    return st.randoms(use_true_random=False).map(lambda chance: generate(chance, features))


def schedules() -> st.SearchStrategy[int]:
    """Seeds of schedules."""
    return st.integers(0, 1 << 20)


def simulated(*sinks: Node) -> Simulation:
    """A flow of nodes of the simulation's own library."""
    return Simulation(subject_of(compile_flow(sinks, "flow", "/"), own_state=True))


def source(items: int, **options: Any) -> Any:
    return library.Source(items, name="source", **options)


def chain(items: int = 6, **options: Any) -> Simulation:
    """A source, a step, and a sink with checkpoints."""
    step: Any = library.Step(3, name="step", **options)
    sink: Any = library.Saver(2, name="saver")
    return simulated(sink(step(source(items))))


def diamond(items: int = 6, trouble: Mapping[str, list[int]] | None = None) -> Simulation:
    """A step and its source meet, and are kept."""
    origin = source(items)
    left: Any = library.Step(1, name="left", trouble=dict(trouble or {}), ordered=False, replicas=2)
    meet: Any = library.Step(2, name="meet")
    sink: Any = library.Rows(name="rows")
    return simulated(sink(meet(left(origin), origin)))


def fails(*schedules: Schedule, sinks: tuple[Any, ...]) -> list[str]:
    simulation = simulated(*sinks)
    assert simulation.broken == ()
    return [v for schedule in schedules for v in simulation.run(schedule).violations]
