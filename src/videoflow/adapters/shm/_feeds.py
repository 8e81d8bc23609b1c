"""How a producer replica feeds one subscription: telling heads, or giving out sequences.

A feed belongs to an outlet, the producer's end of one channel. What it decides it writes into words of
its own first, so that its next incarnation finds it.
"""

from collections.abc import Callable, Iterable
from typing import Protocol

import msgspec

from videoflow.adapters.shm._layout import RingPlace, SubscriptionPlace
from videoflow.adapters.shm._ledger import Rows
from videoflow.adapters.shm._links import Hub, Op, Peer
from videoflow.adapters.shm._log import Log, RingWriter, is_settled
from videoflow.adapters.shm._slab import Holds, Slot
from videoflow.backends.messaging import Envelope
from videoflow.clock import Clock


class Record(msgspec.Struct, gc=False):
    """A record that somebody has not settled.

    Attributes:
        envelope: What it says.
        data: Whether it is an item.
        size: What it costs in credits.
        slots: The payload slots that it names.
        waiting: Who has not settled it, by the bits of feeds.
        holding: Who still holds its payloads.
        arrived: When it was appended, in monotonic seconds.
    """

    envelope: Envelope
    data: bool
    size: int
    slots: tuple[Slot, ...]
    waiting: int
    holding: int
    arrived: float


class ProcessParts:
    """What all outlets and inlets of a process share."""

    log: Log
    hub: Hub
    clock: Clock
    holds: Holds
    room_in: Callable[..., None]


class Owner(Protocol):
    """What a feed needs of its outlet."""

    log: Log
    hub: Hub
    clock: Clock
    ring: RingWriter
    records: dict[int, Record]
    number: int
    slot: int
    rings: tuple[RingPlace, ...]
    dropped: Rows
    visible: int

    def let_go(self, record: Record, bit: int) -> None:
        """A subscription's claim on the payloads of a record ends."""

    def done(self, sequences: Iterable[int], bit: int) -> None:
        """A subscription has settled records."""

    def note_drops(self) -> None:
        """Tells the ledger what was evicted."""


class Feed:
    """An exclusive, reliable subscription: its reader walks the ring up to the head that it is told."""

    def __init__(self, owner: Owner, number: int, place: SubscriptionPlace, bit: int) -> None:
        self.owner = owner
        self.number = number
        self.place = place
        self.bit = bit
        self.peers: list[Peer] = [(place.reader, place.first + n) for n in range(len(place.cells))]
        self.mask = owner.ring.place.slots - 1
        self._words = owner.log.words

    def replica(self, peer: Peer) -> int:
        """Returns which of its readers a peer is."""
        return peer[1] - self.place.first

    def committed(self, first: int) -> None:
        """Records from `first` to the head have become visible."""
        for peer in self.peers:
            self.owner.hub.queue(peer, (Op.HEAD, self.owner.number, self.owner.visible))

    def dispatch(self) -> None:
        """Gives out what may be given out now."""

    def greet(self, replica: int) -> None:
        """A reader is connected: it says itself what it settled before, and is told what there is.

        Its cells may say more: what it settled since, and what it keeps of that it is about to say.
        """
        self.owner.hub.queue(self.peers[replica], (Op.HEAD, self.owner.number, self.owner.visible))

    def leased(self, replica: int) -> list[Record]:
        """Returns the records that a dead reader may have passed on, and that others will settle."""
        return []

    def gone(self, replica: int, *, passed_on: bool) -> None:
        """A reader is dead; where it passed payloads on, its next incarnation says what it settled."""
        waiting = [s for s, r in self.owner.records.items() if not passed_on and r.waiting & self.bit]
        self.owner.done([s for s in waiting if self.settled_by(replica, s)], self.bit)

    def settled(self, replica: int, sequences: Iterable[int]) -> None:
        """A reader settled records."""
        self.owner.done(sequences, self.bit)

    def handed_back(self, replica: int, sequence: int) -> None:
        """A reader gives back a record that it did not start."""

    def want(self, replica: int, items: int) -> None:
        """A reader asks for items."""

    def adopt(self, sequence: int, record: Record) -> None:
        """Finds out what an earlier incarnation did with a record."""
        if self.settled_by(0, sequence):
            record.waiting &= ~self.bit
            record.holding &= ~self.bit

    def adopted(self) -> None:
        """All records that an earlier incarnation left are known."""

    def may_evict(self, sequence: int) -> bool:
        """Returns whether a record may become a tombstone: live, and given to nobody."""
        return False

    def evict(self, sequence: int) -> None:
        """Makes a tombstone of a record that may become one."""

    def may_forget(self, sequence: int) -> bool:
        """Returns whether a record may be dropped, and its place with it: a broadcast that nobody has."""
        return False

    def forget(self, sequence: int) -> None:
        """Drops a record that may be forgotten."""

    def retire(self) -> None:
        """Its reader has ended for good, having settled all that it must."""

    def settled_by(self, replica: int, sequence: int) -> bool:
        """Returns whether a reader's own cell says that it settled a record."""
        return is_settled(self._cell(replica, sequence), sequence)

    def _cell(self, replica: int, sequence: int) -> int:
        return self._words[self.place.cells[replica][self.owner.slot] + (sequence & self.mask)]
