"""The script behind `make demo`, with a stand-in for the product: its input, what it says, how it ends."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent
TOOLS = ("bash", "env", "dirname", "basename", "uname", "mkdir", "rm", "cat", "mktemp")
STAND_IN = """#!/bin/bash
echo "called with: $*"
for name in $WRITES; do echo something > "$name"; done
exit $ENDS
"""


def run_demo(
    folder: Path, source: str = "", *, writes: str = "people.mp4 counts.jsonl report.json", ends: int = 0
) -> subprocess.CompletedProcess[str]:
    """Runs the script where there is no apt and no footage yet, so that nothing is downloaded."""
    programs = folder / "programs"
    programs.mkdir()
    for tool in TOOLS:
        found = shutil.which(tool)
        assert found is not None
        (programs / tool).symlink_to(found)
    product = folder / "venv" / "bin" / "videoflow"
    product.parent.mkdir(parents=True)
    product.write_text(STAND_IN)
    product.chmod(0o755)
    settings = {
        "PATH": str(programs),
        "VENV": str(folder / "venv"),
        "VIDEOFLOW_FOOTAGE_DIR": str(folder / "footage"),
        "WRITES": writes,
        "ENDS": str(ends),
    }
    command = [str(ROOT / "tools" / "demo.sh"), str(folder / "results"), source]
    return subprocess.run(
        command, cwd=folder, env={**os.environ, **settings}, capture_output=True, text=True, check=False
    )


def test_without_footage_it_takes_the_synthetic_scene_and_says_so(tmp_path: Path) -> None:
    done = run_demo(tmp_path)
    assert done.returncode == 0, done.stderr
    assert "the synthetic scene" in done.stdout
    assert "--source synthetic" in done.stdout
    assert "no real footage" in done.stderr


def test_footage_that_was_fetched_is_taken_without_asking_again(tmp_path: Path) -> None:
    footage = tmp_path / "footage" / "vtest.avi"
    footage.parent.mkdir()
    footage.write_text("a video")
    done = run_demo(tmp_path)
    assert f"input    {footage} (real footage" in done.stdout


def test_the_users_own_file_is_taken_relative_to_where_they_are(tmp_path: Path) -> None:
    done = run_demo(tmp_path, "street.mp4")
    assert f"--source {tmp_path}/street.mp4" in done.stdout
    assert "(yours)" in done.stdout


def test_an_address_is_left_as_it_is(tmp_path: Path) -> None:
    assert "--source rtsp://camera/1" in run_demo(tmp_path, "rtsp://camera/1").stdout


def test_it_prints_where_the_three_results_are(tmp_path: Path) -> None:
    said = run_demo(tmp_path).stdout.split()
    assert {
        str(tmp_path / "results" / name) for name in ("people.mp4", "counts.jsonl", "report.json")
    } <= set(said)


@pytest.mark.parametrize(
    ("ends", "writes", "code"), [(4, "", 4), (0, "people.mp4", 1), (1, "report.json", 1)]
)
def test_a_run_that_fails_or_leaves_something_out_is_not_a_success(
    tmp_path: Path, ends: int, writes: str, code: int
) -> None:
    done = run_demo(tmp_path, writes=writes, ends=ends)
    assert done.returncode == code
    assert "(not written)" in done.stdout
