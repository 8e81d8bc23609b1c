"""The task replicas of a run in threads: one thread each, and what they tell.

Used by the run, which decides when they are to end. It refuses to swallow what ends a thread early: that is
told to the run, and raised.
"""

import threading
import time
from collections.abc import Sequence
from typing import Protocol

from videoflow.backends.runtime import FirstFailure, FlowRuntime
from videoflow.clock import Signal
from videoflow.engines._accelerators import RunDevices
from videoflow.engines._ledger import InnerLedger
from videoflow.engines._live import Figures, added, summed
from videoflow.engines._threads_setup import Setup
from videoflow.engines._watch import WatchSink
from videoflow.planner.plan import TaskPlan
from videoflow.worker import (
    Backends,
    Job,
    Meter,
    MeteredClock,
    MeteredMessaging,
    RunControl,
    Shell,
    Spending,
    TaskFigures,
    TaskNodes,
    WorkerFatal,
    ended_badly,
    item_limits,
    make_program,
)
from videoflow.worker.core.actions import InnerFate


class Told(Protocol):
    """What replicas tell the run, each in its own thread."""

    def failed(self, failure: FirstFailure, error: BaseException | None) -> None:
        """The run has failed; this is the first failure as recorded, and the exception of user code."""
        ...

    def broken(self, failure: FirstFailure) -> None:
        """A replica ended for a reason that is not its node's; nothing is recorded yet."""
        ...


class Replica(threading.Thread):
    """One task replica; it is the reporter of its shell.

    Attributes:
        task: Which task.
        nodes: Its nodes.
        done: It has ended, in whatever way.
        opening: Its nodes are being opened, which takes as long as it takes.
    """

    def __init__(self, task: TaskPlan, slot: int, nodes: TaskNodes, crew: "Replicas", told: Told) -> None:
        super().__init__(name=f"videoflow-{task.name}-{slot}", daemon=True)
        self.task = task
        self.nodes = nodes
        self.done = False
        self.opening = True
        self._slot = slot
        self._crew = crew
        self._told = told

    def run(self) -> None:
        """Runs the shell to its end; whatever ends it early is told, and what waits for it is settled."""
        try:
            self._crew.shell(self, self._slot).run()
        except WorkerFatal as error:
            self.opening = False
            self._told.broken(ended_badly(self.task.name, error))
            self._crew.abandoning(self, self._slot).run()
        except BaseException as error:  # the thread ends here, and the run must hear of it
            self._told.broken(ended_badly(self.task.name, error))
            raise
        finally:
            self.done = True
            self._crew.changed()

    def opened(self) -> None:
        """Every node is open."""
        self.opening = False

    def inner(self, fates: Sequence[InnerFate]) -> None:
        """Joins fates into the ledger of the run."""
        self._crew.add_inner(self.task.name, fates)

    def failed(self, failure: FirstFailure) -> None:
        """Tells the run."""
        self._told.failed(failure, self.nodes.last_error)

    def figures(self, figures: TaskFigures) -> None:
        """They are read from the nodes."""


class Replicas:
    """All replicas of one run.

    Args:
        setup: What the run is made of.
        run_id: ULID.
        runtime: The records of the run.
        told: Whom they tell.
        watch: The watching consumer, or None.
        devices: The accelerators of the run.

    Attributes:
        control: What the run desires of them.
        programs: By task.
        inner: Fates on edges inside tasks.
    """

    def __init__(
        self,
        setup: Setup,
        run_id: str,
        runtime: FlowRuntime,
        told: Told,
        watch: WatchSink | None,
        devices: RunDevices,
    ) -> None:
        self._setup = setup
        self._runtime = runtime
        self._devices = devices
        self.control = RunControl()
        self.programs = {task.name: make_program(setup.plan, task, run_id) for task in setup.plan.tasks}
        self.inner = InnerLedger()
        self._inner_lock = threading.Lock()
        self._changes = 0
        self._changed = Signal(lambda: self._changes > 0)
        self._members = [
            Replica(task, slot, self._nodes(task, slot, watch), self, told)
            for task in setup.plan.tasks
            for slot in range(task.replicas)
        ]

    def start(self) -> None:
        """Starts every thread."""
        for replica in self._members:
            replica.start()

    @property
    def unfinished(self) -> tuple[TaskPlan, ...]:
        """The tasks of the replicas that have not ended."""
        return tuple(replica.task for replica in self._members if not replica.done)

    @property
    def steps(self) -> int:
        """Counts what all of them did."""
        return sum(replica.nodes.figures.steps for replica in self._members)

    @property
    def busy(self) -> bool:
        """Whether some of them are in user code: opening nodes, or calling one."""
        return bool(self.calling) or any(r.opening for r in self._members if not r.done)

    @property
    def calling(self) -> tuple[tuple[str, float], ...]:
        """The nodes in whose code replicas are that have not ended, since when in monotonic seconds."""
        calls = [replica.nodes.figures.calling for replica in self._members if not replica.done]
        return tuple(call for call in calls if call is not None)

    def wait_for_change(self, seconds: float) -> None:
        """Waits until some replica ends, at most so long."""
        clock = self._setup.clock
        self._changes = 0
        clock.wait([self._changed], clock.monotonic() + seconds)

    def interrupt_sources(self) -> None:
        """Ends blocked calls of `produce`."""
        for replica in self._members:
            replica.nodes.interrupt()

    def stragglers(self, seconds: float) -> tuple[TaskPlan, ...]:
        """Returns the tasks of the threads that still run after so many seconds."""
        clock = self._setup.clock
        deadline = clock.monotonic() + seconds
        for replica in self._members:
            replica.join(max(0.0, deadline - clock.monotonic()))
        return tuple(replica.task for replica in self._members if replica.is_alive())

    def figures(self) -> Figures:
        """Returns the figures so far."""
        return summed((r.task.name, r.nodes.figures.snapshot()) for r in self._members)

    def spendings(self) -> dict[str, Spending]:
        """Returns where the time went, by task, where the run is profiled."""
        return added((r.task.name, r.nodes.figures.spending()) for r in self._members)

    # Used by replicas, in their threads ---------------------------------------------------------

    def shell(self, replica: Replica, slot: int) -> Shell:
        """Makes the shell of a replica."""
        setup, owner = self._setup, f"{replica.task.name}-{slot}"
        meter = Meter(time.thread_time) if setup.request.options.profile else None
        clock = setup.clock if meter is None else MeteredClock(meter)
        messaging, payloads = setup.messaging(owner, clock), setup.payloads(owner, clock)
        metered = messaging if meter is None else MeteredMessaging(meter, messaging)
        backends = Backends(metered, payloads, self._runtime, clock)
        program, flow_id = self.programs[replica.task.name], setup.plan.spec.flow_id
        job = Job(program, flow_id, slot, f"{owner}-1", meter=meter)
        return Shell(job, backends, replica.nodes, self.control, replica)

    def abandoning(self, replica: Replica, slot: int) -> Shell:
        """Makes the shell that settles what waits for a replica which cannot go on; it calls no node."""
        setup, owner = self._setup, f"{replica.task.name}-{slot}"
        messaging = setup.messaging(owner)
        messaging.release_owner(owner, deadline=setup.clock.monotonic())
        backends = Backends(messaging, setup.payloads(owner), self._runtime, setup.clock)
        program, flow_id = self.programs[replica.task.name], setup.plan.spec.flow_id
        job = Job(program, flow_id, slot, f"{owner}-2", abandon=True, restarted=True)
        return Shell(job, backends, replica.nodes, self.control, replica)

    def add_inner(self, task: str, fates: Sequence[InnerFate]) -> None:
        """Joins fates on edges inside a task."""
        with self._inner_lock:
            self.inner.add(task, fates)

    def changed(self) -> None:
        """Wakes whoever waits for an end."""
        self._changes += 1
        self._changed.notify()

    def _nodes(self, task: TaskPlan, slot: int, watch: WatchSink | None) -> TaskNodes:
        instances = self._setup.instances(task, watch)
        limits = item_limits(self._setup.plan, task)
        nodes = TaskNodes(self.programs[task.name], instances, limits, slot, self.control)
        grant = self._devices.grants.get(f"{task.name}/{slot}")
        nodes.grant(() if grant is None else grant.devices)
        return nodes
