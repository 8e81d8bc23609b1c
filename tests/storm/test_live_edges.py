"""Kills where items may be lost by design: what is lost is counted, and nothing else is."""

from pathlib import Path

import videoflow as vf
from tests.storm.nodes import FRAMES, Frames, Live, Rows, Slow
from videoflow.faults import Fault
from videoflow.graph.report import RunReport, Verdict


def ran(flow: vf.Flow, folder: Path, task: str, *faults: Fault) -> RunReport:
    """Runs a flow, and makes sure that every fault fired."""
    handle = flow.start("local", runs_folder=folder / "runs", faults={task: faults})
    report = handle.wait()
    assert all(Path(fault.record).exists() for fault in faults)
    return report


def test_a_source_killed_while_it_evicts_loses_nothing_silently(tmp_path: Path) -> None:
    slow = Slow(name="slow")
    flow = vf.Flow([slow(Frames(str(tmp_path), name="frames").latest(capacity=2))])
    faults = [Fault("tombstone.before", hit=hit, record=str(tmp_path / f"{hit}.fault")) for hit in (3, 1)]
    report = ran(flow, tmp_path, "frames", *faults)
    assert report.verdict is Verdict.COMPLETE
    kept = report.values["slow"]
    assert kept == sorted(set(kept))
    (edge,) = report.edges
    assert edge.closed
    assert edge.announced == FRAMES == edge.delivered + sum(edge.dropped.values())
    assert edge.delivered == len(kept)
    assert next(node for node in report.nodes if node.node == "frames").restarts == len(faults)


def test_a_live_source_that_dies_opens_a_new_epoch(tmp_path: Path) -> None:
    flow = vf.Flow([Rows(str(tmp_path), "rows", name="rows")(Live(name="live"))])
    report = ran(flow, tmp_path, "live", Fault("source.item", hit=30, record=str(tmp_path / "fault")))
    assert report.verdict is Verdict.COMPLETE
    rows = report.values["rows"]
    before = rows[: rows.index(0, 1)]
    assert before == list(range(len(before)))
    assert rows[len(before) :] == list(range(FRAMES))
    assert all(edge.closed for edge in report.edges)
