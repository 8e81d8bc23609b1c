"""The three interfaces of a messaging backend."""

from abc import ABC, abstractmethod
from collections.abc import Hashable, Mapping, Sequence
from typing import Protocol, runtime_checkable

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
from videoflow.backends.messaging._status import Acquired, ChannelStatus, SubscriptionStatus
from videoflow.backends.outcomes import (
    CleanupObservation,
    Observation,
    PublicationOutcome,
    SettlementOutcome,
)
from videoflow.clock import Waitable


class Provisioning(ABC):
    """Makes channels and subscriptions, observes and removes them."""

    @abstractmethod
    def capabilities(self) -> MessagingCapabilities:
        """Returns what this adapter, as configured, guarantees; it never waits."""

    @abstractmethod
    def ensure_channel(self, spec: ChannelSpec, operation_id: str, *, deadline: float) -> ChannelSpec:
        """Creates or reconciles a channel, then reads it back; the same again changes nothing.

        What was accepted before a listed reader exists is kept for it.

        Args:
            spec: What is wanted; its readers are listed by name, and specified by `ensure_subscription`.
            operation_id: One logical attempt; concurrent identical calls are harmless.
            deadline: Monotonic seconds.

        Raises:
            IncompatibleProfile: A guarantee that is not claimed, or a difference that cannot be changed; all
                of them, a miss each. Nothing was made or changed.
        """

    @abstractmethod
    def ensure_subscription(
        self, spec: SubscriptionSpec, operation_id: str, *, deadline: float
    ) -> SubscriptionSpec:
        """Creates or reconciles a subscription, then reads it back. Raises as `ensure_channel`.

        Refused too: a reader that its channel does not list, lease seconds or a spread where they are not
        claimed, a reliable reader of a `live_latest` channel.
        """

    @abstractmethod
    def observe_subscription(
        self, subscription: SubscriptionId, *, deadline: float
    ) -> Observation[SubscriptionStatus]:
        """Returns how far a subscription has come, or Unknown; cheap enough to ask after every empty receive.

        Having looked, this owner's waitable is not ready because of the status until it moves on again.
        """

    @abstractmethod
    def observe_channel(self, channel: ChannelId, *, deadline: float) -> Observation[ChannelStatus]:
        """Returns what a channel holds over all partitions, or Unknown."""

    @abstractmethod
    def announced(self, channel: ChannelId, *, deadline: float) -> Observation[tuple[OriginRecord, ...]]:
        """Returns the writers' end of the ledger.

        Data statements have the fate `delivered`, skips their cause; of a partitioned channel each ordinal is
        said once. It changes in the step that accepts.
        """

    @abstractmethod
    def settled(
        self, subscription: SubscriptionId, *, deadline: float
    ) -> Observation[tuple[OriginRecord, ...]]:
        """Returns the reader's end of the ledger: what was settled, evicted or elsewhere, by fate.

        It changes in the step that settles or evicts. `duplicate` and `superseded` change nothing.
        """

    @abstractmethod
    def release_owner(self, owner: str, *, deadline: float) -> None:
        """Returns the leases and pins of a process that is known to be dead, at once."""

    @abstractmethod
    def close(
        self, owned: OwnerLabels, expected_generation: str | None = None, *, deadline: float
    ) -> CleanupObservation:
        """Removes exactly what carries these labels, and says what it removed and what remains.

        Args:
            owned: Compared for equality; `owner=None` means every owner of the run.
            expected_generation: Only what has this generation; the rest remains, with a reason.
            deadline: Monotonic seconds.
        """


class Publisher(ABC):
    """Appends envelopes."""

    @abstractmethod
    def begin_publish(self, envelopes: Sequence[Envelope], *, deadline: float) -> Sequence[Hashable]:
        """Starts publishing, in order, and never waits for receipts; one opaque handle per envelope.

        Raises:
            UnknownName: A channel that nobody made, or a payload that is gone; nothing of the call was sent.
            ContractBroken: A slot or partition that was not provisioned.
        """

    @abstractmethod
    def outcomes(self, handles: Sequence[Hashable], *, deadline: float) -> Sequence[PublicationOutcome]:
        """Returns one truthful outcome per handle.

        It waits for room until the earlier of its deadline and that of the publication, and is ended early by
        `interrupt`. A channel that stays full is `Rejected(full)`, which alone is retryable; nothing is sent
        later than its deadline. An envelope that is larger than the adapter can carry is
        `Rejected(too_large)`. A repeated statement is `Accepted(duplicate=True)`; of an interval skip only
        what was not announced is appended. On a sealed channel what is not a duplicate is
        `Rejected(sealed)`, and what an older epoch of the slot says is `Rejected(stale)`.
        """

    @abstractmethod
    def terminate(
        self, channel: ChannelId, slot: int, epoch: int, kind: Kind, *, deadline: float
    ) -> Sequence[PublicationOutcome]:
        """Stamps the end (`end` or `abort`) of a slot above all that it said; one outcome per partition.

        Terminators never compete with data for room and never wait; stamping again is
        `Accepted(duplicate=True)` and the first kind stands; an older epoch of the slot is `Rejected(stale)`.
        All publications of the slot are definite when it is called.
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
        """Leases what there is, within credit and window; empty at the deadline.

        It waits for the first item only, in `Clock.wait`, and comes back early, empty, when it is interrupted
        and once for each time that the status has moved on.

        Args:
            subscription: From where.
            deadline: Monotonic seconds; in the past: never waits.
            max_items: At most so many, or as the credit allows.
            after: Required of exclusive readers: writer slot → sequence; delivers what is unsettled after
                it, in channel order, what this owner already holds included.

        Raises:
            StaleAuthority: Another owner has acquired it.
            ContractBroken: Exclusive, and no `after`.
        """

    def receive_each(
        self, wanted: Sequence[tuple[SubscriptionId, Mapping[int, int] | None]], *, max_items: int
    ) -> list[Sequence[Delivery]]:
        """Leases what there is of several subscriptions now, as `receive` does for one after another.

        Args:
            wanted: Each with its `after`.
            max_items: Of each.
        """
        return [
            self.receive(subscription, deadline=0.0, max_items=max_items, after=after)
            for subscription, after in wanted
        ]

    @abstractmethod
    def waitable(self, subscription: SubscriptionId) -> Waitable:
        """Returns what becomes ready when `receive` would return or refuse, or the status moves on."""

    def waitables(self, subscriptions: Sequence[SubscriptionId]) -> Sequence[Waitable]:
        """Returns things of which one becomes ready when `waitable` of one of these would."""
        return [self.waitable(subscription) for subscription in subscriptions]

    @abstractmethod
    def renew(self, tokens: Sequence[DeliveryToken], *, deadline: float) -> Sequence[bool]:
        """Extends leases, where they have a duration; False for a token that is not the live one."""

    @abstractmethod
    def hand_back(self, tokens: Sequence[DeliveryToken], *, deadline: float) -> None:
        """Returns what was not started, uncharged: the next delivery has the same transport count.

        A token that is not live is passed over.
        """

    @abstractmethod
    def begin_settle(
        self, settlements: Sequence[tuple[DeliveryToken, Settlement]], *, deadline: float
    ) -> Sequence[Hashable]:
        """Starts settling; the tokens of one call are settled all or none where claimed.

        The tokens may be of several subscriptions. Beside one that is stale, the live ones of the call are
        `SettleUnknown(missing)` and stay leased: settle them again.

        Raises:
            UnknownName: Nobody made a token's subscription.
            ContractBroken: `Retry` on an exclusive subscription, or `Terminal` without its record.
        """

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

        What an earlier owner held is delivered again, charged; what this owner held itself, uncharged. The
        same owner may acquire again under its epoch. Unknown where nobody made the subscription.

        Raises:
            StaleAuthority: A newer epoch owns it, or another owner this one.
            ContractBroken: It is competing, and nobody owns it.
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
