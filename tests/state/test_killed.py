"""Processes are killed: what nodes keep in themselves, and what sinks did outside, is as without a death."""

import sqlite3
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import videoflow as vf
from tests.state.nodes import Counted, Numbers, Smoothed, Upserts
from videoflow.adapters.sqlite import SqliteStore
from videoflow.backends.outcomes import Known
from videoflow.clock import RealClock
from videoflow.faults import Fault, FaultAction

COUNT = 400  # several commits of each
PLAN: Mapping[str, tuple[tuple[str, int], ...]] = {
    "mean": (("commit.before", 2), ("commit.after", 2)),
    "shared": (("commit.after", 1),),
    "table": (("commit.before", 1), ("settle.sent", 1)),
    "wide": (("settle.sent", 1),),
}


def flow_of(folder: Path) -> vf.Flow:
    """A fused pair of nodes with snapshots, a partitioned one, and sinks with effect keys below them.

    One of the sinks has replicas that share its input.
    """
    numbers = Numbers(COUNT, name="numbers")
    mean = Smoothed(name="mean", fuse="pair")(numbers)
    counted = Counted(name="counted", fuse="pair")(mean)
    shared = Counted(name="shared", partition_by="key", replicas=2)(numbers)
    table = Upserts(str(folder / "table.db"), name="table")(counted)
    wide = Upserts(str(folder / "wide.db"), name="wide", replicas=2, ordered=False)(shared)
    return vf.Flow([table, wide], name="killed")


def told(folder: Path, name: str) -> tuple[list[str], int]:
    """The rows of a database, and how often something was put into it."""
    with sqlite3.connect(folder / f"{name}.db") as database:
        rows = sorted(value for (value,) in database.execute("SELECT value FROM rows"))
        (calls,) = database.execute("SELECT COUNT(*) FROM calls").fetchone()
    database.close()
    return rows, calls


def marks_left(folder: Path) -> list[str]:
    """What the records of a run still say of single inputs."""
    store = SqliteStore(folder / "run.sqlite", RealClock())
    try:
        found = store.scan("run/", deadline=RealClock().monotonic() + 10)
        assert isinstance(found, Known)
        return [key for key in found.value if "/once/" in key]
    finally:
        store.close()


def test_what_nodes_keep_and_sinks_do_is_the_same_whoever_dies(tmp_path: Path) -> None:
    calm, stormy = tmp_path / "calm", tmp_path / "stormy"
    for folder in (calm, stormy):
        folder.mkdir()
    assert flow_of(calm).run().verdict == "complete"
    record = str(tmp_path / "hits")
    faults = {
        task: tuple(Fault(barrier, FaultAction.CRASH, hit, record) for barrier, hit in plan)
        for task, plan in PLAN.items()
    }
    options: Any = {"runs_folder": tmp_path / "runs", "faults": faults, "restart_backoff_seconds": 0.01}
    report = flow_of(stormy).run("local", **options)
    hits = Path(record).read_text(encoding="ascii").splitlines()
    assert len(hits) == sum(map(len, PLAN.values())), "a fault did not fire"
    assert report.verdict == "complete"

    rows, calls = told(calm, "table")
    assert calls == COUNT
    assert sorted(row.partition("]")[2] for row in rows) == sorted(
        f", {n}, {n}]" for n in range(1, COUNT + 1)
    )
    again, calls = told(stormy, "table")
    assert again == rows, "what a node keeps in itself is not what it was"
    assert calls > COUNT, "nothing was put twice, so that nothing was shown"
    assert told(stormy, "wide")[0] == told(calm, "wide")[0]
    assert marks_left(Path(report.folder)) == [], "marks outlive the inputs that they are of"
