"""The three interfaces of a messaging backend, and what they report."""

from abc import ABC, abstractmethod
from collections.abc import Hashable, Mapping, Sequence
from typing import Protocol, runtime_checkable

import msgspec

from videoflow.backends.capabilities import MessagingCapabilities
from videoflow.backends.coverage import OriginRecord
from videoflow.backends.messaging._envelope import Envelope, Kind
from videoflow.backends.messaging._names import ChannelId, OwnerLabels, SubscriptionId
from videoflow.backends.messaging._specs import (
    ChannelSpec,
    Delivery,
    DeliveryToken,
    Settlement,
    SubscriptionSpec,
)
from videoflow.backends.outcomes import (
    CleanupObservation,
    Observation,
    PublicationOutcome,
    SettlementOutcome,
)
from videoflow.clock import Waitable


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


class Provisioning(ABC):
    """Makes channels and subscriptions, observes and removes them."""

    @abstractmethod
    def capabilities(self) -> MessagingCapabilities:
        """Returns what this adapter, as configured, guarantees."""

    @abstractmethod
    def ensure_channel(self, spec: ChannelSpec, operation_id: str, *, deadline: float) -> ChannelSpec:
        """Creates or reconciles a channel, then reads it back.

        Raises:
            IncompatibleProfile: What exists differs in something that cannot be changed.
        """

    @abstractmethod
    def ensure_subscription(
        self, spec: SubscriptionSpec, operation_id: str, *, deadline: float
    ) -> SubscriptionSpec:
        """Creates or reconciles a subscription, then reads it back. Raises as `ensure_channel`."""

    @abstractmethod
    def observe_subscription(
        self, subscription: SubscriptionId, *, deadline: float
    ) -> Observation[SubscriptionStatus]:
        """Returns how far a subscription has come; cheap enough to ask after every empty receive."""

    @abstractmethod
    def observe_channel(self, channel: ChannelId, *, deadline: float) -> Observation[ChannelStatus]:
        """Returns what a channel holds."""

    @abstractmethod
    def announced(self, channel: ChannelId, *, deadline: float) -> Observation[tuple[OriginRecord, ...]]:
        """Returns the writers' end of the ledger.

        Data statements have the fate `delivered`, skips their cause.
        """

    @abstractmethod
    def settled(
        self, subscription: SubscriptionId, *, deadline: float
    ) -> Observation[tuple[OriginRecord, ...]]:
        """Returns the reader's end of the ledger: what was settled, by fate."""

    @abstractmethod
    def release_owner(self, owner: str, *, deadline: float) -> None:
        """Returns the leases of a process that is known to be dead, at once."""

    @abstractmethod
    def close(
        self, owned: OwnerLabels, expected_generation: str | None = None, *, deadline: float
    ) -> CleanupObservation:
        """Removes exactly what carries these labels, and says what remains."""


class Publisher(ABC):
    """Appends envelopes."""

    @abstractmethod
    def begin_publish(self, envelopes: Sequence[Envelope], *, deadline: float) -> Sequence[Hashable]:
        """Starts publishing, in order, and never waits for receipts; one opaque handle per envelope."""

    @abstractmethod
    def outcomes(self, handles: Sequence[Hashable], *, deadline: float) -> Sequence[PublicationOutcome]:
        """Returns one truthful outcome per handle.

        A channel that stays full until the deadline is `Rejected(full)`; nothing is sent later than its
        deadline. A repeated statement is `Accepted(duplicate=True)`; of an interval skip only what was not
        announced is appended. On a sealed channel what is not a duplicate is `Rejected(sealed)`, and what
        an older epoch of the slot says is `Rejected(stale)`.
        """

    @abstractmethod
    def terminate(
        self, channel: ChannelId, slot: int, epoch: int, kind: Kind, *, deadline: float
    ) -> Sequence[PublicationOutcome]:
        """Stamps the end (`end` or `abort`) of a slot above everything it published; per partition.

        Terminators never compete with data for room; stamping again is `Accepted(duplicate=True)`.
        """


class Receiver(ABC):
    """Leases and settles messages."""

    @abstractmethod
    def receive(
        self,
        subscription: SubscriptionId,
        *,
        deadline: float,
        max_items: int | None = None,
        after: Mapping[int, int] | None = None,
    ) -> Sequence[Delivery]:
        """Leases what there is, within the credit in items and bytes; empty at the deadline.

        Args:
            subscription: From where.
            deadline: Monotonic seconds; in the past: never waits.
            max_items: At most so many, or as the credit allows.
            after: Required of exclusive readers: writer slot → sequence; delivers what is unsettled after
                it, in channel order, what this owner already holds included.
        """

    @abstractmethod
    def waitable(self, subscription: SubscriptionId) -> Waitable:
        """Returns what becomes ready when `receive` would return something, or the status moves on."""

    @abstractmethod
    def renew(self, tokens: Sequence[DeliveryToken], *, deadline: float) -> Sequence[bool]:
        """Extends leases; False for a token that is not the live one."""

    @abstractmethod
    def hand_back(self, tokens: Sequence[DeliveryToken], *, deadline: float) -> None:
        """Returns what was not started, uncharged: the next delivery has the same transport count."""

    @abstractmethod
    def begin_settle(
        self, settlements: Sequence[tuple[DeliveryToken, Settlement]], *, deadline: float
    ) -> Sequence[Hashable]:
        """Starts settling; the tokens of one call are settled all or none where claimed."""

    @abstractmethod
    def settlements(self, handles: Sequence[Hashable], *, deadline: float) -> Sequence[SettlementOutcome]:
        """Returns one truthful outcome per handle; settling a settled token again is confirmed."""

    def settle(
        self, settlements: Sequence[tuple[DeliveryToken, Settlement]], *, deadline: float
    ) -> Sequence[SettlementOutcome]:
        """Settles and waits for the outcomes."""
        return self.settlements(self.begin_settle(settlements, deadline=deadline), deadline=deadline)

    @abstractmethod
    def acquire(self, subscription: SubscriptionId, epoch: int, *, deadline: float) -> Observation[Acquired]:
        """Becomes the owner of an exclusive subscription; delivery restarts at settled floor + 1.

        Raises:
            StaleAuthority: A newer epoch owns it.
        """

    @abstractmethod
    def interrupt(self) -> None:
        """Wakes a blocked call of this object, from any thread; idempotent."""


class MessagingBackend(Provisioning, Publisher, Receiver):
    """All three; an object is made for one owner, by whom its leases are labelled."""


@runtime_checkable
class PublicationObserver(Protocol):
    """For adapters whose outcomes may be unknown: what can be said afterwards."""

    def observe_publication(
        self, envelopes: Sequence[Envelope], *, deadline: float
    ) -> Sequence[PublicationOutcome]:
        """Returns what is known of publications, with the stored references."""
        ...
