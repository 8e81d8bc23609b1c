"""How a producer replica feeds the partitions of one task: no partition sees further than the window allows.

Each partition has a ring of its own, and what is said once goes to all of them as data, skip or notice, so
that a sequence means the same in each. The window of rule 4 lies over all of them.
"""

from collections.abc import Sequence

from videoflow.adapters.shm._feeds import Feed, Owner
from videoflow.adapters.shm._layout import Layout, RingPlace, SubscriptionPlace
from videoflow.adapters.shm._links import Op
from videoflow.adapters.shm._log import is_settled


class GatedFeed(Feed):
    """An exclusive subscription to one partition: its reader is told of a head that its spread allows.

    Args:
        owner: The outlet of this partition.
        number: Of the subscription.
        place: Of it.
        bit: Of it, in this outlet.
        layout: Where the other partitions lie.
    """

    def __init__(self, owner: Owner, number: int, place: SubscriptionPlace, bit: int, layout: Layout) -> None:
        super().__init__(owner, number, place, bit)
        subscription = place.spec.subscription
        parts = [
            (other, layout.channels[other.channel].rings)
            for other in layout.subscriptions
            if (other.spec.subscription.channel, other.spec.subscription.reader)
            == (subscription.channel, subscription.reader)
        ]
        self._told = owner.ring.tail
        self._lines = [
            _Line(owner.log.words, part, slot, rings) for part, rings in parts for slot in range(len(rings))
        ]
        # Slots that look at the same moment may pass the limit by one each.
        self._spread = max(1, (place.spec.spread or 1) - len(owner.rings) + 1)
        self._stamps = place.stamps[owner.slot]

    def committed(self, first: int) -> None:
        """Stamps what has become visible with its place among all slots, and tells what may be seen."""
        if self._stamps:
            rings = enumerate(self.owner.rings)
            others = sum(self._words[ring.commit] >> 1 for slot, ring in rings if slot != self.owner.slot)
            for sequence in range(first, self.owner.ring.head):
                self._words[self._stamps + (sequence & self.mask)] = others + sequence
        self.dispatch()

    def dispatch(self) -> None:
        """Tells how far the window lets this partition see."""
        head = self.owner.visible
        if self._told == head:
            return
        oldest = min((stamp for line in self._lines if (stamp := line.oldest()) is not None), default=None)
        told = self._told
        while told < head and (oldest is None or self._stamp(told) - oldest < self._spread):
            told += 1
        if told > self._told:
            self._told = told
            self._tell()

    def greet(self, replica: int) -> None:
        """Its reader is connected."""
        self.dispatch()
        self._tell()

    def _tell(self) -> None:
        self.owner.hub.queue(self.peers[0], (Op.HEAD, self.owner.number, self._told))

    def _stamp(self, sequence: int) -> int:
        return self._words[self._stamps + (sequence & self.mask)] if self._stamps else sequence


class _Line:
    """What one partition has not settled of one writer slot."""

    def __init__(
        self, words: memoryview, part: SubscriptionPlace, slot: int, rings: Sequence[RingPlace]
    ) -> None:
        self._words = words
        self._ring = rings[slot]
        self._mask = rings[slot].slots - 1
        self._cells = part.cells[0][slot]
        self._stamps = part.stamps[slot]
        self._floor = words[rings[slot].tail]

    def oldest(self) -> int | None:
        """Returns the stamp of the first that is not settled, or None."""
        head, floor, words = self._words[self._ring.commit] >> 1, self._floor, self._words
        while floor < head and is_settled(words[self._cells + (floor & self._mask)], floor):
            floor += 1
        self._floor = floor
        if floor == head:
            return None
        return words[self._stamps + (floor & self._mask)] if self._stamps else floor
