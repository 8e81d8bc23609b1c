"""Searches for schedules that break a promise, and shows that it would find them.

python -m tools.simulate search 100000 2    so many schedules, in so many processes, and what they hit
python -m tools.simulate defects            each planted defect, until the simulation notices it
python -m tools.simulate replay 17 '{…}'    one schedule of one graph, as a search printed it
python -m tools.simulate part 50000 0 2 1   one process of a search: schedules, seed, step, most to be found
"""

import json
import re
import shlex
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec

from tests.promises.planting import ROOT, Change, Planted
from tests.simulation.defects import DEFECTS
from videoflow.graph import compile_flow
from videoflow.simulation import Schedule, Simulation, Table, explore, graph_of, shrink, story, subject_of
from videoflow.simulation import _library as library
from videoflow.simulation._table import why_not

MOST = 2000
_SECONDS = 1200.0
LEAST_HITS = 100
_NO_PYTHON = re.compile(r"\b(Name|UnboundLocal|Attribute|Type|Syntax|Indentation|Import)Error\b")


def search(schedules: int, processes: int) -> int:
    """Searches, prints the table of what was hit, and tells the first schedule that broke a promise."""
    began = time.monotonic()
    command = [sys.executable, "-m", "tools.simulate", "part"]
    share = -(-schedules // processes)
    running = [
        subprocess.Popen(
            [*command, str(share), str(number), str(processes), "1"],
            cwd=ROOT,
            stdout=subprocess.PIPE,
            text=True,
        )
        for number in range(processes)
    ]
    documents: list[dict[str, Any]] = [json.loads(process.communicate()[0]) for process in running]
    table = Table(
        ((point, action, kind), count)
        for document in documents
        for point, action, kind, count in document["table"]
    )
    print("\n".join(table.lines()))
    counted = sum(document["counted"] for document in documents)
    empty = sum(document["empty"] for document in documents)
    graphs = sum(document["graphs"] for document in documents)
    seconds = time.monotonic() - began
    print(f"\n{counted} schedules of {graphs} graphs in {seconds:.0f} s on {processes} processes")
    print(f"{empty} more injected nothing, and are not counted")
    rare = table.missing(LEAST_HITS)
    for point, action, kind in rare:
        print(f"hit less than {LEAST_HITS} times: {action} at {point} of a {kind}")
    beyond = [hit for hit in table.counts if why_not(hit[0], hit[2])]
    for point, action, kind in beyond:
        print(f"hit, and it has no cell: {action} at {point} of a {kind}")
    found = [found for document in documents for found in document["found"]]
    for graph, schedule, _ in found[:1]:
        print("\n".join(told(graph, schedule)))
    return 1 if found or beyond else 0


def told(graph: int, schedule: dict[str, Any] | None) -> list[str]:
    """Returns the story of a schedule that broke a promise, as small as it goes, and how to replay it."""
    simulation = graph_of(graph)
    if schedule is None:
        return [f"graph {graph} breaks a promise without faults:", *simulation.broken]
    replayed = msgspec.convert(schedule, Schedule)
    again = f"python -m tools.simulate replay {graph} {shlex.quote(json.dumps(schedule))}"
    return [again, *story(simulation, shrink(simulation, simulation.run(replayed)))]


def noticed(defect: Change, folder: Path, schedules: int = MOST) -> dict[str, Any]:
    """Plants a defect, and returns what a search on the copy saw.

    Code that does not run would be noticed by anything. So what was found is `broken`, and not `found`, where
    Python itself objected to what was planted, and where it lets not even a source and a sink work.

    Args:
        defect: What to plant.
        folder: Where the copy goes.
        schedules: At most so many that count.
    """
    planted = Planted(folder, [defect])
    ran = planted.run("-m", "tools.simulate", "part", str(schedules), "0", "1", "1", seconds=_SECONDS)
    if ran.status:
        return {"counted": 0, "found": [], "broken": ran.output.splitlines()[-1:]}
    document: dict[str, Any] = json.loads(ran.output.splitlines()[-1])
    said = [violation for _, _, violations in document["found"] for violation in violations]
    document["broken"] = document.pop("simplest") + [v for v in said if _NO_PYTHON.search(v)]
    if document["broken"]:
        document["found"] = []
    return document


def _simplest() -> list[str]:
    """Returns what a source and a sink break without faults."""
    flow = compile_flow([library.Sink(name="sink")(library.Source(3, name="source"))], "simplest", "/")
    return list(Simulation(subject_of(flow, own_state=True)).broken)


def defects() -> int:
    """Prints, for each planted defect, how many schedules that count it took to notice it."""
    missed = 0
    print(f"{'schedules':>9}  {'defect':<66}  first violation")
    for name in DEFECTS:
        with tempfile.TemporaryDirectory() as folder:
            seen = noticed(DEFECTS[name], Path(folder))
        found = seen["found"]
        missed += not found
        schedules = str(seen["counted"]) if found else "-"
        violation = found[0][2][0] if found else f"not noticed within {MOST}"
        violation = f"it does not run: {seen['broken'][0]}" if seen["broken"] else violation
        print(f"{schedules:>9}  {name:<66}  {violation[:90]}", flush=True)
    print(f"\n{len(DEFECTS) - missed} of {len(DEFECTS)} defects noticed within {MOST} schedules")
    return 1 if missed else 0


def part(schedules: int, seed: int, step: int, most: int) -> int:
    """Searches in this process, on whichever copy of the product it finds, and prints one line of JSON."""
    found = explore(schedules, seed, step=step, most_found=most)
    document = {
        "counted": found.counted,
        "empty": found.empty,
        "graphs": found.graphs,
        "simplest": _simplest(),
        "table": [[*hit, count] for hit, count in sorted(found.table.counts.items())],
        "found": [
            [each.graph, msgspec.to_builtins(each.schedule), list(each.violations)] for each in found.found
        ],
    }
    print(json.dumps(document))
    return 0


def main(arguments: Sequence[str]) -> int:
    """Runs one of the commands."""
    if arguments[:1] == ["part"]:
        schedules, seed, step, most = map(int, arguments[1:])
        return part(schedules, seed, step, most)
    if arguments[:1] == ["replay"]:
        print("\n".join(told(int(arguments[1]), json.loads(arguments[2]))))
        return 0
    if arguments[:1] == ["search"]:
        schedules, processes = (*map(int, arguments[1:]), 2)[:2] if len(arguments) > 1 else (100_000, 2)
        return search(schedules, processes)
    return defects()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
