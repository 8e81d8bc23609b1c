"""What a messaging backend reports: how far a subscription and a channel have come.

Used by workers and engines to decide that something is at its end. It refuses to guess: what could not be
read is an Unknown instead.
"""

from collections.abc import Mapping

import msgspec

from videoflow.backends.coverage import OriginRecord
from videoflow.backends.messaging._envelope import Kind


class SubscriptionStatus(msgspec.Struct, frozen=True, kw_only=True):
    """How far a subscription has come.

    Attributes:
        available: Items that could be handed out, credit apart.
        leased: Items handed out and not settled.
        unresolved: Items whose settlement is in doubt.
        settled_floors: Writer slot → greatest sequence up to which all is settled, or -1.
        drained: Each planned slot has its terminator and all below was handed out.
        finished: Drained, and nothing below the greatest terminator is unsettled.
        aborted: Some terminator is an abort.
        evicted: Items that became tombstones so far.
    """

    available: int
    leased: int
    unresolved: int
    settled_floors: Mapping[int, int]
    drained: bool
    finished: bool
    aborted: bool
    evicted: int = 0


class ChannelStatus(msgspec.Struct, frozen=True, kw_only=True):
    """What a channel holds.

    Attributes:
        first: Writer slot → first position still held, or None.
        last: Writer slot → last position appended, -1 for none.
        items: Items that some required subscription has not settled.
        size_bytes: Their bytes.
        terminators: Writer slot → kind, for slots that ended.
        sealed: Each planned slot has ended.
    """

    first: Mapping[int, int | None]
    last: Mapping[int, int]
    items: int
    size_bytes: int
    terminators: Mapping[int, Kind]
    sealed: bool


class Acquired(msgspec.Struct, frozen=True):
    """Ownership of an exclusive subscription.

    Attributes:
        settled_floors: Writer slot → greatest sequence up to which all is settled, -1 for none.
        settled: What the reader settled, with which it starts its cursors; not what was evicted or expired
            and waits for it as a tombstone.
    """

    settled_floors: Mapping[int, int]
    settled: tuple[OriginRecord, ...]
