"""The main of a worker process: `python -m videoflow.worker.process CONTROL LIFELINE`.

Started by the local engine, with two inherited descriptors. It makes the nodes of its task, runs the shell in
the main thread, and keeps a second thread that listens to the engine and sends it figures. It refuses to
outlive its engine: the kernel ends it when the lifeline closes, whatever it is doing.
"""

import faulthandler
import fcntl
import logging
import os
import select
import signal
import socket
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from videoflow import faults, registry
from videoflow.adapters.notebook import load_classes
from videoflow.adapters.shm import ShmMessaging, open_worker
from videoflow.adapters.sqlite import SqliteStore
from videoflow.backends.runtime import Desired, FirstFailure, FlowRuntime
from videoflow.clock import RealClock
from videoflow.environment import GRANT_VARIABLE
from videoflow.errors import ContractBroken, OutputUnwritable
from videoflow.faults import Fault, FaultAction
from videoflow.graph import SKIP, Item, Node, Processor, Producer, instantiate, load_flow_file, resolve
from videoflow.graph.spec import CodeKind, NodeKind
from videoflow.planner.plan import Plan, TaskPlan
from videoflow.worker import (
    Backends,
    Job,
    Meter,
    MeteredClock,
    MeteredMessaging,
    RunControl,
    Shell,
    TaskFigures,
    TaskNodes,
    ended_badly,
    item_limits,
    make_program,
)
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
    Link,
    LinkClosed,
    Message,
    Opened,
    packed,
)
from videoflow.worker.page import Page, SharedFigures

_BEAT_SECONDS = 0.25
_LINGER_SECONDS = 0.25
_LOST = 71


class _Reporter:
    """Tells the engine; from any thread, one message at a time."""

    def __init__(self, link: Link) -> None:
        self._link = link
        self._lock = threading.Lock()
        self._figures: TaskFigures | None = None
        self._said: int = -1

    def say(self, message: Message) -> None:
        """Sends a message, and waits until it is on its way."""
        with self._lock:
            self._link.send(message)

    def opened(self) -> None:
        """Every node is open."""
        self.say(Opened())

    def inner(self, fates: Sequence[InnerFate]) -> None:
        """Fates on edges inside the task."""
        self.say(Inner(packed(fates)))

    def failed(self, failure: FirstFailure) -> None:
        """The run has failed."""
        self.say(Failed(failure))

    def figures(self, figures: TaskFigures) -> None:
        """From now on they are sent."""
        self._figures = figures

    def beat(self, *, last: bool = False) -> None:
        """Sends the figures, where something moved since the last time, and at the end in any case."""
        figures = self._figures
        if figures is not None and (last or figures.steps != self._said):
            self._said = figures.steps
            self.say(Figures(figures.snapshot(), figures.spending()))


class _Keeper(threading.Thread):
    """Listens to the engine while the work thread works."""

    def __init__(self, link: Link, reporter: _Reporter, control: RunControl) -> None:
        super().__init__(name="videoflow-keeper", daemon=True)
        self._link = link
        self._reporter = reporter
        self._control = control
        self.nodes: TaskNodes | None = None

    def run(self) -> None:
        """Runs until the engine is gone, which ends the process."""
        poll = select.poll()
        poll.register(self._link.fileno(), select.POLLIN)
        try:
            while True:
                if poll.poll(_BEAT_SECONDS * 1000):
                    self._take()
                self._reporter.beat()
        except LinkClosed:
            os._exit(_LOST)

    def _take(self) -> None:
        received = self._link.receive()
        message = received[0] if received is not None else None
        if isinstance(message, Desire):
            self._control.raise_desired(message.desired, message.failed_task)
        elif isinstance(message, EndNow):
            self._control.end_now()
        self.interrupt()

    def interrupt(self) -> None:
        """Ends a blocked `produce` where the run is to end."""
        if self.nodes is not None and self._control.desired > Desired.RUN:
            self.nodes.interrupt()


def die_with(lifeline: int) -> None:
    """Lets the kernel kill this process when the other end of a socket closes, even inside C code."""
    fcntl.fcntl(lifeline, fcntl.F_SETOWN, os.getpid())
    fcntl.fcntl(lifeline, fcntl.F_SETSIG, signal.SIGKILL)
    flags = fcntl.fcntl(lifeline, fcntl.F_GETFL)
    fcntl.fcntl(lifeline, fcntl.F_SETFL, flags | os.O_ASYNC | os.O_NONBLOCK)
    try:
        gone = os.read(lifeline, 1) == b""
    except BlockingIOError:
        gone = False
    if gone:
        os._exit(_LOST)


class _GivenUpSource(Producer):
    """In the place of a source that is not to run any more."""

    def produce(self, resume: int | None) -> Iterator[Item]:
        """Produces nothing."""
        return iter(())


class _GivenUp(Processor):
    """In the place of a node that is not to run any more."""

    def process(self, *inputs: object) -> object:
        """Makes nothing."""
        return SKIP


def _instances(boot: Boot, plan: Plan, task: TaskPlan) -> dict[str, Node]:
    nodes = [plan.spec.node(name) for name in task.nodes]
    if boot.abandon:
        return {n.name: _GivenUpSource() if n.kind is NodeKind.PRODUCER else _GivenUp() for n in nodes}
    sent = load_classes(boot.classes) if boot.classes else {}
    files = [node.module for node in plan.spec.nodes if node.code is CodeKind.FLOW_FILE]
    if files:  # even where none of its nodes runs here: its record classes may come in on any edge
        load_flow_file(files[0])
    return {n.name: instantiate(n, sent[n.name] if n.name in sent else resolve(n)) for n in nodes}


@dataclass(frozen=True)
class _Made:
    """A worker that is ready to run."""

    shell: Shell
    messaging: ShmMessaging


def _make(
    boot: Boot, descriptors: Sequence[int], control: RunControl, reporter: _Reporter, keeper: _Keeper
) -> _Made:
    plan = Plan.from_json(boot.plan)
    task = plan.task(boot.task)
    os.chdir(plan.spec.folder)
    meter = Meter(time.process_time) if boot.profile else None
    clock = RealClock() if meter is None else MeteredClock(meter)
    program = make_program(plan, task, boot.run_id)
    nodes = TaskNodes(program, _instances(boot, plan, task), item_limits(plan, task), boot.slot, control)
    nodes.figures = SharedFigures(nodes.figures, Page(descriptors[0], task.nodes))
    if GRANT_VARIABLE in os.environ:  # the types of accelerators are loaded by those alone who have some
        nodes.grant(registry.load(registry.DEVICES, "granted")(os.environ, clock))
    keeper.nodes = nodes
    keeper.interrupt()
    runtime = FlowRuntime(SqliteStore(Path(boot.run_folder, "run.sqlite"), clock), boot.run_id)
    messaging, payloads = open_worker(boot.kit, descriptors[1:], clock, boot.incarnation)
    job = Job(
        program,
        plan.spec.flow_id,
        boot.slot,
        boot.incarnation,
        abandon=boot.abandon,
        restarted=boot.restarted,
        died=boot.died,
        meter=meter,
    )
    watched = messaging if meter is None else MeteredMessaging(meter, messaging)
    backends = Backends(watched, payloads, runtime, clock)
    return _Made(Shell(job, backends, nodes, control, reporter), messaging)


def _work(boot: Boot, descriptors: Sequence[int], link: Link) -> None:
    """Runs one incarnation to its end; what ends it badly is said, and then raised."""
    reporter, control = _Reporter(link), RunControl()
    control.raise_desired(boot.desired, boot.failed_task)
    keeper = _Keeper(link, reporter, control)
    keeper.start()
    again = False
    try:
        made = _make(boot, descriptors, control, reporter, keeper)
        again = True
        faults.arm([Fault(f.barrier, FaultAction(f.action), f.hit, f.record) for f in boot.faults])
        kind = made.shell.run()
        while kind is not None and not control.quit:  # readers are served until they have everything
            if made.messaging.linger(deadline=time.monotonic() + _LINGER_SECONDS):
                break
        reporter.beat(last=True)
        reporter.say(Ended(None if kind is None else kind.value))
    except LinkClosed:
        os._exit(_LOST)
    except BaseException as error:  # the process ends here, and its supervisor must hear of it
        reporter.beat(last=True)
        again = again and not isinstance(error, OutputUnwritable)  # no restart makes room
        reporter.say(Broken(ended_badly(boot.task, error), again))
        raise


def main(arguments: Sequence[str]) -> None:
    """Runs a worker.

    Args:
        arguments: The numbers of the two descriptors: control link and lifeline.
    """
    control, lifeline = (int(number) for number in arguments)
    for descriptor in (control, lifeline):
        os.set_inheritable(descriptor, False)
    die_with(lifeline)
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # a death like any other, not an exception in the node
    faulthandler.enable()
    faulthandler.register(signal.SIGUSR1, all_threads=True)  # the engine asks where a stalled run stands
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    link = Link(socket.socket(fileno=control))
    received = link.receive()
    boot, descriptors = received or (None, [])
    if not isinstance(boot, Boot):
        raise ContractBroken("a worker was started without its boot document")
    sys.path[:] = boot.import_path
    _work(boot, descriptors, link)


if __name__ == "__main__":
    main(sys.argv[1:])
