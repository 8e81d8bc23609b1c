"""Inputs are really given to a node together, on every engine, and fail alone."""

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

import videoflow as vf
from tests.engines.batch_flows import LargeSums, Pictures, Sums
from tests.engines.flows import Rows
from videoflow.graph.report import RunReport, Verdict

LONG_SECONDS = 60.0  # nobody may need to wait so long
POISON: dict[str, Any] = {"on_error": {"ValueError": "poison"}}


def total(number: int, every: int = 2) -> int:
    """What the picture of a number adds up to."""
    return number * 2 * (1 + (number % every == 1))


def run(source: Pictures, node: Sums, engine: str, folder: Path) -> RunReport:
    flow = vf.Flow([Rows(name="rows")(node(source))])
    report = flow.run(engine) if engine == "threads" else flow.run(engine, runs_folder=folder)
    assert all(edge.closed for edge in report.edges), report.edges
    assert not [edge.detail for edge in report.edges if edge.detail]
    return report


@pytest.mark.parametrize("engine", ["threads", "local"])
def test_a_call_gets_as_many_as_it_may_have_where_they_come(engine: str, tmp_path: Path) -> None:
    node = Sums(batch=vf.Batch(8, LONG_SECONDS), name="sums")
    report = run(Pictures(43, 1, name="source"), node, engine, tmp_path)
    assert report.verdict is Verdict.COMPLETE
    assert report.values["rows"] == [[2 * number, 8 if number < 40 else 3] for number in range(43)]
    (figures,) = [each for each in report.nodes if each.node == "sums"]
    assert (figures.items, figures.outputs) == (43, 43)
    assert figures.batches is not None
    assert (figures.batches.sizes, figures.batches.calls) == ({3: 1, 8: 5}, 6)
    assert sum(inputs for _, inputs in figures.batches.waits) == 43


def test_shapes_are_kept_apart_and_a_bad_one_fails_alone(tmp_path: Path) -> None:
    node = Sums(21, batch=vf.Batch(8, LONG_SECONDS, "shape"), name="sums", **POISON)
    report = run(Pictures(name="source"), node, "threads", tmp_path)
    assert report.verdict is Verdict.INCOMPLETE
    assert [row[0] for row in report.values["rows"]] == [total(n) for n in range(40) if n != 21]
    assert max(row[1] for row in report.values["rows"]) > 1
    assert [letter.origin.rpartition("/")[2] for letter in report.dead_letters] == ["21"]


@pytest.mark.parametrize("engine", ["threads", "local"])
def test_a_window_that_is_used_up_is_not_waited_for(engine: str, tmp_path: Path) -> None:
    """Inputs of one shape are answered, and no more come until the one of the other shape is, too."""
    node = LargeSums(batch=vf.Batch(4, LONG_SECONDS / 4, "shape"), name="sums")
    report = run(Pictures(8, 4, name="source"), node, engine, tmp_path)
    assert [row[0] for row in report.values["rows"]] == [total(n, 4) for n in range(8)]
    assert max(row[1] for row in report.values["rows"]) > 1
    (found,) = [each.batches for each in report.nodes if each.node == "sums"]
    assert found is not None
    assert found.waits[-1][0] < LONG_SECONDS / 4, "somebody waited in vain"


def test_who_kills_a_process_takes_no_other_input_along(tmp_path: Path) -> None:
    node = Sums(kills=21, batch=vf.Batch(8, LONG_SECONDS), name="sums", replicas=2, retries=1)
    report = run(Pictures(64, 1, name="source"), node, "local", tmp_path)
    assert [row[0] for row in report.values["rows"]] == [2 * n for n in range(64) if n != 21]
    assert [letter.origin.rpartition("/")[2] for letter in report.dead_letters] == ["21"]
    assert Counter(row[1] for row in report.values["rows"])[8] >= 8
