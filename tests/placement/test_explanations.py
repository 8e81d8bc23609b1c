"""What an explanation says: the first failing test on each host, needed against free."""

import json

import pytest

from tests.placement.crowded import crowded
from tests.placement.small import problem
from tests.placement.test_catalogue import A100, H100, host
from tests.placement.test_solver import plain
from videoflow.placement import Demand, Host, Kind, Operator, Problem, Rule, explain, solve

GIB = 1 << 30
EXPLAINED: dict[str, tuple[Host, Demand, tuple[str, object, object]]] = {
    "excluded": (
        plain("a", 1, excluded="owned by DRA"),
        Demand("d"),
        ("excluded", "a host that may be used", "owned by DRA"),
    ),
    "sharing": (plain("a", 1, sharing="mps"), Demand("d"), ("sharing", "whole", "mps")),
    "rule": (
        plain("a", 1, facts={"zone": "x"}),
        Demand("d", rules=(Rule("zone", Operator.IN, ("y",)),)),
        ("rule zone", 1, 0),
    ),
    "devices": (plain("a", 1), Demand("d", count=2), ("devices", 2, 1)),
    "memory": (plain("a", 1), Demand("d", memory_bytes=20 * GIB), ("memory", 20 * GIB, 16 * GIB)),
    "label": (
        host("a", H100, 1),
        Demand("d", Kind.SLICE, memory_bytes=10 * GIB, profiles=("1g.10gb",)),
        ("memory", 10 * GIB, 9984 << 20),
    ),
    "cpu": (plain("a", 1, free_millicores=500), Demand("d", millicores=600), ("cpu", 600, 500)),
    "host memory": (plain("a", 1), Demand("d", host_memory_bytes=1), ("host memory", 1, 0)),
    "room": (plain("a", 1), Demand("d", Kind.SHARE, peak_bytes=16 * GIB), ("room", 16 * GIB, 15 * GIB)),
    "slices": (
        host("a", A100, 1),
        Demand("d", Kind.SLICE, count=3, memory_bytes=19 * GIB),
        ("room", 3, 2),
    ),
    "peer": (plain("a", 2), Demand("d", count=2, peer=True), ("peer", 2, 1)),
}


@pytest.mark.parametrize("name", EXPLAINED)
def test_the_first_failing_test_is_named_with_what_was_needed_and_free(name: str) -> None:
    where, demand, wanted = EXPLAINED[name]
    asked = Problem((where,), (demand,))
    said = explain(asked, solve(asked))
    (row,) = said.rows
    (verdict,) = row.verdicts
    assert (verdict.test, verdict.needed, verdict.free) == wanted
    assert not verdict.beside
    assert f"a: {wanted[0]}: needs " in said.text()


def test_an_explanation_tells_what_was_placed_and_what_stands_in_the_way() -> None:
    asked = Problem((plain("a", 2),), (Demand("d", count=2), Demand("e")))
    said = explain(asked, solve(asked))
    lines = said.text().splitlines()
    assert lines[0] == "placement: optimal"
    assert any("refused" in line for line in lines)
    assert any("beside what is admitted" in line for line in lines)
    assert json.loads(json.dumps(said.to_dict()))["rows"][1]["demand"] == "e"


def test_the_explanation_of_any_answer_gives_a_failing_test_for_each_refusal_on_each_host() -> None:
    for seed in range(9000, 9060):
        asked = problem(seed)
        said = explain(asked, solve(asked, budget=1_000_000))
        for row in said.rows:
            assert row.host is not None or [v.host for v in row.verdicts] == [h.name for h in asked.hosts]
            assert all(verdict.test != "fits" for verdict in row.verdicts)


def test_what_is_not_proven_is_said_not_to_be_with_what_was_reached_and_what_is_bound() -> None:
    asked = crowded(0, 58)
    answer = solve(asked, budget=3, relax=False)
    said = explain(asked, answer)
    assert said.gap is not None
    assert f"placement: unproven (refused {said.gap[1]}, bound {said.gap[2]})" in said.text()
    assert "refused (not proven, beside the others as they are)" in said.text()
