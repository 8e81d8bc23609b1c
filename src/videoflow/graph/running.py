"""What starting, watching and stopping a run looks like, whichever engine runs it.

Used by `Flow.run`, the command line and the engines. It refuses nothing itself: the options are
parsed and checked where they enter.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any, Literal, Protocol

from videoflow.faults import Fault
from videoflow.graph.report import RunReport
from videoflow.graph.spec import FlowSpec, PortRef


@dataclass(frozen=True)
class RunOptions:
    """How a run is to be run.

    Attributes:
        runs_folder: Where run folders are made; None: the default state folder, and in the threads engine
            no folder at all.
        memory_bytes: Budget for frames in flight, or None for the default.
        drain_seconds: How long a stop may drain.
        stall_seconds: No progress for so long with work pending is a stall.
        allow_dead_letters: So many dead letters leave the verdict complete.
        allow_incomplete: An incomplete run exits with 0.
        restart_backoff_seconds: First wait before a dead worker is started again, doubled up to 5 s.
        fuse: False: no fusing, neither by label nor by measured costs, to compare.
        resume: The run to go on with: its id, a part of it, or `last`; it was stopped to be resumed.
        gpu_policy: `strict`: every task has the accelerators that it asks for, or nothing starts; `shared`:
            they wrap around over what there is.
        profile: Measure where the time goes, and keep what the nodes cost for later plans.
        faults: Task name → planted faults, for tests; each process of the task is given the next of them.
    """

    runs_folder: Path | None = None
    memory_bytes: int | None = None
    drain_seconds: float = 30.0
    stall_seconds: float = 120.0
    allow_dead_letters: int = 0
    allow_incomplete: bool = False
    restart_backoff_seconds: float = 0.1
    fuse: bool = True
    resume: str = ""
    gpu_policy: Literal["strict", "shared"] = "strict"
    profile: bool = False
    faults: Mapping[str, tuple[Fault, ...]] = field(default_factory=dict)


@dataclass(frozen=True)
class NodeStatus:
    """Live figures of one node.

    Attributes:
        node: Its name.
        items: Inputs done (or items produced) so far.
        expected: How many there will be, or None.
        seconds_per_item: Mean time in user code, or None.
        queue: Items waiting for it.
        drops: Items dropped on its live inputs.
        errors: Exceptions raised by user code.
        restarts: Restarts of its task.
    """

    node: str
    items: int
    expected: int | None = None
    seconds_per_item: float | None = None
    queue: int | None = None
    drops: int = 0
    errors: int = 0
    restarts: int = 0


class RunPhase(StrEnum):
    """How far a run has come, as its handle knows it."""

    STARTING = "starting"
    RUNNING = "running"
    STOPPING = "stopping"
    ENDED = "ended"


@dataclass(frozen=True)
class RunStatus:
    """Live figures of a run.

    Attributes:
        run_id: ULID.
        state: How far it has come.
        seconds: Since it began.
        nodes: Every node, by task.
    """

    run_id: str
    state: RunPhase
    seconds: float
    nodes: tuple[NodeStatus, ...]


class RunHandle(Protocol):
    """A run that was started."""

    run_id: str

    def stop(self, *, resumable: bool = False) -> None:
        """Asks the sources to end at an item boundary, then drains; a second call ends without draining.

        Args:
            resumable: Flush nothing and finish no output: another run is to go on from here. Whether it can
                is said by `resumable` of the report.

        Raises:
            UsageError: It cannot be resumed: it is stopping already, or keeps nothing on disk.
        """
        ...

    def wait(self) -> RunReport:
        """Blocks until the run has ended, and returns its report."""
        ...

    def wait_for(self, seconds: float) -> RunReport | None:
        """Blocks at most so long; None when the run goes on."""
        ...

    def status(self) -> RunStatus:
        """Returns live figures."""
        ...


@dataclass(frozen=True)
class RunRequest:
    """A compiled flow and what cannot be put in a document.

    Attributes:
        spec: The compiled flow.
        classes: Node name → the class or decorated function, for the process that built the flow.
        options: How to run it.
        watched: Ports whose values the caller wants to see, on the threads engine only.
    """

    spec: FlowSpec
    classes: Mapping[str, Any]
    options: RunOptions
    watched: tuple[PortRef, ...] = ()


class WatchedRun(RunHandle, Protocol):
    """A run whose values are looked at."""

    def values(self) -> Iterator[tuple[Any, ...]]:
        """Yields, trace by trace, what the watched ports made; closing it stops the run."""
        ...


class Engine(Protocol):
    """An execution environment."""

    name: str

    def start(self, request: RunRequest) -> RunHandle:
        """Plans, provisions and starts.

        Raises:
            FlowError: Anything found before the first node is opened; nothing is left behind.
        """
        ...


EngineFactory = Callable[[], Engine]
