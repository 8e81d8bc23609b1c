"""Publishes what is held back for company, when user code takes its time.

Used by the shell: items that come quickly are published together, and so are results; the thread that does so
may be kept in user code for any time. It refuses to let anything linger there for more than a few
milliseconds.
"""

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor

from videoflow.backends.outcomes import PublicationOutcome
from videoflow.worker.core.actions import InnerFate, Statement

_LINGER_SECONDS = 0.002
_IDLE_ROUNDS = 8

Said = Sequence[PublicationOutcome]
Publishes = Callable[[Sequence[Statement], Sequence[InnerFate]], Said]


class _Never:
    """Publishes nothing: what is held has to be committed before."""

    inside = False
    published = False

    def hold(self, held: Sequence[Statement], inner: Sequence[InnerFate] = ()) -> None:
        """See `Lingers`."""

    def release(self) -> Said:
        """See `Lingers`."""
        return ()

    def close(self) -> None:
        """See `Lingers`."""


NEVER = _Never()


class Linger:
    """Watches in a thread of its own.

    Who works says only that user code runs, for that is done for every input; this thread says that it is
    about to publish before it looks at that, so that one of the two always sees the other.

    Args:
        publish: Publishes them, in this object's thread; nothing else does so meanwhile.

    Attributes:
        inside: See `Lingers`.
        published: See `Lingers`.
    """

    def __init__(self, publish: Publishes) -> None:
        self._publish = publish
        self.inside = False
        self.published = False
        self._lock = threading.Lock()
        self._closing = threading.Event()
        self._threads = ThreadPoolExecutor(1, "videoflow-linger")
        self._watching: Future[Said] | None = None
        self._watches = False
        self._out = False
        self._held: Sequence[Statement] = ()
        self._inner: Sequence[InnerFate] = ()

    def hold(self, held: Sequence[Statement], inner: Sequence[InnerFate] = ()) -> None:
        """Begins to watch over these, oldest first; `inner` is told before. More may come behind them."""
        self._inner, self._held = inner, held
        if held and not self._watches:
            with self._lock:
                if not self._watches:
                    self._watches = True
                    self._watching = self._threads.submit(self._watch)

    def release(self) -> Said:
        """Ends to watch. Returns what came of those that are out, the first ones.

        Raises:
            Quit: The worker was told to end meanwhile. What else publishing raises comes out here, too.
        """
        self._held = ()
        if not self.published:
            return ()
        with self._lock:
            out, self._out, self.published = self._out, False, False
        return self._watching.result() if out and self._watching is not None else ()

    def close(self) -> None:
        """Ends its thread."""
        self._closing.set()
        self._threads.shutdown()

    def _watch(self) -> Said:
        """Publishes what it finds held twice in a row while user code runs, and ends; or when it is idle."""
        idle, oldest = 0, None
        while not self._closing.wait(_LINGER_SECONDS):
            held = self._held
            found = held[0] if held else None
            due, oldest = found is not None and found is oldest, found
            idle = 0 if held else idle + 1
            if not due and idle < _IDLE_ROUNDS:
                continue
            with self._lock:
                self.published = due
                self._watches = False
                self._out = due and self.inside and held is self._held
                if self._out:
                    return self._publish(tuple(held), tuple(self._inner))
                self.published = False
                if not due and not self._held:  # what is held from now on needs another watch
                    break
                self._watches = True
        return ()
