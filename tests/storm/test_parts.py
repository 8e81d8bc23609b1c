"""`kill -9` of the owners of partitions and of their writers: each count and each group is whole."""

import os
import signal
from pathlib import Path
from random import Random

from tests.storm.nodes import in_parts
from videoflow.engines._local_run import LocalRun
from videoflow.graph.report import RunReport, Verdict

KILLS_PER_RUN = 12
TASKS = {"frames": 1, "marked": 2, "counted": 3, "corners": 1, "meeting": 2, "guess": 2}
WORKERS = [f"{task}-{slot}" for task, replicas in TASKS.items() for slot in range(replicas)]


def ran(folder: Path, random: Random | None) -> tuple[RunReport, bytes, int]:
    """Runs the flow; kills one worker after the other, each once another frame was made."""
    folder.mkdir()
    run = in_parts(folder).start("local", runs_folder=folder / "runs", restart_backoff_seconds=0.01)
    assert isinstance(run, LocalRun)
    if random is not None:
        for at in sorted(random.sample(range(2, 50), KILLS_PER_RUN)):
            kill_one(run, folder, random.choice(WORKERS), at)
    report = run.wait()
    return report, (folder / "met.jsonl").read_bytes(), len(run.deaths)


def kill_one(run: LocalRun, folder: Path, worker: str, at: int) -> None:
    calls = folder / "frames.calls"
    while not calls.exists() or calls.read_bytes().count(b"\n") < at:
        if run.wait_for(0.002) is not None:
            return
    pid = run.processes().get(worker)
    if pid is not None:
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:  # it ended just now
            return


def test_partitions_and_joins_lose_nothing_when_their_owners_are_killed(kills: int, tmp_path: Path) -> None:
    plain, written, _ = ran(tmp_path / "plain", None)
    assert plain.verdict is Verdict.COMPLETE
    assert written.count(b"\n") >= 60
    hit = 0
    for seed in range(max(1, kills // 20)):
        report, found, deaths = ran(tmp_path / f"{seed}", Random(seed))
        assert report.verdict is Verdict.COMPLETE, (report.failure, report.gaps, report.dead_letters)
        assert [edge for edge in report.edges if not edge.closed] == []
        assert report.values["rows"] == plain.values["rows"]
        assert sorted(found.splitlines()) == sorted(written.splitlines())
        hit += deaths
    assert hit > 0
