"""Faults in the process of a test: armed, and shown to have fired.

Used with the barriers of `videoflow.faults`, by examiners and by authors of adapters, who put
`faults.reach("mine.written")` where a crash means something and `faults.declare` it. A test whose fault did
not fire shows nothing: it fails.
"""

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from videoflow import faults
from videoflow.clock import ManualClock
from videoflow.faults import Fault, FaultAction, InjectedFault

_PATIENCE_SECONDS = 30.0


class FaultNotFired(AssertionError):
    """A barrier was not reached as often as the fault says: the test tried nothing."""


@contextmanager
def injected(*planted: Fault) -> Iterator[None]:
    """Arms faults in this process for the body of a `with`, at whose end each must have fired.

    Args:
        planted: What happens at which hit of which barrier; any number, at any barriers.

    Raises:
        FaultNotFired: Some did not.

    Example:
        >>> from videoflow.faults import reach
        >>> with injected(Fault("commit.after", FaultAction.RAISE, hit=2)):
        ...     reach("commit.after")
        ...     try:
        ...         reach("commit.after")
        ...     except InjectedFault as fault:
        ...         print("the second one:", fault)
        the second one: commit.after
    """
    faults.arm(planted)
    try:
        yield
        missed = [fault for fault in planted if not any(fault is one for one in faults.fired())]
    finally:
        faults.disarm()
    if missed:
        told = ", ".join(f"hit {fault.hit} of {fault.barrier}" for fault in missed)
        raise FaultNotFired(f"never reached: {told}")


def delay(barrier: str, seconds: float, clock: ManualClock, hit: int = 1) -> Fault:
    """Returns a fault by which time passes at a barrier, on a clock that is moved by hand."""
    return Fault(barrier, FaultAction.DELAY, hit, seconds=seconds, call=lambda: clock.advance(seconds))


class Pause:
    """Holds a thread at a barrier, until it is let go.

    Args:
        barrier: Where.
        hit: At which hit.
    """

    def __init__(self, barrier: str, hit: int = 1) -> None:
        self._reached = threading.Event()
        self._go = threading.Event()
        self.fault = Fault(barrier, FaultAction.PAUSE, hit, call=self._hold)

    def reached(self) -> bool:
        """Waits until the thread is there; False when it does not come."""
        return self._reached.wait(_PATIENCE_SECONDS)

    def let_go(self) -> None:
        """Lets it go on."""
        self._go.set()

    def _hold(self) -> None:
        self._reached.set()
        if not self._go.wait(_PATIENCE_SECONDS):
            raise InjectedFault("nobody let it go on")
