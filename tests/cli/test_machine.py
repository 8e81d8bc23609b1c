"""`doctor`, `init` and `nodes`, and the command itself."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.helpers import command
from videoflow import nodes as library
from videoflow.cli import _checks
from videoflow.cli._checks import Finding
from videoflow.cli._container import Limits, read_limits

Capture = pytest.CaptureFixture[str]


def test_doctor_finds_what_the_tests_run_on(capfd: Capture) -> None:
    ending = command(capfd, "doctor", "--json")
    checks = {check["subject"]: check for check in json.loads(ending.out)}
    assert ending.status == 0
    for subject in (
        "python",
        "memory",
        "shared memory",
        "run folders",
        "[video]",
        "[onnx]",
        "H.264",
        "model",
    ):
        assert checks[subject]["finding"] == "good", checks[subject]
    assert "av " in checks["[video]"]["found"]


def test_doctor_leaves_nothing_behind(capfd: Capture, home: Path) -> None:
    command(capfd, "doctor")
    assert not home.exists()


def test_doctor_exits_with_3_where_runs_have_no_folder(
    capfd: Capture, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_checks, "EXTRAS", {})
    home.write_text("not a folder")
    ending = command(capfd, "doctor")
    assert ending.status == 3
    assert any(line.startswith("BAD") and "run folders" in line for line in ending.out.splitlines())


def test_a_library_that_cannot_be_imported_is_a_finding(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        _checks, "EXTRAS", {"broken": {"no_such_module": "numpy"}, "none": {"x": "no-such-dist"}}
    )
    checks = {check.subject: check for check in _checks.every_check()}
    assert checks["[broken]"].finding is Finding.BAD
    assert "No module named 'no_such_module'" in checks["[broken]"].found
    assert checks["[none]"].finding is Finding.ABSENT
    assert checks["[none]"].remedy == "pip install 'videoflow[none]'"


def test_limits_of_a_container_are_read_from_both_kinds_of_groups(tmp_path: Path) -> None:
    v2, v1 = tmp_path / "v2", tmp_path / "v1"
    (v1 / "memory").mkdir(parents=True)
    (v1 / "cpu").mkdir()
    v2.mkdir()
    (v2 / "memory.max").write_text("1073741824\n")
    (v2 / "cpu.max").write_text("150000 100000\n")
    (v1 / "memory" / "memory.limit_in_bytes").write_text("9223372036854771712\n")
    (v1 / "cpu" / "cpu.cfs_quota_us").write_text("-1\n")
    (v1 / "cpu" / "cpu.cfs_period_us").write_text("100000\n")
    assert read_limits(v2) == Limits(1 << 30, 1.5)
    assert read_limits(v1) == Limits(None, None)
    (v2 / "memory.max").write_text("max\n")
    (v2 / "cpu.max").write_text("max 100000\n")
    assert read_limits(v2) == Limits(None, None)


def test_init_writes_once_and_never_over_something(capfd: Capture, tmp_path: Path) -> None:
    assert command(capfd, "init", str(tmp_path / "new")).status == 0
    written = tmp_path / "new" / "flow.py"
    compile(written.read_text(), "flow.py", "exec")
    written.write_text("mine")
    ending = command(capfd, "init", str(tmp_path / "new"))
    assert ending.status == 2
    assert written.read_text() == "mine"
    ending = command(capfd, "init", str(written / "below"))
    assert ending.status == 3


def test_an_unknown_command_is_refused_with_the_nearest(capfd: Capture) -> None:
    ending = command(capfd, "run-locla")
    assert ending.status == 2
    assert ending.err.startswith("error VF-USAGE  there is no command 'run-locla'\n")
    assert "did you mean 'run-local'?" in ending.err


@pytest.mark.parametrize(
    "arguments", [("runs", "--limitt", "3"), ("runs", "--limit", "many"), ("stop", "a", "b")]
)
def test_misuse_is_one_block_and_2(capfd: Capture, arguments: tuple[str, ...]) -> None:
    ending = command(capfd, *arguments)
    assert ending.status == 2
    assert ending.out == ""
    assert ending.err.startswith("error VF-USAGE  ")
    assert f"videoflow {arguments[0]} --help" in ending.err


def test_help_and_version_are_for_standard_output(capfd: Capture) -> None:
    listed = command(capfd, "--help")
    assert (listed.status, listed.err) == (0, "")
    assert "run-local" in listed.out
    assert command(capfd).out == listed.out
    assert command(capfd, "--version").out.startswith("videoflow 2")


def test_a_reader_that_goes_away_is_no_error(tmp_path: Path) -> None:
    line = f"{sys.executable} -m videoflow nodes | true"
    done = subprocess.run(["bash", "-o", "pipefail", "-c", line], capture_output=True, text=True, check=False)
    assert "Traceback" not in done.stderr
    assert "Error" not in done.stderr


def test_only_the_command_that_was_asked_for_is_imported() -> None:
    code = (
        "import sys; from videoflow.cli.app import main; main(['runs']);"
        "print([m for m in sys.modules if m.startswith('videoflow.cli.') and m[14] != '_'])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "['videoflow.cli.app', 'videoflow.cli.runs']"


def test_nodes_names_the_whole_library_and_loads_nothing_heavy() -> None:
    code = (
        "import sys; from videoflow.cli.app import main; main(['nodes']);"
        "print(sorted({m.partition('.')[0] for m in sys.modules} & {'av', 'cv2', 'onnxruntime', 'scipy'}))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    lines = done.stdout.splitlines()
    assert lines[-1] == "[]"
    shown = {line.split()[0] for line in lines if line and not line.startswith(" ")}
    assert set(library.__all__) <= shown
    assert "  (*, activate=0.4, match_iou=0.2, lost_seconds=2.0)" in lines


def test_a_node_is_shown_in_full_or_refused_with_the_nearest(capfd: Capture) -> None:
    shown = command(capfd, "nodes", "Tracker").out
    assert shown.startswith("Tracker(*, activate=0.4")
    assert "lost_seconds: How long" in shown
    assert "\nreads Detections; makes Detections\n" in shown
    ending = command(capfd, "nodes", "Trakcer")
    assert ending.status == 2
    assert "did you mean 'Tracker'?" in ending.err
    listed = {entry["name"]: entry for entry in json.loads(command(capfd, "nodes", "--json").out)}
    assert listed["Annotator"]["reads"] == ["Frame", "any number of Detections | LineCount | ZoneCount"]
    assert (listed["LineCounter"]["makes"], listed["VideoSink"]["makes"]) == ("LineCount", "")
    assert listed["Blur"]["reads"] == [], "nothing is known of a node that is only named"
    kinds = {name: entry["kind"] for name, entry in listed.items()}
    assert (kinds["VideoSource"], kinds["Tracker"], kinds["VideoSink"]) == (
        "producer",
        "processor",
        "consumer",
    )


def test_a_group_of_commands_alone_shows_its_help(capfd: Capture) -> None:
    ending = command(capfd, "dead-letters")
    assert (ending.status, ending.err) == (0, "")
    assert "list" in ending.out
    assert "show" in ending.out
