"""What one owner's messaging object is made of, and how it is interrupted.

Used by the publisher and the receiver. It refuses nothing; an owner that was interrupted reads as such.
"""

from videoflow.backends.memory._broker import MemoryBroker
from videoflow.clock import Clock, Signal


class Owned:
    """The part that publishing, receiving and provisioning share.

    Args:
        broker: What all owners of this process share.
        owner: Worker id and incarnation, by which leases are labelled.
        clock: Time, and the one place that waits.
    """

    def __init__(self, broker: MemoryBroker, owner: str, clock: Clock) -> None:
        self.owner = owner
        self._broker = broker
        self._clock = clock
        self._interrupted = False
        self._interruption = Signal(lambda: self._interrupted)

    def interrupt(self) -> None:
        """Wakes a blocked call of this object, or the next one that would block."""
        self._interrupted = True
        self._interruption.notify()

    def _was_interrupted(self) -> bool:
        interrupted, self._interrupted = self._interrupted, False
        return interrupted
