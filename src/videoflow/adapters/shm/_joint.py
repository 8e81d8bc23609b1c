"""The producer's end of a partitioned channel: a statement waits for room in all partitions."""

from collections.abc import Sequence

from videoflow.adapters.shm._outlet import Outlet
from videoflow.adapters.shm._statements import Prepared, Statement
from videoflow.adapters.shm._waiting import Waiting
from videoflow.backends.coverage import Coverage, without_elsewhere
from videoflow.backends.messaging import Envelope, Kind
from videoflow.backends.outcomes import Accepted, Rejected
from videoflow.clock import Clock


class JointOutlet(Waiting):
    """One writer slot's part of a channel with several partitions.

    A death between two partitions leaves the statement in some of them; it is said again, since its input
    is not settled, and each partition takes what it does not have.

    Args:
        outlets: By partition.
        clock: For deadlines.
    """

    def __init__(self, outlets: Sequence[Outlet], clock: Clock) -> None:
        super().__init__(clock)
        self.outlets = tuple(outlets)
        self.slot = outlets[0].slot
        self.partitions = len(outlets)

    @property
    def closed(self) -> Coverage:
        """What was announced, over all partitions."""
        coverage = Coverage()
        for outlet in self.outlets:
            coverage.merge(without_elsewhere(outlet.closed.records()))
        return coverage

    def knows(self, envelope: Envelope) -> bool:
        """Returns whether an envelope only repeats what was announced."""
        return self.outlets[envelope.partition].knows(envelope)

    def commit(self) -> None:
        """Makes what was appended visible in every partition."""
        for outlet in self.outlets:
            outlet.commit()

    def terminate(self, epoch: int, kind: Kind) -> list[Accepted | Rejected]:
        """Stamps the end of this slot in every partition."""
        return [outcome for outlet in self.outlets for outcome in outlet.terminate(epoch, kind)]

    def idle(self) -> bool:
        """Returns whether nothing waits for a reader."""
        return not self.queue and all(outlet.idle() for outlet in self.outlets)

    def append(self, statement: Statement) -> bool:
        """Appends a statement in every partition or refuses it; False where one has no room for it."""
        prepared: list[tuple[Outlet, Prepared]] = []
        for outlet in self.outlets:
            mine = [h for h in statement.handles if h.envelope.partition == outlet.place.partition]
            if not mine:
                continue
            part = Statement(mine, statement.deadline)
            found = outlet.prepare(part)
            if found is None:
                return False
            if found.refused is not None:
                statement.refuse(found.refused)
                return True
            prepared.append((outlet, found))
        for outlet, found in prepared:
            outlet.take(found)
        return True
