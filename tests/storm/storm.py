"""One run under kills: what was planted, what died, what was done twice, and how soon it went on."""

import os
import signal
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random

from tests.storm.nodes import FRAMES, every_kind
from videoflow.engines._local_replica import Death
from videoflow.engines._local_run import LocalRun
from videoflow.faults import Fault
from videoflow.graph.report import RunReport
from videoflow.planner.plan import CommitOrder, InputMode, Plan, TaskPlan

SOURCE_COMMIT_ITEMS = 64
GROUP_ITEMS = 32
AT_THE_END = ("flush.published", "terminator.sent")
SETTLED = ("settle.sent", "release.before", "shm.settled")
COMMITTED = ("commit.after", "outbox.published", "publish.sent", "publish.accepted", *SETTLED)

# Task → (barrier, hit), in an order in which something is done in between: five deaths without are too many.
# Each process of a task is given the next; an outbox is only published again by one that follows a commit.
BARRIERS: dict[str, tuple[tuple[str, int], ...]] = {
    "frames": (
        ("publish.sent", 3),
        ("source.item", 4),
        ("commit.after", 1),
        ("payload.sealed", 4),
        ("publish.accepted", 3),
        ("process.after", 3),
        ("commit.before", 1),
        ("shm.appended", 3),
        ("shm.committed", 3),
        ("acquire.after", 1),
        ("terminator.sent", 1),
    ),
    "shifted": (
        ("publish.sent", 1),
        ("settle.sent", 1),
        ("receive.after", 1),
        ("process.after", 1),
        ("payload.sealed", 2),
        ("publish.accepted", 1),
        ("process.before", 1),
        ("shm.settled", 1),
        ("release.before", 1),
        ("shm.appended", 1),
        ("shm.committed", 1),
    ),
    "total": (
        ("commit.before", 1),
        ("commit.after", 1),
        ("outbox.published", 1),
        ("receive.after", 1),
        ("settle.sent", 1),
        ("process.before", 1),
        ("publish.sent", 1),
        ("publish.accepted", 1),
        ("acquire.after", 1),
        ("release.before", 1),
        ("flush.published", 1),
        ("terminator.sent", 1),
    ),
    "both": (
        ("process.after", 1),
        ("settle.sent", 1),
        ("publish.sent", 1),
        ("receive.after", 1),
        ("publish.accepted", 1),
        ("process.before", 1),
        ("acquire.after", 1),
        ("release.before", 1),
        ("terminator.sent", 1),
    ),
    "squeezed": (
        ("publish.sent", 1),
        ("receive.after", 1),
        ("settle.sent", 1),
        ("process.after", 1),
        ("process.before", 1),
        ("publish.accepted", 1),
        ("release.before", 1),
        ("terminator.sent", 1),
    ),
    "file": (
        ("effect.done", 5),
        ("commit.before", 1),
        ("commit.after", 1),
        ("receive.after", 1),
        ("settle.sent", 1),
        ("process.before", 1),
        ("acquire.after", 1),
        ("release.before", 1),
    ),
    "rows": (
        ("commit.after", 1),
        ("commit.before", 1),
        ("settle.sent", 1),
        ("receive.after", 1),
        ("process.before", 1),
        ("acquire.after", 1),
        ("release.before", 1),
    ),
}
Wanted = dict[str, list[tuple[str, int]]]


@dataclass(frozen=True)
class Kill:
    """One kill that hit: a row of the table.

    Attributes:
        barrier: Where, or "outside" for a kill at any time.
        task: Of which task.
        attempt: Which start of the replica died.
        redone: Items that it had called user code for and that were called again.
        window: Most that this may be.
        seconds: From the death until the next process was ready to go on.
    """

    barrier: str
    task: str
    attempt: int
    redone: int
    window: int
    seconds: float


@dataclass(frozen=True)
class Outcome:
    """One run.

    Attributes:
        report: Its report.
        written: The bytes of the file that it wrote.
        kills: Those that hit.
    """

    report: RunReport
    written: bytes
    kills: list[Kill]

    @property
    def restarts(self) -> int:
        """Restarts of all tasks."""
        return sum({node.task: node.restarts for node in self.report.nodes}.values())


def some(count: int) -> Wanted:
    """Returns so many barriers, the same number of each task as far as they go."""
    wanted: Wanted = {task: [] for task in BARRIERS}
    for turn in range(max(map(len, BARRIERS.values()))):
        for task, rows in BARRIERS.items():
            if turn < len(rows) and sum(map(len, wanted.values())) < count:
                wanted[task].append(rows[turn])
    return wanted


def undisturbed(folder: Path) -> Outcome:
    """Runs the flow without a kill."""
    return _finished(_start(folder, {}), folder, {})


def at_barriers(folder: Path, wanted: Wanted) -> Outcome:
    """Runs the flow, and kills at barriers."""
    records = {
        task: [folder / f"{task}.{number}.fault" for number in range(len(rows))]
        for task, rows in wanted.items()
    }
    faults = {
        task: tuple(
            Fault(barrier, hit=hit, record=str(record))
            for (barrier, hit), record in zip(rows, records[task], strict=True)
        )
        for task, rows in wanted.items()
    }
    run = _start(folder, faults)
    return _finished(run, folder, {task: tuple(paths) for task, paths in records.items()})


def from_outside(folder: Path, seed: int, count: int) -> Outcome:
    """Runs the flow, and kills workers at any time while they have items before them."""
    random = Random(seed)
    run = _start(folder, {})
    for at in sorted(random.randrange(1, FRAMES - 5) for _ in range(count)):
        _kill_one(run, folder, random, at)
    return _finished(run, folder, {})


def _kill_one(run: LocalRun, folder: Path, random: Random, at: int) -> None:
    """Waits until some task has come so far, then kills one of its processes."""
    task = random.choice(list(BARRIERS))
    while len({number for _, number in _calls(folder, task)}) < at:
        if run.wait_for(0.002) is not None:
            return
    alive = [number for name, number in run.processes().items() if name.rpartition("-")[0] == task]
    if alive:
        try:
            os.kill(random.choice(alive), signal.SIGKILL)
        except ProcessLookupError:  # it ended just now: no kill, and none is counted
            return


def _start(folder: Path, faults: Mapping[str, tuple[Fault, ...]]) -> LocalRun:
    run = every_kind(folder).start(
        "local", runs_folder=folder / "runs", faults=dict(faults), restart_backoff_seconds=0.01
    )
    assert isinstance(run, LocalRun)
    return run


def _finished(run: LocalRun, folder: Path, records: Mapping[str, Sequence[Path]]) -> Outcome:
    report = run.wait()
    barriers = {}
    for paths in records.values():
        for path in paths:
            if path.exists():
                barrier, pid = path.read_text(encoding="utf-8").split()
                barriers[int(pid)] = barrier
    kills = [
        _kill(death, barriers.get(death.pid, "outside"), run.plan, folder)
        for death in run.deaths
        if death.pid in barriers or not records
    ]
    return Outcome(
        report, (folder / "totals.jsonl").read_bytes(), [kill for kill in kills if kill is not None]
    )


def _kill(death: Death, barrier: str, plan: Plan, folder: Path) -> Kill | None:
    """Returns the row of a death; None where it came after the task's last item, and so proves nothing."""
    task = plan.task(death.replica.rpartition("-")[0])
    calls = _calls(folder, task.name)
    mine = {number for pid, number in calls if pid == death.pid}
    last = max((at for at, (pid, _) in enumerate(calls) if pid == death.pid), default=-1)
    after = [number for _, number in calls[last + 1 :]] if last >= 0 else [n for _, n in calls]
    later = {number for pid, number in calls[last + 1 :] if pid != death.pid}
    if not after and barrier not in AT_THE_END and not _was_held(task, barrier):
        return None
    assert death.how == "killed by SIGKILL", death
    seconds = 0.0 if death.recovered_at is None else death.recovered_at - death.at
    return Kill(barrier, task.name, death.incarnation, len(mine & later), _window(task, barrier), seconds)


def _was_held(task: TaskPlan, barrier: str) -> bool:
    """A sink's last checkpoint comes after its last item, and is what the barrier is about."""
    return task.checkpoint_items > 0 and barrier in (*SETTLED, "commit.before", "commit.after")


def _window(task: TaskPlan, barrier: str) -> int:
    """Returns the most that may be redone by the table of crashes: nothing that was committed or settled."""
    if task.mode is InputMode.SOURCE:
        return SOURCE_COMMIT_ITEMS
    if barrier in SETTLED or (task.order is CommitOrder.OUTBOX and barrier in COMMITTED):
        return task.checkpoint_items
    if barrier in AT_THE_END:
        return 0
    return GROUP_ITEMS + task.checkpoint_items


def _calls(folder: Path, task: str) -> list[tuple[int, int]]:
    """Returns (process, number) of every call of user code of a task, in their order."""
    path = folder / f"{task}.calls"
    if not path.exists():
        return []
    rows = (line.split() for line in path.read_text(encoding="ascii").splitlines())
    return [(int(pid), int(number)) for pid, number in rows]
