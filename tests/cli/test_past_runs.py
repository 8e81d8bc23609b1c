"""`runs`, `stop` and `gc`: what they say of runs that go on, have ended, or lost their supervisor."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.helpers import NEWER, OLDER, command, finished_run, letter, lost_run, put_letters, records
from videoflow.backends.runtime import Desired
from videoflow.engines.run_folder import RunFolder, RunState, claim_outputs
from videoflow.graph.report import RunReport, Verdict
from videoflow.graph.spec import FlowSpec

Capture = pytest.CaptureFixture[str]


def test_runs_lists_the_newest_first(capfd: Capture) -> None:
    finished_run(OLDER, Verdict.INCOMPLETE)
    RunFolder.create(None, NEWER, engine="threads", flow_id="doors")
    ending = command(capfd, "runs")
    assert ending.status == 0
    heads, newer, older = (line.split() for line in ending.out.splitlines())
    assert heads == ["run", "flow", "engine", "state", "started", "time"]
    assert newer[:4] == [NEWER, "doors", "threads", "running"]
    assert older[:4] == [OLDER, "people", "local", "incomplete"]
    assert older[-2:] == ["7.2", "s"]


def test_runs_as_json_holds_state_and_verdict(capfd: Capture) -> None:
    finished_run(OLDER)
    lost_run(NEWER)
    newer, older = json.loads(command(capfd, "runs", "--json").out)
    assert (newer["id"], newer["state"], newer["verdict"], newer["seconds"]) == (NEWER, "lost", None, None)
    assert (older["id"], older["state"], older["verdict"], older["seconds"]) == (
        OLDER,
        "finished",
        "complete",
        7.25,
    )
    assert older["started_at"].startswith("2024-10")


def test_runs_can_be_limited_and_says_how_many_are_left_out(capfd: Capture) -> None:
    for run_id in (OLDER, NEWER):
        finished_run(run_id)
    ending = command(capfd, "runs", "--limit", "1")
    assert NEWER in ending.out
    assert OLDER not in ending.out
    assert "1 older run" in ending.err


def test_one_run_is_shown_as_it_ended(capfd: Capture) -> None:
    folder = finished_run(OLDER, Verdict.INCOMPLETE)
    folder.write_spec(FlowSpec(flow_id="people", folder="/", nodes=(), edges=()))
    finished_run(NEWER)
    ending = command(capfd, "runs", OLDER)
    assert ending.status == 0
    assert ending.out.startswith("people: incomplete after 7.2 s on local")
    assert "error VF-UNOBSERVABLE" in ending.out
    assert command(capfd, "runs", "last").out.startswith("people: complete")
    assert json.loads(command(capfd, "runs", OLDER, "--json").out)["run_id"] == OLDER


def test_a_run_without_a_report_says_what_to_do(capfd: Capture) -> None:
    RunFolder.create(None, NEWER, engine="threads", flow_id="doors")
    going_on = command(capfd, "runs", NEWER)
    lost_run(OLDER)
    lost = command(capfd, "runs", OLDER)
    assert (going_on.status, lost.status) == (2, 2)
    assert "it has not ended" in going_on.err
    assert "videoflow gc" in lost.err


def test_runs_of_another_folder(capfd: Capture, tmp_path: Path) -> None:
    RunFolder.create(tmp_path / "mine", NEWER)
    assert NEWER in command(capfd, "runs", "--run-dir", str(tmp_path / "mine")).out
    ending = command(capfd, "runs")
    assert (ending.status, ending.out) == (0, "")
    assert "no runs in" in ending.err


def test_stop_raises_the_desired_state_step_by_step(capfd: Capture) -> None:
    folder = RunFolder.create(None, NEWER)
    with records(folder) as (runtime, deadline):
        first = command(capfd, "stop", NEWER[:6])
        assert (first.status, runtime.desired(deadline=deadline)) == (0, Desired.STOP)
        assert "drains" in first.err
        second = command(capfd, "stop")
        assert (second.status, runtime.desired(deadline=deadline)) == (0, Desired.ABORT)
        assert "without draining" in second.err


def test_stop_signals_a_run_that_keeps_no_records_and_listens(capfd: Capture) -> None:
    code = (
        "import signal, sys\n"
        "from videoflow.engines.run_folder import RunFolder\n"
        "signal.signal(signal.SIGTERM, lambda *_: sys.exit(7))\n"
        f"RunFolder.create(None, {NEWER!r}).note_signals()\n"
        "print('ready', flush=True)\n"
        "signal.pause()\n"
    )
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == "ready\n"
        assert command(capfd, "stop", "last").status == 0
        assert child.wait(timeout=20) == 7


def test_stop_does_not_signal_a_program_that_would_die_of_it(
    capfd: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    RunFolder.create(None, NEWER)
    monkeypatch.setattr(os, "kill", lambda *_: pytest.fail("it was signalled"))
    ending = command(capfd, "stop", "last")
    assert ending.status == 2
    assert "cannot be stopped from here" in ending.err


def test_stop_refuses_what_does_not_run(capfd: Capture) -> None:
    ended = finished_run(OLDER, Verdict.FAILED)
    lost_run(NEWER)
    assert "has ended already (failed)" in command(capfd, "stop", ended.run_id).err
    assert "videoflow gc" in command(capfd, "stop", NEWER).err
    ending = command(capfd, "stop")
    assert ending.status == 2
    assert "nothing is running here" in ending.err


def test_gc_marks_a_lost_run_as_failed_and_keeps_what_is_known_of_it(capfd: Capture) -> None:
    folder = lost_run(NEWER, more="(folder.path / '.plan.json.99.tmp').write_text('half')")
    put_letters(folder, letter(318))
    assert folder.state() is RunState.LOST
    ending = command(capfd, "gc")
    assert (ending.status, ending.out) == (0, f"marked {NEWER} failed (supervisor lost)\n")
    report = folder.report()
    assert report is not None
    assert (report.verdict, report.exit_status, report.flow_id) == (Verdict.FAILED, 4, "people")
    assert report.failure is not None
    assert report.failure.message == "supervisor lost"
    assert [dead.label for dead in report.dead_letters] == ["318-7f3a"]
    assert report.edges == [], "figures that nobody knows are not made up"
    assert any("ledger is unknown" in gap.what for gap in report.gaps)
    assert sorted(path.name for path in folder.path.iterdir()) == [
        "logs",
        "report.json",
        "run.sqlite",
        "supervisor.json",
    ]
    assert "failed" in command(capfd, "runs").out
    assert "nothing to clean up" in command(capfd, "gc").err


def test_gc_with_dry_run_changes_nothing(capfd: Capture) -> None:
    folder = lost_run(NEWER)
    finished_run(OLDER)
    ending = command(capfd, "gc", "--dry-run", "--older-than", "1 d")
    assert ending.out.splitlines() == [
        f"would mark {NEWER} failed (supervisor lost)",
        f"would remove {NEWER}",
        f"would remove {OLDER}",
    ]
    assert folder.state() is RunState.LOST


def test_gc_removes_only_ended_runs_that_are_old_enough(capfd: Capture) -> None:
    old, running = finished_run(OLDER), RunFolder.create(None, "01JAAAAAAAAAAAAAAAAAAAAAAB")
    ending = command(capfd, "gc", "--older-than", "7 d")
    assert ending.out == f"removed {OLDER}\n"
    assert (old.path.exists(), running.path.exists()) == (False, True)


def test_gc_cleans_up_after_the_other_runs_where_one_cannot_be_marked(capfd: Capture) -> None:
    lost_run(OLDER)
    broken = lost_run(NEWER)
    broken.report_path.with_name(f".report.json.{os.getpid()}.tmp").mkdir()
    ending = command(capfd, "gc")
    assert ending.status == 3
    assert ending.err.startswith(f"error VF-OUTPUT  run {NEWER} cannot be marked as failed\n")
    assert ending.out == f"marked {OLDER} failed (supervisor lost)\n"


def test_gc_marks_a_lost_run_whose_documents_are_folders(capfd: Capture) -> None:
    lost = lost_run(OLDER)
    for path in (lost.spec_path, lost.store_path):
        path.unlink(missing_ok=True)
        path.mkdir()
    ending = command(capfd, "gc")
    assert (ending.status, ending.err) == (0, "")
    report = lost.report()
    assert report is not None
    assert {gap.where for gap in report.gaps} >= {"spec.json", "run.sqlite"}


def test_gc_drops_stale_claims_and_leaves_those_that_are_held(
    capfd: Capture, tmp_path: Path, home: Path
) -> None:
    lost_run(
        NEWER,
        more="from videoflow.engines.run_folder import claim_outputs; from pathlib import Path;"
        f"claims = claim_outputs([Path({str(tmp_path)!r}, 'lost.mp4')], {NEWER!r})",
    )
    with claim_outputs([tmp_path / "held.mp4"], OLDER):
        ending = command(capfd, "gc")
        assert "dropped 1 stale claim on outputs" in ending.out
        assert len(list((home / "outputs").iterdir())) == 1


def test_gc_refuses_an_age_that_is_none(capfd: Capture) -> None:
    ending = command(capfd, "gc", "--older-than", "soon")
    assert ending.status == 2
    assert ending.err.startswith("error VF-ARGUMENT  'soon' is not a duration\n")


def test_a_report_survives_as_json() -> None:
    folder = finished_run(NEWER)
    assert RunReport.from_json(folder.report_path.read_bytes()) == folder.report()
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
