"""What a child process does whose loader finds the stand-in of NVML; it prints what each step came to.

Args: the process number of a run that holds one of the two GPUs, and is killed on the way.
"""

import io
import json
import os
import signal
import sys
from collections.abc import Callable
from contextlib import redirect_stdout
from dataclasses import replace
from typing import Any
from unittest.mock import patch

import videoflow as vf
from tests.engines.gpu_flows import Numbers, Seer, build_flow
from videoflow.backends.allocation import WorkloadBindings
from videoflow.cli.app import main
from videoflow.deploy.allocation_local import LocalAllocation
from videoflow.faults import Fault, FaultAction
from videoflow.graph.report import RunReport
from videoflow.nodes import Collect

CRASHES = {"numbers": (Fault("process.after", FaultAction.CRASH),)}
LOOKS = 200


def came_to(run: Callable[[], RunReport]) -> dict[str, Any]:
    """What a run came to: its report, or its refusal."""
    try:
        found: dict[str, Any] = json.loads(run().to_json())
    except vf.FlowError as error:
        return {"code": error.code, "said": str(error), "exit": error.exit_status}
    return found


def asked_of(engine: str, **more: Any) -> dict[str, Any]:
    """What a flow comes to."""
    options = {name: more.pop(name) for name in ("faults", "gpu_policy") if name in more}
    return came_to(lambda: build_flow(**more).run(engine, **options))


def shown(*words: str) -> str:
    """What a command prints."""
    said = io.StringIO()
    with redirect_stdout(said):
        main(words)
    return said.getvalue()


def mistaken() -> dict[str, Any]:
    """A run whose launcher shows its worker another device than it granted."""
    right = LocalAllocation.bindings

    def wrong(allocator: LocalAllocation, claim_id: str, workload_id: str) -> WorkloadBindings:
        made = right(allocator, claim_id, workload_id)
        masked = made.env["CUDA_VISIBLE_DEVICES"].replace("GPU-00000000", "GPU-00000001")
        return replace(made, env={**made.env, "CUDA_VISIBLE_DEVICES": masked})

    with patch.object(LocalAllocation, "bindings", wrong):
        return asked_of("local")


def crowd() -> dict[str, Any]:
    """Two tasks of one process that each want a GPU of their own."""
    numbers = Numbers(1, name="numbers")
    each = vf.Resources(gpus=1)
    sinks = [Collect(name=f"out-{n}")(Seer(name=f"seer-{n}", resources=each)(numbers)) for n in range(2)]
    return came_to(lambda: vf.Flow(sinks, name="crowd").run("threads"))


def story(holder: int) -> dict[str, object]:
    """All steps, by name."""
    told: dict[str, object] = {
        "none is asked for": [asked_of("threads", gpus=0)["verdict"], "pynvml" in sys.modules],
        "both while one is held": asked_of("threads", gpus=2),
        "the other one": asked_of("local", faults=CRASHES),
        "one by turns": asked_of("threads", gpu_policy="shared"),
        "both by turns": asked_of("threads", gpus=2, gpu_policy="shared"),
        "who holds what": json.loads(shown("gpus", "--json")),
        "a crowd": crowd(),
    }
    os.kill(holder, signal.SIGKILL)
    for _ in range(LOOKS):  # until the kernel has ended it
        told["both after the kill"] = after = asked_of("threads", gpus=2)
        if "code" not in after:
            break
    told["a mistaken mask"] = mistaken()
    told["a sharer"] = asked_of("threads", sharing="cooperative", gib=1)
    return told


if __name__ == "__main__":
    sys.stdout.write(json.dumps(story(int(sys.argv[1]))))
