"""Follows a run to its end: shows its figures and what its workers print, and passes on requests to stop.

Used by `run-local`.
"""

from videoflow.cli._logs import Logs
from videoflow.cli._progress import Progress
from videoflow.cli._signals import StopRequests
from videoflow.cli._units import show_seconds
from videoflow.graph.report import RunReport
from videoflow.graph.running import RunHandle

_LOOK_SECONDS = 0.25
_ANSWERED = 2


def follow(
    handle: RunHandle, requests: StopRequests, progress: Progress, logs: Logs, drain_seconds: float
) -> RunReport:
    """Returns the report of a run when it has ended.

    Args:
        handle: The run.
        requests: Counted by signal handlers.
        progress: Where figures are shown.
        logs: Of the run's workers.
        drain_seconds: How long a stop may drain, to be said.
    """
    passed_on = 0
    while (report := handle.wait_for(_LOOK_SECONDS)) is None:
        while passed_on < requests.count:
            passed_on += 1
            handle.stop()
            if passed_on <= _ANSWERED:
                progress.note(_answer(passed_on, drain_seconds), style="yellow")
        for line in logs.new_lines():
            progress.note(line)
        progress.show(handle.status())
    for line in logs.new_lines(rest=True):
        progress.note(line)
    return report


def _answer(requests: int, drain_seconds: float) -> str:
    if requests > 1:
        return "ending without draining"
    limit = show_seconds(drain_seconds)
    return f"stopping: sources end, the rest drains for up to {limit}; again ends it at once"
