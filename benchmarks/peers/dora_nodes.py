"""dora: a dataflow of three nodes, run by its command line; it drops what a reader's queue does not hold."""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pyarrow as pa
from dora import Node

from benchmarks.work import Job, Maker, Meter, job_of_command, remake

_QUEUE_FRAMES = 16
_QUEUE_SMALL = 1000


def _dataflow(job: Job) -> str:
    queue = _QUEUE_FRAMES if job.kind == "frames" else _QUEUE_SMALL
    here = str(Path(__file__).resolve())

    def node(name: str, source: str, *, out: bool) -> dict[str, object]:
        found: dict[str, object] = {
            "id": name,
            "path": sys.executable,
            "args": f"-m benchmarks.peers.{Path(here).stem} '{job.to_json()}' {name}",
        }
        if source:
            found["inputs"] = {"item": {"source": f"{source}/item", "queue_size": queue}}
        if out:
            found["outputs"] = ["item"]
        return found

    nodes = [node("first", "", out=True), node("middle", "first", out=True), node("end", "middle", out=False)]
    return json.dumps({"nodes": nodes})  # JSON is YAML


def _run_node(job: Job, name: str) -> None:
    node = Node()
    meter = Meter(job)
    if name == "first":
        maker = Maker(job)
        for index in maker.indices():
            node.send_output("item", pa.array(maker.make(index)))
        return
    for event in node:
        if event["type"] == "INPUT":
            item = np.asarray(event["value"])
            if name == "middle":
                node.send_output("item", pa.array(remake(item)))
            else:
                meter.take(item)
                if meter.full:
                    break
        elif event["type"] == "STOP":
            break
    if name == "end":
        meter.finish()


def main() -> None:
    """Runs the pipeline, or one node of it."""
    job = job_of_command()
    if len(sys.argv) > 2:
        _run_node(job, sys.argv[2])
        return
    with tempfile.TemporaryDirectory() as folder:
        flow = Path(folder) / "dataflow.yml"
        flow.write_text(_dataflow(job))
        dora = str(Path(sys.executable).with_name("dora"))
        environment = {**os.environ, "PYTHONPATH": os.getcwd()}
        done = subprocess.run(
            [dora, "run", "--log-level", "error", str(flow)], cwd=folder, env=environment, check=False
        )
        if not Path(job.out).exists():
            sys.exit(f"dora ended with {done.returncode} and no figures")


if __name__ == "__main__":
    main()
