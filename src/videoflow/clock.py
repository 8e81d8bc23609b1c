"""Time and waiting, behind one small face, so that a simulation can own both.

Used by every backend and by the worker's shell. Deadlines are monotonic seconds of the clock in
use. It refuses to sleep: whoever waits, waits for something.
"""

import contextlib
import os
import queue
import select
import threading
import time
from collections.abc import Callable, Sequence
from typing import Protocol


class WouldBlock(Exception):
    """Raised by a clock that cannot block: nothing is ready, and the deadline is in the future."""


class Waitable(Protocol):
    """Something that becomes ready."""

    def ready(self) -> bool:
        """Returns whether waiting would return at once."""
        ...

    def fileno(self) -> int | None:
        """Returns a descriptor that polls readable when ready, or None for an in-process waitable."""
        ...


class Waker:
    """Wakes one waiting thread, from any thread, with or without descriptors to poll.

    `wake` takes no lock, so that a destructor may call it, whatever its thread holds.
    """

    def __init__(self) -> None:
        self._woken: queue.SimpleQueue[None] = queue.SimpleQueue()
        self._pipe: tuple[int, int] | None = None
        self._poll = select.poll()
        self._polled: Sequence[int] = ()

    def wake(self) -> None:
        """Wakes the thread, or lets its next wait return at once."""
        self._woken.put(None)
        if self._pipe is not None:
            with contextlib.suppress(BlockingIOError):  # so full that it is readable anyway
                os.write(self._pipe[1], b"x")

    def wait(self, descriptors: Sequence[int], seconds: float | None) -> None:
        """Waits until woken, until a descriptor is readable, or for so many seconds."""
        if not descriptors:
            with contextlib.suppress(queue.Empty):
                self._woken.get(timeout=seconds)
        else:
            if self._pipe is None:
                self._pipe = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
            if not self._woken.empty():
                seconds = 0.0
            if descriptors != self._polled:
                self._poll_for(descriptors, self._pipe[0])
            for descriptor, _ in self._poll.poll(None if seconds is None else max(0.0, seconds) * 1000):
                if descriptor == self._pipe[0]:
                    os.read(descriptor, 4096)
        while not self._woken.empty():  # nobody else takes from it
            self._woken.get_nowait()

    def _poll_for(self, descriptors: Sequence[int], own: int) -> None:
        """Polls for these from now on: whoever waits, waits for the same most of the time."""
        self._poll, self._polled = select.poll(), tuple(descriptors)
        for descriptor in (*descriptors, own):
            self._poll.register(descriptor, select.POLLIN)

    def __del__(self) -> None:
        if self._pipe is not None:
            os.close(self._pipe[0])
            os.close(self._pipe[1])


class Signal:
    """The in-process waitable: a predicate, and a way to say that it may have become true."""

    def __init__(self, probe: Callable[[], bool]) -> None:
        self._probe = probe
        self._wakers: frozenset[Waker] = frozenset()
        self._lock = threading.Lock()

    def ready(self) -> bool:
        """Returns whether the predicate holds."""
        return self._probe()

    def fileno(self) -> int | None:
        """Returns None: there is no descriptor."""
        return None

    def notify(self) -> None:
        """Wakes all who wait for this signal; they look at the predicate themselves. It takes no lock."""
        for waker in self._wakers:
            waker.wake()

    def attach(self, waker: Waker) -> None:
        """Lets `notify` wake this waker."""
        with self._lock:
            self._wakers |= {waker}

    def detach(self, waker: Waker) -> None:
        """Undoes `attach`."""
        with self._lock:
            self._wakers -= {waker}


class Clock(Protocol):
    """Monotonic time for deadlines, wall time for reports, and the one place that waits."""

    def monotonic(self) -> float:
        """Returns monotonic seconds."""
        ...

    def wall(self) -> float:
        """Returns seconds since the Unix epoch, for reports and ids only."""
        ...

    def wait(self, waitables: Sequence[Waitable], deadline: float) -> set[Waitable]:
        """Returns those that are ready, waiting for the first until the deadline; empty at the deadline."""
        ...


class RealClock:
    """The clock of the machine."""

    def __init__(self) -> None:
        self._local = threading.local()

    def monotonic(self) -> float:
        """Returns monotonic seconds."""
        return time.monotonic()

    def wall(self) -> float:
        """Returns seconds since the Unix epoch."""
        return time.time()

    def wait(self, waitables: Sequence[Waitable], deadline: float) -> set[Waitable]:
        """Returns those that are ready, blocking until the first is, or until the deadline."""
        ready = {w for w in waitables if w.ready()}
        if ready or deadline <= time.monotonic():
            return ready
        waker = self._waker()
        signals = [w for w in waitables if isinstance(w, Signal)]
        descriptors = tuple([number for w in waitables if (number := w.fileno()) is not None])
        for signal in signals:
            signal.attach(waker)
        try:
            ready = {w for w in signals if w.ready()}  # a descriptor stays readable until it is looked at
            while not ready and (remaining := deadline - time.monotonic()) > 0:
                waker.wait(descriptors, min(remaining, threading.TIMEOUT_MAX))
                ready = {w for w in waitables if w.ready()}
            return ready
        finally:
            for signal in signals:
                signal.detach(waker)

    def _waker(self) -> Waker:
        waker: Waker | None = getattr(self._local, "waker", None)
        if waker is None:
            waker = self._local.waker = Waker()
        return waker


class ManualClock:
    """A clock for tests and simulations: time moves when it is told to, and nothing blocks."""

    def __init__(self, start_seconds: float = 0.0) -> None:
        self._now = start_seconds

    def monotonic(self) -> float:
        """Returns the seconds advanced so far."""
        return self._now

    def wall(self) -> float:
        """Returns the same as `monotonic`."""
        return self._now

    def advance(self, seconds: float) -> None:
        """Moves time forward."""
        self._now += seconds

    def wait(self, waitables: Sequence[Waitable], deadline: float) -> set[Waitable]:
        """Returns those that are ready; raises `WouldBlock` where the real clock would block."""
        ready = {w for w in waitables if w.ready()}
        if not ready and deadline > self._now:
            raise WouldBlock
        return ready
