"""One replica of a task over all its incarnations: restarts, budget, figures.

Used by the supervisor of the local engine. It counts deaths without progress, and refuses more than five.
"""

from dataclasses import dataclass, field

import msgspec

from videoflow.backends.runtime import FirstFailure
from videoflow.engines._local_worker import WorkerProcess
from videoflow.errors import NodeFailed
from videoflow.planner.plan import TaskPlan
from videoflow.processes import is_halted
from videoflow.worker import NodeFigures, Spending
from videoflow.worker.link import Broken

DEATHS_IN_A_ROW = 5
_LONGEST_BACKOFF_SECONDS = 5.0


@dataclass
class Death:
    """One death of a worker that had not ended.

    Attributes:
        replica: `task-slot`.
        incarnation: Which start of it, from 1.
        pid: Its process number.
        how: In words.
        at: Monotonic seconds.
        recovered_at: When the nodes of the next incarnation were open, or None.
    """

    replica: str
    incarnation: int
    pid: int
    how: str
    at: float
    recovered_at: float | None = None


@dataclass
class Replica:
    """A slot of a task, and the process that fills it now.

    Attributes:
        task: Which task.
        slot: Which replica of it.
        process: The live incarnation, or None.
        incarnations: Started so far.
        deaths: In a row without progress.
        restarts: Starts after a death.
        restart_at: Monotonic seconds of the next start, or None.
        kind: Kind of the terminator with which it ended, or None.
        done: It needs no process any more.
        given_up: No incarnation of it can work any more.
        abandoning: It is only to settle what waits.
        broken: What the live incarnation said of its own end.
        ended: The live incarnation said that it is done.
        end_by: Until when it may take to exit.
        lost: Why it never ended, or "".
        how: How the last incarnation died, in words, or "".
        killed_for: Why the engine killed the live incarnation, or "".
        opened: The nodes of the live incarnation are open, as far as they are to be.
        steps: What the dead incarnations did, as `moved` counts it.
    """

    task: TaskPlan
    slot: int
    process: WorkerProcess | None = None
    incarnations: int = 0
    deaths: int = 0
    restarts: int = 0
    restart_at: float | None = None
    kind: str | None = None
    done: bool = False
    given_up: bool = False
    abandoning: bool = False
    broken: Broken | None = None
    ended: bool = False
    end_by: float | None = None
    lost: str = ""
    how: str = ""
    killed_for: str = ""
    opened: bool = False
    steps: int = 0
    _past: dict[str, NodeFigures] = field(default_factory=dict)
    _current: dict[str, NodeFigures] = field(default_factory=dict)
    _past_spending: Spending = field(default_factory=Spending)
    _spending: Spending | None = None

    @property
    def name(self) -> str:
        """As in the names of logs."""
        return f"{self.task.name}-{self.slot}"

    @property
    def calling(self) -> tuple[str, float] | None:
        """The node in whose code it is, since when, or None."""
        return self.process.page.calling if self.process is not None else None

    @property
    def busy(self) -> bool:
        """Whether it may be busy without a sign: opening its nodes, in a call, or ending.

        A process that somebody has stopped by a signal is not.
        """
        if self.process is None or not (not self.opened or self.ended or self.calling is not None):
            return False
        return not is_halted(self.process.pid)

    def moved(self) -> int:
        """Counts the steps of all incarnations."""
        return self.steps + (self.process.page.steps if self.process is not None else 0)

    def started(self, process: WorkerProcess) -> None:
        """Notes a new incarnation."""
        self.process, self.restart_at = process, None
        self.incarnations += 1
        self.broken, self.ended, self.end_by = None, False, None
        self.opened = self.abandoning

    def told_figures(self, nodes: dict[str, NodeFigures], spending: Spending | None) -> None:
        """Takes the newest figures of the live incarnation."""
        self._current, self._spending = nodes, spending

    def figures(self) -> dict[str, NodeFigures]:
        """Returns the figures over all incarnations, those of a dead one as it said them last."""
        total = {name: NodeFigures() for name in self.task.nodes}
        for figures in (self._past, self._current):
            for name, found in figures.items():
                total[name].add(found)
        return total

    def spending(self) -> Spending:
        """Returns where the time of all incarnations went, as far as they said."""
        total = Spending(parts={})
        for spent in (self._past_spending, self._spending):
            if spent is not None:
                total.add(spent)
        return total

    def died(self, now: float, backoff_seconds: float) -> None:
        """Notes the death of the live incarnation, and when the next may start."""
        assert self.process is not None
        page = self.process.page
        self.deaths = 0 if page.moved else self.deaths + 1
        self.steps += page.steps
        self._past, self._current = self.figures(), {}
        self._past_spending, self._spending = self.spending(), None
        self.process = None
        wait = backoff_seconds * 2 ** (self.deaths - 1) if self.deaths else 0.0
        self.restart_at = now + min(wait, _LONGEST_BACKOFF_SECONDS)


def given_up(replica: Replica, how: str, calling: tuple[str, float] | None, log: str) -> FirstFailure:
    """Returns the failure of a run one of whose replicas died too often, or said that it cannot start.

    Args:
        replica: Which one; its `broken` is what the last incarnation said.
        how: How the last incarnation ended.
        calling: In whose code it was then, or None.
        log: The last lines that it wrote.
    """
    broken = replica.broken
    if broken is not None and not broken.again:
        return broken.failure
    node = calling[0] if calling is not None else replica.task.nodes[0]
    place = f"in node {node}" if calling is not None else f"of task {replica.task.name}"
    message = f"the process {place} died {replica.deaths} times in a row"
    if broken is not None:
        return msgspec.structs.replace(broken.failure, node=node, message=message)
    return FirstFailure(
        node=node,
        code=NodeFailed.code,
        message=message,
        cause=how if not log else f"{how}; its log ends with\n{log}",
        where=f"logs/{replica.name}.log",
        remedy="mend the node or what it uses, and run again",
        exit_status=NodeFailed.exit_status,
    )
