"""The reader's end of one subscription: what there is, what is held, how far it has come."""

from collections import deque
from collections.abc import Mapping, Sequence
from itertools import islice

import msgspec

from videoflow.adapters.shm._feeds import ProcessParts
from videoflow.adapters.shm._layout import ChannelPlace, SubscriptionPlace
from videoflow.adapters.shm._leases import Given, Leases, Place
from videoflow.adapters.shm._links import Op, pairs_of
from videoflow.adapters.shm._log import (
    RECEIVED,
    cell,
    committed,
    is_settled,
    read_record,
)
from videoflow.adapters.shm._status import Progress
from videoflow.backends.messaging import (
    Delivery,
    LiveSubscriptionSpec,
    SubscriptionStatus,
)


class Inlet(Leases):
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
        super().__init__(process, number, place, replica, incarnation)
        slots = len(self.rings)
        self._given: list[deque[Given]] = [deque() for _ in range(slots)]
        self._asked = [False] * slots
        self._limit = 1
        self.delayed: list[tuple[float, Place]] = []
        self.live = isinstance(self.spec, LiveSubscriptionSpec)
        self.asks = self.live or (self.place.given and len(self.place.cells) > 1)
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
        words = self._words
        for sequence in sequences:
            word = words[cells + (sequence & mask)]
            if word >> 16 >= sequence:
                if (word >> 16, word & 255) == (sequence, RECEIVED) and self._holds(slot, sequence):
                    continue
                if is_settled(word, sequence):
                    continue
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
                if queue[0][2]:
                    found.append(self._bury(slot, queue))
                    continue
                items = []
                for sequence, count, cause in islice(queue, limit - len(found)):
                    if cause:
                        break
                    items.append((sequence, count))
                found += self._lease(slot, items)
                for _ in items:
                    queue.popleft()
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
        cursor = self._cursors[0]
        if len(self.rings) == 1 and self.heads[0] <= cursor <= after.get(0, -1) + 1:
            return []  # as most looks find it
        at = [min(after.get(slot, -1) + 1, cursor) for slot, cursor in enumerate(self._cursors)]
        at = [max(n, self._floor(slot)) if n < self._cursors[slot] else n for slot, n in enumerate(at)]
        found: list[Delivery] = []
        while len(found) < limit and (slot := self._earliest(at)) >= 0:
            most = limit - len(found) if len(self.rings) == 1 else 1
            wanted = self._unsettled(slot, at[slot], most)
            leased = self._lease(slot, wanted, limited=True)
            if leased:
                at[slot] = leased[-1].token.position[1] + 1
                found += leased
            if len(leased) < len(wanted):
                break
        self._cursors = list(map(max, self._cursors, at))
        return found

    def _earliest(self, at: list[int]) -> int:
        """Moves positions on to what is unsettled; returns the slot whose record came first, or -1."""
        best, earliest = -1, 0.0
        for slot, ring in enumerate(self.rings):
            at[slot] = self._skip_settled(slot, at[slot])
            if at[slot] >= self.heads[slot]:
                continue
            if len(self.rings) == 1:
                return slot
            arrived = read_record(self._process.log, ring, at[slot])[2]
            if best < 0 or arrived < earliest:
                best, earliest = slot, arrived
        return best

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

    def handed_back(self, place: Place) -> Sequence[int]:
        """Takes a lease back as if it had not been received; returns the records that go to the writer."""
        slot = place[0]
        held = self.held.pop(place)
        if held.size >= 0:
            self._items -= 1
            self._bytes -= held.size
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
            if not (self.place.given or self.place.gated):  # or what others wrote later takes all the credit
                self.heads[slot] = max(self.heads[slot], end)
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
