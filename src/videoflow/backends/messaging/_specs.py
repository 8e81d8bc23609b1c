"""What is provisioned, delivered and settled.

Used by engines, workers and adapters. It refuses nothing: adapters do, when they are asked to provision.
"""

from enum import StrEnum
from typing import NamedTuple

import msgspec

from videoflow.backends.capabilities import Profile
from videoflow.backends.coverage import Cause
from videoflow.backends.messaging._envelope import Envelope
from videoflow.backends.messaging._names import ChannelId, OwnerLabels, SubscriptionId


class Bounds(msgspec.Struct, frozen=True):
    """Room, in items and bytes, whichever is used up first. Skips and terminators take none."""

    items: int
    size_bytes: int


class ChannelSpec(msgspec.Struct, frozen=True, kw_only=True):
    """A channel to provision.

    Attributes:
        channel: Its name.
        profile: What it promises.
        slots: Planned writers; the channel seals itself when each has ended.
        bounds: Room per partition for items that a required subscription has not settled.
        subscriptions: Readers that must settle an item before it may go.
        labels: Whose it is.
        copies: Copies to keep, where an adapter keeps several.
        persistent: Whether it must survive the processes that hold it.
    """

    channel: ChannelId
    profile: Profile
    slots: int
    bounds: Bounds
    subscriptions: tuple[SubscriptionId, ...]
    labels: OwnerLabels
    copies: int = 1
    persistent: bool = False


class ReliableSubscriptionSpec(msgspec.Struct, frozen=True, kw_only=True):
    """A reader that loses nothing; what does not fit blocks the writer.

    Attributes:
        subscription: Its name.
        credit: What may be leased and unsettled at once; one over-size item may pass alone.
        spread: The window W of rule 4: no statement p is handed out while one at or before p - W, counted
            in dispatches, is unsettled. None: not gated.
        replicas: How many processes share it.
        lease_seconds: Lease duration where leases have one, else None.
        labels: Whose it is.
    """

    subscription: SubscriptionId
    credit: Bounds
    spread: int | None
    replicas: int
    labels: OwnerLabels
    lease_seconds: float | None = None


class LiveSubscriptionSpec(msgspec.Struct, frozen=True, kw_only=True):
    """A reader of the newest: what it has not taken in time becomes a tombstone (rule 11).

    Attributes:
        subscription: Its name.
        credit: As for a reliable subscription.
        replicas: How many processes share it.
        latest_key: `source`, `key`, an attribute, or None: all items have one key. The envelope's `key` or
            `source` field is compared, for an attribute its header of that name.
        capacity: Items kept per key that are not yet leased.
        max_age_seconds: Nothing that arrived longer ago is handed out, or None.
        labels: Whose it is.
        spread: As for a reliable subscription.
        lease_seconds: As for a reliable subscription.
    """

    subscription: SubscriptionId
    credit: Bounds
    replicas: int
    latest_key: str | None
    capacity: int
    max_age_seconds: float | None
    labels: OwnerLabels
    spread: int | None = None
    lease_seconds: float | None = None


SubscriptionSpec = ReliableSubscriptionSpec | LiveSubscriptionSpec


class DeliveryToken(NamedTuple):
    """A lease on one message for processing.

    Attributes:
        subscription: Of whom.
        message_id: The adapter's own id of the message.
        position: (writer slot, sequence): compared within one slot only (rule 12).
        transport_count: 1 for a first delivery; greater when an earlier holder died with it.
        generation: Fences a token that was superseded.
    """

    subscription: SubscriptionId
    message_id: str
    position: tuple[int, int]
    transport_count: int
    generation: int


class Delivery(msgspec.Struct, frozen=True):
    """A leased message; an evicted or expired one arrives as a `skip` with cause dropped or expired."""

    token: DeliveryToken
    envelope: Envelope
    received_at: float


class Tombstone(msgspec.Struct, frozen=True):
    """What remains of an evicted item: its place, and why it went."""

    position: tuple[int, int]
    key: str
    cause: Cause


class CompletedReason(StrEnum):
    """Why a message is done with."""

    DELIVERED = "delivered"
    SKIPPED = "skipped"
    DUPLICATE = "duplicate"
    DROPPED = "dropped"
    EXPIRED = "expired"
    ABANDONED = "abandoned"
    SUPERSEDED = "superseded"


class Completed(msgspec.Struct, frozen=True):
    """Done with."""

    reason: CompletedReason = CompletedReason.DELIVERED


class Retry(msgspec.Struct, frozen=True):
    """To be delivered again: for payload failures of competing subscriptions."""

    delay_seconds: float = 0.0


class Terminal(msgspec.Struct, frozen=True):
    """Put aside; `record_ref` names a durable record that outlives the message."""

    record_ref: str


Settlement = Completed | Retry | Terminal
