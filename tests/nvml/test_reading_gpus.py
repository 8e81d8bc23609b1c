"""GPUs are read through the real bindings of NVML, or through nvidia-smi; what does not answer is unknown."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.nvml.stub import GIB, GPU_IS_LOST, NOT_LOADED, StubGpu, StubHost, build, linked

ROOT = Path(__file__).resolve().parents[2]
PATIENCE, SOON = 30.0, 0.3


class Reader:
    """A child process that reads the host as often as it is asked."""

    def __init__(self, child: "subprocess.Popen[str]") -> None:
        self._child = child

    def __call__(self, seconds: float = PATIENCE) -> tuple[str, Any]:
        """Returns `Known` or `Unknown`, and its fields."""
        assert self._child.stdin is not None
        assert self._child.stdout is not None
        self._child.stdin.write(f"{seconds}\n")
        self._child.stdin.flush()
        kind, _, found = self._child.stdout.readline().partition(" ")
        return kind, json.loads(found)


@contextmanager
def reader(environment: Mapping[str, str]) -> Iterator[Reader]:
    path = {"PYTHONPATH": str(ROOT)}
    child = subprocess.Popen(
        [sys.executable, "-m", "tests.nvml.asking"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**environment, **path},
    )
    with child:
        yield Reader(child)


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(tmp_path_factory.mktemp("nvml"))


def test_everything_that_nvml_says_is_read_and_what_it_does_not_say_is_no_zero(
    library: Path, tmp_path: Path
) -> None:
    first = StubGpu(0, used=3 * GIB, processes={4711: 3 * GIB, 12: None}, more={"reserved": GIB, "numa": 1})
    cut = StubGpu(1, slices=[("1g.10gb", 9 * GIB), ("2g.20gb", 19 * GIB)])
    host = StubHost(tmp_path / "host.txt", [first, cut], linked({(0, 1): (20, True)}))
    host.write()
    with reader(host.environment(library)) as read:
        kind, found = read()
        assert kind == "Known"
        whole, parent, small, large = found["value"]["devices"]
        assert (whole["identity"]["memory_bytes"], whole["used_bytes"]) == (79 * GIB, 3 * GIB)
        assert whole["users"] == [{"pid": 4711, "used_bytes": 3 * GIB}, {"pid": 12, "used_bytes": None}]
        assert whole["facts"] == {"numa_node": "1", "compute_capability": "90"}
        assert [parent["partitioned"], small["partitioned"]] == [True, False]
        assert [one["identity"]["mig_uuid"] for one in (small, large)] == [
            cut.slice_uuid(0),
            cut.slice_uuid(1),
        ]
        assert [one["identity"]["mig_profile"] for one in (small, large)] == ["1g.10gb", "2g.20gb"]
        assert small["identity"]["memory_bytes"] == 9 * GIB
        assert found["value"]["links"] == [
            {"first": first.uuid, "second": cut.uuid, "distance": 40, "peer": True}
        ]
        host.gpus[0].more["nvlink0"] = host.gpus[0].more["nvlink1"] = "00000000:02:00.0"
        host.write()
        assert read()[1]["value"]["links"][0]["distance"] == 17
        host.gpus, host.more = [StubGpu(0, more={"mps": "77:1"}), StubGpu(1, more={"virtualization": 2})], {}
        host.write()
        assert [one["sharing"] for one in read()[1]["value"]["devices"]] == ["mps", "time-sliced"]

        host.gpus, host.more = (
            [StubGpu(0), StubGpu(1)],
            {"error.gpu1.nvmlDeviceGetMemoryInfo_v2": GPU_IS_LOST},
        )
        host.write()
        good, lost = read()[1]["value"]["devices"]
        assert (good["problems"], lost["problems"]) == (
            [],
            [f"{lost['identity']['uuid']}: memory: GPU is lost"],
        )
        assert (lost["identity"]["memory_bytes"], lost["used_bytes"]) == (None, None)
        for function, meant in (
            ("nvmlDeviceGetComputeRunningProcesses_v3", "users"),
            ("nvmlDeviceGetMigMode", "problems"),
        ):
            host.more = {f"error.{function}": GPU_IS_LOST}
            host.write()
            device = read()[1]["value"]["devices"][0]
            assert device["problems"], meant
        host.more = {"error.nvmlDeviceGetMPSComputeRunningProcesses_v3": GPU_IS_LOST}
        host.write()
        assert read()[1]["value"]["devices"][0]["sharing"] == "unknown"

        for more, reason in (
            ({"error.nvmlInitWithFlags": NOT_LOADED}, "unreachable"),
            ({"error.nvmlDeviceGetCount_v2": 4}, "auth"),
            ({"error.gpu1.nvmlDeviceGetHandleByIndex_v2": GPU_IS_LOST}, "unreachable"),
            ({"error.gpu1.nvmlDeviceGetUUID": GPU_IS_LOST}, "unreachable"),
        ):
            host.more = dict(more)
            host.write()
            kind, found = read()
            assert (kind, found["reason"]) == ("Unknown", reason), more

        host.more = {"delay.nvmlDeviceGetName": 3000}
        host.write()
        assert [read(SOON)[1]["reason"], read(SOON)[1]["reason"]] == ["timeout", "timeout"]
        host.more = {}
        host.write()
        assert read()[0] == "Known"


SMI = """<nvidia_smi_log><driver_version>570.1</driver_version><attached_gpus>{count}</attached_gpus>
<gpu><product_name>NVIDIA L4</product_name><uuid>GPU-a</uuid>
<mig_mode><current_mig>N/A</current_mig></mig_mode><compute_mode>Default</compute_mode>
<gpu_virtualization_mode><virtualization_mode>{mode}</virtualization_mode></gpu_virtualization_mode>
<fb_memory_usage><total>23034 MiB</total><reserved>34 MiB</reserved><used>2 MiB</used></fb_memory_usage>
<processes>{processes}</processes></gpu></nvidia_smi_log>"""
PROCESS = """<process_info><pid>9</pid><type>C</type><process_name>{name}</process_name>
<used_memory>2 MiB</used_memory></process_info>"""


@pytest.mark.parametrize("broken", ["no library", "missing symbols"])
def test_where_nvml_cannot_be_asked_nvidia_smi_is_and_without_either_it_is_unknown(
    broken: str, tmp_path: Path
) -> None:
    library = tmp_path / "lib"
    library.mkdir()
    if broken == "missing symbols":
        build(library, missing_symbols=True)
    host = StubHost(tmp_path / "host.txt", [StubGpu(0)])
    host.write()
    command = tmp_path / "bin" / "nvidia-smi"
    command.parent.mkdir()
    environment = host.environment(library)
    environment["PATH"] = f"{command.parent}{os.pathsep}{environment['PATH']}"

    def says(text: str, status: int = 0) -> None:
        (tmp_path / "said.xml").write_text(text, encoding="utf-8")
        command.write_text(f"#!/bin/sh\ncat {tmp_path}/said.xml\nexit {status}\n", encoding="utf-8")
        command.chmod(0o755)

    with reader(environment) as read:
        kind, found = read()
        assert (kind, found["reason"]) == ("Unknown", "missing")
        says(SMI.format(count=1, mode="None", processes=PROCESS.format(name="python")))
        kind, found = read()
        (device,) = found["value"]["devices"]
        assert (kind, found["value"]["source"], device["sharing"]) == ("Known", "nvidia-smi", "physical")
        assert (device["identity"]["memory_bytes"], device["used_bytes"]) == (23000 << 20, 2 << 20)
        assert (device["users"], device["problems"]) == ([{"pid": 9, "used_bytes": 2 << 20}], [])
        if broken == "missing symbols":
            return
        says(
            SMI.format(count=1, mode="None", processes=PROCESS.format(name="/usr/bin/nvidia-cuda-mps-server"))
        )
        assert read()[1]["value"]["devices"][0]["sharing"] == "mps"
        says(SMI.format(count=1, mode="N/A", processes="N/A"))
        (device,) = read()[1]["value"]["devices"]
        assert (device["sharing"], device["users"], len(device["problems"])) == ("unknown", None, 1)
        for text, status, reason in (
            (SMI.format(count=2, mode="None", processes=""), 0, "malformed"),
            ("<nvidia_smi_log>", 0, "malformed"),
            ("NVIDIA-SMI has failed", 9, "unreachable"),
        ):
            says(text, status)
            kind, found = read()
            assert (kind, found["reason"]) == ("Unknown", reason)
