"""What a worker is told, and whom it tells: the two thin links between a shell and its engine.

Used by the shell, filled by each engine. They carry no payload and decide nothing. They refuse to lower what
is desired.
"""

import threading
from collections.abc import Callable, Sequence
from typing import Protocol

from videoflow.backends.runtime import Desired, FirstFailure
from videoflow.clock import Signal
from videoflow.worker._figures import TaskFigures
from videoflow.worker.core.actions import InnerFate


class RunControl:
    """The desired state of the run, as this process knows it; it only rises."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._watchers: list[Signal] = []
        self.version = 0
        self.desired = Desired.RUN
        self.failed_task: str | None = None
        self.quit = False

    def raise_desired(self, desired: Desired, failed_task: str | None = None) -> None:
        """Raises the desired state; `failed_task` is the task whose node failed first."""
        with self._lock:
            self.desired = max(self.desired, desired)
            self.failed_task = self.failed_task or failed_task
        self._tell()

    def end_now(self) -> None:
        """Asks every worker of this process to end without draining."""
        with self._lock:
            self.desired = max(self.desired, Desired.STOP)
            self.quit = True
        self._tell()

    def watch(self, seen: Callable[[], int]) -> Signal:
        """Returns what is ready while `version` is not what `seen` returns."""
        signal = Signal(lambda: self.version != seen())
        with self._lock:
            self._watchers.append(signal)
        return signal

    def _tell(self) -> None:
        with self._lock:
            self.version += 1
            watchers = tuple(self._watchers)
        for signal in watchers:
            signal.notify()


class Reporter(Protocol):
    """What a worker tells its engine."""

    def opened(self) -> None:
        """Every node of the task is open."""
        ...

    def inner(self, fates: Sequence[InnerFate]) -> None:
        """Fates on edges inside the task, before what caused them is settled."""
        ...

    def failed(self, failure: FirstFailure) -> None:
        """The run has failed; this is the first failure as recorded."""
        ...

    def figures(self, figures: TaskFigures) -> None:
        """The figures of this replica, at the start: one object that goes on changing."""
        ...
