"""A profiled run is measured, the next one is fused by that, and every reader is told the same."""

import json
from pathlib import Path
from typing import Any, Unpack

import pytest

import videoflow as vf
from tests.engines.flows import Numbers
from videoflow.engines import _costs
from videoflow.engines._costs import costs_of
from videoflow.graph import request_of
from videoflow.graph._compile import compile_flow
from videoflow.graph.report import RunReport, Verdict
from videoflow.graph.running import RunOptions, RunRequest
from videoflow.planner.plan import Plan

STEPS = 60_000


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home folder of its own: what one test measures is nothing to another."""
    monkeypatch.setenv("VIDEOFLOW_HOME", str(tmp_path / "home"))
    return tmp_path / "home"


class Odd(vf.Processor):
    """Passes odd numbers on, adding some."""

    def __init__(self, more: int = 2, **options: Unpack[vf.NodeOptions]) -> None:
        super().__init__(**options)
        self.more = more

    def process(self, number: int) -> Any:
        return number + self.more if number % 2 else vf.SKIP


class Counted(vf.Processor):
    """How many came so far, and what came; at the end, the sum."""

    def process(self, number: int, ctx: vf.Context) -> dict[str, int]:
        count = ctx.state.get("count", 0) + 1
        ctx.state["count"] = count
        ctx.state["sum"] = ctx.state.get("sum", 0) + number
        return {"count": count, "number": number}

    def flush(self, ctx: vf.Context) -> vf.Out:
        return vf.Out({"sum": ctx.state["sum"]})


class Slow(vf.Consumer):
    """Sets the pace, and keeps what it was told, under which id."""

    collects = True

    def consume(self, value: dict[str, int], ctx: vf.Context) -> None:
        assert sum(range(STEPS))
        number = len(ctx.state)
        ctx.state[f"row/{number:08d}"] = [ctx.input_id, ctx.ordinal, ctx.source, value]


class Kept(vf.Consumer):
    """Keeps what it was told, under which id."""

    collects = True

    def consume(self, value: Any, ctx: vf.Context) -> None:
        number = len(ctx.state)
        ctx.state[f"row/{number:08d}"] = [ctx.input_id, ctx.ordinal, ctx.source, value]


def flow(source: vf.Node | None = None, *, more: int = 2) -> vf.Flow:
    """Three cheap steps, a slow sink, and another reader of the source."""
    numbers = source or Numbers(120, name="numbers")
    odd = Odd(more, name="odd")(numbers)
    again = Odd(more * 2, name="again")(odd)
    counted = Counted(name="counted")(again)
    return vf.Flow([Slow(name="slow", fuse=False)(counted), Kept(name="kept")(numbers)], name="measured")


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
    apart = flow().run(engine, profile=True, runs_folder=tmp_path / "apart")
    fused = flow().run(engine, runs_folder=tmp_path / "fused")
    assert set(grouped(apart).values()) == set(grouped(apart))
    assert grouped(fused) == {**grouped(apart), "again": "odd", "counted": "odd"}
    assert fused.values == apart.values
    assert len(fused.values["slow"]) == 61
    assert ledger(fused) == ledger(apart)


def test_who_turns_fusing_off_gets_each_node_by_itself() -> None:
    apart = flow().run(profile=True)
    assert grouped(flow().run(fuse=False)) == grouped(apart)


def test_what_was_measured_stays_where_the_measured_run_is_fused_itself() -> None:
    flow().run(profile=True)
    before = costs_of(request(flow()), "threads")
    fused = flow().run(profile=True)
    after = costs_of(request(flow()), "threads")
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


def test_another_engine_was_not_measured() -> None:
    flow().run(profile=True)
    assert costs_of(request(flow()), "local") is None


@pytest.mark.parametrize("content", [b"", b"{", b"[1, 2]", b'{"schema": 9}', b'{"flows": [{"run_id": 3}]}'])
def test_a_damaged_file_counts_as_nothing_measured(content: bytes, home: Path) -> None:
    home.mkdir()
    (home / "costs.json").write_bytes(content)
    assert costs_of(request(flow()), "threads") is None
    assert flow().run(profile=True).verdict is Verdict.COMPLETE
    assert costs_of(request(flow()), "threads") is not None


def test_a_file_that_cannot_be_written_fails_no_run(home: Path) -> None:
    (home / "costs.json").mkdir(parents=True)
    assert flow().run(profile=True).verdict is Verdict.COMPLETE


def test_the_flows_measured_longest_ago_are_forgotten(home: Path) -> None:
    flow().run(profile=True)
    document = json.loads((home / "costs.json").read_bytes())
    [one] = document["flows"]
    document["flows"] = [{**one, "flow_id": f"other-{number}"} for number in range(64)]
    (home / "costs.json").write_text(json.dumps(document))
    flow().run(profile=True)
    kept = [each["flow_id"] for each in json.loads((home / "costs.json").read_bytes())["flows"]]
    assert kept == [*(f"other-{number}" for number in range(1, 64)), "measured"]


def test_a_run_goes_on_in_the_tasks_in_which_it_was_stopped(home: Path, tmp_path: Path) -> None:
    flow().run(profile=True)
    document = (home / "costs.json").read_text()
    options: dict[str, Any] = {"engine": "threads", "runs_folder": tmp_path / "runs"}
    source = Numbers(120, name="numbers")
    first = flow(source).start(**options)
    first.stop(resumable=True)
    stopped = first.wait()
    (home / "costs.json").unlink()
    assert stopped.resumable, stopped.gaps
    went_on = flow(Numbers(120, name="numbers")).run(resume=stopped.run_id, **options)
    assert grouped(went_on)["counted"] == "odd"
    plan = Plan.from_json((Path(went_on.folder) / "plan.json").read_bytes())
    assert plan.costs is not None
    assert plan.costs.run_id in document
    assert went_on.verdict is Verdict.COMPLETE
    assert len(went_on.values["slow"]) == 61
