"""Lets processes go call by call, each in a thread, so that a test decides what comes between."""

import threading
from collections.abc import Callable
from typing import Any, Generic, TypeVar

from videoflow.testing.examiners.allocation._subject import AllocationSubject, Call, Crashed, Fate

PATIENCE_SECONDS = 30.0
T = TypeVar("T")


class Actor(Generic[T]):
    """One process at work; it waits before each call until it is told what becomes of that call.

    Attributes:
        name: Of the process.
        call: The call before which it waits; None: it has ended.
        result: What its work returned.
        crashed: It ended in the middle.
        error: What its work raised otherwise.
    """

    def __init__(self, name: str, work: Callable[[], T]) -> None:
        self.name = name
        self.call: Call | None = None
        self.result: T | None = None
        self.crashed = False
        self.error: BaseException | None = None
        self._fate = Fate.GO
        self._told, self._stopped = threading.Semaphore(0), threading.Semaphore(0)
        self._work = work
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

    def begin(self) -> None:
        """Goes to the first call, or to the end."""
        self._thread.start()
        self._wait()

    def step(self, fate: Fate = Fate.GO) -> None:
        """Makes the call that it waits for, and goes to the next one or to the end."""
        assert self.call is not None, f"{self.name} has ended"
        self._fate = fate
        self._told.release()
        self._wait()

    def finish(self) -> T:
        """Goes to the end, and returns what its work returned."""
        while self.call is not None:
            self.step()
        if self.error is not None:
            raise self.error
        assert self.result is not None, f"{self.name} crashed or returned nothing"
        return self.result

    def pause(self, call: Call) -> Fate:
        """Waits, in its own thread, for what is to become of a call."""
        self.call = call
        self._stopped.release()
        self._told.acquire()
        self.call = None
        return self._fate

    def __enter__(self) -> None:
        """Begins to keep what the work raises, for `finish`."""

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> bool:
        """Keeps what the work raised; its thread ends without it."""
        self.crashed = isinstance(error, Crashed)
        self.error = None if self.crashed else error
        self.call = None
        self._stopped.release()
        return True

    def _run(self) -> None:
        with self:
            self.result = self._work()

    def _wait(self) -> None:
        assert self._stopped.acquire(timeout=PATIENCE_SECONDS), f"{self.name} hangs"
        if self.call is None:
            self._thread.join(PATIENCE_SECONDS)


class Stage:
    """The processes of one test. Calls of other threads go through at once."""

    def __init__(self, subject: AllocationSubject) -> None:
        self._actors: dict[int, Actor[Any]] = {}
        subject.on_call(self._decide)

    def enter(self, name: str, work: Callable[[], T]) -> Actor[T]:
        """Begins the work of a process, up to its first call."""
        actor: Actor[T] = Actor(name, lambda: self._as(actor, work))
        actor.begin()
        return actor

    def _as(self, actor: Actor[T], work: Callable[[], T]) -> T:
        self._actors[threading.get_ident()] = actor
        try:
            return work()
        finally:
            del self._actors[threading.get_ident()]

    def _decide(self, call: Call) -> Fate:
        actor = self._actors.get(threading.get_ident())
        return Fate.GO if actor is None else actor.pause(call)
