"""What a channel appends, and what each subscription keeps of it.

Used by channels and subscriptions. It refuses nothing: it is what they are made of.
"""

from typing import Final

import msgspec

from videoflow.backends.coverage import Cause
from videoflow.backends.intervals import IntervalSet
from videoflow.backends.messaging import Envelope, Kind

NOT_DISPATCHED: Final = -1


class Entry:
    """One envelope in the log of a channel.

    Attributes:
        envelope: What was published.
        position: (writer slot, sequence).
        arrived_at: Monotonic seconds.
        order: Number of the append in the channel, over all slots.
        place: Number of the append in its partition; what is told to all has the same number in each.
        data: Whether it takes room and credit.
        blocking: Reliable subscriptions that have not settled it; at zero its room is free.
    """

    __slots__ = ("arrived_at", "blocking", "data", "envelope", "order", "place", "position")

    def __init__(
        self, envelope: Envelope, position: tuple[int, int], arrived_at: float, order: int, place: int
    ) -> None:
        self.envelope = envelope
        self.position = position
        self.arrived_at = arrived_at
        self.order = order
        self.place = place
        self.data = envelope.kind is _DATA
        self.blocking = 0


class Cell:
    """One entry as one subscription sees it, from append to settlement.

    Attributes:
        entry: The entry; of a tombstone the first one evicted.
        owner: Who holds the lease, or None.
        generation: Number of leases so far; a token of an older one is stale.
        transport_count: Of the next delivery, or of the one under way.
        dispatch: Number of its first dispatch within the subscription.
        settled: It is done with.
        tombstone: Why the item was evicted, or None.
        ordinals: Of a tombstone of whole ordinals: which.
    """

    __slots__ = (
        "dispatch",
        "entry",
        "generation",
        "ordinals",
        "owner",
        "settled",
        "tombstone",
        "transport_count",
    )

    def __init__(self, entry: Entry) -> None:
        self.entry = entry
        self.owner: str | None = None
        self.generation = 0
        self.transport_count = 1
        self.dispatch = NOT_DISPATCHED
        self.settled = False
        self.tombstone: Cause | None = None
        self.ordinals: IntervalSet | None = None

    def __lt__(self, other: "Cell") -> bool:
        return self.entry.order < other.entry.order

    @property
    def takes_credit(self) -> bool:
        """Whether it is an item, and not a skip, a notice or a tombstone."""
        return self.entry.data and self.tombstone is None

    def bury(self, cause: Cause) -> None:
        """Makes the item a tombstone."""
        envelope = self.entry.envelope
        self.tombstone = cause
        if not envelope.path:
            self.ordinals = IntervalSet([(envelope.origin.ordinal, envelope.origin.ordinal)])

    def delivered_envelope(self) -> Envelope:
        """Returns what a reader gets: the envelope, or the skip that stands for what was evicted."""
        envelope = self.entry.envelope
        if self.tombstone is None:
            return envelope
        return msgspec.structs.replace(
            envelope,
            kind=Kind.SKIP,
            cause=self.tombstone,
            intervals=() if self.ordinals is None else self.ordinals.intervals(),
            event_time=None,
            body=b"",
            payloads=(),
            size_bytes=0,
        )


_DATA = Kind.DATA
