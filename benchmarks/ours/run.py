"""Runs one benchmark flow, and adds its ledger to what its consumer measured.

Run by the benchmarks as `python -m benchmarks.ours.run JOB FLOW`; the flows stand in `FLOWS`. Default options
throughout: the engine alone is named. It refuses a run whose verdict is not `complete`.
"""

import json
import sys
import time
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import videoflow as vf
from benchmarks.ours.nodes import Add, Count, Forward, Join, Remake, Sink, Source, Tally, Weighed
from benchmarks.work import Job, job_of_command, write_figures
from videoflow.graph.report import RunReport

CHAIN = 8
BRANCHES = 4


def pipeline(job: Job, *, own: bool = False) -> vf.Flow:
    """Producer, processor, consumer: three processes."""
    argument = asdict(job)
    source = Source(argument, own, name="source")
    middle = Forward(name="forward")(source) if job.forward else Remake(own, name="remake")(source)
    return vf.Flow([Sink(argument, name="sink")(middle)], name="pipeline")


def fan(job: Job) -> vf.Flow:
    """One source, four that hand on, and a join: six processes."""
    argument = asdict(job)
    source = Source(argument, name="source")
    branches = [Forward(name=f"forward-{n}")(source) for n in range(BRANCHES)]
    return vf.Flow([Join(argument, name="join")(*branches)], name="fan")


def chain(job: Job, nodes: int = CHAIN, *, fuse: str | None = None) -> vf.Flow:
    """Cheap nodes in a row."""
    last: vf.Node = Count(job.items, name="source", fuse=fuse)
    for number in range(nodes):
        last = Add(name=f"add-{number}", fuse=fuse)(last)
    return vf.Flow([Tally(job.items, job.warm, job.out, name="sink", fuse=fuse)(last)], name="chain")


def memory(job: Job) -> vf.Flow:
    """Small items through a node that weighs itself."""
    argument = asdict(job)
    weighed = Weighed(job.items, f"{job.out}.memory", name="weigh")(Source(argument, name="source"))
    return vf.Flow([Sink(argument, name="sink")(weighed)], name="memory")


FLOWS: dict[str, tuple[str, Callable[[Job], vf.Flow]]] = {
    "pipeline": ("local", pipeline),
    "pipeline-own": ("local", lambda job: pipeline(job, own=True)),
    "fan": ("local", fan),
    "chain-fused": ("local", lambda job: chain(job, fuse="all")),
    "bare-fused": ("local", lambda job: chain(job, 0, fuse="all")),
    "chain-threads": ("threads", chain),
    "chain-local": ("local", chain),
    "one-threads": ("threads", lambda job: chain(job, 1)),
    "one-local": ("local", lambda job: chain(job, 1)),
    "memory": ("local", memory),
}


def ledger(report: RunReport) -> str:
    """Returns the account of a run in one line."""
    lines = [
        f"{edge.parent}->{edge.child} {edge.announced}={edge.delivered}"
        f"{'' if edge.closed else ' DOES NOT CLOSE'}"
        for edge in report.edges
    ]
    lost = sum(sum(edge.dropped.values()) + edge.dead_lettered + edge.abandoned for edge in report.edges)
    return f"{report.verdict}; {', '.join(lines)}; lost {lost}"


def main() -> None:
    """Runs a flow and writes the figures."""
    job = job_of_command()
    engine, build = FLOWS[sys.argv[2]]
    flow = build(job)
    began = time.monotonic()
    handle = flow.start(engine=engine)
    report = handle.wait()
    ended = time.monotonic()
    if report.verdict != "complete" or any(not edge.closed for edge in report.edges):
        sys.exit(f"the run is not complete: {ledger(report)}")
    figures: dict[str, Any] = json.loads(Path(job.out).read_text())
    if "first" in figures:
        figures |= {"start_seconds": figures["first"] - began, "stop_seconds": ended - figures["last"]}
    weight = Path(f"{job.out}.memory")
    if weight.exists():
        figures |= json.loads(weight.read_text())
    busy = {node.node: node.busy_share for node in report.nodes}
    write_figures(job.out, {**figures, "ledger": ledger(report), "busy": busy})


if __name__ == "__main__":
    main()
