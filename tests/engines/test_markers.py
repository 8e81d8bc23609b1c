"""Markers on both engines: every replica is given all of them, and nothing waits for them, whatever dies."""

import os
import signal
from pathlib import Path
from typing import Any

import pytest

import videoflow as vf
from tests.engines.flows import Numbers, Rows
from tests.engines.marker_flows import Alarms, Heard, Late, Log, Picky
from videoflow.clock import RealClock
from videoflow.engines._local_run import LocalRun
from videoflow.graph.report import EdgeReport, RunReport, Verdict

ENGINES = ("threads", "local")
DEADLINE_SECONDS = 40.0
KINDS: dict[str, dict[str, Any]] = {
    "competing": {"replicas": 2},
    "partitioned": {"replicas": 2, "partition_by": "source", "ordered": True},
    "fused with what follows": {"fuse": "one"},
}


def run(flow: vf.Flow, engine: str, folder: Path) -> RunReport:
    options: dict[str, Any] = {"runs_folder": folder / "runs"} if engine == "local" else {}
    return flow.start(engine, **options).wait()


def marker_edges(report: RunReport) -> list[EdgeReport]:
    return [edge for edge in report.edges if edge.replica is not None]


def heard(folder: Path) -> dict[str, list[int]]:
    files = sorted(folder.glob("heard-*"))
    return {file.name: [int(line) for line in file.read_text(encoding="ascii").split()] for file in files}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("engine", ENGINES)
def test_every_replica_is_given_every_marker_and_the_ledger_closes(
    engine: str, kind: str, tmp_path: Path
) -> None:
    alarms = Alarms(name="alarms")(Numbers(60, name="numbers"))
    hears = Heard(str(tmp_path), name="hears", **KINDS[kind])(alarms).control(alarms.port("events"))
    last: Any = {"fuse": "one"} if "fuse" in KINDS[kind] else {}
    report = run(vf.Flow([Rows(name="rows", **last)(hears)]), engine, tmp_path)
    assert report.verdict is Verdict.COMPLETE, (report.failure, report.gaps)
    replicas = KINDS[kind].get("replicas", 1)
    wanted = list(range(0, 60, 5))
    assert heard(tmp_path) == {f"heard-{slot}": wanted for slot in range(replicas)}
    assert sorted(report.values["rows"]) == list(range(60))
    edges = marker_edges(report)
    assert [(edge.parent, edge.child, edge.replica) for edge in edges] == [
        ("alarms.events", "hears", slot) for slot in range(replicas)
    ]
    for edge in edges:
        assert (edge.announced, edge.delivered, edge.skipped) == (60, 12, {"skipped": 48})
        assert edge.closed
    assert next(node for node in report.nodes if node.node == "hears").items == 60


@pytest.mark.parametrize("engine", ENGINES)
def test_markers_without_end_hold_nobody_up_and_those_that_come_too_late_are_counted(
    engine: str, tmp_path: Path
) -> None:
    gate = str(tmp_path / "gate")
    log = Log(gate, name="log")(Numbers(3, name="few")).control(Late(12_000, f"{gate}.closed", name="many"))
    report = run(vf.Flow([log]), engine, tmp_path)
    assert report.verdict is Verdict.COMPLETE, (report.failure, report.gaps)
    (edge,) = marker_edges(report)
    assert edge.closed
    assert edge.announced == 12_000 == edge.delivered + sum(edge.dropped.values())
    assert edge.dropped.get("ended", 0) > 0
    rows = [row for row in report.values["log"] if not isinstance(row, dict)]
    assert rows == [0, 1, 2]
    assert len(report.values["log"]) - 3 == edge.delivered


@pytest.mark.parametrize(
    "victims",
    [
        pytest.param(("log-0",), marks=pytest.mark.nightly),
        pytest.param(("alarms-0",), marks=pytest.mark.nightly),
        ("log-0", "alarms-0", "numbers-0"),
    ],
)
def test_killed_writers_and_readers_lose_no_marker_that_waits(
    victims: tuple[str, ...], tmp_path: Path
) -> None:
    gate = tmp_path / "gate"
    alarms = Alarms(name="alarms")(Numbers(300, name="numbers"))
    log = Log(str(gate), 150, name="log")(alarms).control(alarms.port("events"))
    started = vf.Flow([log]).start("local", runs_folder=tmp_path / "runs", restart_backoff_seconds=0.01)
    assert isinstance(started, LocalRun)
    clock = RealClock()
    deadline = clock.monotonic() + DEADLINE_SECONDS
    while not Path(f"{gate}.reached").exists():
        assert clock.monotonic() < deadline
        assert started.wait_for(0.02) is None, "it ended before"
    processes = started.processes()
    for name in victims:
        if name in processes:
            os.kill(processes[name], signal.SIGKILL)
    gate.touch()
    report = started.wait()
    assert report.verdict is Verdict.COMPLETE, (report.failure, report.gaps)
    assert len(started.deaths) > 0
    assert [row for row in report.values["log"] if not isinstance(row, dict)] == list(range(300))
    markers = [row["marker"] for row in report.values["log"] if isinstance(row, dict)]
    assert markers == list(range(0, 300, 5))
    (edge,) = marker_edges(report)
    assert edge.closed
    assert (edge.announced, edge.delivered, edge.dropped) == (300, 60, {})


def test_a_marker_that_is_refused_is_a_dead_letter_of_its_node_and_no_input(tmp_path: Path) -> None:
    alarms = Alarms(name="alarms")(Numbers(10, name="numbers"))
    picky = Picky(name="picky", on_error={"ValueError": "poison"})(alarms).control(alarms.port("events"))
    report = run(vf.Flow([picky]), "threads", tmp_path)
    assert report.verdict is Verdict.INCOMPLETE
    (letter,) = report.dead_letters
    assert letter.node == "picky"
    assert "what is {'alarm': 5}?" in letter.error
    (edge,) = marker_edges(report)
    assert (edge.delivered, edge.dead_lettered, edge.closed) == (1, 1, True)
    data = next(edge for edge in report.edges if edge.child == "picky" and edge.replica is None)
    assert (data.delivered, data.closed) == (10, True)


def test_a_fatal_marker_ends_the_run_by_name(tmp_path: Path) -> None:
    alarms = Alarms(name="alarms")(Numbers(10, name="numbers"))
    picky = Picky(name="picky", on_error={"ValueError": "fatal"})(alarms).control(alarms.port("events"))
    report = run(vf.Flow([picky]), "threads", tmp_path)
    assert report.verdict is Verdict.FAILED
    assert report.failure is not None
    assert report.failure.node == "picky"
