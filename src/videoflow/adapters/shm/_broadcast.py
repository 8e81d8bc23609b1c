"""How a producer replica gives the newest items to one replica of a task: one feed of a broadcast."""

from videoflow.adapters.shm._feeds import Owner, Record
from videoflow.adapters.shm._layout import SubscriptionPlace
from videoflow.adapters.shm._ledger import cause_code
from videoflow.adapters.shm._live import LiveFeed
from videoflow.adapters.shm._log import assignment
from videoflow.backends.coverage import Cause
from videoflow.backends.messaging import announced_fate, buried_fate
from videoflow.faults import reach


class BroadcastFeed(LiveFeed):
    """A live subscription of one replica, which is handed items alone and never stands in the way.

    Whatever it is not handed is done with at once, and marked in its word with a cause, so that the next
    incarnation of this process, and whoever reads the status, know.
    """

    def __init__(self, owner: Owner, number: int, place: SubscriptionPlace, bit: int) -> None:
        super().__init__(owner, number, place, bit)
        self._retired = False
        self._gone: list[int] = []

    def committed(self, first: int) -> None:
        """Records have become visible: the newest items stay, all else is done with."""
        for sequence in range(first, self.owner.ring.head):
            record = self.owner.records[sequence]
            if self._retired:
                self._gone.append(sequence)
            elif record.data:
                self._line_up(sequence, record)
            else:
                self._mark(sequence, Cause.SKIPPED)
                self._note_passed(record)
                self._gone.append(sequence)
        self._finish()
        self.dispatch()

    def adopt(self, sequence: int, record: Record) -> None:
        """Finds out what an earlier incarnation did with a record; what is no item is done with."""
        super().adopt(sequence, record)
        if not record.waiting & self.bit:
            return
        if self._evicted.pop(sequence, None) and record.data:
            self._note_drop(record, Cause.DROPPED)
        elif not record.data:
            self._note_passed(record)
        else:
            return
        self.returned.pop(sequence, None)
        record.waiting &= ~self.bit
        record.holding &= ~self.bit

    def evict(self, sequence: int) -> None:
        """Drops an item."""
        super().evict(sequence)
        self._finish()

    def may_forget(self, sequence: int) -> bool:
        """Returns whether nobody has an item that waits."""
        return sequence in self.returned or self._ungiven(sequence)

    def forget(self, sequence: int) -> None:
        """Drops an item that nobody has: the ring needs its place."""
        self.returned.pop(sequence, None)
        self._evict(sequence, Cause.DROPPED)
        self._finish()

    def retire(self) -> None:
        """The reader has ended for good: nothing waits for it any more."""
        self._retired = True
        for sequence in list(self.outstanding[0]):
            self._refund(0, sequence)
        self.returned.clear()
        for sequence, record in list(self.owner.records.items()):
            if record.waiting & self.bit:
                self.owner.done((sequence,), self.bit)

    def _ungiven(self, sequence: int) -> bool:
        return sequence not in self._gone and super()._ungiven(sequence)

    def _evict(self, sequence: int, cause: Cause) -> None:
        reach("tombstone.before")
        self._mark(sequence, cause)
        self._note_drop(self.owner.records[sequence], cause)
        self._gone.append(sequence)

    def _finish(self) -> None:
        """Ends what is done with, once the ledger has it."""
        gone, self._gone = self._gone, []
        if gone:
            self.owner.note_drops()
        self.owner.done(gone, self.bit)

    def _mark(self, sequence: int, cause: Cause) -> None:
        at = self.place.assignments[self.owner.slot] + (sequence & self.mask)
        self._words[at] = assignment(sequence, cause_code(cause), 1, -1)

    def _note_passed(self, record: Record) -> None:
        fate = announced_fate(record.envelope)
        if fate is not None:
            self.owner.dropped.add(self.number, record.envelope, fate)

    def _note_drop(self, record: Record, cause: Cause) -> None:
        self.owner.dropped.close(
            self.number, buried_fate(cause), record.envelope.origin, record.envelope.path
        )
