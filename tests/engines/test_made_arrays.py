"""Arrays that nodes make for their outputs, in whole runs: where they lie, and what deaths leave of them."""

from pathlib import Path
from typing import Any

import pytest

import videoflow as vf
from tests.engines.flows import Numbers, Rows
from tests.engines.made_flows import (
    After,
    Before,
    Counts,
    Halves,
    Images,
    Keeps,
    Places,
    Prepares,
    Told,
)
from videoflow.faults import Fault
from videoflow.graph.report import RunReport, Verdict
from videoflow.testing import drive

COUNT = 100
OFTEN = 40  # deaths at barriers are charged to the input in work, and must not use up its attempts


def ran(flow: vf.Flow, folder: Path, **faults: list[tuple[str, int]]) -> RunReport:
    """Runs a flow whose tasks die at these hits of these barriers, one after another."""
    records = {
        task: [folder / f"{task}.{number}" for number in range(len(rows))] for task, rows in faults.items()
    }
    planted = {
        task: tuple(
            Fault(barrier, hit=hit, record=str(record))
            for (barrier, hit), record in zip(rows, records[task], strict=True)
        )
        for task, rows in faults.items()
    }
    report = flow.start(
        "local", runs_folder=folder / "runs", faults=planted, restart_backoff_seconds=0.01
    ).wait()
    assert report.verdict is Verdict.COMPLETE, (report.failure, report.dead_letters)
    assert all(edge.closed for edge in report.edges)
    assert [p.name for each in records.values() for p in each if not p.exists()] == [], "nobody died there"
    return report


def test_an_array_is_read_from_where_it_was_made(tmp_path: Path) -> None:
    flow = vf.Flow([Places(name="one")(images := Images(COUNT, name="images")), Places(name="two")(images)])
    report = ran(flow, tmp_path)
    for reader in ("one", "two"):
        rows: Any = report.values[reader]
        assert [number for number, _, _ in rows] == list(range(COUNT))
        stored = [(there, here) for _, there, here in rows if there is not None]
        assert len(stored) > 1, "none was made in the store"
        assert all(there == here for there, here in stored), "a copy was made"


@pytest.mark.parametrize("engine", ["threads", "drive"])
def test_elsewhere_it_is_an_array_like_any_other(engine: str) -> None:
    if engine == "drive":
        made = drive(Images(COUNT), [])
        assert [int(each["image"][0, 0]) for each in made] == list(range(COUNT))
        assert [each["made"] for each in made] == [None] * COUNT
        assert not any(each["image"].flags.writeable for each in made)
    else:
        report = vf.Flow([Places(name="rows")(Images(COUNT, name="images"))]).run()
        assert report.values["rows"] == [[number, None, None] for number in range(COUNT)]


def test_what_is_kept_is_emitted_again_and_deaths_leave_it_as_it_was(tmp_path: Path) -> None:
    keeps = Keeps(name="keeps", retries=OFTEN)(Numbers(COUNT, name="numbers"))
    flow = vf.Flow([Told(name="one")(keeps), Told(name="two")(keeps)])
    deaths = [("publish.sent", 1), ("settle.sent", 1), ("payload.sealed", 2), ("publish.accepted", 1)]
    report = ran(flow, tmp_path, keeps=deaths)
    assert report.values["one"] == report.values["two"] == [n - n % 10 for n in range(COUNT)]


def test_what_was_committed_is_published_whatever_dies(tmp_path: Path) -> None:
    counts = Counts(name="counts", retries=OFTEN)(Numbers(COUNT, name="numbers"))
    deaths = [("commit.after", 1), ("payload.sealed", 3), ("settle.sent", 1), ("outbox.published", 1)]
    report = ran(vf.Flow([Told(name="told")(counts)]), tmp_path, counts=deaths)
    assert report.values["told"] == list(range(1, COUNT + 2))


def test_what_is_made_before_an_outbox_is_published_again_is_not_made_in_its_place(tmp_path: Path) -> None:
    path = tmp_path / "places"
    prepares = Prepares(str(path), name="prepares", retries=OFTEN)(Numbers(COUNT, name="numbers"))
    report = ran(vf.Flow([Told(name="told")(prepares)]), tmp_path, prepares=[("commit.after", 1)] * 2)
    assert report.values["told"] == list(range(1, COUNT + 2))
    assert path.read_text(encoding="ascii").split() == ["None"] * 6


def test_two_ports_and_several_readers_share_one_array(tmp_path: Path) -> None:
    halves = Halves(name="halves", retries=OFTEN)(Numbers(COUNT, name="numbers"))
    flow = vf.Flow(
        [
            Told(name="whole")(halves.port("whole")),
            Told(name="half")(halves.port("half")),
            Told(name="both")(halves.port("whole"), halves.port("half")),
        ]
    )
    report = ran(flow, tmp_path, halves=[("publish.sent", 1), ("payload.sealed", 2)])
    assert report.values["whole"] == report.values["half"] == list(range(COUNT))
    assert report.values["both"] == [[number, number] for number in range(COUNT)]


def test_only_what_leaves_its_task_is_made_there(tmp_path: Path) -> None:
    before = Before(name="before", fuse="pair")(Numbers(COUNT, name="numbers"))
    report = ran(vf.Flow([Rows(name="rows")(After(name="after", fuse="pair")(before))]), tmp_path)
    rows: Any = report.values["rows"]
    assert [number for number, _, _ in rows] == list(range(COUNT))
    assert all(inner is None for _, inner, _ in rows)
    assert any(outer is not None for _, _, outer in rows)
