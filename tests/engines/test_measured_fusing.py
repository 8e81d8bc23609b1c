"""A profiled run is measured, the next one is fused by that, and every reader is told the same."""

import json
from pathlib import Path
from typing import Any

import pytest

import videoflow as vf
from tests.engines.measured_flows import COUNT, flow
from videoflow.engines import _costs
from videoflow.engines._costs import costs_of
from videoflow.graph import request_of
from videoflow.graph._compile import compile_flow
from videoflow.graph.report import RunReport, Verdict
from videoflow.graph.running import RunOptions, RunRequest
from videoflow.planner.plan import Plan


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home folder of its own: what one test measures is nothing to another."""
    monkeypatch.setenv("VIDEOFLOW_HOME", str(tmp_path / "home"))
    return tmp_path / "home"


def request(made: vf.Flow, **options: Any) -> RunRequest:
    return request_of(
        compile_flow(made._ends, made.name, str(made.folder), made.requirements), RunOptions(**options)
    )


def grouped(report: RunReport) -> dict[str, str]:
    return {node.node: node.task for node in report.nodes}


def ledger(report: RunReport) -> list[tuple[Any, ...]]:
    return [(e.parent, e.child, e.announced, e.delivered, e.skipped, e.closed) for e in report.edges]


@pytest.mark.parametrize("engine", ["threads", "local"])
def test_a_flow_that_is_fused_by_measurement_says_the_same_under_the_same_ids(
    engine: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in ("_threads_run", "local"):  # ids are made of the run's, which is another one each time
        monkeypatch.setattr(f"videoflow.engines.{module}.new_ulid", lambda *_: "01K1BBBBBBBBBBBBBBBBBBBBBB")
    made = flow(pace=True, beside=engine == "threads")  # a process less where each task is one
    apart = made.run(engine, profile=True, runs_folder=tmp_path / "apart")
    fused = made.run(engine, runs_folder=tmp_path / "fused")
    assert set(grouped(apart).values()) == set(grouped(apart))
    assert grouped(fused) == {**grouped(apart), "again": "odd", "counted": "odd"}
    assert fused.values == apart.values
    assert len(fused.values["slow"]) == COUNT // 2 + 1
    assert ledger(fused) == ledger(apart)


def test_who_turns_fusing_off_gets_each_node_by_itself() -> None:
    apart = flow().run(profile=True)
    assert grouped(flow().run(fuse=False)) == grouped(apart)


def test_what_was_measured_stays_where_the_measured_run_is_fused_itself() -> None:
    flow(pace=True).run(profile=True)
    before = costs_of(request(flow(pace=True)), "threads")
    fused = flow(pace=True).run(profile=True)
    after = costs_of(request(flow(pace=True)), "threads")
    assert fused.profile is not None
    assert before is not None
    assert after is not None
    assert after.run_id == fused.run_id
    assert after.nodes["again"].hops == before.nodes["again"].hops
    assert after.nodes["odd"].hops != before.nodes["odd"].hops


def test_a_run_that_is_not_profiled_leaves_nothing(home: Path) -> None:
    flow().run()
    assert not (home / "costs.json").exists()


def test_a_node_with_other_arguments_or_another_file_was_not_measured(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    flow().run(profile=True)
    found = costs_of(request(flow(more=3)), "threads")
    assert found is not None
    assert set(found.nodes) == {"numbers", "counted", "slow", "kept"}
    monkeypatch.setattr(_costs, "_content", lambda path: b"changed")
    assert costs_of(request(flow()), "threads") is None


@pytest.mark.parametrize("content", [b"", b"{", b"[1, 2]", b'{"schema": 9}', b'{"flows": [{"run_id": 3}]}'])
def test_a_damaged_file_counts_as_nothing_measured(content: bytes, home: Path) -> None:
    home.mkdir()
    (home / "costs.json").write_bytes(content)
    assert costs_of(request(flow()), "threads") is None


def test_a_damaged_file_is_replaced(home: Path) -> None:
    home.mkdir()
    (home / "costs.json").write_bytes(b"{")
    assert flow().run(profile=True).verdict is Verdict.COMPLETE
    assert costs_of(request(flow()), "threads") is not None


def test_a_file_that_cannot_be_written_fails_no_run(home: Path) -> None:
    (home / "costs.json").mkdir(parents=True)
    assert flow().run(profile=True).verdict is Verdict.COMPLETE


def test_the_flows_measured_longest_ago_are_forgotten(home: Path) -> None:
    home.mkdir()
    others = [
        {"folder": "/", "flow_id": f"other-{number}", "engine": "threads", "run_id": "01RUN"}
        for number in range(64)
    ]
    (home / "costs.json").write_text(json.dumps({"flows": others}))
    flow().run(profile=True)
    kept = [each["flow_id"] for each in json.loads((home / "costs.json").read_bytes())["flows"]]
    assert kept == [*(f"other-{number}" for number in range(1, 64)), "measured"]


def test_a_run_goes_on_in_the_tasks_in_which_it_was_stopped(home: Path, tmp_path: Path) -> None:
    flow(pace=True).run(profile=True)
    document = (home / "costs.json").read_text()
    options: dict[str, Any] = {"engine": "threads", "runs_folder": tmp_path / "runs"}
    first = flow(pace=True).start(**options)
    first.stop(resumable=True)
    stopped = first.wait()
    (home / "costs.json").unlink()
    assert stopped.resumable, stopped.gaps
    went_on = flow(pace=True).run(resume=stopped.run_id, **options)
    assert grouped(went_on)["counted"] == "odd"
    plan = Plan.from_json((Path(went_on.folder) / "plan.json").read_bytes())
    assert plan.costs is not None
    assert plan.costs.run_id in document
    assert went_on.verdict is Verdict.COMPLETE
    assert len(went_on.values["slow"]) == COUNT // 2 + 1
