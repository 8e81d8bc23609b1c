"""Run folders: what a person finds there, who is alive, and that two runs never write one path."""

import os
import signal
from pathlib import Path

import msgspec
import pytest

from tests.cli.helpers import another_process
from videoflow.engines.run_folder import (
    RunFolder,
    RunState,
    claim_outputs,
    find_run,
    list_runs,
    outputs_of,
    runs_folder,
    write_atomically,
)
from videoflow.errors import OutputUnwritable, UsageError
from videoflow.graph.report import RunReport, Verdict
from videoflow.graph.spec import CodeKind, FlowSpec, NodeKind, NodeSpec, TraitsSpec
from videoflow.processes import is_alive, this_process

OLDER, NEWER = "01K1AAAAAAAAAAAAAAAAAAAAAA", "01K1BBBBBBBBBBBBBBBBBBBBBB"


def report(run_id: str) -> RunReport:
    return RunReport(run_id=run_id, flow_id="f", engine="local", verdict=Verdict.COMPLETE, exit_status=0)


def test_the_home_is_the_variable_else_the_state_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, home: Path
) -> None:
    assert runs_folder() == home / "runs"
    monkeypatch.delenv("VIDEOFLOW_HOME")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    assert runs_folder() == tmp_path / "state" / "videoflow" / "runs"
    monkeypatch.setenv("XDG_STATE_HOME", "relative/is/not/allowed")
    monkeypatch.setenv("HOME", str(tmp_path / "someone"))
    assert runs_folder() == tmp_path / "someone" / ".local" / "state" / "videoflow" / "runs"
    assert runs_folder(Path("here")) == Path.cwd() / "here"


def test_a_run_lives_until_its_report_is_written() -> None:
    folder = RunFolder.create(None, OLDER, engine="local", flow_id="f")
    assert folder.logs_path.is_dir()
    assert folder.state() is RunState.RUNNING
    assert folder.report() is None
    folder.write_report(report(OLDER))
    assert folder.state() is RunState.FINISHED
    assert folder.report() == report(OLDER)
    assert not list(folder.path.glob(".*"))


def test_a_run_whose_supervisor_was_killed_is_lost(tmp_path: Path) -> None:
    create = (
        "from pathlib import Path; from videoflow.engines.run_folder import RunFolder;"
        f"RunFolder.create(Path({str(tmp_path)!r}), {OLDER!r})"
    )
    with another_process(create) as child:
        folder = find_run(OLDER, tmp_path)
        assert folder.state() is RunState.RUNNING
        os.kill(child.pid, signal.SIGKILL)
        os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
        assert folder.state() is RunState.LOST, "a process that waits to be reaped is dead"
    assert folder.state() is RunState.LOST


def test_a_recycled_process_number_is_not_the_supervisor() -> None:
    me = this_process()
    assert is_alive(me) is True
    assert is_alive(msgspec.structs.replace(me, started="1")) is False


def test_a_supervisor_elsewhere_is_neither_alive_nor_dead() -> None:
    folder = RunFolder.create(None, OLDER)
    supervisor = folder.supervisor()
    assert supervisor is not None
    elsewhere = msgspec.structs.replace(supervisor.process, place="another boot/pid:[1]")
    moved = msgspec.structs.replace(supervisor, process=elsewhere)
    write_atomically(folder.supervisor_path, msgspec.json.encode(moved))
    assert folder.state() is RunState.UNKNOWN
    folder.write_report(report(OLDER))
    assert folder.state() is RunState.FINISHED


def test_a_place_that_is_no_folder_is_refused_with_nothing_left(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(OutputUnwritable) as caught:
        RunFolder.create(tmp_path / "file", OLDER)
    assert caught.value.exit_status == 3
    assert "--run-dir" in caught.value.remedy
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_the_newest_run_comes_first_and_strangers_are_not_runs(home: Path) -> None:
    for run_id in (OLDER, NEWER):
        RunFolder.create(None, run_id)
    (home / "runs" / "not-a-run").mkdir()
    assert [run.run_id for run in list_runs()] == [NEWER, OLDER]
    assert list_runs(home / "nowhere") == []


@pytest.mark.parametrize("text", [NEWER, NEWER.lower(), "01k1b", "BBBB", "last"])
def test_a_run_is_found_by_part_of_its_name(text: str) -> None:
    for run_id in (OLDER, NEWER):
        RunFolder.create(None, run_id)
    assert find_run(text).run_id == NEWER


@pytest.mark.parametrize(("text", "said"), [("01K1", "names 2 runs"), ("XYZ", "no run"), ("", "no run")])
def test_a_name_that_means_no_run_or_several_is_refused(text: str, said: str) -> None:
    for run_id in (OLDER, NEWER):
        RunFolder.create(None, run_id)
    with pytest.raises(UsageError, match=said):
        find_run(text)


def test_a_failed_write_leaves_the_old_content_and_no_part(tmp_path: Path) -> None:
    target = tmp_path / "folder"
    target.mkdir()
    (target / "kept").write_text("old")
    with pytest.raises(OSError, match="directory"):
        write_atomically(target, b"new")
    assert [path.name for path in tmp_path.iterdir()] == ["folder"]


def test_two_runs_do_not_write_one_path(tmp_path: Path) -> None:
    video, log = tmp_path / "a.mp4", tmp_path / "log.jsonl"
    with claim_outputs([video, log], OLDER):
        with pytest.raises(UsageError, match=f"log.jsonl is being written by run {OLDER}"):
            claim_outputs([tmp_path / "other.mp4", tmp_path / "sub" / ".." / "log.jsonl"], NEWER)
        claim_outputs([tmp_path / "other.mp4"], NEWER).release()  # the refused call kept nothing
    claim_outputs([video, log], NEWER).release()


def test_a_claim_of_a_killed_run_hinders_nobody(tmp_path: Path, home: Path) -> None:
    claim = (
        "from pathlib import Path; from videoflow.engines.run_folder import claim_outputs;"
        f"claims = claim_outputs([Path({str(tmp_path)!r}, 'a.mp4')], {OLDER!r})"
    )
    with another_process(claim) as child:
        with pytest.raises(UsageError, match=OLDER):
            claim_outputs([tmp_path / "a.mp4"], NEWER)
        child.kill()
        child.wait()
    claim_outputs([tmp_path / "a.mp4"], NEWER).release()
    assert list((home / "outputs").iterdir()) == []


def test_a_path_written_twice_by_one_flow_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"two nodes of this flow write a\.mp4"):
        claim_outputs([tmp_path / "a.mp4", tmp_path / "x" / ".." / "a.mp4"], OLDER)


def test_an_output_below_a_file_is_refused_before_anything_starts(tmp_path: Path, home: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(OutputUnwritable, match="is not a folder"):
        claim_outputs([tmp_path / "file" / "sub" / "a.mp4"], OLDER)
    assert not home.exists()


def test_a_pipe_in_the_place_of_an_output_is_refused(tmp_path: Path, home: Path) -> None:
    os.mkfifo(tmp_path / "rows.jsonl")
    with pytest.raises(OutputUnwritable, match=r"rows\.jsonl cannot be written: it is a pipe"):
        claim_outputs([tmp_path / "rows.jsonl"], OLDER)
    assert not home.exists()


@pytest.mark.parametrize(
    "name", ["x" * 300 + ".jsonl", "loop/rows.jsonl", "a\0b.jsonl"], ids=["long", "loop", "null"]
)
def test_a_name_that_no_file_can_have_is_refused_as_an_output(tmp_path: Path, home: Path, name: str) -> None:
    (tmp_path / "loop").symlink_to("loop")
    with pytest.raises(OutputUnwritable, match="cannot be written") as caught:
        claim_outputs([tmp_path / name], OLDER)
    assert caught.value.cause
    assert len(caught.value.block()) < 1000
    assert not home.exists()


def test_outputs_are_relative_to_the_folder_of_the_flow(tmp_path: Path) -> None:
    sink = NodeSpec(
        name="s",
        kind=NodeKind.CONSUMER,
        code=CodeKind.MODULE,
        module="m",
        qualname="S",
        traits=TraitsSpec(outputs=("a.mp4", "rtmp://host/live", str(tmp_path / "b.mp4"))),
    )
    spec = FlowSpec(flow_id="f", folder="/flows", nodes=(sink,), edges=())
    assert outputs_of(spec) == (Path("/flows/a.mp4"), tmp_path / "b.mp4")
