"""The ends of epochs that a reader has come to; part of the core that reads.

An end is settled with what follows it, and a reader that starts again is not given it again; so it is kept
before that the epoch is over. It refuses nothing.
"""

from collections.abc import Sequence

from videoflow.backends.messaging import Completed, CompletedReason
from videoflow.worker.core._groups import Held, Message, message_of
from videoflow.worker.core._pending import Settlements
from videoflow.worker.core.actions import KeepEpochs, Steps


class EndedEpochs:
    """What said that epochs are over, until it is settled."""

    def __init__(self) -> None:
        self._held: list[Held] = []
        self._ends: dict[Message, tuple[str, int]] = {}
        self._over: dict[str, int] = {}

    def __bool__(self) -> bool:
        return bool(self._held)

    def add(self, ended: Sequence[Held]) -> None:
        """Adds what the parents say of one epoch."""
        self._held += ended
        for delivery in (held.delivery for held in ended):
            self._ends[message_of(delivery.token)] = delivery.envelope.origin[:2]

    def keep(self, settlements: Settlements) -> Steps:
        """Keeps in which epochs sources are whose ends are among what is to be settled, where that is news.

        What came before an end is settled before it, or with it. Of an end that waits for something, as for
        a sink that holds what came before, nothing is kept.
        """
        news = False
        for token, _ in settlements if self._ends else ():
            node, epoch = self._ends.pop(message_of(token), ("", -1))
            if self._over.get(node, 0) <= epoch:
                self._over[node] = epoch + 1
                news = True
        if news:
            yield KeepEpochs(dict(self._over))

    def settled(self) -> Settlements:
        """Returns how all are settled, and forgets them."""
        held, self._held = self._held, []
        return [(each.delivery.token, Completed(CompletedReason.SKIPPED)) for each in held]
