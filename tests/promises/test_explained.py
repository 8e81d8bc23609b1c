"""`explain` and the engine agree: what is shown before a run is, to the byte, what the run then keeps."""

from pathlib import Path

import pytest

from tests.promises.commands import command
from videoflow.planner.plan import Plan

ROOT = Path(__file__).resolve().parents[2]
FLOW = str(Path(__file__).parent / "planned.py")


@pytest.mark.parametrize("engine", ["threads", "local"])
def test_explain_shows_the_plan_that_is_run(
    engine: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    words = (FLOW, "--count", "30", "--engine", engine, "--memory-bytes", "64 MiB")
    explained = command(tmp_path, "explain", *words, "--json")
    assert explained.status == 0, explained.err
    assert explained.made == frozenset()
    ran = command(tmp_path, "run-local", *words)
    assert ran.status == 0, ran.err
    kept = (ran.run_folder() / "plan.json").read_bytes()
    assert explained.out.encode() == kept + b"\n"
    plan = Plan.from_json(kept)
    assert {task.mode.value for task in plan.tasks} == {"source", "competing", "ordered", "join"}
    assert {edge.transport.value for edge in plan.edges} >= {"fused"}
    again = command(tmp_path, "explain", *words)
    assert all(task.name in again.out for task in plan.tasks)
