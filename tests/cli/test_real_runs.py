"""Real runs from the command line, in threads and in processes: what is left, shown and returned."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import videoflow as vf
from tests.cli.helpers import command
from videoflow.engines.run_folder import RunFolder, RunState, claim_outputs, list_runs
from videoflow.graph.report import RunReport, Verdict
from videoflow.nodes import Collect, SyntheticScene
from videoflow.planner.plan import Plan

Capture = pytest.CaptureFixture[str]
FLOW = str(Path(__file__).parent / "flows.py")
ENGINES = ["threads", "local"]


def environment() -> dict[str, str]:
    return {**os.environ, "PYTHONUNBUFFERED": "1"}


@contextmanager
def running(engine: str, *words: str) -> Iterator[subprocess.Popen[str]]:
    """A run in a process of its own, of which the first item has come through."""
    arguments = [sys.executable, "-m", "videoflow", "run-local", FLOW, "--engine", engine, *words]
    with subprocess.Popen(
        arguments, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=environment()
    ) as child:
        try:
            assert child.stdout is not None
            assert any("seen 7" in line for line in child.stdout)
            yield child
        finally:
            if child.poll() is None:
                child.kill()


def the_run() -> RunFolder:
    (folder,) = list_runs()
    return folder


def the_report() -> RunReport:
    report = the_run().report()
    assert report is not None
    return report


@pytest.mark.parametrize("engine", ENGINES)
def test_a_run_leaves_its_documents_and_what_it_printed_is_seen(engine: str, capfd: Capture) -> None:
    ending = command(capfd, "run-local", FLOW, "--engine", engine)
    assert ending.status == 0
    assert "real: complete" in ending.err
    assert "seen 57" in ending.out + ending.err
    folder = the_run()
    assert folder.state() is RunState.FINISHED
    assert {"spec.json", "plan.json", "report.json", "supervisor.json"} <= {
        p.name for p in folder.path.iterdir()
    }
    assert the_report().folder == str(folder.path)
    assert f" {engine} " in command(capfd, "runs").out


@pytest.mark.parametrize("engine", ENGINES)
def test_explain_shows_the_plan_that_the_engine_ran(engine: str, capfd: Capture) -> None:
    assert command(capfd, "run-local", FLOW, "--engine", engine, "--memory-bytes", "1 GiB").status == 0
    ran = Plan.from_json(the_run().plan_path.read_bytes())
    words = ("explain", FLOW, "--engine", engine, "--memory-bytes", "1 GiB")
    explained = Plan.from_json(command(capfd, *words, "--json").out.encode())
    assert explained == ran
    text = command(capfd, *words).out
    for task in ran.tasks:
        assert all(why in text for why in task.why)
    for channel in ran.channels:
        assert channel.why in text
    diagram = command(capfd, *words, "--mermaid").out
    assert diagram.startswith("flowchart LR\n")
    assert diagram.count("-->") == len(ran.edges)


@pytest.mark.parametrize("engine", ENGINES)
def test_a_poisonous_input_is_put_aside_listed_and_shown(engine: str, capfd: Capture) -> None:
    ending = command(capfd, "run-local", FLOW, "--engine", engine, "--trouble", "raise")
    assert ending.status == 1
    block = ending.err[ending.err.index("error VF-") :].splitlines()
    label = block[2].split()[6].rstrip(";")
    assert block == [
        "error VF-NODE-FAILED  node trouble, item 33 of numbers (1.320 s), attempt 2 of 2",
        block[1],
        f"  effect   put aside as dead letter {label}; 99 of 100 items completed; verdict incomplete",
        f"  remedy   videoflow dead-letters show {label}; mend the node and run again",
    ]
    assert block[1].startswith("  cause    ValueError: expected no 33        flows.py:")
    assert label in command(capfd, "dead-letters", "list").out
    shown = command(capfd, "dead-letters", "show", label).out
    assert "numbers: 33" in shown
    assert "ValueError: expected no 33" in shown
    accepted = command(
        capfd, "run-local", FLOW, "--engine", engine, "--trouble", "raise", "--allow-dead-letters", "1"
    )
    assert accepted.status == 0


@pytest.mark.parametrize("engine", ENGINES)
def test_a_fatal_error_fails_the_run_with_its_block(engine: str, capfd: Capture) -> None:
    ending = command(capfd, "run-local", FLOW, "--engine", engine, "--trouble", "fail")
    assert ending.status == 4
    assert ending.err.count("error VF-") == 1
    assert "KeyError: 33" in ending.err
    assert the_report().verdict is Verdict.FAILED


def test_an_input_that_kills_its_process_is_put_aside(capfd: Capture) -> None:
    arguments = [sys.executable, "-m", "videoflow", "run-local", FLOW, "--trouble", "die"]
    ending = subprocess.run(arguments, capture_output=True, text=True, timeout=60, check=False)
    assert ending.returncode == 1
    assert "put aside as dead letter 33-" in ending.stderr
    assert "restart" in ending.stderr
    deaths = [line for line in ending.stderr.splitlines() if "died in node trouble" in line]
    assert deaths
    assert all(line.startswith("trouble-0: supervisor: died") for line in deaths), "none is said in two ways"
    (letter,) = json.loads(command(capfd, "dead-letters", "list", "--json").out)
    assert letter["attempts"] == 2


@pytest.mark.parametrize("engine", ENGINES)
def test_ctrl_c_drains_and_everything_is_accounted_for(engine: str) -> None:
    with running(engine, "--upto", "none") as child:
        child.send_signal(signal.SIGINT)
        out, _ = child.communicate(timeout=40)
    assert child.returncode == 130, out
    assert "real: stopped" in out
    assert "Traceback" not in out
    report = the_report()
    assert report.verdict is Verdict.STOPPED
    assert all(edge.closed and edge.announced == edge.delivered > 0 for edge in report.edges)


def test_a_run_in_processes_is_stopped_from_another_terminal(capfd: Capture) -> None:
    with running("local", "--upto", "none") as child:
        assert command(capfd, "stop").status == 0
        child.communicate(timeout=40)
    assert child.returncode == 0
    assert the_report().verdict is Verdict.STOPPED


def test_a_killed_supervisor_is_found_and_buried(capfd: Capture) -> None:
    with running("local", "--upto", "none") as child:
        child.kill()
        child.communicate(timeout=40)
    assert the_run().state() is RunState.LOST
    assert " lost " in command(capfd, "runs").out
    assert "failed (supervisor lost)" in command(capfd, "gc").out
    assert the_report().verdict is Verdict.FAILED
    assert not list(the_run().path.glob("run.sqlite-*")), "the write-ahead log is folded into the file"


def test_the_starting_flow_runs_as_it_stands(
    tmp_path: Path, capfd: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert command(capfd, "init").status == 0
    ending = command(capfd, "run-local", "flow.py", "--engine", "threads", "--limit", "0")
    assert ending.status == 0
    assert "output  brightness.jsonl" in ending.err
    lines = (tmp_path / "brightness.jsonl").read_text().splitlines()
    assert len(lines) == 300
    assert set(json.loads(lines[0])) >= {"mean", "darkest", "time_seconds"}


@pytest.mark.parametrize("words", [("--profile", "flow.py"), ("flow.py", "--profile")])
def test_a_profiled_run_ends_with_what_limits_it(
    words: tuple[str, str], tmp_path: Path, capfd: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert command(capfd, "init").status == 0
    file = tmp_path / "flow.py"
    file.write_text(file.read_text().replace("frames=300", "frames=40"))
    ending = command(capfd, "run-local", *words, "--engine", "threads")
    assert ending.status == 0, ending.err
    assert "profile: 40 source items in" in ending.err
    assert "camera → brightness" in ending.err.partition("an item")[2]
    assert "bottleneck\n  " in ending.err
    found = the_report().profile
    assert found is not None
    assert found.bottleneck.text.split()[0] in ending.err


def test_a_flow_keeps_an_option_of_its_own_that_is_called_profile(
    tmp_path: Path, capfd: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert command(capfd, "init").status == 0
    file = tmp_path / "flow.py"
    text = file.read_text().replace("limit: float = 100.0)", "limit: float = 100.0, profile: bool = False)")
    file.write_text(text.replace("frames=300", "frames=3"))
    ending = command(capfd, "run-local", "flow.py", "--engine", "threads", "--profile")
    assert ending.status == 0, ending.err
    assert the_report().profile is None


@pytest.mark.parametrize("engine", ENGINES)
def test_what_a_source_expects_is_known_while_it_runs(engine: str) -> None:
    scene = SyntheticScene(frames=7, size=(64, 48), name="scene")
    handle = vf.Flow([Collect(name="kept")(scene.truth)], name="real").start(engine)
    while handle.wait_for(0.02) is None and handle.status().nodes[0].expected is None:
        pass
    status = handle.status()
    assert handle.wait().verdict is Verdict.COMPLETE
    assert {node.node: node.expected for node in status.nodes}["scene"] == 7


@pytest.mark.parametrize("engine", ENGINES)
def test_two_runs_never_write_one_path(
    engine: str, tmp_path: Path, capfd: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    command(capfd, "init")
    with claim_outputs([tmp_path / "brightness.jsonl"], "01K1BBBBBBBBBBBBBBBBBBBBBB"):
        ending = command(capfd, "run-local", "flow.py", "--engine", engine)
    assert ending.status == 2
    assert "brightness.jsonl is being written by run 01K1BBBBBBBBBBBBBBBBBBBBBB" in ending.err
    assert list_runs() == []
    assert sorted(path.name for path in tmp_path.iterdir() if path.name != "__pycache__") == [
        "flow.py",
        "home",
    ]


@pytest.mark.parametrize("engine", ENGINES)
def test_a_run_without_a_place_for_its_folder_does_not_start(engine: str, home: Path, capfd: Capture) -> None:
    home.write_text("not a folder")
    ending = command(capfd, "run-local", FLOW, "--engine", engine)
    assert ending.status == 3
    assert ending.err.startswith("error VF-OUTPUT  the run folder cannot be made\n")
    assert "VIDEOFLOW_HOME" in ending.err
    assert home.read_text() == "not a folder"
