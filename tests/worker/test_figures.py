"""Figures are of what was measured, call by call."""

import pytest

from videoflow.worker import NodeFigures


def test_quantiles_are_those_of_the_calls_and_not_of_their_mean() -> None:
    figures = NodeFigures()
    for seconds in [0.001] * 96 + [2.0] * 4:
        figures.called(seconds, 1)
    assert figures.quantile(0.5) == pytest.approx(0.001, rel=0.1)
    assert figures.quantile(0.95) == pytest.approx(0.001, rel=0.1)
    assert figures.quantile(0.99) == pytest.approx(2.0, rel=0.1)


def test_a_call_for_several_counts_each_input_and_one_call() -> None:
    figures, other = NodeFigures(), NodeFigures()
    figures.called_together(0.5, [1, 0, 2], [0.0, 0.001, 2.0])
    other.called_together(0.5, [1], [2.0])
    figures.add(other)
    assert (figures.items, figures.outputs, figures.seconds) == (4, 4, 1.0)
    assert sum(figures.buckets.values()) == 2
    assert figures.batches == {3: 1, 1: 1}
    assert [inputs for _, inputs in figures.waits_by_seconds()] == [1, 1, 2]
    assert figures.wait_quantile(0.99) == pytest.approx(2.0, rel=0.1)
