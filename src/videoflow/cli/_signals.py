"""Requests to stop that come as signals: Ctrl-C, SIGTERM, and the end of the terminal.

Used by `run-local`. The handlers only count, since they run between any two steps of the main thread and
must not take a lock; who waits for the run looks at the count. It refuses to cut off the end that the second
request began: only when that takes long does a further one end the process at once.
"""

import os
import signal
import time
from collections.abc import Callable
from types import FrameType, TracebackType
from typing import Any, Self

_LISTENED = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_REQUESTS_WHILE_STARTING = 2
_REQUESTS_TO_END = 2
_PATIENCE_SECONDS = 5.0


class StopRequests:
    """Counts requests to stop while it is entered, in the main thread.

    Args:
        before_the_end: Called before the process ends at once, to leave the terminal in order.

    Attributes:
        count: Requests so far.
        interrupted: Whether one of them was Ctrl-C.
        started: Set by the caller when there is a run to stop; before that, a second Ctrl-C gives up.
    """

    def __init__(self, before_the_end: Callable[[], None]) -> None:
        self.count = 0
        self.interrupted = False
        self.started = False
        self._before_the_end = before_the_end
        self._ending_since = 0.0
        self._previous: dict[int, Any] = {}

    def __enter__(self) -> Self:
        for number in _LISTENED:
            if signal.getsignal(number) is not signal.SIG_IGN:  # nohup asks that SIGHUP be ignored
                self._previous[number] = signal.signal(number, self._handle)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for number, handler in self._previous.items():
            signal.signal(number, handler)

    def _handle(self, number: int, frame: FrameType | None) -> None:
        self.count += 1
        self.interrupted = self.interrupted or number == signal.SIGINT
        if not self.started and self.count >= _REQUESTS_WHILE_STARTING:
            raise KeyboardInterrupt
        if self.count == _REQUESTS_TO_END:
            self._ending_since = time.monotonic()
        elif self.count > _REQUESTS_TO_END and time.monotonic() - self._ending_since > _PATIENCE_SECONDS:
            self._before_the_end()
            os._exit(130)
