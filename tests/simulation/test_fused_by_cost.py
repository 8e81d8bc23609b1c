"""Random graphs whose cheap chains were fused by what they cost keep every promise, under faults too."""

import random
from collections.abc import Iterator

import pytest

from videoflow.errors import FlowError
from videoflow.graph.spec import FlowSpec
from videoflow.planner import FlowCosts, NodeCost
from videoflow.simulation import FEATURES, Simulation, Subject
from videoflow.simulation._generated import _grown
from videoflow.simulation._subject import subject_of

# Labels and what is kept apart leave few chains: graphs are drawn without them.
PLAIN = FEATURES - {"fused", "checkpoints", "many", "moody", "partitions"}


def cheap(spec: FlowSpec) -> FlowCosts:
    """Says of every node that it costs next to nothing beside a hop."""
    nodes = {
        node.name: NodeCost(
            seconds=1e-6,
            hops={str(parent): 1e-3 for edge in spec.inputs(node.name) for parent in edge.parents},
        )
        for node in spec.nodes
    }
    return FlowCosts(run_id="measured", nodes=nodes)


def pairs(first: int, last: int, features: frozenset[str] = PLAIN) -> Iterator[tuple[Subject, Subject]]:
    """The graphs of some seeds, fused by cost and by nothing else, and with each node by itself."""
    for seed in range(first, last):
        compiled = _grown(random.Random(seed), features, frozenset())
        try:
            subject = subject_of(compiled, own_state=True, costs=cheap(compiled.spec))
        except FlowError:
            continue
        if any(len(task.nodes) > 1 for task in subject.plan.tasks):
            yield subject, subject_of(compiled, own_state=True)


def fused(first: int, last: int) -> Iterator[Subject]:
    """The fused ones."""
    return (subject for subject, _ in pairs(first, last))


def told(subject: Subject) -> dict[str, list[str]]:
    """What each node was called with, under which id, and what it answered; what was put aside."""
    found = Simulation(subject).reference(None)
    called = {
        node: sorted(repr((c.input_id, c.origin, c.path, c.given, c.missing, c.made)) for c in calls)
        for node, calls in found.record.calls.items()
    }
    return {**called, "": sorted(map(repr, found.letters.items()))}


def test_what_is_fused_by_cost_is_called_with_the_same_under_the_same_ids() -> None:
    tried = 0
    for together, apart in pairs(200, 230, PLAIN - {"latest", "live", "fatal", "killer"}):
        assert told(together) == told(apart)
        tried += 1
    assert tried >= 5


def test_what_is_fused_by_cost_keeps_every_promise() -> None:
    tried = 0
    for subject in fused(0, 30):
        simulation = Simulation(subject)
        assert simulation.broken == ()
        for seed in range(4):
            assert simulation.run(simulation.schedule(seed)).violations == ()
        tried += 1
    assert tried >= 5


@pytest.mark.nightly
def test_many_that_are_fused_by_cost_keep_every_promise() -> None:
    for subject in fused(1_000, 1_400):
        simulation = Simulation(subject)
        assert simulation.broken == ()
        for seed in range(12):
            assert simulation.run(simulation.schedule(seed)).violations == ()
