"""A runtime store whose answers may be lost, before or after the deed.

Used by the examiner of the flow runtime, over any store. It refuses nothing that the store does not.
"""

from collections.abc import Sequence
from typing import Final

from videoflow import faults
from videoflow.backends.capabilities import RuntimeCapabilities
from videoflow.backends.outcomes import Observation, Unknown, UnknownReason, unknown
from videoflow.backends.runtime import Change, RuntimeStore, Stored, StoreOutcome

COMMIT_SENT: Final = "store.commit.sent"
COMMIT_DONE: Final = "store.commit.done"
READ_SENT: Final = "store.read.sent"
faults.declare(COMMIT_SENT, COMMIT_DONE, READ_SENT)


class LossyStore(RuntimeStore):
    """A store behind barriers: `store.read.sent`, `store.commit.sent`, and `store.commit.done` after it.

    `ResponseLost` at any makes the outcome unknown: at the last the commit was made, else nothing was.

    Args:
        store: The store itself.
    """

    def __init__(self, store: RuntimeStore) -> None:
        self.store = store

    def capabilities(self) -> RuntimeCapabilities:
        """Returns what the store itself guarantees."""
        return self.store.capabilities()

    def get(self, keys: Sequence[str], *, deadline: float) -> Observation[dict[str, Stored]]:
        """Reads, unless a fault stands before it."""
        lost = self._lost()
        if lost is not None:
            return lost
        return self.store.get(keys, deadline=deadline)

    def scan(self, prefix: str, *, deadline: float) -> Observation[dict[str, Stored]]:
        """Reads, unless a fault stands before it."""
        lost = self._lost()
        if lost is not None:
            return lost
        return self.store.scan(prefix, deadline=deadline)

    def commit(self, changes: Sequence[Change], *, deadline: float) -> StoreOutcome:
        """Commits, unless a fault stands before it; says so, unless one stands behind it."""
        try:
            faults.reach(COMMIT_SENT)
            outcome = self.store.commit(changes, deadline=deadline)
            faults.reach(COMMIT_DONE)
        except faults.ResponseLost:
            return StoreOutcome.UNKNOWN
        return outcome

    def append(self, log: str, records: Sequence[bytes], *, deadline: float) -> StoreOutcome:
        """Asks the store."""
        return self.store.append(log, records, deadline=deadline)

    def read_log(self, log: str, after: int, *, deadline: float) -> Observation[list[tuple[int, bytes]]]:
        """Asks the store."""
        return self.store.read_log(log, after, deadline=deadline)

    def _lost(self) -> Unknown | None:
        try:
            faults.reach(READ_SENT)
        except faults.ResponseLost:
            return unknown(UnknownReason.UNREACHABLE, 0.0, "the answer was lost")
        return None

    def close(self) -> None:
        """Closes the store."""
        self.store.close()
