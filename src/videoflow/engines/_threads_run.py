"""A run in threads: the handle that a user holds, and the thread that watches over it.

Used by the threads engine. It decides when a run stops, aborts, stalls and ends, and gives the account. It
refuses to wait for ever for a thread in user code: such a task is named as lost.
"""

import os
import threading
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

from videoflow.backends.messaging import OwnerLabels
from videoflow.backends.runtime import Desired, FirstFailure, FlowRuntime
from videoflow.engines._accelerators import reserved
from videoflow.engines._awaited import AwaitedRun
from videoflow.engines._closing import Ends, close_account
from videoflow.engines._endings import stalled, timed_out
from videoflow.engines._kept import KeptRun
from videoflow.engines._live import node_statuses, queues_of
from videoflow.engines._outputs import claim_outputs, outputs_of
from videoflow.engines._past import Past
from videoflow.engines._report import RunFacts
from videoflow.engines._suspended import Suspended, resumption_of
from videoflow.engines._threads_replicas import Replicas
from videoflow.engines._threads_setup import CALL_SECONDS, Setup
from videoflow.engines._unresumable import refuse_stopping
from videoflow.engines._watch import WatchSink
from videoflow.errors import UsageError
from videoflow.graph.report import RunReport
from videoflow.graph.running import RunPhase, RunStatus
from videoflow.ids import new_ulid

_LOOK_SECONDS = 0.1
_GRACE_SECONDS = 2.0


class ThreadsRun(AwaitedRun):
    """A run in threads; any thread may use it.

    Args:
        setup: What it is made of.

    Attributes:
        run_id: ULID.
        plan: What it runs.
        cause: The exception of user code that failed the run, or None.

    Raises:
        FlowError: An output cannot be claimed, or a node not be made; nothing is left behind.
    """

    def __init__(self, setup: Setup) -> None:
        super().__init__(
            "the run could not be accounted for", effect="", remedy="report this as a defect, with the flow"
        )
        self._setup = setup
        self._clock = setup.clock
        self._options = setup.request.options
        self.plan = setup.plan
        self.run_id = new_ulid(self._clock.wall(), os.urandom(10))
        resumption = resumption_of(setup.request, self.plan, self._clock)
        self.cause: BaseException | None = None
        self._runtime = FlowRuntime(setup.store, self.run_id)
        self._watch = WatchSink() if setup.request.watched else None
        self._began, self._began_wall = self._clock.monotonic(), self._clock.wall()
        self._phase = RunPhase.STARTING
        self._stop_deadline: float | None = None
        self._lost: dict[str, str] = {}
        self._kept: KeptRun | None = None
        with ExitStack() as owned, ExitStack() as undone:
            owned.callback(claim_outputs(outputs_of(self.plan.spec), self.run_id).release)
            if self._options.runs_folder is not None:
                self._kept = KeptRun(self._options.runs_folder, self.run_id, self.plan, self._clock)
                undone.callback(self._kept.discard)
            self._devices = owned.enter_context(
                reserved(self.plan, self.run_id, self._options.gpu_policy, self._clock)
            )
            self._past = Past(self.plan, self.run_id, self._runtime, resumption, self._clock)
            undone.callback(self._past.give_back)
            self._past.begin()
            setup.provision(self.run_id)
            self._replicas = Replicas(setup, self.run_id, self._runtime, self, self._watch, self._devices)
            self._replicas.inner = self._past.inner()
            undone.pop_all()
            self._owned = owned.pop_all()

    def begin(self) -> None:
        """Starts the replicas, and the thread that watches over them."""
        self._phase = RunPhase.RUNNING
        self._replicas.start()
        threading.Thread(target=self._watch_over, name="videoflow-monitor", daemon=True).start()

    # Told by replicas, in their threads ---------------------------------------------------------

    def failed(self, failure: FirstFailure, error: BaseException | None = None) -> None:
        """Lets every replica know that the run has failed, and interrupts the sources."""
        self.cause = self.cause or error
        self._replicas.control.raise_desired(Desired.ABORT, self.plan.task_of(failure.node).name)
        self._replicas.interrupt_sources()
        self._start_drain()

    def broken(self, failure: FirstFailure) -> None:
        """Records a failure that no worker recorded, and aborts."""
        standing = self._runtime.fail_first(failure, deadline=self._call_deadline())
        self._runtime.raise_desired(Desired.ABORT, deadline=self._call_deadline())
        self.failed(standing)

    # The handle ---------------------------------------------------------------------------------

    def stop(self, *, resumable: bool = False) -> None:
        """Asks the sources to end and drains; a second call ends without draining. See `RunHandle.stop`."""
        control = self._replicas.control
        if resumable:
            self._ask_to_suspend(control.desired)
        if control.desired is not Desired.RUN:
            control.end_now()
            return
        self._runtime.raise_desired(Desired.STOP, deadline=self._call_deadline())
        control.raise_desired(Desired.STOP)
        self._phase = RunPhase.STOPPING
        self._replicas.interrupt_sources()
        self._start_drain()

    def _ask_to_suspend(self, desired: Desired) -> None:
        if desired is not Desired.RUN:
            raise refuse_stopping()
        if self._kept is None:
            raise UsageError(
                "the run cannot be stopped to be resumed",
                cause="it runs in threads and was given no folder to keep anything in",
                effect="it goes on",
                remedy="start it with runs_folder=, or with engine='local'",
            )
        self._past.ask_to_suspend(self._call_deadline())

    def status(self) -> RunStatus:
        """Returns live figures."""
        observer = self._setup.messaging("observer")
        queues = queues_of(
            self.plan, self.run_id, lambda name: observer.observe_subscription(name, deadline=0.0)
        )
        seconds = self._clock.monotonic() - self._began
        figures = self._past.figures(self._replicas.figures())
        return RunStatus(self.run_id, self._phase, seconds, node_statuses(figures, queues, {}))

    def values(self) -> Iterator[tuple[Any, ...]]:
        """Yields what the watched ports made; leaving the loop stops the run."""
        assert self._watch is not None
        watch = self._watch
        try:
            yield from watch.values()
        finally:
            watch.leave()
            if not self._ended.done():
                self.stop()
                self.wait()

    # Watching over the run ----------------------------------------------------------------------

    def _watch_over(self) -> None:
        with self.telling_failures():
            try:
                with self._owned:
                    with self._devices.measured(self._workloads):
                        self._until_ended()
                    report, suspended = self._account()
                    if self._kept is not None:
                        self._kept.finish(report, self._runtime, suspended)
            finally:
                self._phase = RunPhase.ENDED
            self._ended.set_result(report)

    def _until_ended(self) -> None:
        progress, since = -1, self._clock.monotonic()
        while self._replicas.unfinished:
            self._replicas.wait_for_change(_LOOK_SECONDS)
            now, steps = self._clock.monotonic(), self._replicas.steps
            if steps != progress or self._replicas.busy:
                progress, since = steps, now
            if self._timed_out(now) or self._out_of_time(now, since):
                self._replicas.control.end_now()
                for task in self._replicas.stragglers(_GRACE_SECONDS):
                    self._lost[task.name] = "it was still in user code when the run ended"
                return

    def _workloads(self) -> dict[str, int]:
        return dict.fromkeys(self._devices.grants, os.getpid())

    def _timed_out(self, now: float) -> bool:
        for calling in self._replicas.calling:
            found = timed_out(self.plan.spec, calling, now)
            if found is not None:
                self.broken(found)
                return True
        return False

    def _out_of_time(self, now: float, since: float) -> bool:
        if self._replicas.control.quit:
            return True
        if self._stop_deadline is not None and now > self._stop_deadline:
            return True
        waiting = self._replicas.unfinished
        if now - since <= self._options.stall_seconds or not waiting:
            return False
        self.broken(stalled(waiting, self._options.stall_seconds))
        return True

    def _start_drain(self) -> None:
        if self._stop_deadline is None:
            self._stop_deadline = self._clock.monotonic() + self._options.drain_seconds

    def _call_deadline(self) -> float:
        return self._clock.monotonic() + CALL_SECONDS

    # The account --------------------------------------------------------------------------------

    def _account(self) -> tuple[RunReport, Suspended | None]:
        now, deadline = self._clock.monotonic(), self._call_deadline()
        observer = self._setup.messaging("observer")
        facts = RunFacts(
            plan=self.plan,
            run_id=self.run_id,
            options=self._options,
            runtime=self._runtime,
            figures=self._past.figures(self._replicas.figures()),
            restarts={},
            began_wall=self._began_wall,
            seconds=now - self._began,
            now=now,
            quit=self._replicas.control.quit,
            lost=self._lost,
            folder=str(self._kept.folder.path) if self._kept is not None else "",
            spendings=self._replicas.spendings(),
        )
        ends = Ends(
            lambda name: observer.announced(name, deadline=deadline),
            lambda name: observer.settled(name, deadline=deadline),
            self._replicas.inner,
            self._replicas.programs,
            deadline,
        )
        ended = close_account(facts, self._past, self._devices, ends)
        observer.close(OwnerLabels(self.plan.spec.flow_id, self.run_id), deadline=deadline)
        return ended
