"""Which inputs of a task are worked on in bursts; part of the core that reads.

It refuses what might have to wait, to be repeated, or to be told from something before it.
"""

from collections.abc import Sequence

from videoflow.backends.messaging import Delivery, Kind
from videoflow.planner.plan import InputMode
from videoflow.worker.core._burst import BurstWalk, walks_in_bursts
from videoflow.worker.core._concluding import CONCLUDE_INPUTS, CONCLUDE_SECONDS, Start
from videoflow.worker.core._groups import is_suspect
from videoflow.worker.core._order import OrderedInputs
from videoflow.worker.core._walk import Walk


class Bursts:
    """Plain inputs that were received together, and wait to be worked on together.

    Args:
        start: What the core starts from.
        walk: How other inputs are walked.
        order: Of the inputs, where they are in order.
        once: What is said of an input is recorded, input by input.

    Attributes:
        waiting: Those inputs: nothing else that was received comes before them.
    """

    def __init__(self, start: Start, walk: Walk, order: OrderedInputs, *, once: bool) -> None:
        program = start.program
        self._competing = program.task.mode is InputMode.COMPETING
        self._order = order
        alone = program.task.mode is InputMode.ORDERED and len(program.subscriptions) == 1
        self.walk: BurstWalk | None = None
        single = program.entry.spec.options.batch is None
        if (self._competing or alone) and single and not once and walks_in_bursts(program):
            most = CONCLUDE_SECONDS, CONCLUDE_INPUTS
            self.walk = BurstWalk(program, start.channels, walk.writer, most)
        self.waiting: Sequence[Delivery] = ()

    def take(self, deliveries: Sequence[Delivery]) -> int:
        """Takes the first of what was received, where nothing else waits; returns how many."""
        if self.walk is None or self.waiting or self._order.holding:
            return 0
        count = 0
        for delivery in deliveries:
            if is_suspect(delivery) or delivery.envelope.kind is not Kind.DATA:
                break
            count += 1
        if count and not self._competing:
            count = self._order.in_turn(deliveries[:count])
        if count:
            self.waiting = deliveries[:count]
        return count

    def passed(self, delivery: Delivery) -> None:
        """Goes on behind an input that was worked on, or is to be worked on alone."""
        if not self._competing:
            self._order.passed(delivery.envelope.origin)
