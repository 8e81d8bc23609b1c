"""The threads engine: every task replica in a thread of this process, on the memory backends.

Used in notebooks, tests and for small graphs. It isolates nothing: a call that hangs is seen and named,
and cannot be ended; a crash of the process is the end of the run. It refuses what the planner refuses,
before a thread starts.
"""

from videoflow.clock import RealClock
from videoflow.engines._accelerators import with_devices_shown
from videoflow.engines._threads_run import ThreadsRun
from videoflow.engines._threads_setup import CAPABILITIES, Setup
from videoflow.graph.running import RunRequest
from videoflow.planner.plan import Plan

__all__ = ["CAPABILITIES", "ThreadsEngine"]


class ThreadsEngine:
    """Runs flows in threads of this process."""

    name = CAPABILITIES.engine

    def plan(self, request: RunRequest) -> Plan:
        """Returns the plan that `start` would run.

        Raises:
            FlowError: The flow cannot run here as it is.
        """
        clock = RealClock()
        return with_devices_shown(Setup(request, clock).plan, request.options.gpu_policy, clock)

    def start(self, request: RunRequest) -> ThreadsRun:
        """Plans, provisions and starts; see `Engine.start`."""
        run = ThreadsRun(Setup(request, RealClock()))
        run.begin()
        return run
