"""The threads engine: every task replica in a thread of this process, on the memory backends.

Used in notebooks, tests and for small graphs. It isolates nothing: a call that hangs is seen and named,
and cannot be ended; a crash of the process is the end of the run.
"""

import logging
import os
import threading
from collections.abc import Iterator, Sequence
from typing import Any

from videoflow.backends.capabilities import ExecutionCapabilities
from videoflow.backends.memory import (
    MemoryBroker,
    MemoryMessaging,
    MemoryPayloads,
    MemoryPool,
    MemoryRuntimeStore,
)
from videoflow.backends.messaging import Kind, OwnerLabels
from videoflow.backends.runtime import Desired, FirstFailure, FlowRuntime
from videoflow.clock import RealClock, Signal
from videoflow.engines._account import account_of_edges
from videoflow.engines._endings import ended_badly, timed_out
from videoflow.engines._kept import KeptRun
from videoflow.engines._ledger import InnerLedger
from videoflow.engines._machine import available_bytes, budget_bytes, processors
from videoflow.engines._outputs import OutputClaims, claim_outputs, outputs_of
from videoflow.engines._provision import channel_specs, item_limits, subscription_specs, subscriptions_of
from videoflow.engines._report import RunFacts, make_report
from videoflow.engines._watch import WATCH_NODE, WatchSink, with_watch
from videoflow.errors import EnvironmentFault, RunFailed
from videoflow.graph import Node, instantiate
from videoflow.graph.report import RunReport
from videoflow.graph.running import NodeStatus, RunRequest, RunStatus
from videoflow.ids import new_ulid
from videoflow.planner import PlanFacts, plan_flow
from videoflow.planner.plan import Plan, TaskPlan
from videoflow.worker import (
    Backends,
    Job,
    NodeFigures,
    RunControl,
    Shell,
    TaskFigures,
    TaskNodes,
    WorkerFatal,
    make_program,
)
from videoflow.worker.core.actions import InnerFate

_LOG = logging.getLogger("videoflow.engines.threads")
_LOOK_SECONDS = 0.1
_GRACE_SECONDS = 2.0
_PROVISION_SECONDS = 30.0
CAPABILITIES = ExecutionCapabilities(
    engine="threads", isolates_crash=False, can_interrupt=False, crosses_processes=False, crosses_hosts=False
)


class ThreadsEngine:
    """Runs flows in threads of this process."""

    name = "threads"

    def plan(self, request: RunRequest) -> Plan:
        """Returns the plan that `start` would run."""
        return _Setup(request, RealClock()).plan

    def start(self, request: RunRequest) -> "ThreadsRun":
        """Plans, provisions and starts; see `Engine.start`."""
        return ThreadsRun(_Setup(request, RealClock()))


class _Setup:
    """Everything that is checked and made before the first thread starts."""

    def __init__(self, request: RunRequest, clock: RealClock) -> None:
        self.request = request
        self.clock = clock
        now = clock.monotonic()
        available = available_bytes(now)
        budget = budget_bytes(request.options.memory_bytes, available)
        self.pool = MemoryPool(budget)
        self.broker = MemoryBroker(self.pool)
        self.store = MemoryRuntimeStore(clock)
        spec = with_watch(request.spec, request.watched) if request.watched else request.spec
        self.plan = plan_flow(
            spec,
            PlanFacts(
                engine="threads",
                execution=CAPABILITIES,
                messaging=MemoryMessaging(self.broker, "planner", clock).capabilities(),
                payload=MemoryPayloads(self.pool, "planner", clock).capabilities(),
                runtime=self.store.capabilities(),
                memory_budget_bytes=budget,
                available_bytes=available,
                cpus=processors(),
                fuse=request.options.fuse,
            ),
        )

    def instances(self, task: TaskPlan, watch: WatchSink | None) -> dict[str, Node]:
        """Makes the nodes of one replica."""
        made: dict[str, Node] = {}
        for name in task.nodes:
            if name == WATCH_NODE and watch is not None:
                made[name] = watch
            else:
                made[name] = instantiate(
                    self.plan.spec.node(name), self.request.classes[name], self.plan.spec.folder
                )
        return made


class _Replica(threading.Thread):
    """One task replica."""

    def __init__(self, run: "ThreadsRun", task: TaskPlan, slot: int, nodes: TaskNodes) -> None:
        super().__init__(name=f"videoflow-{task.name}-{slot}", daemon=True)
        self.task = task
        self.slot = slot
        self.nodes = nodes
        self.kind: Kind | None = None
        self.error: BaseException | None = None
        self.done = False
        self._run = run

    def run(self) -> None:
        """Runs the shell to its end; whatever ends it early is kept for the engine."""
        try:
            self.kind = self._run.shell(self).run()
        except WorkerFatal as error:
            self.error = error
        except BaseException as error:
            self.error = error
            raise
        finally:
            self.done = True
            self._run.replica_ended(self)

    # What the shell tells ------------------------------------------------------------------------

    def opened(self) -> None:
        """Nothing waits for it here."""

    def inner(self, fates: Sequence[InnerFate]) -> None:
        """Joins fates into the ledger of the run."""
        self._run.add_inner(self.task.name, fates)

    def failed(self, failure: FirstFailure) -> None:
        """Tells every worker of this process."""
        if self._run.cause is None:
            self._run.cause = self.nodes.last_error
        self._run.failed(failure)

    def figures(self, figures: TaskFigures) -> None:
        """They are read from the nodes."""


class ThreadsRun:
    """A run in threads.

    Attributes:
        cause: The exception of user code that failed the run, or None.
    """

    def __init__(self, setup: _Setup) -> None:
        self._setup = setup
        self._clock = setup.clock
        self._options = setup.request.options
        self.plan = setup.plan
        self.run_id = new_ulid(self._clock.wall(), os.urandom(10))
        self._runtime = FlowRuntime(setup.store, self.run_id)
        self._claims: OutputClaims = claim_outputs(outputs_of(self.plan.spec), self.run_id)
        self._control = RunControl()
        self._inner = InnerLedger()
        self._inner_lock = threading.Lock()
        self._watch = WatchSink() if setup.request.watched else None
        self._began = self._clock.monotonic()
        self._began_wall = self._clock.wall()
        self._stop_deadline: float | None = None
        self._state = "running"
        self._lost: dict[str, str] = {}
        self._report: RunReport | None = None
        self._broken: BaseException | None = None
        self.cause: BaseException | None = None
        self._ended = threading.Event()
        self._changes = 0
        self._changed = Signal(lambda: self._changes > 0)
        self._programs = {task.name: make_program(self.plan, task, self.run_id) for task in self.plan.tasks}
        self._kept: KeptRun | None = None
        try:
            if self._options.runs_folder is not None:
                self._kept = KeptRun(self._options.runs_folder, self.run_id, self.plan, self._clock)
            self._provision()
            self._replicas = [
                _Replica(self, task, slot, self._nodes(task, slot))
                for task in self.plan.tasks
                for slot in range(task.replicas)
            ]
        except BaseException:
            if self._kept is not None:
                self._kept.discard()
            self._claims.release()
            raise
        for replica in self._replicas:
            replica.start()
        self._monitor = threading.Thread(target=self._watch_over, name="videoflow-monitor", daemon=True)
        self._monitor.start()

    def _provision(self) -> None:
        backend = MemoryMessaging(self._setup.broker, "provisioner", self._clock)
        deadline = self._clock.monotonic() + _PROVISION_SECONDS
        for number, channel in enumerate(channel_specs(self.plan, self.run_id)):
            backend.ensure_channel(channel, f"{self.run_id}/c{number}", deadline=deadline)
        for number, subscription in enumerate(subscription_specs(self.plan, self.run_id)):
            backend.ensure_subscription(subscription, f"{self.run_id}/s{number}", deadline=deadline)

    def _nodes(self, task: TaskPlan, slot: int) -> TaskNodes:
        instances = self._setup.instances(task, self._watch)
        limits = item_limits(self.plan, task)
        return TaskNodes(self._programs[task.name], instances, limits, slot, self._control)

    def shell(self, replica: _Replica) -> Shell:
        """Makes the shell of a replica."""
        owner = f"{replica.task.name}-{replica.slot}"
        messaging = MemoryMessaging(self._setup.broker, owner, self._clock)
        payloads = MemoryPayloads(self._setup.pool, owner, self._clock)
        backends = Backends(messaging, payloads, self._runtime, self._clock)
        job = Job(self._programs[replica.task.name], self.plan.spec.flow_id, replica.slot, f"{owner}-1")
        return Shell(job, backends, replica.nodes, self._control, replica)

    # Told by replicas ---------------------------------------------------------------------------

    def add_inner(self, task: str, fates: Sequence[InnerFate]) -> None:
        """Joins fates on edges inside a task."""
        with self._inner_lock:
            self._inner.add(task, fates)

    def failed(self, failure: FirstFailure) -> None:
        """Lets every replica know that the run has failed, and interrupts the sources."""
        task = self.plan.task_of(failure.node).name
        self._control.raise_desired(Desired.ABORT, task)
        self._interrupt_sources()
        self._start_drain()

    def replica_ended(self, replica: _Replica) -> None:
        """Wakes the monitor; a replica that ended by a defect fails the run."""
        if replica.error is not None:
            self._fail(ended_badly(replica.task.name, replica.error))
        self._changes += 1
        self._changed.notify()

    def _fail(self, failure: FirstFailure) -> None:
        deadline = self._clock.monotonic() + _PROVISION_SECONDS
        standing = self._runtime.fail_first(failure, deadline=deadline)
        self._runtime.raise_desired(Desired.ABORT, deadline=deadline)
        self.failed(standing)

    # The handle ---------------------------------------------------------------------------------

    def stop(self) -> None:
        """Asks the sources to end and drains; a second call ends without draining."""
        if self._control.desired is not Desired.RUN:
            self._control.end_now()
            return
        self._runtime.raise_desired(Desired.STOP, deadline=self._clock.monotonic() + _PROVISION_SECONDS)
        self._control.raise_desired(Desired.STOP)
        self._state = "stopping"
        self._interrupt_sources()
        self._start_drain()

    def wait(self) -> RunReport:
        """Blocks until the run has ended; Ctrl-C comes through."""
        while (report := self.wait_for(_GRACE_SECONDS)) is None:
            pass
        return report

    def wait_for(self, seconds: float) -> RunReport | None:
        """Blocks at most so long."""
        self._ended.wait(seconds)
        if isinstance(self._broken, EnvironmentFault):
            raise self._broken
        if self._broken is not None:
            raise RunFailed("the run could not be accounted for", cause=str(self._broken)) from self._broken
        return self._report

    def status(self) -> RunStatus:
        """Returns live figures."""
        seconds = self._clock.monotonic() - self._began
        nodes = tuple(
            self._node_status(name, figures)
            for task in self._figures().values()
            for name, figures in task.items()
        )
        return RunStatus(self.run_id, self._state, seconds, nodes)

    def _node_status(self, name: str, figures: NodeFigures) -> NodeStatus:
        queue, drops = self._queue(name)
        mean = figures.seconds / figures.items if figures.items else None
        return NodeStatus(name, figures.items, figures.expected, mean, queue, drops, figures.errors)

    def _queue(self, name: str) -> tuple[int | None, int]:
        task = self.plan.task_of(name)
        if task.nodes[0] != name or not task.inputs:
            return None, 0
        backend = MemoryMessaging(self._setup.broker, "observer", self._clock)
        waiting = drops = 0
        for reader, _, subscription in subscriptions_of(self.plan, self.run_id):
            if reader.name == task.name:
                observed = backend.observe_subscription(subscription, deadline=0.0)
                status = getattr(observed, "value", None)
                waiting += status.available if status is not None else 0
                drops += status.evicted if status is not None else 0
        return waiting, drops

    def values(self) -> Iterator[tuple[Any, ...]]:
        """Yields what the watched ports made; leaving the loop stops the run."""
        assert self._watch is not None
        watch = self._watch
        try:
            yield from watch.values()
        finally:
            watch.leave()
            if self._report is None:
                self.stop()
                self.wait()

    # Watching over the run ----------------------------------------------------------------------

    def _watch_over(self) -> None:
        try:
            self._until_ended()
            report = self._make_report()
            if self._kept is not None:
                self._kept.finish(report, self._runtime)
            self._report = report
        except EnvironmentFault as error:
            self._broken = error
        except BaseException as error:
            self._broken = error
            raise
        finally:
            self._claims.release()
            self._state = "ended"
            self._ended.set()

    def _until_ended(self) -> None:
        progress, since = -1, self._clock.monotonic()
        while not all(replica.done for replica in self._replicas):
            self._changes = 0
            self._clock.wait([self._changed], self._clock.monotonic() + _LOOK_SECONDS)
            now = self._clock.monotonic()
            steps = sum(r.nodes.figures.steps for r in self._replicas)
            busy = any(r.nodes.figures.calling is not None for r in self._replicas)
            if steps != progress or busy:
                progress, since = steps, now
            if self._timed_out(now) or self._out_of_time(now, since):
                self._control.end_now()
                self._wait_for_stragglers()
                return

    def _timed_out(self, now: float) -> bool:
        for replica in self._replicas:
            found = timed_out(self.plan.spec, replica.nodes.figures.calling, now)
            if found is not None and not replica.done:
                self._fail(found)
                return True
        return False

    def _out_of_time(self, now: float, since: float) -> bool:
        if self._control.quit:
            return True
        if self._stop_deadline is not None and now > self._stop_deadline:
            return True
        if now - since <= self._options.stall_seconds:
            return False
        waiting = [r.task.name for r in self._replicas if not r.done]
        self._fail(
            FirstFailure(
                node=self.plan.task(waiting[0]).nodes[0],
                code="VF-RUN-STALLED",
                message=f"no progress for {self._options.stall_seconds:g} s",
                cause=f"tasks that have not ended: {', '.join(waiting)}",
                remedy="report this as a defect, with plan.json",
                exit_status=5,
            )
        )
        return True

    def _wait_for_stragglers(self) -> None:
        deadline = self._clock.monotonic() + _GRACE_SECONDS
        for replica in self._replicas:
            replica.join(max(0.0, deadline - self._clock.monotonic()))
            if replica.is_alive():
                self._lost[replica.task.name] = "it was still in user code when the run ended"

    def _start_drain(self) -> None:
        if self._stop_deadline is None:
            self._stop_deadline = self._clock.monotonic() + self._options.drain_seconds

    def _interrupt_sources(self) -> None:
        for replica in self._replicas:
            replica.nodes.interrupt()

    # The account --------------------------------------------------------------------------------

    def _figures(self) -> dict[str, dict[str, NodeFigures]]:
        total: dict[str, dict[str, NodeFigures]] = {}
        for replica in self._replicas:
            task = total.setdefault(replica.task.name, {})
            for name, figures in replica.nodes.figures.snapshot().items():
                task.setdefault(name, NodeFigures()).add(figures)
        return total

    def _make_report(self) -> RunReport:
        now = self._clock.monotonic()
        deadline = now + _PROVISION_SECONDS
        backend = MemoryMessaging(self._setup.broker, "observer", self._clock)
        edges = account_of_edges(
            self.plan,
            self.run_id,
            self._programs,
            self._inner,
            lambda channel: backend.announced(channel, deadline=deadline),
            lambda subscription: backend.settled(subscription, deadline=deadline),
            now,
        )
        facts = RunFacts(
            plan=self.plan,
            run_id=self.run_id,
            options=self._options,
            runtime=self._runtime,
            edges=edges,
            figures=self._figures(),
            restarts={},
            began_wall=self._began_wall,
            seconds=now - self._began,
            now=now,
            quit=self._control.quit,
            lost=self._lost,
            folder=str(self._kept.folder.path) if self._kept is not None else "",
        )
        report = make_report(facts)
        backend.close(OwnerLabels(self.plan.spec.flow_id, self.run_id), deadline=deadline)
        return report
