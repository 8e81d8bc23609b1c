"""How a producer replica gives sequences to competing replicas."""

from collections.abc import Iterable

from videoflow.adapters.shm._feeds import Feed, Owner, Record
from videoflow.adapters.shm._layout import SubscriptionPlace
from videoflow.adapters.shm._links import CHUNK, Op, pairs_of
from videoflow.adapters.shm._log import RECEIVED, assignment, cell, is_settled

_UNBOUNDED = 1 << 62
_GIVE = int(Op.GIVE)
_FIRST_TO_FIRST = assignment(0, 0, 1, 0)


class GivenFeed(Feed):
    """A competing subscription: each record is given to one replica, the least loaded.

    The spread is kept over all writer slots: each dispatch is stamped with the number of dispatches so
    far, and no slot gives out while the oldest unsettled dispatch of any slot lies a spread behind.
    Slots that look at the same moment may pass the limit by one each, so it is lowered by their number.
    """

    def __init__(self, owner: Owner, number: int, place: SubscriptionPlace, bit: int) -> None:
        super().__init__(owner, number, place, bit)
        slots = len(place.assigned)
        self.next = max(owner.ring.tail, self._words[place.assigned[owner.slot]])
        self.returned: dict[int, int] = {}
        self.outstanding: list[dict[int, int]] = [{} for _ in self.peers]
        self.connected = [False] * len(self.peers)
        self.wanted = [0] * len(self.peers)
        self._loads = [0] * len(self.peers)
        self._items = 0
        self._bytes = 0
        self._floors = [self._words[ring.tail] for ring in owner.rings]
        spec = place.spec
        self._credit_items = max(1, spec.credit.items // slots)
        self._credit_bytes = max(1, spec.credit.size_bytes // slots)
        self._spread = None if spec.spread is None else max(1, spec.spread - slots + 1)
        window = min(self._credit_items, self._spread or self._credit_items)
        replicas = len(self.peers)
        self._share = window if replicas == 1 else max(1, -(-window // (2 * replicas)))
        self._evicted: dict[int, int] = {}
        self._given: dict[tuple[int, int, int], list[int]] = {}

    def committed(self, first: int) -> None:
        """Records from `first` to the head have become visible."""
        self.dispatch()

    def dispatch(self) -> None:
        """Gives out what credit, spread and the replicas' load allow."""
        while self.returned or self.next < self.owner.visible:
            sequence = min(self.returned) if self.returned else self.next
            record = self.owner.records.get(sequence)
            if record is None or not record.waiting & self.bit:
                self._pass(sequence)
            elif len(self.peers) == 1 and not self.returned and not self.place.stamps[0]:
                if not self._give_on(sequence):
                    break
            elif not self._give_one(sequence, record):
                break
        self._tell()

    def _give_one(self, sequence: int, record: Record) -> bool:
        """Gives out a record; returns whether there was somebody to take it."""
        if not self.returned and self._allowed() <= 0:
            return False
        replica = self._least_loaded(record) if self._affords(record) else -1
        if replica >= 0:
            self._give(sequence, record, replica, self.returned.get(sequence, 1))
        return replica >= 0

    def _give_on(self, first: int) -> bool:
        """Gives the only replica what nobody had, as far as it can take it; returns whether it was any."""
        records, bit, words, mask = self.owner.records, self.bit, self._words, self.mask
        credit_items, credit_bytes, share = self._credit_items, self._credit_bytes, self._share
        items, size, load = self._items, self._bytes, self._loads[0]
        assignments, mine = self.place.assignments[self.owner.slot], self.outstanding[0]
        end = min(first + self._allowed(), self.owner.visible) if self.connected[0] else first
        sequence = first
        while sequence < end:
            record = records.get(sequence)
            if record is None or not record.waiting & bit:
                break
            if record.data:
                if load >= share or (items and (items >= credit_items or size + record.size > credit_bytes)):
                    break
                items += 1
                load += 1
                size += record.size
            mine[sequence] = record.size if record.data else -1
            words[assignments + (sequence & mask)] = sequence << 24 | _FIRST_TO_FIRST
            sequence += 1
        if sequence == first:
            return False
        self._items, self._bytes, self._loads[0] = items, size, load
        self.next = words[self.place.assigned[self.owner.slot]] = sequence
        self._tell()  # what came back, before what nobody had
        pairs = (first, sequence - first)
        self.owner.hub.queue(self.peers[0], (_GIVE, self.number, 0, 1, pairs))
        return True

    def greet(self, replica: int) -> None:
        """A reader is connected: what it has is said again, since the earlier socket may have lost it.

        What it settled it says itself, with what it keeps of it.
        """
        self.connected[replica] = True
        self.wanted[replica] = 0
        for sequence in list(self.outstanding[replica]):
            if self.settled_by(replica, sequence):
                continue
            word = self._words[self.place.assignments[self.owner.slot] + (sequence & self.mask)]
            self._given.setdefault((replica, word >> 16 & 255, word >> 8 & 255), []).append(sequence)
        self.dispatch()

    def leased(self, replica: int) -> list[Record]:
        """Returns the records that a dead reader may have passed on, and that others will settle."""
        records = self.owner.records
        return [records[s] for s in self.outstanding[replica] if s in records and records[s].holding]

    def gone(self, replica: int, *, passed_on: bool) -> None:
        """A reader is dead: what it had goes to others, counted where it was received."""
        self.connected[replica] = False
        self.wanted[replica] = 0
        for sequence in list(self.outstanding[replica]):
            word = self._cell(replica, sequence)
            if is_settled(word, sequence):
                self.settled(replica, (sequence,))
            else:
                given = self._words[self.place.assignments[self.owner.slot] + (sequence & self.mask)]
                received = word == cell(sequence, given >> 8 & 255, RECEIVED)  # by this incarnation
                self._return(replica, sequence, int(received))

    def settled(self, replica: int, sequences: Iterable[int]) -> None:
        """A reader settled records."""
        mine = self.outstanding[replica]
        done = [sequence for sequence in sequences if sequence in mine]
        for sequence in done:
            size = mine.pop(sequence)
            if size >= 0:
                self._items -= 1
                self._bytes -= size
                self._loads[replica] -= 1
            if self._evicted:
                self._evicted.pop(sequence, None)
        self.owner.done(done, self.bit)

    def want(self, replica: int, items: int) -> None:
        """A reader has nothing: it gets what there is, and else what others have not begun."""
        self.wanted[replica] = items
        self.dispatch()
        others = [(given, n) for n, given in enumerate(self._loads) if n != replica]
        load, busiest = max(others, default=(0, -1))
        if self.wanted[replica] and load:
            self.wanted[busiest] = 0
            self.owner.hub.queue(self.peers[busiest], (Op.RECALL, self.number, self.wanted[replica]))

    def handed_back(self, replica: int, sequence: int) -> None:
        """A reader gives back a record that it did not start."""
        if sequence in self.outstanding[replica]:
            self._return(replica, sequence, 0)

    def adopt(self, sequence: int, record: Record) -> None:
        """Finds out to whom an earlier incarnation gave a record, and what became of it."""
        word = self._words[self.place.assignments[self.owner.slot] + (sequence & self.mask)]
        if word >> 24 != sequence:
            return
        replica, count, cause = (word & 255) - 1, word >> 8 & 255, word >> 16 & 255
        if cause:
            self._evicted[sequence] = cause
            record.holding &= ~self.bit
        if replica < 0:
            if sequence < self.next:
                self.returned[sequence] = count
            return
        self.next = max(self.next, sequence + 1)
        if self.settled_by(replica, sequence):
            record.waiting &= ~self.bit
            record.holding &= ~self.bit
        else:
            self._charge(replica, sequence, record)

    def _pass(self, sequence: int) -> None:
        if self.returned.pop(sequence, None) is None:
            self.next = sequence + 1
            self._words[self.place.assigned[self.owner.slot]] = self.next

    def _affords(self, record: Record) -> bool:
        if not record.data or self._items == 0:
            return True
        return self._items < self._credit_items and self._bytes + record.size <= self._credit_bytes

    def _least_loaded(self, record: Record) -> int:
        """Returns the replica to give to: one that asked, else one below its share; -1 for none."""
        best, load = -1, (1, self._share if record.data else 1 << 30)
        for replica, given in enumerate(self._loads):
            mine = (0 if self.wanted[replica] else 1, given)
            if self.connected[replica] and mine < load:
                best, load = replica, mine
        return best

    def _allowed(self) -> int:
        """Returns how many more dispatches the spread allows now; where slots share it, one at a time."""
        if self._spread is None:
            return _UNBOUNDED
        own, place, records, bit = self.owner.slot, self.place, self.owner.records, self.bit
        if len(place.assigned) == 1:
            floor = self._floors[0]
            while floor < self.next and not ((record := records.get(floor)) and record.waiting & bit):
                floor += 1
            self._floors[0] = floor
            return floor + self._spread - self.next
        total, oldest = 0, None
        for slot in range(len(place.assigned)):
            head = self._words[place.assigned[slot]]
            total += head
            floor = self._floors[slot]
            while floor < head and not (self._waits(floor) if slot == own else self._open(slot, floor)):
                floor += 1
            self._floors[slot] = floor
            if floor < head:
                stamp = self._words[place.stamps[slot] + (floor & self.mask)]
                oldest = stamp if oldest is None else min(oldest, stamp)
        return int(oldest is None or total - oldest < self._spread)

    def _waits(self, sequence: int) -> bool:
        record = self.owner.records.get(sequence)
        return record is not None and bool(record.waiting & self.bit)

    def _open(self, slot: int, sequence: int) -> bool:
        """Returns whether a record of another slot is unsettled, as its reader's cell says."""
        at = sequence & self.mask
        word = self._words[self.place.assignments[slot] + at]
        if word >> 24 != sequence:
            return word >> 24 < sequence
        replica = (word & 255) - 1
        return replica < 0 or not is_settled(self._words[self.place.cells[replica][slot] + at], sequence)

    def _give(self, sequence: int, record: Record, replica: int, count: int) -> None:
        place, slot, at = self.place, self.owner.slot, sequence & self.mask
        cause = self._evicted.get(sequence, 0)
        self._words[place.assignments[slot] + at] = assignment(sequence, cause, count, replica)
        if self.returned.pop(sequence, None) is None:
            if place.stamps[slot]:
                total = sum(self._words[word] for word in place.assigned)
                self._words[place.stamps[slot] + at] = total
            self.next = sequence + 1
            self._words[place.assigned[slot]] = self.next
        self._charge(replica, sequence, record)
        if self.wanted[replica] and record.data:
            self.wanted[replica] -= 1
        self._given.setdefault((replica, cause, count), []).append(sequence)

    def _tell(self) -> None:
        if not self._given:
            return
        for (replica, cause, count), sequences in self._given.items():
            for start in range(0, len(sequences), CHUNK // 2):
                pairs = pairs_of(sequences[start : start + CHUNK // 2])
                self.owner.hub.queue(self.peers[replica], (_GIVE, self.number, cause, count, pairs))
        self._given.clear()

    def _charge(self, replica: int, sequence: int, record: Record) -> None:
        size = record.size if record.data else -1
        self.outstanding[replica][sequence] = size
        if size >= 0:
            self._items += 1
            self._bytes += size
            self._loads[replica] += 1

    def _refund(self, replica: int, sequence: int) -> None:
        size = self.outstanding[replica].pop(sequence)
        if size >= 0:
            self._items -= 1
            self._bytes -= size
            self._loads[replica] -= 1

    def _return(self, replica: int, sequence: int, charge: int) -> None:
        self._refund(replica, sequence)
        at = self.place.assignments[self.owner.slot] + (sequence & self.mask)
        word = self._words[at]
        count = min((word >> 8 & 255) + charge, 255)
        self._words[at] = assignment(sequence, word >> 16 & 255, count, -1)
        self.returned[sequence] = count
