"""Runs a subject under schedules: one at a time, chosen by seed, compared with runs without faults.

Used by the search, by `videoflow simulate`, by tests.
"""

import random
from dataclasses import dataclass

from videoflow.planner.plan import CommitOrder
from videoflow.simulation._account import Outcome, outcome_of
from videoflow.simulation._judge import judge
from videoflow.simulation._run import SimulatedRun
from videoflow.simulation._schedule import PlannedFault, Schedule, choose_faults
from videoflow.simulation._subject import Subject, kind_of
from videoflow.simulation._telling import Event

MOST_FAULTS = 4
_STOPS = 0.05
_RARE = {"join outbox": 9, "live source": 5, "ordered": 5, "keeping sink": 4, "ordered outbox": 3, "join": 2}
Hit = tuple[str, str, str]
"""(point, action, kind of task)."""


@dataclass(frozen=True)
class Result:
    """What came of one schedule.

    Attributes:
        schedule: It.
        violations: What may not be, in sentences; empty: all is well.
        fired: Faults that happened.
        hits: For the table.
        stopped: It was asked to stop, and had not ended yet.
        steps: How many steps it took.
        story: What happened, where it was to be told.
    """

    schedule: Schedule
    violations: tuple[str, ...]
    fired: tuple[PlannedFault, ...]
    hits: tuple[Hit, ...]
    stopped: bool
    steps: int
    story: tuple[Event, ...] = ()

    @property
    def counts(self) -> bool:
        """Whether anything was injected."""
        return bool(self.fired) or self.stopped


class Simulation:
    """One subject, its runs without faults, and its runs with them.

    Args:
        subject: What is run.

    Attributes:
        broken: What may not be and is so without faults, in sentences.
        steps: How many steps the run without faults takes.
    """

    def __init__(self, subject: Subject) -> None:
        self.subject = subject
        self._kinds = {
            f"{task.name}-{slot}": kind_of(subject.plan, task)
            for task in subject.plan.tasks
            for slot in range(task.replicas)
        }
        self._weights = {station: _RARE[kind] for station, kind in self._kinds.items() if kind in _RARE}
        self._references: dict[tuple[tuple[str, int], ...] | None, Outcome] = {}
        self._hits: dict[tuple[str, str], int] = {}
        self.steps = 0
        self._least_retries = min(node.options.retries for node in subject.plan.spec.nodes)
        reference = self.reference(None)
        self.broken = tuple(judge(subject, reference, reference, stopped=False))

    def reference(self, items: tuple[tuple[str, int], ...] | None) -> Outcome:
        """Returns what a run without faults comes to, of sources of at most so many items."""
        found = self._references.get(items)
        if found is None:
            run = SimulatedRun(self.subject, Schedule(0, items=items, calm=True), peaceful=True).go()
            found = self._references[items] = outcome_of(run)
            if items is None:
                self._hits, self.steps = {**self._only_with_faults(), **run.hits()}, run.step
        return found

    def _only_with_faults(self) -> dict[tuple[str, str], int]:
        """Returns points that no calm run comes to: what follows a death, or an eviction."""
        found = {}
        for task in self.subject.plan.tasks:
            live = any(c.reliability == "live" for output in task.outputs for c in output.channels)
            for slot in range(task.replicas):
                if task.order is CommitOrder.OUTBOX and task.outputs:
                    found[f"{task.name}-{slot}", "outbox.published"] = 1
                if live:
                    found[f"{task.name}-{slot}", "tombstone.before"] = 2
        return found

    def items(self) -> dict[str, int]:
        """Returns how many items each source makes without faults."""
        return dict(_items_made(self.reference(None)))

    def schedule(self, seed: int) -> Schedule:
        """Returns the schedule of a seed."""
        chance = random.Random(seed)
        most = min(MOST_FAULTS, self._least_retries + 1)
        faults = choose_faults(chance, self._hits, 1 + int(chance.random() * most), self._weights)
        stop_at = 1 + int(chance.random() * self.steps) if chance.random() < _STOPS else None
        return Schedule(seed=chance.getrandbits(32), faults=faults, stop_at=stop_at)

    def run(self, schedule: Schedule, *, telling: bool = False) -> Result:
        """Runs one schedule and judges it."""
        run = SimulatedRun(self.subject, schedule, telling=telling).go()
        found = outcome_of(run)
        stopped = run.stopped_at is not None
        items = schedule.items
        if stopped:
            items = _items_made(found)
        violations = judge(self.subject, found, self.reference(items), stopped=stopped)
        fired = tuple(run.fired)
        return Result(
            schedule=schedule,
            violations=tuple(violations),
            fired=fired,
            hits=tuple((fault.point, fault.action, self._kinds[fault.station]) for fault in fired),
            stopped=stopped,
            steps=run.step,
            story=tuple(run.story),
        )


def _items_made(found: Outcome) -> tuple[tuple[str, int], ...]:
    """Returns how many items each source announced."""
    made = ((source.node, source.items) for source in found.report.sources)
    return tuple(sorted((name, items) for name, items in made if name not in found.renumbered))
