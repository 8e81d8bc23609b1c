"""How a producer replica gives the newest items to a live reader, and buries the others."""

from collections import deque

from videoflow.adapters.shm._feeds import Owner, Record
from videoflow.adapters.shm._given import GivenFeed
from videoflow.adapters.shm._layout import SubscriptionPlace
from videoflow.adapters.shm._ledger import cause_code
from videoflow.adapters.shm._log import assignment
from videoflow.backends.coverage import Cause
from videoflow.backends.messaging import LiveSubscriptionSpec, buried_fate
from videoflow.faults import reach


class LiveFeed(GivenFeed):
    """A subscription to the newest: items are given when a replica asks, older ones become tombstones.

    Only what is not given may be evicted, and only this process gives and evicts, so a reader that lags
    or hangs never stands in the way. A reader asks for up to so many items of what there is now, or for
    the first to come.
    """

    def __init__(self, owner: Owner, number: int, place: SubscriptionPlace, bit: int) -> None:
        super().__init__(owner, number, place, bit)
        assert isinstance(place.spec, LiveSubscriptionSpec)
        self._live = place.spec
        self._waiting: deque[int] = deque()
        self._by_key: dict[str, deque[int]] = {}

    def committed(self, first: int) -> None:
        """Records have become visible: the newest of each key stay."""
        for sequence in range(first, self.owner.ring.head):
            record = self.owner.records[sequence]
            if record.data:
                self._line_up(sequence, record)
        self.dispatch()

    def want(self, replica: int, items: int) -> None:
        """A reader asks for items."""
        self.wanted[replica] = items
        self.dispatch()

    def dispatch(self) -> None:
        """Gives tombstones and items, in order, to the replicas that ask."""
        self._expire()
        for replica, items in enumerate(self.wanted):
            if items and self.connected[replica] and self._serve(replica, items):
                self.wanted[replica] = 0
        self._tell()

    def may_evict(self, sequence: int) -> bool:
        """Returns whether a record may become a tombstone."""
        return self._ungiven(sequence)

    def evict(self, sequence: int) -> None:
        """Makes a tombstone of a record."""
        self._evict(sequence, Cause.DROPPED)

    def _line_up(self, sequence: int, record: Record) -> None:
        envelope, name = record.envelope, self._live.latest_key
        key = "" if name is None else envelope.source if name == "source" else envelope.key
        line = self._by_key.setdefault(key, deque())
        line.append(sequence)
        while self._waiting and not self._ungiven(self._waiting[0]):
            self._waiting.popleft()
        self._waiting.append(sequence)
        while len(line) > self._live.capacity:
            oldest = line.popleft()
            if self._ungiven(oldest):
                self._evict(oldest, Cause.DROPPED)

    def _serve(self, replica: int, items: int) -> bool:
        given = False
        while items > 0:
            again = bool(self.returned)
            sequence = min(self.returned) if again else self.next
            if sequence >= self.owner.visible:
                break
            record = self.owner.records.get(sequence)
            if record is None or not record.waiting & self.bit:
                self._pass(sequence)
                continue
            if not again and self._allowed() <= 0:
                break
            tombstone = sequence in self._evicted
            self._give(sequence, record, replica, self.returned.get(sequence, 1))
            given = True
            if record.data and not tombstone:
                items -= 1
        return given

    def _expire(self) -> None:
        if self._live.max_age_seconds is None:
            return
        limit = self.owner.clock.monotonic() - self._live.max_age_seconds
        while self._waiting:
            record = self.owner.records.get(self._waiting[0])
            if record is not None and record.arrived >= limit:
                break
            sequence = self._waiting.popleft()
            if self._ungiven(sequence):
                self._evict(sequence, Cause.EXPIRED)

    def _ungiven(self, sequence: int) -> bool:
        if sequence < self.next or sequence in self._evicted:
            return False
        return self._waits(sequence)

    def _evict(self, sequence: int, cause: Cause) -> None:
        reach("tombstone.before")
        code = cause_code(cause)
        at = self.place.assignments[self.owner.slot] + (sequence & self.mask)
        self._words[at] = assignment(sequence, code, 1, -1)
        self._evicted[sequence] = code
        record = self.owner.records[sequence]
        origin, path = record.envelope.origin, record.envelope.path
        self.owner.dropped.close(self.number, buried_fate(cause), origin, path)
        self.owner.let_go(record, self.bit)

    def adopted(self) -> None:
        """Lines up what an earlier incarnation left ungiven."""
        for sequence, record in self.owner.records.items():
            if record.data and self._ungiven(sequence):
                self._line_up(sequence, record)
