"""Names of channels, subscriptions and owners.

Used wherever a channel is named. It refuses nothing, and holds no address of any broker.
"""

from enum import StrEnum

import msgspec


class Reliability(StrEnum):
    """The two guarantees: a channel never loses, or may."""

    RELIABLE = "reliable"
    LIVE = "live"


class Layout(msgspec.Struct, frozen=True, array_like=True, cache_hash=True):
    """How a port's items are laid out in a channel.

    Attributes:
        reliability: Whether items may be evicted.
        key: What partitions are computed from (`trace`, `key`, `source`, an attribute), or None.
        partitions: Their number.
    """

    reliability: Reliability = Reliability.RELIABLE
    key: str | None = None
    partitions: int = 1


class ChannelId(msgspec.Struct, frozen=True, array_like=True, cache_hash=True):
    """The ordered log of one output port in one layout."""

    flow_id: str
    run_id: str
    node: str
    port: str
    layout: Layout = Layout()

    def __str__(self) -> str:
        return f"{self.node}.{self.port}"


class SubscriptionKind(StrEnum):
    """The two types of reader (rule 6)."""

    COMPETING = "competing"
    EXCLUSIVE = "exclusive"


class SubscriptionId(msgspec.Struct, frozen=True, array_like=True, cache_hash=True):
    """One logical reader of a channel: all replicas of a task share it.

    Attributes:
        channel: What is read.
        reader: Name of the reading task and input, such as `detect` or `draw/1`.
        kind: Competing readers lease single messages; an exclusive one owns a partition, by epoch.
        partition: The partition of an exclusive subscription, None for competing ones.
        slot: One replica, for control broadcast, else None. Each replica has a subscription of its own, which
            is competing, live, and shared with nobody. It is handed items alone: skips, notices and ends of
            epochs are noted in its ledger as they are appended, and so is an item that it has not taken in
            time, which leaves no tombstone.
    """

    channel: ChannelId
    reader: str
    kind: SubscriptionKind
    partition: int | None = None
    slot: int | None = None

    def __str__(self) -> str:
        return f"{self.channel}->{self.reader}"


class OwnerLabels(msgspec.Struct, frozen=True):
    """What every created thing carries; removal is by label match, never by prefix."""

    flow_id: str
    run_id: str
    owner: str | None = None
