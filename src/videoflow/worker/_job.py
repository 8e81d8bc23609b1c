"""What one replica is given: its job, and the backends to do it with.

Made by the engines, used by the shell and its parts. It refuses nothing; `Quit` is how the parts say that
the worker was told to end at once.
"""

from dataclasses import dataclass

from videoflow.backends.messaging import MessagingBackend
from videoflow.backends.payload import PayloadStore
from videoflow.backends.runtime import FlowRuntime
from videoflow.clock import Clock
from videoflow.worker._meter import Meter
from videoflow.worker.core import TaskProgram

_CALL_SECONDS = 30.0


class Quit(Exception):
    """The worker was asked to end without draining."""


@dataclass(frozen=True)
class Backends:
    """What a shell works against; made for one owner.

    Attributes:
        messaging: Channels and subscriptions.
        payloads: Large bytes.
        runtime: The records of the run.
        clock: Time.
    """

    messaging: MessagingBackend
    payloads: PayloadStore
    runtime: FlowRuntime
    clock: Clock

    def deadline(self, seconds: float = _CALL_SECONDS) -> float:
        """Returns when a call that begins now has to be over, in monotonic seconds."""
        return self.clock.monotonic() + seconds


@dataclass(frozen=True)
class Job:
    """One replica of one task.

    Attributes:
        program: What it runs.
        flow_id: Name of the flow.
        slot: Number of the replica.
        incarnation: Unique per start.
        abandon: Only settle what waits as abandoned: the task is given up.
        restarted: An earlier incarnation of this replica died.
        died: How the last one died, in words, or "".
        meter: Measures it, where the run is profiled.
    """

    program: TaskProgram
    flow_id: str
    slot: int
    incarnation: str
    abandon: bool = False
    restarted: bool = False
    died: str = ""
    meter: Meter | None = None

    @property
    def task(self) -> str:
        """Name of the task."""
        return self.program.task.name
