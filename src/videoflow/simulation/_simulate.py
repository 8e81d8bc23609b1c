"""Runs a subject under schedules: one at a time, chosen by seed, compared with runs without faults.

Used by the search, by `videoflow simulate`, by tests.
"""

import random
from dataclasses import dataclass, replace

from videoflow.backends.messaging import Kind
from videoflow.planner.plan import CommitOrder
from videoflow.simulation._account import Outcome, outcome_of
from videoflow.simulation._judge import judge, suspended_well
from videoflow.simulation._kinds import kind_of
from videoflow.simulation._rarity import Hit, Rarity
from videoflow.simulation._run import SimulatedRun
from videoflow.simulation._schedule import Place, PlannedFault, Schedule, choose_faults, places_of
from videoflow.simulation._subject import Subject, live_readers
from videoflow.simulation._telling import Event

MOST_FAULTS = 5
MOST_DEATHS = 4
_STOPS = 0.06
_AT_DEATH = 0.25
_RESUMED_AT_DEATH = 0.03
_GIVEN_UP = 0.4
_AGAIN = 0.25
_QUITS = 0.5
_RESUMED = 0.6


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
        cells: What may be hit, of the table.
    """

    def __init__(self, subject: Subject) -> None:
        self.subject = subject
        self._kinds = {
            f"{task.name}-{slot}": kind_of(subject.plan, task)
            for task in subject.plan.tasks
            for slot in range(task.replicas)
        }
        self._live_readers = live_readers(subject.plan)
        self._references: dict[tuple[tuple[str, int], ...] | None, Outcome] = {}
        self._all_items: tuple[tuple[str, int], ...] = ()
        self._hits: dict[tuple[str, str], int] = {}
        self._places: list[Place] = []
        self.cells: list[Hit] = []
        self._may_be_given_up: list[str] = []
        self.steps = 0
        self._least_retries = min(node.options.retries for node in subject.plan.spec.nodes)
        reference = self.reference(None)
        self.broken = tuple(judge(subject, reference, reference, stopped=False))

    def reference(self, items: tuple[tuple[str, int], ...] | None) -> Outcome:
        """Returns what a run without faults comes to, of sources of at most so many items."""
        if not items or items == self._all_items:
            items = None
        found = self._references.get(items)
        if found is None:
            run = SimulatedRun(self.subject, Schedule(0, items=items, calm=True), peaceful=True).go()
            found = self._references[items] = outcome_of(run)
            if items is None:
                self._all_items = _items_made(found)
                self._hits, self.steps = {**self._only_with_faults(), **run.hits()}, run.step
                self._places = places_of(self._hits)
                self._may_be_given_up = self._fatal()
                self.cells = [(point, action, self._kinds[s]) for s, point, action in self._places]
        return found

    def _items_of(self, found: Outcome) -> tuple[tuple[str, int], ...]:
        """Returns how many items each source made in a run that was stopped.

        Who did not come to the end may have had more in work: one, and where nodes are fused with it, all
        that waited to be published together, which those were given.
        """
        over = {name for name, kinds in found.kinds.items() if Kind.END in kinds}
        made = []
        for name, items in _items_made(found):
            task = self.subject.plan.task_of(name)
            more = 0 if task.name in over else 1 if len(task.nodes) == 1 else self.items()[name] - items
            made.append((name, items + more))
        return tuple(made)

    def _only_with_faults(self) -> dict[tuple[str, str], int]:
        """Returns points that no calm run comes to: what follows a death, or an eviction."""
        spec = self.subject.plan.spec
        found = {}
        for task in self.subject.plan.tasks:
            for slot in range(task.replicas):
                if task.order is CommitOrder.OUTBOX and task.outputs:
                    found[f"{task.name}-{slot}", "outbox.published"] = 1
                if not spec.node(task.nodes[0]).traits.resumable:
                    found[f"{task.name}-{slot}", "call:observe"] = 1
                if f"{task.name}-{slot}" in self._live_readers:
                    found[f"{task.name}-{slot}", "tombstone.before"] = 0  # so that the first one counts
        return found

    def _fatal(self) -> list[str]:
        """Returns stations whose task commits, and may fail the run."""
        found = []
        for task in self.subject.plan.tasks if self.subject.may_fail else ():
            nodes = [self.subject.plan.spec.node(name) for name in task.nodes]
            if any("fatal" in node.arguments.get("trouble", ()) for node in nodes):
                found += [f"{task.name}-{slot}" for slot in range(task.replicas)]
        return [station for station in found if (station, "commit.after") in self._hits]

    def items(self) -> dict[str, int]:
        """Returns how many items each source makes without faults."""
        return dict(_items_made(self.reference(None)))

    def schedule(self, seed: int, rarity: Rarity | None = None) -> Schedule:
        """Returns the schedule of a seed.

        Args:
            seed: Decides.
            rarity: Which cells are to be hit rather than others; without it the seed decides alone.
        """
        chance = random.Random(seed)
        deaths = min(MOST_DEATHS, self._least_retries + 1)
        rates = None
        if rarity is not None:
            rates = dict(zip(self._places, rarity.rates(self.cells), strict=True))
        faults = choose_faults(
            chance,
            self._hits,
            1 + int(chance.random() * MOST_FAULTS),
            deaths,
            rates,
            self._live_readers,
        )
        if self._may_be_given_up and chance.random() < _GIVEN_UP:
            faults = (*faults[:2], *self._death_of_who_is_given_up(chance))
        seed = chance.getrandbits(32)
        if chance.random() < _RESUMED_AT_DEATH:
            return self._resumed_at_death(chance, seed, faults[:1])
        if chance.random() >= _STOPS:
            return Schedule(seed, faults)
        first = 1 + int(chance.random() * self.steps)
        if chance.random() < _AT_DEATH:
            first = self._death_in(Schedule(seed, faults)) or first
        again = chance.random() < _AGAIN
        return Schedule(
            seed,
            faults,
            stops=(first, first + 1 + int(chance.random() * 20)) if again else (first,),
            quits=again and chance.random() < _QUITS,
            resumed=not again and chance.random() < _RESUMED,
        )

    def _death_of_who_is_given_up(self, chance: random.Random) -> tuple[PlannedFault, ...]:
        """Returns a death of who has failed the run, when it has committed what came before in one batch."""
        station = chance.choice(self._may_be_given_up)
        return (
            PlannedFault(station, "acquire.after", "delay"),
            PlannedFault(station, "commit.after", "crash", chance.choice((1, 1, 2))),
        )

    def _resumed_at_death(
        self, chance: random.Random, seed: int, faults: tuple[PlannedFault, ...]
    ) -> Schedule:
        """Returns one in which a source dies and the run is stopped, to be resumed, before it is back."""
        places = [(s, p) for s, p in self._hits if p == "publish.accepted" and "source" in self._kinds[s]]
        if places:
            station, point = chance.choice(places)
            hit = 1 + int(chance.random() * self._hits[station, point])
            faults += (PlannedFault(station, point, chance.choice(("crash", "raise")), hit),)
        step = self._death_in(Schedule(seed, faults))
        return Schedule(seed, faults, stops=(step,) if step else (), resumed=True)

    def _death_in(self, schedule: Schedule) -> int:
        """Returns the step after the first in which a worker ends early, 0 where none does."""
        run = SimulatedRun(self.subject, schedule, to_first_death=True).go()
        return run.first_death + 1 if run.first_death else 0

    def run(self, schedule: Schedule, *, telling: bool = False) -> Result:
        """Runs one schedule and judges it."""
        run = SimulatedRun(self.subject, schedule, telling=telling).go()
        found = outcome_of(run)
        stopped = run.stopped_at is not None
        fired, steps, told = run.fired, run.step, run.story
        if found.suspended is not None:
            violations = suspended_well(found)
            later = replace(schedule, seed=schedule.seed + 1, stops=())
            run = SimulatedRun(self.subject, later, telling=telling, earlier=(run, found.suspended)).go()
            found = outcome_of(run)
            fired, steps, told = run.fired, steps + run.step, told + run.story
            violations += judge(self.subject, found, self.reference(schedule.items), stopped=False)
        else:
            items = self._items_of(found) if stopped else schedule.items
            died = self.reference(None) if stopped else None
            violations = judge(self.subject, found, self.reference(items), stopped=stopped, died=died)
        return Result(
            schedule=schedule,
            violations=tuple(violations),
            fired=tuple(fired),
            hits=tuple((fault.point, fault.action, self._kinds[fault.station]) for fault in fired),
            stopped=stopped,
            steps=steps,
            story=tuple(told),
        )


def _items_made(found: Outcome) -> tuple[tuple[str, int], ...]:
    """Returns how many items each source announced."""
    made = ((source.node, source.items) for source in found.report.sources)
    return tuple(sorted((name, items) for name, items in made if name not in found.renumbered))
