"""What a task has worked on and not concluded: to be published, committed and settled together.

Used by the cores. It refuses nothing, and keeps the order of inputs.
"""

from collections import deque

import msgspec

from videoflow.backends.messaging import DeliveryToken, Settlement
from videoflow.worker.core.actions import InnerFate, Publication, Statement

Settlements = list[tuple[DeliveryToken, Settlement]]


class Pending(msgspec.Struct):
    """Results in the order of their inputs.

    Attributes:
        publications: What is to be published.
        settlements: What is settled with it.
        inner: Fates on edges inside the task.
        inputs: Inputs worked on.
        seconds: Time in user code.
        once: (id of the task's input, all that is said of it), where it is recorded once per input.
        recalled: Encoded envelopes that an earlier owner of an input recorded, to be said in its place.
    """

    publications: list[Statement] = []
    settlements: Settlements = []
    inner: list[InnerFate] = []
    inputs: int = 0
    seconds: float = 0.0
    once: list[tuple[str, list[Publication]]] = []
    recalled: list[bytes] = []

    def __bool__(self) -> bool:
        return bool(self.inputs or self.settlements)

    def flat(self) -> list[Publication]:
        """Returns every publication, in order."""
        return [publication for _, group in self.publications for publication in group]


class HeldInput(msgspec.Struct):
    """An input that a sink took and has not made durable.

    Attributes:
        consumed: How many inputs of the sink it stands for; 0 for a skip, or for markers.
        cursor: The task's position behind it.
        settlements: What to settle when it is durable.
        inner: Inner fates to report then.
        data: It carries data, and what it changed in the state is held for the commit that covers it.
        markers: It stands for markers: a sink says of inputs alone what is durable, so these are when an
            input behind them is, or at the end.
    """

    consumed: int
    cursor: bytes
    settlements: Settlements
    inner: list[InnerFate]
    data: bool = True
    markers: bool = False


class Holding(msgspec.Struct):
    """The inputs that a checkpointing sink keeps unsettled, oldest first."""

    inputs: deque[HeldInput] = msgspec.field(default_factory=deque)
    credit: int = 0

    @property
    def unsettled(self) -> int:
        """How many inputs of the sink are not durable."""
        return sum(held.consumed for held in self.inputs) - self.credit

    @property
    def data(self) -> int:
        """How many inputs with data are kept, whether or not anything of them came to the sink."""
        return sum(held.data and not held.markers for held in self.inputs)

    def durable(self, count: int, *, final: bool = False) -> list[HeldInput]:
        """Takes the inputs that `count` more durable ones complete, and the skips behind them.

        Args:
            count: Of the oldest.
            final: It is all that there is: markers at the end are durable with it.
        """
        self.credit += count
        if self.credit == 0 and not final and self.inputs and self.inputs[0].markers:
            return []
        done: list[HeldInput] = []
        taken = 0
        for held in self.inputs:
            if held.consumed > self.credit:
                break
            self.credit -= held.consumed
            done.append(held)
            if held.consumed or final or not any(each.markers for each in done[taken:]):
                taken = len(done)
        for _ in range(taken):
            self.inputs.popleft()
        return done[:taken]
