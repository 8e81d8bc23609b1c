"""`--require`: what a command line asks of an engine beside what the flow states."""

import json
from pathlib import Path

import pytest

from tests.cli.helpers import command

Capture = pytest.CaptureFixture[str]
FLOW = f"{Path(__file__).with_name('flows.py')}"
THREADS = ("--engine", "threads")


def test_explain_shows_what_is_required_and_what_it_rests_on(capfd: Capture) -> None:
    shown = command(capfd, "explain", FLOW, "--require", "isolated", "--require=durable_control=yes")
    assert shown.status == 0, shown.err
    for words in ("Required", "durable_control", "Admitted channels", "reliable_work", "What that rests on"):
        assert words in shown.out
    assert "execution.isolates_crash" in shown.out.replace("\n", " ")


def test_the_json_of_explain_holds_requirements_and_grounds(capfd: Capture) -> None:
    shown = command(capfd, "explain", FLOW, "--require", "isolated", "--json")
    document = json.loads(shown.out)
    assert document["spec"]["requirements"]["isolated"] is True
    [first, second] = document["admitted"]["channels"]
    assert (first["channel"], first["profile"], first["carried_by"]) == ("numbers", "reliable_work", "shm")
    assert first["distance"] == second["distance"] == "processes of one host"
    grounds = {ground["rests_on"]: ground for ground in document["admitted"]["grounds"]}
    assert grounds["execution.can_interrupt"]["found"] == "yes (local)"


@pytest.mark.parametrize("name", ["explain", "run-local"])
def test_what_the_engine_cannot_give_is_refused_with_all_that_is_missing(
    name: str, capfd: Capture, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("VIDEOFLOW_HOME", str(tmp_path))
    words = ("--require", "isolated", "--require", "numbers:profile=replay_archive")
    ending = command(capfd, name, FLOW, *THREADS, *words)
    assert ending.status == 2
    assert "error VF-PROFILE" in ending.err
    for part in (
        "channel numbers (replay_archive)",
        "a stated horizon",
        "the run (isolated)",
        "--engine local",
    ):
        assert part in ending.err
    assert list(tmp_path.iterdir()) == []


def test_a_text_that_is_no_requirement_is_refused_with_the_nearest(capfd: Capture) -> None:
    ending = command(capfd, "explain", FLOW, "--require", "isolted")
    assert ending.status == 2
    assert "did you mean 'isolated'?" in ending.err


def test_a_channel_that_the_flow_lacks_is_refused(capfd: Capture) -> None:
    ending = command(capfd, "explain", FLOW, "--require", "number:tolerated_failures=1")
    assert ending.status == 2
    assert "did you mean 'numbers'?" in ending.err


def test_a_run_that_is_admitted_runs(capfd: Capture, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VIDEOFLOW_HOME", str(tmp_path))
    ending = command(capfd, "run-local", FLOW, *THREADS, "--require", "numbers:horizon_seconds=5", "--quiet")
    assert ending.status == 0, ending.err
