"""Runs on a host with two GPUs, as the stand-in of NVML shows it: who is given which, and who gives back."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from tests.nvml.stub import GIB, NOT_LOADED, StubGpu, StubHost, build

ROOT = Path(__file__).resolve().parents[2]
FLOWS = Path(__file__).with_name("gpu_flows.py")
FIRST, SECOND = StubGpu(0).uuid, StubGpu(1).uuid


class Stage:
    """A host, a user's folder, and how a command is run there."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.host = StubHost(folder / "host.txt", [StubGpu(0), StubGpu(1)])
        self.host.write()
        self._library = build(folder / "lib")

    def environment(self) -> dict[str, str]:
        more = {"VIDEOFLOW_HOME": str(self.folder / "home"), "PYTHONPATH": str(ROOT)}
        return {**self.host.environment(self._library), **more}

    def started(self, *words: str) -> "subprocess.Popen[str]":
        return subprocess.Popen(
            [sys.executable, *words],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=self.environment(),
            cwd=self.folder,
        )


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Stage:
    return Stage(tmp_path_factory.mktemp("gpus"))


@pytest.fixture(scope="module")
def told(stage: Stage) -> Iterator[dict[str, Any]]:
    """What the story came to, beside a `run-local` that holds one GPU until it is killed."""
    pipe = stage.folder / "pipe"
    os.mkfifo(pipe)
    holder = stage.started("-m", "videoflow", "run-local", str(FLOWS), "--pipe", str(pipe), "--quiet")
    try:
        seen = stage.folder / "pipe.seen"
        while not seen.exists() or not seen.read_text(encoding="utf-8"):
            with suppress(subprocess.TimeoutExpired):
                holder.wait(0.05)
            assert holder.returncode is None, holder.communicate()
        story = stage.started("-m", "tests.engines.gpu_story", str(holder.pid))
        said, errors = story.communicate()
        assert story.returncode == 0, errors
        yield {"the first run saw": seen.read_text(encoding="utf-8"), **json.loads(said)}
    finally:
        holder.kill()
        holder.communicate()


def test_exclusive_grants_of_two_runs_never_overlap(told: dict[str, Any]) -> None:
    assert told["the first run saw"] == FIRST
    other = told["the other one"]
    assert other["verdict"] == "complete"
    assert other["values"]["out"] == [[SECOND, [SECOND]]] * 2
    assert [(one["device"], one["exclusive"]) for one in other["devices"]] == [(SECOND, True)]


def test_a_run_that_cannot_have_what_it_asks_for_is_refused_and_told_who_has_it(told: dict[str, Any]) -> None:
    refused = told["both while one is held"]
    assert (refused["code"], refused["exit"]) == ("VF-ACCELERATOR", 3)
    first, second = told["who holds what"]["devices"]
    (held,) = first["runs"]
    assert held.split()[1:] == ["numbers/0", "(exclusive)"]
    assert f"{FIRST} is used by numbers/0 of run {held.split()[0]}" in refused["said"]
    assert (second["runs"], second["processes"]) == ([], [])


def test_a_worker_that_died_has_the_same_device_again(told: dict[str, Any]) -> None:
    other = told["the other one"]
    assert {node["node"]: node["restarts"] for node in other["nodes"]}["seer"] == 1
    assert {row[0] for row in other["values"]["out"]} == {SECOND}


def test_what_a_killed_run_held_comes_back(told: dict[str, Any]) -> None:
    after = told["both after the kill"]
    assert after["verdict"] == "complete", after
    assert [one["device"] for one in after["devices"]] == [FIRST, SECOND]


def test_a_worker_that_sees_another_device_than_it_was_granted_fails_the_run_by_name(
    told: dict[str, Any],
) -> None:
    mistaken = told["a mistaken mask"]
    assert mistaken["code"] == "VF-ACCELERATOR"
    assert f"granted {FIRST}; it sees {SECOND}" in mistaken["said"]
    assert "numbers/0" in mistaken["said"]


def test_threads_keep_other_runs_away_and_promise_nothing_among_themselves(told: dict[str, Any]) -> None:
    assert told["both after the kill"]["values"]["out"][0][1] == [FIRST, SECOND]
    crowd = told["a crowd"]
    assert (crowd["code"], crowd["exit"]) == ("VF-USAGE", 2)
    assert "seer-0/0 a device of its own" in crowd["said"]


def test_the_shared_policy_leaves_alone_what_another_run_has_alone(told: dict[str, Any]) -> None:
    (device,) = told["one by turns"]["devices"]
    assert (device["device"], device["exclusive"], device["policy"]) == (SECOND, False, "shared")
    refused = told["both by turns"]
    assert refused["code"] == "VF-ACCELERATOR"
    assert f"{FIRST} is used by numbers/0 of run" in refused["said"]


def test_memory_of_devices_is_in_the_account(told: dict[str, Any]) -> None:
    (device,) = told["a sharer"]["devices"]
    assert (device["sharing"], device["declared_peak_bytes"]) == ("cooperative", GIB)
    assert (device["memory_bytes"], device["highest_used_bytes"]) == (80 * GIB, 0)
    assert device["samples"] >= 1


def test_a_flow_that_asks_for_none_looks_at_nothing(told: dict[str, Any]) -> None:
    assert told["none is asked for"] == ["complete", False]


def test_a_driver_that_does_not_answer_is_not_a_host_without_gpus(stage: Stage) -> None:
    host = StubHost(stage.folder / "host-silent.txt", [StubGpu(0)], {"error.nvmlInitWithFlags": NOT_LOADED})
    host.write()
    environment = {**stage.environment(), "NVML_STUB": str(host.path)}
    code = (
        "import json, sys\n"
        "from tests.engines.gpu_story import asked_of, shown\n"
        "told = [asked_of('threads'), asked_of('threads', gpu_policy='shared'), shown('gpus')]\n"
        "sys.stdout.write(json.dumps(told))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        env=environment,
        capture_output=True,
        text=True,
        check=True,
        cwd=stage.folder,
    )
    strict, shared, gpus = json.loads(done.stdout)
    assert (strict["code"], strict["exit"]) == ("VF-UNOBSERVABLE", 3)
    assert "Driver Not Loaded" in strict["said"]
    assert (shared["verdict"], shared["devices"]) == ("complete", [])
    assert [gap["what"] for gap in shared["gaps"]] == ["its accelerators could not be seen"]
    assert "does not mean that there is none" in gpus
