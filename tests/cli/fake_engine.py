"""An engine for tests of the command line: it runs nothing, and behaves as the flow's name says.

It is found as any engine of a third party is, through an entry point. Words in the name of the flow:
`endless` (goes on until it is stopped), `stubborn` (until it is stopped twice), `deaf` (for ever), `failing`,
`letters`, `refusing` (does not start), `noting` (writes down what the flow was built with).
"""

import json
import sys
import threading
from pathlib import Path

from videoflow.engines.run_folder import RunFolder
from videoflow.errors import MemoryShort
from videoflow.graph.report import (
    DeadLetterReport,
    EdgeReport,
    FailureReport,
    NodeReport,
    RunReport,
    SourceReport,
    Verdict,
)
from videoflow.graph.running import NodeStatus, RunPhase, RunRequest, RunStatus

RUN_ID = "01K1BBBBBBBBBBBBBBBBBBBBBB"
FAILURE = FailureReport(
    code="VF-NODE-FAILED",
    message="node broken, frame 3 of a.mp4 (0.120 s)",
    node="broken",
    cause="KeyError: 'x'",
    where="flow.py:9 in process",
    effect="the run was aborted",
    remedy="mend the node and run again",
)


def say(line: str) -> None:
    """Prints a line at once."""
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


class FakeEngine:
    """See the module."""

    name = "fake"

    def start(self, request: RunRequest) -> "FakeRun":
        """Says on standard output what it was started with, so that a test can wait for it."""
        if "refusing" in request.spec.flow_id:
            raise MemoryShort("there is no room", cause="1 B left", remedy="buy some")
        if "noting" in request.spec.flow_id:
            Path("seen.json").write_text(json.dumps(request.spec.nodes[0].arguments["note"]))
        made = FakeRun(request)
        say(f"started {request.spec.flow_id} {request.options.memory_bytes}")
        return made


class FakeRun:
    """A run that makes an item each time that it is looked at."""

    run_id = RUN_ID

    def __init__(self, request: RunRequest) -> None:
        self.name = request.spec.flow_id
        root = request.options.runs_folder
        self.folder = RunFolder.create(root, RUN_ID, engine="fake", flow_id=self.name)
        self.nodes = [node.name for node in request.spec.nodes]
        self.stops = 0
        self.items = 0
        self.over = threading.Event()

    def stop(self) -> None:
        """Ends the run, a stubborn one at the second time."""
        self.stops += 1
        say(f"stop {self.stops}")
        if "deaf" not in self.name and (self.stops > 1 or "stubborn" not in self.name):
            self.over.set()

    def wait(self) -> RunReport:
        """Blocks until it has ended."""
        self.over.wait()
        return self.report()

    def wait_for(self, seconds: float) -> RunReport | None:
        """Ends after three looks, unless it is to go on."""
        goes_on = any(word in self.name for word in ("endless", "stubborn", "deaf"))
        if self.items >= 3 and not goes_on:
            self.over.set()
        ended = self.over.wait(seconds if goes_on else 0)
        return self.report() if ended else None

    def status(self) -> RunStatus:
        """Returns one more item than before, ten seconds later."""
        self.items += 1
        first, *rest = self.nodes
        nodes = [NodeStatus(first, self.items * 10, expected=40)]
        nodes += [NodeStatus(node, self.items * 10 - 5, None, 0.04, 5) for node in rest]
        return RunStatus(RUN_ID, RunPhase.RUNNING, self.items * 10.0, tuple(nodes))

    def report(self) -> RunReport:
        """Returns an account that fits the name."""
        failing, letters = "failing" in self.name, "letters" in self.name
        if failing:
            verdict, status = Verdict.FAILED, 4
        elif self.stops:
            verdict, status = Verdict.STOPPED, 0
        else:
            verdict, status = (Verdict.INCOMPLETE, 1) if letters else (Verdict.COMPLETE, 0)
        made = RunReport(
            run_id=RUN_ID,
            flow_id=self.name,
            engine="fake",
            verdict=verdict,
            exit_status=status,
            sources=[SourceReport(node=self.nodes[0], outcome="complete", items=40, detail="a.mp4")],
            edges=[
                EdgeReport(
                    parent=self.nodes[0],
                    child=self.nodes[-1],
                    announced=40,
                    delivered=39 if letters else 40,
                    dead_lettered=int(letters),
                )
            ],
            nodes=[NodeReport(node=node, task=node, items=40, p50_seconds=0.04) for node in self.nodes],
            dead_letters=[_letter(self.nodes[-1])] if letters else [],
            failure=FAILURE if failing else None,
            seconds=30.0,
            folder=str(self.folder.path),
        )
        self.folder.write_report(made)
        return made


def _letter(node: str) -> DeadLetterReport:
    return DeadLetterReport(
        label="3-7f3a", node=node, error="ValueError: no", attempts=4, origin="numbers/0/3"
    )


def register_in(folder: Path) -> None:
    """Makes the engine known to whoever has this folder on the import path."""
    metadata = folder / "fake_engine-1.dist-info"
    metadata.mkdir(parents=True)
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: fake-engine\nVersion: 1\n")
    (metadata / "entry_points.txt").write_text(
        "[videoflow.engines]\nfake = tests.cli.fake_engine:FakeEngine\n"
    )
