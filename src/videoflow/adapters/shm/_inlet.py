"""The reader's end of one subscription: what there is, what is held, how far it has come."""

from collections import deque
from collections.abc import Mapping

import msgspec

from videoflow.adapters.shm._feeds import ProcessParts
from videoflow.adapters.shm._layout import ChannelPlace, SubscriptionPlace
from videoflow.adapters.shm._ledger import cause_code, cause_of
from videoflow.adapters.shm._links import Op, Peer, pairs_of
from videoflow.adapters.shm._log import RECEIVED, cell, committed, is_settled, read_record
from videoflow.adapters.shm._outlet import KINDS
from videoflow.adapters.shm._slab import Slot, slot_of
from videoflow.adapters.shm._status import Progress
from videoflow.adapters.shm._tombstones import tombstone
from videoflow.backends.coverage import Cause
from videoflow.backends.messaging import (
    Delivery,
    DeliveryToken,
    Envelope,
    Kind,
    LiveSubscriptionSpec,
    SubscriptionStatus,
)
from videoflow.wire import decode_envelope

Place = tuple[int, int]  # writer slot, sequence


class Held:
    """A lease.

    Attributes:
        delivery: What was handed out.
        size: Its cost in credit, -1 for none.
        slots: The payload slots that it needs.
        sequences: The records that it stands for: one, or a run of tombstones.
        cause: Code of a tombstone's cause, else 0.
    """

    __slots__ = ("cause", "delivery", "sequences", "size", "slots")

    def __init__(self, delivery: Delivery, size: int, sequences: list[int], cause: int) -> None:
        self.delivery = delivery
        self.size = size
        self.slots: tuple[Slot, ...] = ()
        self.sequences = sequences
        self.cause = cause


class Inlet:
    """One replica's part of a subscription.

    Args:
        process: Log, sockets, clock and holds of this process.
        number: Of the subscription.
        place: Of the channel and of the subscription.
        replica: Which reader replica this is.
        incarnation: Of this process, for its tokens.
    """

    def __init__(
        self,
        process: ProcessParts,
        number: int,
        place: tuple[ChannelPlace, SubscriptionPlace],
        replica: int,
        incarnation: int,
    ) -> None:
        self._process = process
        self._words = process.log.words
        self.number = number
        self.channel, self.place = place
        self.spec = self.place.spec
        self.subscription = self.spec.subscription
        self._replica = replica
        self.generation = incarnation
        self.rings = self.channel.rings
        slots = len(self.rings)
        self._masks = [ring.slots - 1 for ring in self.rings]
        self.cells = self.place.cells[replica - self.place.first]
        self.peers: list[Peer] = [(self.channel.writer, slot) for slot in range(slots)]
        self.heads = [0] * slots
        self._given: list[deque[tuple[int, int, int]]] = [deque() for _ in range(slots)]
        self._asked = [False] * slots
        self._limit = 1
        self.held: dict[Place, Held] = {}
        self.delayed: list[tuple[float, Place]] = []
        self._items = 0
        self._bytes = 0
        self._evicted = 0
        self.live = isinstance(self.spec, LiveSubscriptionSpec)
        self.asks = self.live or (self.place.given and len(self.place.cells) > 1)
        age = self.spec.max_age_seconds if isinstance(self.spec, LiveSubscriptionSpec) else None
        self._age = float("inf") if age is None else age
        self._floors = [self._words[ring.tail] for ring in self.rings]
        self._cursors = list(self._floors)
        self._progress = Progress(process.log, *place)
        self.moved = self.news = any(self._words[ring.end] for ring in self.rings)

    # What writers say -------------------------------------------------------------------------

    def told_head(self, slot: int, head: int) -> None:
        """A writer has committed up to a head."""
        self.heads[slot] = max(self.heads[slot], head)

    def connected(self, slot: int) -> None:
        """A writer is connected anew: it will say again what it gave, and has to be asked again."""
        self._given[slot].clear()
        if self._asked[slot]:
            self._asked[slot] = False
            self.ask(self._limit)

    def told_given(self, slot: int, sequences: list[int], cause: int, count: int) -> None:
        """A writer gives sequences to this replica; what it has already is not taken twice."""
        queue, cells, mask = self._given[slot], self.cells[slot], self._masks[slot]
        self._asked[slot] = False
        last = queue[-1][0] if queue else -1
        for sequence in sequences:
            word = self._words[cells + (sequence & mask)]
            if (word >> 16, word & 255) == (sequence, RECEIVED) and self._holds(slot, sequence):
                continue
            if not is_settled(word, sequence):
                queue.append((sequence, count, cause))
        if sequences[0] < last:  # a redelivery comes before what is newer
            self._given[slot] = deque(sorted(queue))

    def recalled(self, slot: int, items: int) -> None:
        """A writer wants back what was not begun, for another replica: the latest first."""
        queue = self._given[slot]
        back: list[int] = []
        while queue and len(back) < items:
            back.append(queue.pop()[0])
        if back:
            self._process.hub.queue(self.peers[slot], (Op.BACK, self.number, pairs_of(sorted(back))))

    def _holds(self, slot: int, sequence: int) -> bool:
        return any(place[0] == slot and sequence in held.sequences for place, held in self.held.items())

    # Receiving --------------------------------------------------------------------------------

    def ready(self) -> bool:
        """Returns whether `receive` would return something, or the status has moved on."""
        if self.moved or self.is_due():
            return True
        if self.place.given:
            return any(self._given)
        if self._items and not self._affords(0):
            return False
        return any(head > cursor for head, cursor in zip(self.heads, self._cursors, strict=True))

    def take(self, after: Mapping[int, int] | None, limit: int) -> list[Delivery]:
        """Leases what was given, at most `limit`; what is held after these positions comes first."""
        found = self._again(limit)
        if after is not None and self.held:
            places = sorted(place for place in self.held if place[1] > after.get(place[0], -1))
            found = [self.held[place].delivery for place in places[:limit]]
        for slot, queue in enumerate(self._given):
            while queue and len(found) < limit:
                sequence, count, cause = queue.popleft()
                if cause:
                    found.append(self._bury(slot, sequence, count, cause))
                else:
                    found.append(self._lease(slot, sequence, count))
        return found

    def ask(self, limit: int) -> None:
        """Asks writers for items, where they wait for that or others may have some to spare."""
        self._limit = limit
        items = min(limit, self.spec.credit.items - self._items)
        if not self.asks or items <= 0:
            return
        for slot, peer in enumerate(self.peers):
            if not self._asked[slot] and not self._given[slot]:
                self._process.hub.queue(peer, (Op.WANT, self.number, items))
                self._asked[slot] = peer in self._process.hub.links

    def read(self, after: Mapping[int, int], limit: int) -> list[Delivery]:
        """Returns what is unsettled after these positions, held or not, in the order of each slot."""
        slots = range(len(self.rings))
        at = [max(min(after.get(n, -1) + 1, self._cursors[n]), self._floor(n)) for n in slots]
        found: list[Delivery] = []
        while len(found) < limit:
            best, earliest = -1, 0.0
            for slot in slots:
                at[slot] = self._skip_settled(slot, at[slot])
                if at[slot] >= self.heads[slot]:
                    continue
                if len(self.rings) == 1:
                    best = slot
                    break
                arrived = read_record(self._process.log, self.rings[slot], at[slot])[2]
                if best < 0 or arrived < earliest:
                    best, earliest = slot, arrived
            if best < 0:
                break
            held = self.held.get((best, at[best]))
            if held is not None:
                found.append(held.delivery)
            else:
                size = self._size(best, at[best])
                if size >= 0 and not self._affords(size):
                    break
                found.append(self._lease(best, at[best], self._next_count(best, at[best])))
            at[best] += 1
        self._cursors = list(map(max, self._cursors, at))
        return found

    def _again(self, limit: int) -> list[Delivery]:
        """Returns what was settled with `Retry` and is due."""
        found: list[Delivery] = []
        while self.delayed and self.delayed[0][0] <= self._process.clock.monotonic() and len(found) < limit:
            _, place = self.delayed.pop(0)
            found.append(self.held[place].delivery)
        return found

    def ended(self, slot: int, *, gone: bool = True) -> None:
        """A writer has stamped its end, or is gone for good: its head is final.

        While it lives it may still hold back what other partitions are not ready for.
        """
        if gone or not self.place.gated:
            self.heads[slot] = committed(self._process.log, self.rings[slot])[0]
        self.moved = self.news = True

    def is_due(self) -> bool:
        """Returns whether something that was settled with `Retry` may be delivered again."""
        return bool(self.delayed) and self.delayed[0][0] <= self._process.clock.monotonic()

    def _lease(self, slot: int, sequence: int, count: int) -> Delivery:
        process = self._process
        data, kind, arrived, size = read_record(process.log, self.rings[slot], sequence)
        envelope = decode_envelope(data, self.channel.spec.channel)
        if kind == _DATA and count == 1 and process.clock.monotonic() - arrived > self._age:
            return self._buried(slot, [sequence], count, arrived, tombstone([envelope], Cause.EXPIRED))
        self._words[self.cells[slot] + (sequence & self._masks[slot])] = cell(sequence, count, RECEIVED)
        delivery = Delivery(self._token(slot, sequence, count), envelope, arrived)
        held = Held(delivery, size if kind == _DATA else -1, [sequence], 0)
        if envelope.payloads:
            held.slots = tuple(map(slot_of, envelope.payloads))
            for payload in held.slots:
                process.holds.take(payload)
        self.held[slot, sequence] = held
        if kind == _DATA:
            self._items += 1
            self._bytes += size
        return delivery

    def _bury(self, slot: int, sequence: int, count: int, cause: int) -> Delivery:
        """Leases a run of tombstones of one origin as one skip."""
        queue, channel = self._given[slot], self.channel.spec.channel
        data, _, arrived, _ = read_record(self._process.log, self.rings[slot], sequence)
        run, sequences = [decode_envelope(data, channel)], [sequence]
        alike = (count, cause) if cause == _DROPPED else None
        while queue and queue[0][1:] == alike and queue[0][0] == sequences[-1] + 1:
            data, _, _, _ = read_record(self._process.log, self.rings[slot], queue[0][0])
            envelope = decode_envelope(data, channel)
            if run[0].path or envelope.path or envelope.origin[:2] != run[0].origin[:2]:
                break
            run.append(envelope)
            sequences.append(queue.popleft()[0])
        return self._buried(slot, sequences, count, arrived, tombstone(run, cause_of(cause)))

    def _buried(
        self, slot: int, sequences: list[int], count: int, arrived: float, envelope: Envelope
    ) -> Delivery:
        for sequence in sequences:
            at = self.cells[slot] + (sequence & self._masks[slot])
            self._words[at] = cell(sequence, count, RECEIVED)
        self._evicted += len(sequences)
        delivery = Delivery(self._token(slot, sequences[-1], count), envelope, arrived)
        cause = cause_code(envelope.cause or Cause.DROPPED)
        self.held[slot, sequences[-1]] = Held(delivery, -1, sequences, cause)
        return delivery

    def _token(self, slot: int, sequence: int, count: int) -> DeliveryToken:
        name = f"{self.number}.{slot}.{sequence}"
        return DeliveryToken(self.subscription, name, (slot, sequence), count, self.generation)

    def let_go(self, place: Place) -> Held:
        """Ends a lease here, without saying so to anybody; the caller drops the payload slots."""
        held = self.held.pop(place)
        if held.size >= 0:
            self._items -= 1
            self._bytes -= held.size
        return held

    def handed_back(self, place: Place) -> list[int]:
        """Takes a lease back as if it had not been received; returns the records that go to the writer."""
        slot = place[0]
        held = self.let_go(place)
        for payload in held.slots:
            self._process.holds.drop(payload)
        for sequence in held.sequences:
            at = self.cells[slot] + (sequence & self._masks[slot])
            self._words[at] = cell(sequence, held.delivery.token.transport_count - 1, 0)
        self._cursors[slot] = min(self._cursors[slot], held.sequences[0])
        if not self.place.given:
            return []
        if len(self.place.cells) == 1:  # there is no other replica
            count, cause = held.delivery.token.transport_count, held.cause
            self._given[slot].extend((sequence, count, cause) for sequence in held.sequences)
            self._given[slot] = deque(sorted(self._given[slot]))
            return []
        return held.sequences

    def delay(self, place: Place, seconds: float) -> None:
        """Delivers what is held again, later."""
        self.delayed.append((self._process.clock.monotonic() + seconds, place))
        self.delayed.sort()

    def due(self) -> float:
        """Returns when something is delivered again (monotonic seconds), or infinity."""
        return self.delayed[0][0] if self.delayed else float("inf")

    def settled_lately(self, slot: int) -> list[int]:
        """Returns, as pairs, what this replica settled of a slot's records that the writer still has."""
        ring, cells, mask = self.rings[slot], self.cells[slot], self._masks[slot]
        places = range(self._words[ring.tail], self._words[ring.commit] >> 1)
        return pairs_of([at for at in places if is_settled(self._words[cells + (at & mask)], at)])

    def is_settled(self, place: Place) -> bool:
        """Returns whether this replica settled a sequence."""
        slot, sequence = place
        return is_settled(self._words[self.cells[slot] + (sequence & self._masks[slot])], sequence)

    def _affords(self, size: int) -> bool:
        credit = self.spec.credit
        if self._items == 0:
            return True
        return self._items < credit.items and self._bytes + size <= credit.size_bytes

    def _size(self, slot: int, sequence: int) -> int:
        _, kind, _, size = read_record(self._process.log, self.rings[slot], sequence)
        return size if kind == _DATA else -1

    def _next_count(self, slot: int, sequence: int) -> int:
        word = self._words[self.cells[slot] + (sequence & self._masks[slot])]
        return (word >> 8 & 255) + 1 if word >> 16 == sequence else 1

    def _skip_settled(self, slot: int, at: int) -> int:
        cells, mask, head = self.cells[slot], self._masks[slot], self.heads[slot]
        while at < head and is_settled(self._words[cells + (at & mask)], at):
            at += 1
        return at

    def _floor(self, slot: int) -> int:
        """Returns the first sequence of a slot that this replica has not settled."""
        self._floors[slot] = self._skip_settled(slot, self._floors[slot])
        return self._floors[slot]

    # Status -----------------------------------------------------------------------------------

    def acquired(self) -> dict[int, int]:
        """Returns the settled floors, as the own cells have them, whatever was heard of the writers.

        What an earlier owner had and did not settle is handed out to nobody now.
        """
        floors = {}
        for slot, ring in enumerate(self.rings):
            at, cells, mask = self._floors[slot], self.cells[slot], self._masks[slot]
            end = self._words[ring.commit] >> 1
            while at < end and is_settled(self._words[cells + (at & mask)], at):
                at += 1
            floors[slot] = at - 1
            for left in range(at, 0 if self.place.given else end):
                word = self._words[cells + (left & mask)]
                if (word >> 16, word & 255) == (left, RECEIVED) and (slot, left) not in self.held:
                    self._words[cells + (left & mask)] = cell(left, word >> 8 & 255, 0)
        return floors

    def status(self) -> SubscriptionStatus:
        """Returns how far the subscription has come, as its words say, other replicas' included."""
        self.moved = False
        mine = self._available(), len(self.held), self._evicted
        status = self._progress.status(None if self.place.broadcast else mine)
        if status.drained and not status.finished and not self.place.given and not self._read_all():
            return msgspec.structs.replace(status, drained=False)  # an earlier owner had it, this one not yet
        return status

    def _read_all(self) -> bool:
        ends = [self._words[ring.commit] >> 1 for ring in self.rings]
        return all(cursor >= end for cursor, end in zip(self._cursors, ends, strict=True))

    def _available(self) -> int:
        if self.place.given:
            return sum(map(len, self._given))
        return sum(max(0, h - c) for h, c in zip(self.heads, self._cursors, strict=True))


_DATA = KINDS.index(Kind.DATA)
_DROPPED = cause_code(Cause.DROPPED)
