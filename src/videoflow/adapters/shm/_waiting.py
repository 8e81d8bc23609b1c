"""Statements that wait for room in a channel, in their order.

Used by the producer's end of a channel and of a partitioned one. It refuses to let a statement overtake
another: once one waits, all that come later wait behind it.
"""

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Sequence
from itertools import takewhile

from videoflow.adapters.shm._statements import Handle, Statement
from videoflow.backends.messaging import Envelope
from videoflow.backends.outcomes import Accepted, RejectReason
from videoflow.clock import Clock


class Waiting(ABC):
    """The statements of one writer slot, some of which wait.

    Attributes:
        queue: What waits, oldest first.
        clock: For deadlines.
    """

    def __init__(self, clock: Clock) -> None:
        self.clock = clock
        self.queue: deque[Statement] = deque()

    @abstractmethod
    def append(self, statement: Statement) -> bool:
        """Appends a statement or refuses it; returns False where there is no room for it."""

    @abstractmethod
    def commit(self) -> None:
        """Makes what was appended visible."""

    def publish(self, statement: Statement) -> None:
        """Appends a statement, or queues it behind those that wait for room."""
        if self.queue or not self.append(statement):
            self.queue.append(statement)

    def retry(self) -> None:
        """Appends what waits, as far as there is room and time."""
        while self.queue:
            if self.clock.monotonic() > self.queue[0].deadline:
                self._give_up(0)
                break
            count = self._append_usual() or int(self.append(self.queue[0]))
            if not count:
                break
            for _ in range(count):
                self.queue.popleft()
        self.commit()

    def extend(self, envelopes: Sequence[Envelope]) -> list[Accepted]:
        """Appends the first of these at once, as far as nothing is in their way; returns their outcomes."""
        return []

    def _append_usual(self) -> int:
        """Appends the first of what waits in one go, statements of one envelope each; returns how many."""
        run = list(takewhile(lambda statement: len(statement.handles) == 1, self.queue))
        said = self.extend([statement.handles[0].envelope for statement in run]) if run else ()
        for statement, outcome in zip(run, said, strict=False):
            statement.handles[0].outcome = outcome
        return len(said)

    def withdraw(self, handles: set[Handle]) -> None:
        """Gives up what still waits of these: it is definitely not in the channel."""
        for number, statement in enumerate(self.queue):
            if any(handle in handles for handle in statement.handles):
                self._give_up(number)
                break

    def _give_up(self, number: int) -> None:
        """Gives up the number-th that waits and all behind it, since a retry of it would come after them."""
        while len(self.queue) > number:
            self.queue.pop().refuse(RejectReason.FULL, retryable=True)
