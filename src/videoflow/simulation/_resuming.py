"""A simulated run that was stopped to be resumed, as the run that goes on with it finds it.

Used by the simulator. What an engine keeps in a folder is at hand here; everything else is the engines' own.
"""

import contextlib
from collections.abc import Iterator

from videoflow.backends.runtime import FlowRuntime
from videoflow.engines.accounting import Resumption, Suspended


class SimulatedResumption(Resumption):
    """A suspended run in this process.

    Args:
        suspended: Its account.
        runtime: Its records.
    """

    def __init__(self, suspended: Suspended, runtime: FlowRuntime) -> None:
        self.suspended = suspended
        self._runtime = runtime

    def claim(self, run_id: str) -> None:
        """Marks nothing: nobody else goes on with it."""

    def release(self) -> None:
        """Takes nothing back."""

    @contextlib.contextmanager
    def records(self) -> Iterator[FlowRuntime]:
        """Gives its records."""
        yield self._runtime
