"""The end of a run, as those are told who wait for it: its report, or why there is none.

Used by the handles of the engines that run here. It refuses to let anybody wait for a run whose supervising
thread has failed.
"""

from collections.abc import Iterator
from concurrent.futures import Future
from concurrent.futures import TimeoutError as NotInTime
from contextlib import contextmanager

from videoflow.errors import EnvironmentFault, RunFailed, said_by
from videoflow.graph.report import RunReport

_TURN_SECONDS = 1.0  # a wait without limit hears no Ctrl-C on every platform


class AwaitedRun:
    """A run that any thread may wait for.

    Args:
        broken: What is said when the thread fails that supervises it.
        effect: What that did.
        remedy: What to do.
    """

    def __init__(self, broken: str, effect: str, remedy: str) -> None:
        self._broken = broken, effect, remedy
        self._ended: Future[RunReport] = Future()

    def wait(self) -> RunReport:
        """Blocks until the run has ended; Ctrl-C comes through.

        Raises:
            RunFailed: The run could not be accounted for.
            EnvironmentFault: The records or the report of the run could not be written.
        """
        while (report := self.wait_for(_TURN_SECONDS)) is None:
            pass
        return report

    def wait_for(self, seconds: float) -> RunReport | None:
        """Blocks at most so long; None when the run goes on.

        Raises:
            RunFailed: The run could not be accounted for.
            EnvironmentFault: The records or the report of the run could not be written.
        """
        try:
            return self._ended.result(seconds)
        except NotInTime:
            return None

    @contextmanager
    def telling_failures(self) -> Iterator[None]:
        """Tells whoever waits what ends the block early; what is nobody's fault but ours is raised, too."""
        try:
            yield
        except EnvironmentFault as error:
            self._ended.set_exception(error)
        except BaseException as error:  # whatever ends this thread, nobody may wait for it for ever
            message, effect, remedy = self._broken
            failed = RunFailed(message, cause=said_by(error), effect=effect, remedy=remedy)
            failed.__cause__ = error
            self._ended.set_exception(failed)
            raise
