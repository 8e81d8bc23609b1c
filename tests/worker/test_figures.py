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
