"""Virtual time: each worker of a simulated run has a view of one clock, on which nothing blocks.

Used by the simulator. A worker that waits for input is put aside until it is woken or its deadline has
come; one that waits for room or for time to pass is ahead of the others, and left alone until they have
caught up.
"""

from collections.abc import Sequence

from videoflow.clock import Signal, Waitable, Waker, WouldBlock
from videoflow.simulation._script import Script

_WAITS = 20


class Now:
    """The time of a simulated run, in seconds."""

    def __init__(self) -> None:
        self.seconds = 0.0


class Wake(Waker):
    """Notes that somebody woke the worker; that may be lost, and then it waits until its deadline."""

    def __init__(self, script: Script) -> None:
        self.woken = False
        self._script = script

    def wake(self) -> None:
        """Notes it."""
        if not self.woken and self._script.reach("call:wake") is None:
            self.woken = True

    def __del__(self) -> None:
        """There is nothing to close."""


class StationClock:
    """The clock of one worker.

    Args:
        now: The time of the run.
        script: Says which wake-ups are lost.
        calm: Nobody overtakes who waits.

    Attributes:
        now: Of the run.
        local: Up to when the worker is busy or asleep.
        for_input: The action in work waits for input, so that it may be put aside.
        waitables: What it waits for, when it was put aside.
        until: Until when, then.
        wake: Notes that somebody woke it meanwhile, perhaps in vain.
    """

    def __init__(self, now: Now, script: Script, *, calm: bool = False) -> None:
        self.now = now
        self._calm = calm
        self.local = 0.0
        self.for_input = False
        self.waitables: Sequence[Waitable] = ()
        self.until = 0.0
        self.waits = 0
        self.wake = Wake(script)

    def monotonic(self) -> float:
        """Returns the worker's time."""
        now, local = self.now.seconds, self.local
        return now if now >= local else local

    def wall(self) -> float:
        """Returns the same: a simulated run begins with the Unix epoch."""
        return self.monotonic()

    def spend(self, seconds: float) -> None:
        """Makes the worker busy for so long."""
        self.local = self.monotonic() + seconds

    def wait(self, waitables: Sequence[Waitable], deadline: float) -> set[Waitable]:
        """Returns those that are ready; where none is, puts the worker aside or lets its time pass.

        Raises:
            WouldBlock: It waits for input, or has waited too often in one action.
        """
        ready = {waitable for waitable in waitables if waitable.ready()}
        if ready or deadline <= self.monotonic():
            return ready
        self.waits += 1
        if self.for_input or self.waits > _WAITS:
            self.waitables, self.until = waitables, deadline
            raise WouldBlock
        if self._calm:
            self.now.seconds = deadline  # nobody overtakes who waits
        self.local = deadline
        return set()

    def put_aside(self) -> None:
        """Begins to listen to what the worker waits for."""
        self.wake.woken = False
        for waitable in self.waitables:
            if isinstance(waitable, Signal):
                waitable.attach(self.wake)

    def resume(self) -> None:
        """Stops listening."""
        for waitable in self.waitables:
            if isinstance(waitable, Signal):
                waitable.detach(self.wake)
        self.waitables = ()
        self.wake.woken = False

    def woken(self) -> bool:
        """Whether somebody woke it since it was put aside, and not in vain."""
        if self.wake.woken:
            self.wake.woken = any(waitable.ready() for waitable in self.waitables)
        return self.wake.woken
