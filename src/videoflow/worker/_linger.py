"""Publishes what is held back for company, when user code takes its time.

Used by the shell: items that come quickly are published together, and so are results; the thread that does so
may be kept in user code for any time. It refuses to let anything linger there for more than a few
milliseconds.
"""

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor

from videoflow.backends.outcomes import PublicationOutcome
from videoflow.clock import Clock
from videoflow.worker.core.actions import Statement

_LINGER_SECONDS = 0.002
_IDLE_ROUNDS = 8

Said = Sequence[PublicationOutcome]
Publishes = Callable[[Sequence[Statement]], Said]


class _Never:
    """Publishes nothing: what is held has to be committed before."""

    def hold(self, held: Sequence[Statement]) -> None:
        """See `Lingers`."""

    def release(self) -> Said:
        """See `Lingers`."""
        return ()

    def close(self) -> None:
        """See `Lingers`."""


NEVER = _Never()


class Linger:
    """Watches in a thread of its own.

    Args:
        publish: Publishes them, in this object's thread; nothing else does so meanwhile.
        clock: For how long they are held.
    """

    def __init__(self, publish: Publishes, clock: Clock) -> None:
        self._publish = publish
        self._clock = clock
        self._lock = threading.Lock()
        self._closing = threading.Event()
        self._threads = ThreadPoolExecutor(1, "videoflow-linger")
        self._watching: Future[Said] | None = None
        self._watches = False
        self._published = False
        self._held: Sequence[Statement] = ()
        self._oldest: Statement | None = None
        self._since = 0.0

    def hold(self, held: Sequence[Statement]) -> None:
        """Begins to watch over these, oldest first: user code is called now. More may come behind them."""
        if not held:
            return
        with self._lock:
            if held[0] is not self._oldest:
                self._oldest, self._since = held[0], self._clock.monotonic()
            self._held = held
            if not self._watches:
                self._watches = True
                self._watching = self._threads.submit(self._watch)

    def release(self) -> Said:
        """Ends to watch: user code has returned. Returns what came of those that are out, the first ones.

        Raises:
            Quit: The worker was told to end meanwhile. What else publishing raises comes out here, too.
        """
        if not self._held:
            return ()
        with self._lock:
            self._held = ()
            published, self._published = self._published, False
        return self._watching.result() if published and self._watching is not None else ()

    def close(self) -> None:
        """Ends its thread."""
        self._closing.set()
        self._threads.shutdown()

    def _watch(self) -> Said:
        idle = 0
        while not self._closing.wait(_LINGER_SECONDS):
            with self._lock:  # also when this ends: what is held from then on needs another one
                idle = 0 if self._held else idle + 1
                due = self._held and self._clock.monotonic() - self._since >= _LINGER_SECONDS
                if due or idle == _IDLE_ROUNDS:
                    self._watches = False
                if due:
                    self._published = True
                    return self._publish(tuple(self._held))
                if not self._watches:
                    break
        return ()
