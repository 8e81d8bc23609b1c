"""The ends of epochs that a reader has come to; part of the core that reads.

An end is settled with what follows it, and a reader that starts again is not given it again; so it is kept
before that the epoch is over. It refuses nothing.
"""

from collections.abc import Sequence

from videoflow.backends.messaging import Completed, CompletedReason
from videoflow.worker.core._groups import Held
from videoflow.worker.core._pending import Settlements
from videoflow.worker.core.actions import KeepEpochs, Steps


class EndedEpochs:
    """What said that epochs are over, until it is settled."""

    def __init__(self) -> None:
        self._held: list[Held] = []
        self._over: dict[str, int] = {}
        self._kept: dict[str, int] = {}

    def __bool__(self) -> bool:
        return bool(self._held)

    def add(self, ended: Sequence[Held]) -> None:
        """Adds what the parents say of one epoch."""
        self._held += ended
        origin = ended[0].delivery.envelope.origin
        self._over[origin.node] = origin.epoch + 1

    def keep(self) -> Steps:
        """Keeps in which epochs sources are, where that is news."""
        if self._over != self._kept:
            self._kept = dict(self._over)
            yield KeepEpochs(self._kept)

    def settled(self) -> Settlements:
        """Returns how all are settled, and forgets them."""
        held, self._held = self._held, []
        return [(each.delivery.token, Completed(CompletedReason.SKIPPED)) for each in held]
