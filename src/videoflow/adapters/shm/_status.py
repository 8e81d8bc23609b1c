"""How far a subscription and a channel have come, read from the words that different processes write."""

from collections.abc import Sequence

from videoflow.adapters.shm._layout import ChannelPlace, Layout, SubscriptionPlace
from videoflow.adapters.shm._ledger import cause_code
from videoflow.adapters.shm._log import RECEIVED, Log, is_settled, read_record
from videoflow.backends.coverage import Cause
from videoflow.backends.messaging import ChannelStatus, Kind, SubscriptionStatus

KINDS = tuple(Kind)


class Progress:
    """Follows one subscription over all writer slots and reader replicas.

    Args:
        log: The log.
        channel: Its channel.
        place: Its place.
    """

    def __init__(self, log: Log, channel: ChannelPlace, place: SubscriptionPlace) -> None:
        self._words = log.words
        self._rings = channel.rings
        self._place = place
        self._floors = [self._words[ring.tail] for ring in self._rings]

    def status(self, mine: tuple[int, int, int] | None = None) -> SubscriptionStatus:
        """Returns the status; `mine` is (available, leased, evicted) of one replica, else all are counted."""
        words, slots = self._words, range(len(self._rings))
        ends = [words[ring.end] for ring in self._rings]
        heads = [words[ring.commit] >> 1 for ring in self._rings]
        for slot in slots:
            self._floors[slot] = self._floor(slot, heads[slot])
        ended = all(ends)
        finished = ended and self._floors == heads
        drained = finished
        available, leased, evicted = mine or (0, 0, 0)
        if mine is None or (ended and not finished):
            places = [(slot, at) for slot in slots for at in range(self._floors[slot], heads[slot])]
            pending = [self._state(slot, at) for slot, at in places]
            drained = ended and all(handed or settled for handed, settled in pending)
            if mine is None:
                leased = sum(handed and not settled for handed, settled in pending)
                available = sum(not handed and not settled for handed, settled in pending)
                available -= self._run_on(places)
        return SubscriptionStatus(
            available=available,
            leased=leased,
            unresolved=0,
            settled_floors={slot: self._floors[slot] - 1 for slot in slots},
            drained=drained,
            finished=finished,
            aborted=any(end and KINDS[end - 1] is Kind.ABORT for end in ends),
            evicted=evicted,
        )

    def _floor(self, slot: int, head: int) -> int:
        """Returns the first sequence of a slot that is not settled."""
        at = self._floors[slot]
        if len(self._place.cells) == 1:  # what the only reader settled is settled, whoever gave it
            words, cells, mask = self._words, self._place.cells[0][slot], self._rings[slot].slots - 1
            while at < head and is_settled(words[cells + (at & mask)], at):
                at += 1
        while at < head and self._state(slot, at)[1]:
            at += 1
        return at

    def _run_on(self, places: list[tuple[int, int]]) -> int:
        """Returns how many tombstones will be told together with the one before."""
        if self._place.live is None:
            return 0
        cause = cause_code(Cause.DROPPED)
        tombs = set()
        for slot, at in places:
            word = self._words[self._place.assignments[slot] + (at & (self._rings[slot].slots - 1))]
            if word >> 24 == at and word >> 16 & 255 == cause and not any(self._state(slot, at)):
                tombs.add((slot, at))
        return sum((slot, at - 1) in tombs for slot, at in tombs)

    def settled(self, slot: int, sequence: int) -> bool:
        """Returns whether a record is settled."""
        return self._state(slot, sequence)[1]

    def _state(self, slot: int, sequence: int) -> tuple[bool, bool]:
        """Returns whether a record is handed out, and whether it is settled."""
        at, replica, count = sequence & (self._rings[slot].slots - 1), 0, -1
        if self._place.given:
            word = self._words[self._place.assignments[slot] + at]
            if word >> 24 != sequence:
                return False, word >> 24 > sequence
            replica, count = (word & 255) - 1, word >> 8 & 255
            if replica < 0:
                return False, self._place.broadcast and word >> 16 & 255 > 0
        word = self._words[self._place.cells[replica][slot] + at]
        handed = word >> 16 == sequence and word & 255 == RECEIVED
        # The cell of a dead incarnation stays until the next one takes the record, counted anew.
        handed = handed and count in (-1, word >> 8 & 255)
        return handed, is_settled(word, sequence)


def whole_channel_status(parts: Sequence[ChannelStatus]) -> ChannelStatus:
    """Returns the status of a channel from those of its partitions."""
    lead = parts[0]
    return ChannelStatus(
        first={slot: _least([part.first[slot] for part in parts]) for slot in lead.first},
        last={slot: max(part.last[slot] for part in parts) for slot in lead.last},
        items=sum(part.items for part in parts),
        size_bytes=sum(part.size_bytes for part in parts),
        terminators=lead.terminators,
        sealed=all(part.sealed for part in parts),
    )


def _least(positions: Sequence[int | None]) -> int | None:
    return min((position for position in positions if position is not None), default=None)


def channel_status(log: Log, layout: Layout, channel: ChannelPlace) -> ChannelStatus:
    """Returns what a partition holds; `items` counts what a reliable one of its readers has not settled."""
    readers = [layout.subscriptions[number] for number in channel.subscriptions]
    required = [Progress(log, channel, place) for place in readers if place.live is None]
    words = log.words
    first: dict[int, int | None] = {}
    last, ends = {}, {}
    items = size_bytes = 0
    for slot, ring in enumerate(channel.rings):
        head, tail, end = words[ring.commit] >> 1, words[ring.tail], words[ring.end]
        first[slot] = tail if tail < head else None
        last[slot] = head - 1
        for sequence in range(tail, head):
            _, kind, _, size = read_record(log, ring, sequence)
            if KINDS[kind] is Kind.DATA and not all(p.settled(slot, sequence) for p in required):
                items += 1
                size_bytes += size
        if end:
            ends[slot] = KINDS[end - 1]
    return ChannelStatus(
        first=first,
        last=last,
        items=items,
        size_bytes=size_bytes,
        terminators=ends,
        sealed=len(ends) == len(channel.rings),
    )
