"""A run whose report cannot be kept: whoever waits is told how it ended, and waits no longer."""

from pathlib import Path

import pytest

import videoflow as vf
from tests.engines.local_flows import Endless, Lines
from videoflow.clock import RealClock
from videoflow.engines.run_folder import list_runs
from videoflow.errors import OutputUnwritable

SECONDS = 40.0


@pytest.mark.parametrize("engine", ["threads", "local"])
def test_who_waits_learns_that_the_report_could_not_be_written(engine: str, tmp_path: Path) -> None:
    out = tmp_path / "out.txt"
    flow = vf.Flow([Lines(str(out), name="sink")(Endless(name="endless"))])
    handle = flow.start(engine, runs_folder=tmp_path / "runs")
    clock = RealClock()
    deadline = clock.monotonic() + SECONDS
    while not out.exists() or not out.read_text():
        assert handle.wait_for(0.02) is None
        assert clock.monotonic() < deadline
    (run,) = list_runs(tmp_path / "runs")
    run.report_path.mkdir()
    handle.stop()
    with pytest.raises(OutputUnwritable, match=r"report\.json of the run cannot be written") as refusal:
        handle.wait()
    assert refusal.value.effect == "the run itself ended as stopped"
    assert refusal.value.where == str(run.report_path)
