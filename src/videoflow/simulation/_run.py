"""One simulated run: the supervisor, the time and the choices of a schedule.

Used by whoever simulates. It makes the workers, lets one move at a time, buries the dead, and ends when all
have ended or none can move any more.
"""

import random
from collections.abc import Sequence
from operator import attrgetter

from msgspec.structs import replace

from videoflow import faults
from videoflow.backends.memory import MemoryBroker, MemoryMessaging, MemoryPool, MemoryRuntimeStore
from videoflow.backends.messaging import LiveSubscriptionSpec
from videoflow.backends.runtime import Desired, FirstFailure, FlowRuntime
from videoflow.engines.accounting import DEATHS_IN_A_ROW, InnerLedger, Past, Suspended
from videoflow.errors import UnobservableState
from videoflow.simulation._backends import FaultyMessaging, FaultyPayloads, FaultyStore
from videoflow.simulation._clock import Now, StationClock
from videoflow.simulation._giving import give
from videoflow.simulation._nodes import SimulatedNodes, SlowCode, Watching, answered_of
from videoflow.simulation._record import Record
from videoflow.simulation._resuming import SimulatedResumption
from videoflow.simulation._schedule import FENCED, PlannedFault, Schedule
from videoflow.simulation._script import Script
from videoflow.simulation._station import Ending, Incarnation, Station
from videoflow.simulation._subject import BUDGET_BYTES, RUN_ID, Subject
from videoflow.simulation._telling import Event, describe
from videoflow.simulation._zombies import Zombies
from videoflow.worker import Backends, Job, RunControl, Shell, ended_badly
from videoflow.worker.core import actions
from videoflow.worker.core.actions import InnerFate

_STALLED_SECONDS = 40.0
_MOST_STEPS = 20_000
_ALL = 1_000_000  # more than a source and its fan-outs make
_ZOMBIES_MOVE = 0.3
_FENCES: dict[type, str] = {getattr(actions, name): f"fence:{name}" for name in FENCED}
_RANK, _FAVOUR = attrgetter("rank"), attrgetter("favour")


class SimulatedRun:
    """A run of a subject under a schedule.

    Attributes:
        violations: What was seen while it ran that may not be.
        story: What happened, where it is told.
        first_death: Step in which a worker ended early first; 0: none did.
    """

    def __init__(
        self,
        subject: Subject,
        schedule: Schedule,
        *,
        telling: bool = False,
        peaceful: bool = False,
        filling: frozenset[str] = frozenset(),
        earlier: "tuple[SimulatedRun, Suspended] | None" = None,
        to_first_death: bool = False,
    ) -> None:
        self.subject = subject
        self.schedule = schedule
        self.step = self.first_death = 0
        self.violations: list[str] = []
        self.story: list[Event] = []
        self.telling = telling
        self.peaceful = peaceful
        self.filling = filling
        self.to_first_death = to_first_death
        self.chance = random.Random(schedule.seed)
        self.time = Now()
        self.clock = StationClock(self.time, Script())
        self.pool = MemoryPool(BUDGET_BYTES)
        self.broker = MemoryBroker(self.pool)
        self.store = MemoryRuntimeStore(self.clock)
        self.runtime = FlowRuntime(self.store, RUN_ID)
        self.observer = MemoryMessaging(self.broker, "observer", self.clock)
        resumption = SimulatedResumption(earlier[1], earlier[0].runtime) if earlier else None
        self.past = None
        if schedule.resumed:
            self.past = Past(subject.plan, RUN_ID, self.runtime, resumption, self.clock)
            self.past.begin()
        self.inner_ledger = InnerLedger() if self.past is None else self.past.inner()
        self.record: Record = earlier[0].record if earlier else Record()
        self.desired = Desired.RUN
        self.failed_task: str | None = None
        self.lost: dict[str, str] = {}
        self.current: Station | None = None
        self.zombies = Zombies(self.observer, self.broker)
        self.stopped_at: int | None = None
        self.quit = False
        self.limits = dict(schedule.items or ())
        plan = subject.plan
        self.stations = [
            Station(
                self,
                task,
                slot,
                Script(schedule.of(f"{task.name}-{slot}"), counts=schedule.calm),
                rank=rank,
                fenced=task.name in subject.fenced,
            )
            for rank, task in enumerate(plan.tasks)
            for slot in range(task.replicas)
        ]
        for station, before in zip(self.stations, earlier[0].stations if earlier else (), strict=False):
            station.goes_on_with(before)
        for station in self.stations:
            station.favour = self.chance.random()
        self._bias = 0.0 if schedule.calm else self.chance.choice((0.0, 0.0, 0.5, 0.9))
        self._provision()

    def _provision(self) -> None:
        for channel in self.subject.channels:
            self.observer.ensure_channel(channel, "channel", deadline=1.0)
        for subscription in self.subject.subscriptions:
            wanted = subscription
            if self.peaceful and isinstance(wanted, LiveSubscriptionSpec):
                wanted = replace(wanted, capacity=_ALL, max_age_seconds=None)  # all that may come is to come
            self.observer.ensure_subscription(wanted, "subscription", deadline=1.0)

    # What stations ask ------------------------------------------------------------------------

    def incarnation(self, station: Station) -> Incarnation:
        """Makes the next incarnation of a station, as an engine starts a worker."""
        subject, task = self.subject, station.task
        station.incarnations += 1
        number = station.incarnations + station.before
        owner = f"{station.name}-{number}"
        clock = station.clock = StationClock(self.time, station.script, calm=self.schedule.calm)
        station.wake = clock.wake
        control = RunControl()
        control.raise_desired(self.desired, self.failed_task)
        if self.quit:
            control.end_now()
        instances = {name: subject.make(name) for name in task.nodes}
        for name, instance in instances.items():
            give(instance, self.record, name, peaceful=self.peaceful)
        watching = Watching(
            station=station.name,
            incarnation=number,
            record=self.record,
            clock=clock,
            chance=self.chance,
            calm=self.schedule.calm,
            limits=self.limits,
            flushed=lambda: station.flushed,
            stand_ins=subject.stand_ins,
            recording=subject.recording,
            filling=self.filling,
            answered=answered_of(self.runtime, task),
        )
        program = subject.programs[task.name]
        nodes = SimulatedNodes(program, instances, subject.limits[task.name], station.slot, control, watching)
        payloads = FaultyPayloads(self.pool, owner, clock, station.name, station.script)
        backends = Backends(
            FaultyMessaging(self.broker, owner, clock, station.script),
            payloads,
            FlowRuntime(FaultyStore(self.store, clock, station.script), RUN_ID),
            clock,
        )
        job = Job(
            program,
            subject.plan.spec.flow_id,
            station.slot,
            owner,
            abandon=self.failed_task == task.name,
            restarted=station.incarnations > 1,
            died="a simulated death" if station.incarnations > 1 else "",
        )
        shell = Shell(job, backends, nodes, control, station, SlowCode)
        self._tell(station, f"starts (incarnation {number})")
        return Incarnation(number, owner, shell, nodes, payloads, control)

    def inner(self, task: str, fates: Sequence[InnerFate]) -> None:
        """Joins fates into the ledger of the run."""
        self.inner_ledger.add(task, fates)

    def did(self, station: Station, ending: Ending) -> None:
        """Tells of an action."""
        if station.in_work is not None:
            self._tell(station, describe(station.in_work, ending))

    def failed(self, failure: FirstFailure) -> None:
        """Lets every worker know that the run has failed."""
        task = self.subject.plan.task_of(failure.node).name
        self.failed_task = self.failed_task or task
        self._desire(Desired.ABORT)

    def _desire(self, desired: Desired) -> None:
        self.desired = max(self.desired, desired)
        for station in self.stations:
            station.told(self.desired, self.failed_task)

    # The run ----------------------------------------------------------------------------------

    def go(self) -> "SimulatedRun":
        """Runs until every station has ended, or none can move."""
        faults.arm(observer=self._reached)
        try:
            self._go()
        finally:
            faults.disarm()
            self.current = None
        self.zombies.end_all()
        return self

    def _reached(self, barrier: str) -> None:
        if self.current is not None:
            self.current.reach(barrier)

    def _go(self) -> None:
        since = 0.0
        live = list(self.stations)
        while live:
            if self.step in self.schedule.stops:
                self._stop()
            self.step += 1
            now, step = self.time.seconds, self.step
            able = [
                s
                for s in live
                if (s.due_at <= now or (s.wake.woken and s.clock.woken()))
                and (s.held_until <= step or s.live is None)
            ]
            if not able:
                self._pass_time(live)
                if self.time.seconds - since > _STALLED_SECONDS:
                    self._stalled(live, "nothing moves any more")
                    return
                continue
            station = self._choose(able)
            moved = station.moved
            self._let_move(station)
            station.plan_next()
            if station.moved != moved:
                since = self.time.seconds
            if station.done:
                live.remove(station)
            if self.first_death and self.to_first_death:
                return
            if self.step > _MOST_STEPS:
                self._stalled(live, "the run does not come to its end")
                return

    def _stop(self) -> None:
        """Does what an engine does that is asked to stop, perhaps again."""
        if self.stopped_at is None and self.desired is Desired.RUN:
            if self.past is not None:
                self.past.ask_to_suspend(1.0)
        elif self.stopped_at is None or self.desired is not Desired.STOP:
            return
        elif self.schedule.quits and self.step == self.schedule.stops[-1]:
            self.quit = True
            for station in self.stations:
                station.told_to_quit()
        self.stopped_at = self.step
        self.runtime.raise_desired(Desired.STOP, deadline=1.0)
        self._desire(Desired.STOP)

    def _stalled(self, live: Sequence[Station], how: str) -> None:
        waiting = [
            f"{s.name} at {type(s.live.action).__name__ if s.live and s.live.action else 'its start'}"
            for s in live
        ]
        self.violations.append(f"deadlock: {how}: {', '.join(waiting)}")
        for station in live:
            self.lost[station.task.name] = how

    def _choose(self, able: Sequence[Station]) -> Station:
        if self.schedule.calm:
            return max(able, key=_RANK)
        chance = self.chance
        if self._bias and chance.random() < self._bias:
            return max(able, key=_FAVOUR)
        return able[int(chance.random() * len(able))]

    def _pass_time(self, live: Sequence[Station]) -> None:
        """Lets time go on to the next deadline; those come back who were held, where others only wait."""
        held = [s for s in live if s.held_until > self.step]
        busy = [s for s in live if not s.waits and s not in held]
        if held and not busy:
            for station in held:
                station.held_until = 0
            return
        self.time.seconds = max(self.time.seconds, min(s.due_at for s in (busy if held else live)))

    def _let_move(self, station: Station) -> None:
        self.current = station
        if self.zombies.living and self.chance.random() < _ZOMBIES_MOVE:
            self.current = None
            self.violations += self.zombies.move(self.chance, self.stations)
            self.current = station
        live = station.live
        if live is not None and live.action is not None:
            self._before(station, live, live.action)
            if station.live is None:
                return
        ending = station.step()
        self.current = None
        if self.telling:
            self.did(station, ending)
        if ending is Ending.GOES_ON:
            return
        if ending in (Ending.ENDED, Ending.QUIT):
            self._tell(station, f"ends with {station.kind}" if ending is Ending.ENDED else "quits")
            self._leave(station)
            station.done = True
        elif ending in (Ending.DIED, Ending.BROKE):
            self.first_death = self.first_death or self.step
            if ending is Ending.BROKE:
                self._broke(station)
            else:
                self._tell(station, "dies")
            self._bury(station)

    def _before(self, station: Station, live: Incarnation, action: actions.Action) -> None:
        fence = _FENCES.get(type(action)) if station.fenced else None
        if fence is not None and station.script.reach(fence) is not None:
            self._tell(station, f"is replaced before its {type(action).__name__}, and lives on")
            self.zombies.add(station)
            self._bury(station)

    # Deaths -----------------------------------------------------------------------------------

    def _leave(self, station: Station) -> None:
        """Ends what an incarnation holds: its leases, pins and claims."""
        live = station.live
        assert live is not None
        if station.waits:
            station.waits = False
            station.clock.resume()
        self.violations += [
            f"the payload {content} was gone when {station.name} needed it"
            for content in live.payloads.missing
        ]
        self.observer.release_owner(live.owner, deadline=1.0)
        station.live = None

    def _bury(self, station: Station) -> None:
        """Returns what a dead worker held, and lets the next one come after a while."""
        live = station.live
        assert live is not None
        figures = live.nodes.figures
        progress = figures.concluded + figures.records
        station.deaths_in_a_row = 0 if progress else station.deaths_in_a_row + 1
        self._leave(station)
        station.tell.clear()
        station.restarts += 1
        row = 0 if self.schedule.calm else station.deaths_in_a_row
        wait = 0.1 * 2 ** (row - 1) if row else 0.0
        station.restart_at = self.time.seconds + min(wait, 5.0)
        if station.deaths_in_a_row >= DEATHS_IN_A_ROW:
            self._give_up(station)

    def _give_up(self, station: Station) -> None:
        if self.failed_task == station.task.name:
            station.done = True
            self.lost[station.task.name] = "it died too often while it settled what waited"
            return
        error = station.error or RuntimeError("it died")
        failure = ended_badly(station.task.name, error)
        standing = self.runtime.fail_first(failure, deadline=1.0)
        self.runtime.raise_desired(Desired.ABORT, deadline=1.0)
        station.deaths_in_a_row = 0
        station.restart_at = self.time.seconds
        self.violations.append(f"{station.name} died {DEATHS_IN_A_ROW} times in a row: {station.error!r}")
        self.failed(standing)

    def _broke(self, station: Station) -> None:
        error = station.error
        self._tell(station, f"breaks with {type(error).__name__}: {error}")
        fired = station.script.fired
        in_effect = bool(fired) and fired[-1].point == "effect.done" and fired[-1].action == "raise"
        expected = isinstance(error, (faults.InjectedFault, UnobservableState)) or in_effect
        if not expected:
            self.violations.append(f"{station.name} could not go on: {type(error).__name__}: {error}")
        station.break_down()

    def _tell(self, station: Station, what: str) -> None:
        if self.telling:
            self.story.append(Event(self.step, station.name, what))

    # What came of it --------------------------------------------------------------------------

    @property
    def fired(self) -> list[PlannedFault]:
        """The faults that happened."""
        return [fault for station in self.stations for fault in station.script.fired]

    def hits(self) -> dict[tuple[str, str], int]:
        """Returns how often each station came to each point."""
        return {(s.name, point): count for s in self.stations for point, count in s.script.hits.items()}
