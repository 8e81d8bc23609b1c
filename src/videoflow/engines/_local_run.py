"""A run in processes: the handle that a user holds, and the thread that supervises.

Used by the local engine. It decides when a run stops, aborts, stalls and ends, and gives the account; what
becomes of single processes is the supervisor's. It refuses to leave a process, memory or a claim behind,
however the run ends.
"""

import logging
import threading
from collections.abc import Sequence
from contextlib import ExitStack

from videoflow.adapters.shm import ShmHost
from videoflow.backends.runtime import Desired, FirstFailure, FlowRuntime
from videoflow.clock import Clock
from videoflow.engines._awaited import AwaitedRun
from videoflow.engines._closing import Ends, close_account
from videoflow.engines._endings import stalled
from videoflow.engines._live import Figures, Queue, added, node_statuses, queues_of, summed
from videoflow.engines._local_replica import Death
from videoflow.engines._local_supervisor import Common, Supervisor
from videoflow.engines._past import Past
from videoflow.engines._report import RunFacts
from videoflow.engines._suspended import Suspended, write_suspended
from videoflow.engines._unresumable import refuse_stopping
from videoflow.engines.run_folder import RunFolder
from videoflow.graph.report import GapReport, RunReport
from videoflow.graph.running import RunPhase, RunStatus
from videoflow.worker import make_program
from videoflow.worker.core.actions import InnerFate

_LOG = logging.getLogger("videoflow.engines.local")
_LOOK_SECONDS = 0.1
_STORE_SECONDS = 0.25
_GRACE_SECONDS = 1.0
_CALL_SECONDS = 30.0
_SOURCES_SHARE = 0.5  # of the time to drain, for sources to stop by themselves


class LocalRun(AwaitedRun):
    """A run in processes; any thread may use it. It begins with `begin`.

    Args:
        common: What all workers are told.
        folder: The run folder.
        host: The message log, provisioned.
        runtime: The records of the run.
        past: What came before it.
        clock: Time.

    Attributes:
        run_id: ULID.
        plan: What it runs, as in `plan.json`.
        folder: The run folder.
    """

    def __init__(
        self,
        common: Common,
        folder: RunFolder,
        host: ShmHost,
        runtime: FlowRuntime,
        past: Past,
        clock: Clock,
    ) -> None:
        super().__init__(
            "the supervisor of the run failed",
            effect="its workers were ended",
            remedy="report this as a defect, with the run folder",
        )
        self.run_id, self.plan, self.folder = common.run_id, common.plan, folder
        self._options, self._devices = common.options, common.devices
        self._clock, self._host, self._runtime = clock, host, runtime
        self._past, self._inner = past, past.inner()
        self._supervisor = Supervisor(common, host, self, clock)
        self._began, self._began_wall = clock.monotonic(), clock.wall()
        self._phase = RunPhase.STARTING
        self._desired = Desired.RUN
        self._stops = 0
        self._quit = False
        self._deadline: float | None = None
        self._force_at: float | None = None
        self._looked_at_store = 0.0
        self._queues: dict[str, Queue] = {}

    def begin(self, owned: ExitStack) -> None:
        """Starts the processes, and the thread that supervises them.

        Args:
            owned: What is to be given back when the run has ended.
        """
        with ExitStack() as undone:
            undone.callback(owned.close)
            undone.callback(self._supervisor.close)
            undone.callback(self._supervisor.kill, "the run could not be started")
            self._supervisor.start()
            undone.pop_all()
        self._phase = RunPhase.RUNNING
        threading.Thread(
            target=self._supervise, args=(owned,), name="videoflow-supervisor", daemon=True
        ).start()

    # The handle -------------------------------------------------------------------------------

    def stop(self, *, resumable: bool = False) -> None:
        """Asks the sources to end and drains; a second call ends without draining. See `RunHandle.stop`."""
        if resumable:
            if self._stops:
                raise refuse_stopping()
            self._past.ask_to_suspend(self._call_deadline())
        self._stops += 1
        self._supervisor.wake()

    def status(self) -> RunStatus:
        """Returns live figures, a quarter of a second old at most."""
        seconds = self._clock.monotonic() - self._began
        nodes = node_statuses(self._past.figures(self._figures()), self._queues, self._restarts())
        return RunStatus(self.run_id, self._phase, seconds, nodes)

    @property
    def socket_bytes(self) -> int:
        """Bytes through the supervisor's sockets so far: what workers are told, and what they say."""
        return self._supervisor.socket_bytes() + self._host.socket_bytes

    def processes(self) -> dict[str, int]:
        """Returns `task-slot` → process number, of the workers that live now."""
        return {r.name: p.pid for r in self._supervisor.replicas if (p := r.process) is not None}

    def _workloads(self) -> dict[str, int]:
        living = ((r, r.process) for r in self._supervisor.replicas)
        return {f"{r.task.name}/{r.slot}": process.pid for r, process in living if process is not None}

    @property
    def deaths(self) -> tuple[Death, ...]:
        """Deaths of workers so far, oldest first."""
        return tuple(self._supervisor.deaths)

    # Told by the supervisor, in its thread ----------------------------------------------------

    def inner(self, task: str, fates: Sequence[InnerFate]) -> None:
        """Joins fates on edges inside a task."""
        self._inner.add(task, fates)

    def failed(self, failure: FirstFailure) -> None:
        """Lets every worker know that the run has failed."""
        self._desired = Desired.ABORT
        self._supervisor.raise_desired(Desired.ABORT, self.plan.task_of(failure.node).name)
        self._start_drain()

    def given_up(self, failure: FirstFailure) -> None:
        """Records a failure, and aborts."""
        standing = self._runtime.fail_first(failure, deadline=self._call_deadline())
        self._runtime.raise_desired(Desired.ABORT, deadline=self._call_deadline())
        self.failed(standing)

    # Supervising ------------------------------------------------------------------------------

    def _supervise(self, owned: ExitStack) -> None:
        with self.telling_failures():
            with owned:
                try:
                    with self._devices.measured(self._workloads):
                        self._until_ended()
                finally:
                    self._supervisor.kill("it was still running when the run ended")
                report, suspended = self._account()
                self._runtime.finish(report.verdict.value, deadline=self._call_deadline())
                self._supervisor.close()
            if suspended is not None:
                write_suspended(self.folder, suspended)
            self.folder.write_report(report)
            self._phase = RunPhase.ENDED
            self._ended.set_result(report)

    def _until_ended(self) -> None:
        progress, since = -1, self._clock.monotonic()
        while not self._supervisor.done:
            self._supervisor.turn(_LOOK_SECONDS)
            now = self._clock.monotonic()
            self._hear_stops(now)
            moved = sum(replica.moved() for replica in self._supervisor.replicas)
            if moved != progress or any(r.busy for r in self._supervisor.replicas):
                progress, since = moved, now
            if now - since > self._options.stall_seconds:
                self._stalled()
                self._quit = True
            if self._force_at is not None and now > self._force_at:
                self._force_at = None
                self._supervisor.replace_sources()
            if self._quit or (self._deadline is not None and now > self._deadline):
                self._quit = True
                self._end_now()
                return

    def _hear_stops(self, now: float) -> None:
        """Looks what was asked here, and by `videoflow stop` in the records of the run."""
        if now - self._looked_at_store >= _STORE_SECONDS:
            self._looked_at_store = now
            self._queues = queues_of(
                self.plan, self.run_id, lambda name: self._host.observe_subscription(name, deadline=0.0)
            )
            recorded = self._runtime.desired(deadline=self._call_deadline())
            if recorded > self._desired:
                self._raised_outside(recorded)
        if self._stops >= 1 and self._desired is Desired.RUN:
            self._runtime.raise_desired(Desired.STOP, deadline=self._call_deadline())
            self._stop()
        if self._stops >= 2:
            self._quit = True

    def _raised_outside(self, recorded: Desired) -> None:
        if recorded is Desired.STOP:
            self._stops = max(self._stops, 1)
            self._stop()
            return
        failure = self._runtime.first_failure(deadline=self._call_deadline())
        if failure is None:
            self._desired, self._quit = recorded, True
        else:
            self.failed(failure)

    def _stop(self) -> None:
        self._desired = Desired.STOP
        self._phase = RunPhase.STOPPING
        self._supervisor.raise_desired(Desired.STOP)
        self._start_drain()

    def _start_drain(self) -> None:
        if self._deadline is None:
            now, seconds = self._clock.monotonic(), self._options.drain_seconds
            self._force_at, self._deadline = now + seconds * _SOURCES_SHARE, now + seconds

    def _end_now(self) -> None:
        self._supervisor.end_now()
        deadline = self._clock.monotonic() + _GRACE_SECONDS
        while not self._supervisor.done and (left := deadline - self._clock.monotonic()) > 0:
            self._supervisor.turn(left)

    def _stalled(self) -> None:
        self._supervisor.write_stacks()
        waiting = [replica.task for replica in self._supervisor.replicas if not replica.done]
        failure = stalled(waiting, self._options.stall_seconds)
        self._runtime.fail_first(failure, deadline=self._call_deadline())
        self._runtime.raise_desired(Desired.ABORT, deadline=self._call_deadline())

    def _call_deadline(self) -> float:
        return self._clock.monotonic() + _CALL_SECONDS

    # The account ------------------------------------------------------------------------------

    def _figures(self) -> Figures:
        return summed((r.task.name, r.figures()) for r in self._supervisor.replicas)

    def _restarts(self) -> dict[str, int]:
        total: dict[str, int] = {}
        for replica in self._supervisor.replicas:
            total[replica.task.name] = total.get(replica.task.name, 0) + replica.restarts
        return total

    def _account(self) -> tuple[RunReport, Suspended | None]:
        now, deadline = self._clock.monotonic(), self._call_deadline()
        facts = RunFacts(
            plan=self.plan,
            run_id=self.run_id,
            options=self._options,
            runtime=self._runtime,
            figures=self._past.figures(self._figures()),
            restarts=self._restarts(),
            began_wall=self._began_wall,
            seconds=now - self._began,
            now=now,
            quit=self._quit,
            lost={r.task.name: r.lost for r in self._supervisor.replicas if r.lost},
            folder=str(self.folder.path),
            spendings=added((r.task.name, r.spending()) for r in self._supervisor.replicas),
        )
        ends = Ends(
            lambda name: self._host.announced(name, deadline=deadline),
            lambda name: self._host.settled(name, deadline=deadline),
            self._inner,
            {task.name: make_program(self.plan, task, self.run_id) for task in self.plan.tasks},
            deadline,
        )
        gaps = [
            GapReport(where=node, what=f"{count} calls were ended by killing", cause="timeout_seconds")
            for node, count in self._supervisor.timeouts.items()
        ]
        gaps += [
            GapReport(where=node, what="the source was ended by killing", cause="it did not stop when asked")
            for node in self._supervisor.forced
        ]
        forced = self._supervisor.forced
        return close_account(facts, self._past, self._devices, ends, gaps=gaps, forced=forced)
