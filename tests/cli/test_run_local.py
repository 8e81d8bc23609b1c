"""`run-local`: what a person types, sees and gets back, with an engine that runs nothing."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from tests.cli.fake_engine import RUN_ID, register_in
from tests.cli.helpers import command
from videoflow.cli._flow_file import LATER_PREFIX, RESERVED
from videoflow.cli.run_local import _refuse_elsewhere
from videoflow.engines.run_folder import RunFolder, RunState
from videoflow.errors import UsageError
from videoflow.graph.report import RunReport, Verdict

Capture = pytest.CaptureFixture[str]
ROOT = Path(__file__).resolve().parents[2]
FLOW = '''
import enum
from pathlib import Path
from typing import Literal

import videoflow as vf

class Mode(enum.Enum):
    FAST = "fast"

@vf.producer
def numbers(*, upto: int, note: str):
    yield from (vf.Item(n, offset=n) for n in range(upto))

@vf.consumer
def show(number):
    print(number)

def build_flow(
    name: str,
    upto: int = 40,
    zone: list[tuple[int, int]] | None = None,
    line: tuple[int, int] = (0, 1),
    labels: bool = True,
    mode: Mode = Mode.FAST,
    kind: Literal["a", "b"] = "a",
    out: Path | None = None,
) -> vf.Flow:
    """Show numbers.

    Args:
        name: Of the flow.
        upto: How many numbers
            there are.
        zone: Corners in pixels.
    """
    note = repr((zone, line, labels, mode.value, kind, str(out)))
    return vf.Flow([show(name="show")(numbers(upto=upto, note=note, name="numbers"))], name=name)
'''


@pytest.fixture(autouse=True)
def flow_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A flow file in the current folder, and an engine `fake`."""
    register_in(tmp_path / "site")
    monkeypatch.syspath_prepend(str(tmp_path / "site"))
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "flow.py"
    path.write_text(FLOW)
    return path


def run(capfd: Capture, *words: str) -> tuple[int, str, str]:
    ending = command(capfd, "run-local", "flow.py", "--engine", "fake", *words)
    return ending.status, ending.out, ending.err


@contextmanager
def running(*words: str) -> Iterator[subprocess.Popen[str]]:
    """The command in a process of its own, that has started its run."""
    arguments = [sys.executable, "-m", "videoflow", "run-local", "flow.py", "--engine", "fake", *words]
    paths = os.pathsep.join([str(Path.cwd() / "site"), str(ROOT)])
    environment = {**os.environ, "PYTHONPATH": paths}
    with subprocess.Popen(
        arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment
    ) as child:
        try:
            assert child.stdout is not None
            assert child.stdout.readline().startswith("started")
            yield child
        finally:
            if child.poll() is None:
                child.kill()


def test_a_complete_run_ends_with_0_and_an_account_on_standard_error(capfd: Capture) -> None:
    status, out, err = run(capfd, "--name", "people")
    assert status == 0
    assert out == "started people None\n"
    assert "people: complete after 30.0 s on fake" in err
    assert "numbers → show         40         40  closes" in err
    assert "report  " in err
    assert "\x1b" not in err
    assert "\r" not in err


def test_progress_without_a_terminal_is_a_line_now_and_then(capfd: Capture) -> None:
    err = run(capfd, "--name", "people")[2]
    lines = [line for line in err.splitlines() if line.startswith(("  10.0 s", "  20.0 s"))]
    assert lines == [
        "  10.0 s  numbers 10 of 40; show 5 (40.0 ms, 5 waiting)",
        "  20.0 s  numbers 20 of 40 (1.0/s, 20.0 s left); show 15 (40.0 ms, 5 waiting)",
    ]


def test_quiet_shows_nothing_of_a_good_run(capfd: Capture) -> None:
    assert run(capfd, "--name", "people", "--quiet")[2] == ""


def test_quiet_shows_nothing_but_the_error_of_a_bad_one(capfd: Capture) -> None:
    status, _, err = run(capfd, "--name", "failing", "--quiet")
    assert status == 4
    assert err.splitlines() == [
        "error VF-NODE-FAILED  node broken, frame 3 of a.mp4 (0.120 s)",
        "  cause    KeyError: 'x'        flow.py:9 in process",
        "  effect   the run was aborted",
        "  remedy   mend the node and run again",
    ]


def test_the_report_is_printed_and_written_where_it_is_asked_for(capfd: Capture, tmp_path: Path) -> None:
    status, out, _ = run(capfd, "--name", "letters", "--json", "--report", "mine.json")
    assert status == 1
    printed = json.loads(out.partition("\n")[2])
    assert printed == json.loads((tmp_path / "mine.json").read_text())
    report = RunReport.from_json((tmp_path / "mine.json").read_bytes())
    assert (report.run_id, report.verdict) == (RUN_ID, Verdict.INCOMPLETE)


def test_a_dead_letter_is_a_block_that_says_how_to_see_it(capfd: Capture) -> None:
    err = run(capfd, "--name", "letters")[2]
    block = err[err.index("error VF-NODE-FAILED") :].splitlines()
    assert block == [
        "error VF-NODE-FAILED  node show, item 3 of numbers, attempt 4 of 4",
        "  cause    ValueError: no",
        "  effect   put aside as dead letter 3-7f3a; 39 of 40 items completed; verdict incomplete",
        "  remedy   videoflow dead-letters show 3-7f3a; mend the node and run again",
    ]


def test_a_report_that_cannot_be_written_is_found_before_anything_starts(capfd: Capture) -> None:
    status, out, err = run(capfd, "--name", "people", "--report", "flow.py/report.json")
    assert (status, out) == (3, "")
    assert err.startswith("error VF-OUTPUT  report.json cannot be written\n")


def test_what_the_engine_refuses_is_a_block_with_its_status(capfd: Capture, home: Path) -> None:
    status, out, err = run(capfd, "--name", "refusing")
    assert (status, out) == (3, "")
    assert err == ("error VF-MEMORY  there is no room\n  cause    1 B left\n  remedy   buy some\n")
    assert not home.exists()


def test_debug_shows_the_trace_before_the_block(capfd: Capture) -> None:
    err = run(capfd, "--name", "refusing", "--debug")[2]
    assert err.startswith("Traceback (most recent call last):\n")
    assert "fake_engine.py" in err
    assert err.endswith("  remedy   buy some\n")


def test_options_of_the_run_reach_the_engine(capfd: Capture, tmp_path: Path) -> None:
    status, out, _ = run(capfd, "--name", "people", "--memory-bytes", "2 GiB", "--run-dir", "elsewhere")
    assert (status, out) == (0, f"started people {2 << 30}\n")
    assert RunFolder(tmp_path / "elsewhere" / RUN_ID).state() is RunState.FINISHED


AS_IT_STANDS = "(None, (0, 1), True, 'fast', 'a', 'None')"
CORNERS = "[(10, 10), (90, 10), (90, 90)]"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((), AS_IT_STANDS),
        (("--zone", "10,10", "90,10", "90,90"), AS_IT_STANDS.replace("None,", f"{CORNERS},", 1)),
        (("--zone", "1,2", "--zone", "-3,4"), AS_IT_STANDS.replace("None,", "[(1, 2), (-3, 4)],", 1)),
        (("--line", "-5,7", "--no-labels"), "(None, (-5, 7), False, 'fast', 'a', 'None')"),
        (("--labels", "--mode", "fast", "--kind=b"), "(None, (0, 1), True, 'fast', 'b', 'None')"),
        (("--out", "-o.mp4"), "(None, (0, 1), True, 'fast', 'a', '-o.mp4')"),
        (("--out=--odd.mp4",), "(None, (0, 1), True, 'fast', 'a', '--odd.mp4')"),
    ],
)
def test_every_parameter_of_the_factory_is_an_option(
    words: tuple[str, ...], said: str, capfd: Capture
) -> None:
    status = run(capfd, "--name", "noting", *words)[0]
    assert status == 0
    seen = json.loads(Path("seen.json").read_text())
    assert seen == said


@pytest.mark.parametrize(
    ("words", "message", "remedy"),
    [
        ((), "the flow needs --name", "--name VALUE"),
        (("--name", "a", "--upot", "3"), "there is no option --upot", "did you mean '--upto'?"),
        (("--name", "a", "--quite"), "there is no option --quite", "did you mean '--quiet'?"),
        (("--name", "a", "--no-lables"), "there is no option --no-lables", "did you mean '--no-labels'?"),
        (("--name", "a", "--upto", "many"), "option --upto cannot be 'many'", "--upto 10"),
        (("--name", "a", "--upto", "1", "--upto", "2"), "option --upto cannot be '1' '2'", ""),
        (("--name", "a", "--kind", "c"), "option --kind cannot be 'c'", "--kind a"),
        (("--name", "a", "--upto"), "--upto needs a value", "--upto VALUE"),
        (("--name", "a", "stray"), "'stray' belongs to no option", ""),
        (("--name", "a", "--memory-bytes", "much"), "'much' is not a size", "2 GiB"),
        (("--name", "a", "--engine", "lokal"), "there is no engine named 'lokal'", "did you mean 'local'?"),
        (("--name", "a", "--messaging", "nats"), "--messaging is not built yet", ""),
    ],
)
def test_a_mistake_is_one_block_with_the_way_out_and_2(
    words: tuple[str, ...], message: str, remedy: str, capfd: Capture, home: Path
) -> None:
    status, out, err = run(capfd, *words)
    assert (status, out) == (2, "")
    first, *rest = err.splitlines()
    assert first.startswith("error VF-")
    assert message in first
    assert remedy in rest[-1]
    assert err.count("error VF-") == 1
    assert not home.exists(), "nothing is left behind"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("def build_flow(:\n", "is not valid Python"),
        ("x = 1\n", "has no factory"),
        ("import nowhere\n", "failed while it was loaded"),
        ("import videoflow as vf\ndef build_flow(engine: str) -> vf.Flow: ...\n", "'engine' of build_flow"),
        ("import videoflow as vf\ndef build_flow(run_x: str) -> vf.Flow: ...\n", "'run_x' of build_flow"),
        ("import videoflow as vf\ndef build_flow() -> vf.Flow: return 3\n", "returned int"),
        ("import videoflow as vf\ndef build_flow() -> vf.Flow: return vf.Flow([])\n", "no sinks"),
    ],
)
def test_a_bad_flow_file_is_one_block_and_2(
    text: str, message: str, capfd: Capture, flow_file: Path, home: Path
) -> None:
    flow_file.write_text(text)
    status, out, err = run(capfd)
    assert (status, out) == (2, "")
    assert message in err
    assert err.startswith("error VF-FLOW")
    assert not home.exists()


def test_a_factory_can_be_named(capfd: Capture, flow_file: Path) -> None:
    flow_file.write_text(FLOW + "\ndef other() -> vf.Flow:\n    return build_flow('from-other')\n")
    ending = command(capfd, "run-local", "flow.py:other", "--engine", "fake")
    assert (ending.status, ending.out) == (0, "started from-other None\n")
    ending = command(capfd, "run-local", "flow.py:ohter", "--engine", "fake")
    assert ending.status == 2
    assert "did you mean 'other'?" in ending.err


def test_a_missing_file_and_a_missing_name_of_one(capfd: Capture) -> None:
    ending = command(capfd, "run-local", "nowhere.py")
    assert ending.status == 2
    assert ending.err.startswith("error VF-FLOW-FILE  the flow file nowhere.py cannot be read\n")
    ending = command(capfd, "run-local")
    assert ending.status == 2
    assert "no flow file is named" in ending.err
    ending = command(capfd, "run-local", "--name", "x", "flow.py")
    assert ending.status == 2
    assert "stands before the flow file" in ending.err


def test_help_shows_the_options_of_the_flow(capfd: Capture) -> None:
    ending = command(capfd, "run-local", "flow.py", "--help")
    assert (ending.status, ending.err) == (0, "")
    rows = {line.split()[0]: " ".join(line.split()) for line in ending.out.splitlines() if line.strip()}
    assert rows["--name"] == "--name str Of the flow. [required]"
    assert rows["--upto"] == "--upto int How many numbers there are. [default: 40]"
    assert rows["--labels,"] == "--labels, --no-labels [default: yes]"
    assert rows["--kind"] == "--kind a|b [default: a]"
    assert "--memory-bytes" in rows
    assert "--resume" in rows
    assert "Name a flow file" in command(capfd, "run-local", "--help").out


def test_the_options_of_a_run_are_frozen() -> None:
    # A name that is added here takes it from the factories of users: later ones begin with --run-.
    assert sorted(RESERVED) == [
        "--allow-dead-letters",
        "--allow-incomplete",
        "--debug",
        "--drain-seconds",
        "--engine",
        "--help",
        "--json",
        "--memory-bytes",
        "--mermaid",
        "--messaging",
        "--quiet",
        "--report",
        "--require",
        "--resume",
        "--run-dir",
        "--stall-seconds",
    ]


@pytest.mark.parametrize("name", ["run-local", "explain"])
def test_the_options_of_a_command_are_all_reserved(name: str, capfd: Capture) -> None:
    shown = command(capfd, name, "--help").out
    options = {word.rstrip(",") for line in shown.splitlines() for word in line.split()[:1]}
    named = {option for option in options if option.startswith("--")}
    assert {option for option in named if not option.startswith(LATER_PREFIX)} <= RESERVED


def test_local_is_refused_off_linux_with_the_way_out() -> None:
    with pytest.raises(UsageError) as caught:
        _refuse_elsewhere("local", "darwin")
    assert "--engine threads" in caught.value.remedy
    _refuse_elsewhere("local", "linux")
    _refuse_elsewhere("threads", "darwin")


def test_ctrl_c_stops_and_exits_with_130() -> None:
    with running("--name", "endless") as child:
        child.send_signal(signal.SIGINT)
        out, err = child.communicate(timeout=30)
    assert (child.returncode, out) == (130, "stop 1\n")
    assert "stopping: sources end" in err
    assert "endless: stopped" in err
    assert "Traceback" not in err


def test_a_second_ctrl_c_ends_without_draining() -> None:
    with running("--name", "stubborn") as child:
        assert child.stdout is not None
        child.send_signal(signal.SIGINT)
        assert child.stdout.readline() == "stop 1\n"
        child.send_signal(signal.SIGINT)
        out, err = child.communicate(timeout=30)
    assert (child.returncode, out) == (130, "stop 2\n")
    assert "ending without draining" in err


def test_a_stop_by_sigterm_is_asked_for_and_exits_with_0() -> None:
    with running("--name", "endless") as child:
        child.send_signal(signal.SIGTERM)
        child.communicate(timeout=30)
    assert child.returncode == 0


def test_stop_from_another_terminal_reaches_the_run(capfd: Capture) -> None:
    with running("--name", "endless") as child:
        folder = RunFolder(Path.cwd() / "home" / "runs" / RUN_ID)
        while not (folder.supervisor() or pytest.fail("no supervisor")).stops_on_signal:
            assert child.poll() is None
        assert command(capfd, "stop", "last").status == 0
        out, _ = child.communicate(timeout=30)
    assert (child.returncode, out) == (0, "stop 1\n")


def test_a_run_that_does_not_end_is_ended_by_who_insists() -> None:
    with running("--name", "deaf") as child:
        assert child.stdout is not None
        for number in (1, 2):
            child.send_signal(signal.SIGINT)
            assert child.stdout.readline() == f"stop {number}\n"
        while child.poll() is None:  # for some seconds, the second one is left to do its work
            child.send_signal(signal.SIGINT)
            with suppress(subprocess.TimeoutExpired):
                child.wait(timeout=0.5)
    assert child.returncode == 130
