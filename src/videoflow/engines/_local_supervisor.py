"""Keeps the worker processes of a run alive: starts them, hears them, notices a death at once.

Used by the local engine, in one thread. It decides what becomes of processes and nothing of what becomes of
items: a dead worker's leases are returned by the message log, after the worker was reaped. It refuses to
start a replica for ever: five deaths in a row without progress are given up.
"""

import logging
import os
import select
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from videoflow.adapters.shm import ShmHost
from videoflow.backends.runtime import Desired, FirstFailure
from videoflow.clock import Clock
from videoflow.engines._accelerators import RunDevices
from videoflow.engines._local_replica import DEATHS_IN_A_ROW, Death, Replica, given_up
from videoflow.engines._local_worker import WorkerProcess, how_it_died, not_startable
from videoflow.graph.running import RunOptions
from videoflow.planner.plan import InputMode, Plan
from videoflow.worker.core.actions import InnerFate
from videoflow.worker.link import (
    Boot,
    Broken,
    Desire,
    Ended,
    EndNow,
    Failed,
    Figures,
    Inner,
    Message,
    Opened,
    PlantedFault,
    unpacked,
)

_LOG = logging.getLogger("videoflow.engines.local")
_EXIT_SECONDS = 5.0


class Told(Protocol):
    """What the supervisor tells the run."""

    def inner(self, task: str, fates: Sequence[InnerFate]) -> None:
        """Fates on edges inside a task."""
        ...

    def failed(self, failure: FirstFailure) -> None:
        """A worker recorded a failure of the run; this is the first one."""
        ...

    def given_up(self, failure: FirstFailure) -> None:
        """A replica will not be started again but to settle what waits for it."""
        ...


@dataclass(frozen=True)
class Common:
    """What all workers of a run are told.

    Attributes:
        plan: The plan.
        plan_document: `plan.json`.
        run_id: ULID.
        folder: The run folder.
        logs: Where workers write.
        import_path: `sys.path` of this process.
        classes: Task → notebook classes by value.
        options: Of the run.
        devices: The accelerators of the run.
    """

    plan: Plan
    plan_document: bytes
    run_id: str
    folder: Path
    logs: Path
    import_path: tuple[str, ...]
    classes: dict[str, bytes]
    options: RunOptions
    devices: RunDevices = field(default_factory=RunDevices)


class Supervisor:
    """The processes of one run; every method but `wake` belongs to one thread."""

    def __init__(self, common: Common, host: ShmHost, told: Told, clock: Clock) -> None:
        self._common = common
        self._host = host
        self._told = told
        self._clock = clock
        self._desired = Desired.RUN
        self._failed_task: str | None = None
        self._ending = False
        self._limits = {
            node.name: limit
            for node in common.plan.spec.nodes
            if (limit := node.options.timeout_seconds) is not None
        }
        self._poll = select.poll()
        self._wake_lock = threading.Lock()
        self._wake = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
        self._poll.register(self._wake, select.POLLIN)
        self._handlers: dict[int, Callable[[], None]] = {}
        self._watched: set[int] = set()
        self._planted: dict[str, int] = {}
        self.timeouts: dict[str, int] = {}
        self.forced: list[str] = []
        self.deaths: list[Death] = []
        self._bytes = 0
        self.replicas = [Replica(task, slot) for task in common.plan.tasks for slot in range(task.replicas)]

    # For the run ------------------------------------------------------------------------------

    @property
    def done(self) -> bool:
        """Whether every replica has ended, or was lost."""
        return all(replica.done for replica in self.replicas)

    def wake(self) -> None:
        """Lets `turn` return; from any thread, also after `close`."""
        with self._wake_lock:
            if self._wake >= 0:
                os.eventfd_write(self._wake, 1)

    def start(self) -> None:
        """Starts one process per replica."""
        for replica in self.replicas:
            self._start(replica)

    def turn(self, seconds: float) -> None:
        """Waits for something to happen, at most so long, and sees to it."""
        now = self._clock.monotonic()
        due = [r.restart_at - now for r in self.replicas if r.restart_at is not None]
        wait = max(0.0, min([seconds, *due]))
        for descriptor, _ in self._poll.poll(wait * 1000):
            handler = self._handlers.get(descriptor)
            if handler is not None:
                handler()
            elif descriptor == self._wake:
                os.eventfd_read(self._wake)
        self._look_at_the_clock(self._clock.monotonic())

    def raise_desired(self, desired: Desired, failed_task: str | None = None) -> None:
        """Tells every worker, and those to come, what is desired of the run."""
        self._desired = max(self._desired, desired)
        self._failed_task = self._failed_task or failed_task
        self._tell(Desire(self._desired, self._failed_task))

    def replace_sources(self) -> None:
        """Kills the sources that did not stop when asked; their next incarnations end in good order."""
        for replica in self.replicas:
            if replica.process is None or replica.task.mode is not InputMode.SOURCE or replica.ended:
                continue
            replica.process.note("killed: it was asked to stop, and did not")
            self.forced.append(replica.task.nodes[0])
            replica.process.kill()
            self._bury(replica)

    def write_stacks(self) -> None:
        """Lets every worker that has begun to work write where it stands to its log."""
        for replica in self.replicas:
            if replica.process is not None and replica.process.page.steps:
                replica.process.note("no progress; the worker stands here:")
                replica.process.interrupt_to_write_stacks()

    def end_now(self) -> None:
        """Asks every worker to end without draining, and starts no other."""
        self._ending = True
        for replica in self.replicas:
            if replica.process is None and not replica.done:
                replica.restart_at, replica.done = None, True
                replica.lost = replica.lost or "it was between two starts when the run ended"
        self._tell(EndNow())

    def kill(self, why: str) -> None:
        """Kills and reaps what still runs."""
        self._ending = True
        for replica in self.replicas:
            if not replica.done:
                replica.lost = replica.lost or why
            if replica.process is not None:
                replica.process.kill()
                self._bury(replica)

    def socket_bytes(self) -> int:
        """Returns the bytes of all control links so far."""
        links = [replica.process.link for replica in self.replicas if replica.process is not None]
        return self._bytes + sum(link.sent_bytes + link.received_bytes for link in links)

    def close(self) -> None:
        """Ends the use of this object; no process may be left."""
        with self._wake_lock:
            os.close(self._wake)
            self._wake = -1

    # Processes --------------------------------------------------------------------------------

    def _start(self, replica: Replica) -> None:
        common, task = self._common, replica.task
        replica.abandoning = replica.given_up or self._failed_task == task.name
        try:
            kit = self._host.kit(task.name, replica.slot, replica.incarnations + 1)
        except OSError as error:
            raise not_startable(task.name, error) from error
        boot = Boot(
            plan=common.plan_document,
            task=task.name,
            slot=replica.slot,
            incarnation=f"{replica.name}-{replica.incarnations + 1}",
            run_id=common.run_id,
            run_folder=str(common.folder),
            import_path=common.import_path,
            desired=self._desired,
            failed_task=self._failed_task,
            abandon=replica.abandoning,
            restarted=replica.incarnations > 0,
            died=replica.how,
            faults=self._faults(replica),
            classes=common.classes.get(task.name, b""),
            kit=kit.document,
            profile=common.options.profile,
        )
        try:
            log = common.logs / f"{replica.name}.log"
            told = common.devices.environment(task.name, replica.slot)
            process = WorkerProcess(boot, kit.descriptors, task.nodes, log, told)
        finally:
            kit.close()
        replica.started(process)
        self._handlers[process.pidfd] = lambda: self._bury(replica)
        self._handlers[process.link.fileno()] = lambda: self._hear(replica)
        self._watch(process.pidfd, select.POLLIN)
        self._watch(process.link.fileno(), select.POLLIN | select.POLLOUT)

    def _faults(self, replica: Replica) -> tuple[PlantedFault, ...]:
        """Returns the fault of this incarnation: each process of a task is given the next of its faults."""
        name = replica.task.name
        number = self._planted[name] = self._planted.get(name, 0) + 1
        mine = self._common.options.faults.get(name, ())[number - 1 : number]
        return tuple(PlantedFault(f.barrier, f.action.value, f.hit, f.record) for f in mine)

    def _hear(self, replica: Replica) -> None:
        process = replica.process
        if process is None:
            return
        said, connected = process.take()
        for message in said:
            self._take(replica, message)
        descriptor = process.link.fileno()
        if not connected:
            self._unwatch(descriptor)
        elif process.flush():
            self._watch(descriptor, select.POLLIN)

    def _watch(self, descriptor: int, events: int) -> None:
        self._poll.register(descriptor, events)
        self._watched.add(descriptor)

    def _unwatch(self, descriptor: int) -> None:
        if descriptor in self._watched:
            self._poll.unregister(descriptor)
            self._watched.remove(descriptor)

    def _take(self, replica: Replica, message: Message) -> None:
        match message:
            case Inner(fates=fates):
                self._told.inner(replica.task.name, unpacked(fates))
            case Opened():
                replica.opened = True
                self._recovered(replica)
            case Figures():
                replica.told_figures(message.nodes, message.spending)
            case Failed(failure=failure):
                self._told.failed(failure)
            case Broken():
                replica.broken = message
            case Ended(kind=kind):
                replica.kind, replica.ended = kind, True
                replica.end_by = self._clock.monotonic() + _EXIT_SECONDS
            case _:
                pass

    def _bury(self, replica: Replica) -> None:
        """Reaps a dead worker, returns what it held, and decides what comes in its place."""
        process = replica.process
        assert process is not None
        for message in process.take()[0]:
            self._take(replica, message)
        for descriptor in (process.pidfd, process.link.fileno()):
            self._unwatch(descriptor)
            del self._handlers[descriptor]
        calling = process.page.calling
        status = process.reap()
        self._bytes += process.link.sent_bytes + process.link.received_bytes
        how = how_it_died(status)
        final = replica.ended or self._ending
        replica.died(self._clock.monotonic(), self._common.options.restart_backoff_seconds)
        if final:
            self._host.worker_ended(replica.task.name, replica.slot)
            replica.done, replica.restart_at = True, None
        else:
            self._host.worker_died(replica.task.name, replica.slot)
            self._replace(replica, process, how, calling)

    def _replace(
        self, replica: Replica, process: WorkerProcess, how: str, calling: tuple[str, float] | None
    ) -> None:
        place = f" in node {calling[0]}" if calling is not None else ""
        _LOG.warning("%s died%s: %s", replica.name, place, how)
        process.note(f"died{place}: {how}")
        replica.how = replica.killed_for or how
        replica.killed_for = ""
        self.deaths.append(
            Death(replica.name, replica.incarnations, process.pid, how, self._clock.monotonic())
        )
        hopeless = replica.broken is not None and not replica.broken.again
        if replica.deaths < DEATHS_IN_A_ROW and not hopeless:
            replica.restarts += 1
            return
        if replica.abandoning:
            replica.done, replica.restart_at = True, None
            replica.lost = f"it died {replica.deaths} times while it settled what waited"
            return
        failure = given_up(replica, how, calling, process.last_lines())
        replica.given_up = True
        replica.deaths, replica.restart_at = 0, self._clock.monotonic()
        self._told.given_up(failure)

    def _recovered(self, replica: Replica) -> None:
        for death in self.deaths:
            if death.replica == replica.name and death.recovered_at is None:
                death.recovered_at = self._clock.monotonic()

    def _look_at_the_clock(self, now: float) -> None:
        for replica in self.replicas:
            process = replica.process
            if process is None:
                if replica.restart_at is not None and replica.restart_at <= now and not self._ending:
                    self._start(replica)
                continue
            if replica.end_by is not None and now > replica.end_by:
                process.note("killed: it had ended and did not exit")
                process.kill()
            self._kill_if_timed_out(replica, process, now)

    def _kill_if_timed_out(self, replica: Replica, process: WorkerProcess, now: float) -> None:
        calling = process.page.calling if self._limits else None
        limit = None if calling is None else self._limits.get(calling[0])
        if calling is None or limit is None or now - calling[1] <= limit:
            return
        text = f"node {calling[0]} did not return within its timeout of {limit:g} s"
        _LOG.warning("%s killed: %s", replica.name, text)
        process.note(f"killed: {text}")
        replica.killed_for = text
        self.timeouts[calling[0]] = self.timeouts.get(calling[0], 0) + 1
        process.kill()
        self._bury(replica)

    def _tell(self, message: Message) -> None:
        for replica in self.replicas:
            if replica.process is not None:
                replica.process.link.queue(message)
                if replica.process.link.fileno() in self._watched:
                    self._watch(replica.process.link.fileno(), select.POLLIN | select.POLLOUT)
