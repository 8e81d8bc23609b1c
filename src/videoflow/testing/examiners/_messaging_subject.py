"""What the laws of messaging are tried on: an implementation, its clock, and probes that look behind it.

Used by `MessagingExaminer`: an adapter brings a subclass. Nothing here sleeps: what must arrive is asked for
with a deadline, what must not arrive is asked for with a deadline in the past, after `settle_down`.
"""

from abc import abstractmethod
from collections.abc import Iterator, Mapping
from typing import TypeVar

import msgspec

from videoflow.backends.capabilities import MessagingCapabilities, Profile
from videoflow.backends.coverage import OriginRecord
from videoflow.backends.messaging import (
    Bounds,
    ChannelId,
    ChannelSpec,
    ChannelStatus,
    Completed,
    Delivery,
    Envelope,
    Kind,
    MessagingBackend,
    Settlement,
    SubscriptionId,
    SubscriptionSpec,
    SubscriptionStatus,
)
from videoflow.backends.outcomes import (
    Accepted,
    Durability,
    Known,
    Observation,
    PublicationOutcome,
    Rejected,
    RejectReason,
    SettleConfirmed,
)
from videoflow.backends.payload import PayloadStore
from videoflow.clock import Clock, Waitable
from videoflow.testing.examiners._examiner import PATIENCE_SECONDS, Subject
from videoflow.testing.examiners.envelopes import LABELS, ROOMY, channel_id, exclusive

_EMPTY = 100  # answers without an item, which a status that moves on may cause, before nothing is expected
_SERVERS = (Durability.STREAM, Durability.STREAM_QUORUM)


class MessagingSubject(Subject):
    """One implementation under test, with one run in it."""

    clock: Clock

    @abstractmethod
    def backend(self, owner: str) -> MessagingBackend:
        """Returns the messaging object of an owner; the same one each time until it is killed."""

    @abstractmethod
    def payloads(self, owner: str) -> PayloadStore:
        """Returns the payload store of an owner; the same one each time until it is killed."""

    @abstractmethod
    def kill(self, owner: str) -> None:
        """Ends an owner's process, as it were, and returns what it held; its objects are not used again."""

    @abstractmethod
    def advance(self, seconds: float) -> None:
        """Lets so much time pass."""

    @abstractmethod
    def settle_down(self) -> None:
        """Lets everything that is under way arrive; nothing to do where calls take effect at once."""

    @abstractmethod
    def raw(self, channel: ChannelId) -> tuple[str, ...]:
        """Returns the publication ids that lie in the store and that not every reader has settled.

        A raw probe: it reads what the implementation wrote by other means than the object under test.
        """

    @abstractmethod
    def raw_objects(self) -> int:
        """Returns how many objects the payload store holds, by other means than the object under test.

        A subject without payloads raises what it likes: then `cannot` names what rests on it.
        """

    @property
    def capabilities(self) -> MessagingCapabilities:
        """What the implementation claims."""
        return self.backend("engine").capabilities()

    # Shorthands -------------------------------------------------------------------------------

    def soon(self) -> float:
        """Returns a deadline that is far enough for whatever must happen."""
        return self.clock.monotonic() + PATIENCE_SECONDS

    def provision(
        self,
        *specs: SubscriptionSpec,
        slots: int = 1,
        bounds: Bounds = ROOMY,
        profile: Profile = Profile.RELIABLE_WORK,
    ) -> ChannelId:
        """Makes the channel that these subscriptions read, and them."""
        backend = self.backend("engine")
        channel = specs[0].subscription.channel
        spec = ChannelSpec(
            channel=channel,
            profile=profile,
            slots=slots,
            bounds=bounds,
            subscriptions=tuple(spec.subscription for spec in specs),
            labels=LABELS,
        )
        assert backend.ensure_channel(spec, "op", deadline=self.soon()) == spec
        for subscription in specs:
            assert backend.ensure_subscription(subscription, "op", deadline=self.soon()) == subscription
        return channel

    def publish(
        self, *envelopes: Envelope, owner: str = "writer", seconds: float = PATIENCE_SECONDS
    ) -> list[PublicationOutcome]:
        """Publishes in one call and returns the outcomes."""
        deadline = self.clock.monotonic() + seconds
        backend = self.backend(owner)
        return list(backend.outcomes(backend.begin_publish(envelopes, deadline=deadline), deadline=deadline))

    def accepted(self, *envelopes: Envelope, owner: str = "writer") -> None:
        """Publishes what must be accepted, and is no duplicate."""
        for outcome in self.publish(*envelopes, owner=owner):
            assert isinstance(outcome, Accepted), outcome
            assert not outcome.duplicate, outcome

    def duplicates(self, *envelopes: Envelope, owner: str = "writer") -> None:
        """Publishes what must be recognised."""
        for outcome in self.publish(*envelopes, owner=owner):
            assert isinstance(outcome, Accepted), outcome
            assert outcome.duplicate, outcome

    def rejected(self, reason: RejectReason, *envelopes: Envelope, owner: str = "writer") -> None:
        """Publishes, without waiting, what must be refused."""
        for outcome in self.publish(*envelopes, owner=owner, seconds=0):
            assert isinstance(outcome, Rejected), outcome
            assert outcome.reason is reason
            assert outcome.retryable is (reason is RejectReason.FULL)

    def end(self, channel: ChannelId, slot: int = 0, epoch: int = 0, kind: Kind = Kind.END) -> None:
        """Stamps the end of a writer."""
        outcomes = self.backend("writer").terminate(channel, slot, epoch, kind, deadline=self.soon())
        assert all(isinstance(outcome, Accepted) for outcome in outcomes)

    def receive(
        self,
        subscription: SubscriptionId,
        count: int,
        owner: str = "reader",
        after: Mapping[int, int] | None = None,
    ) -> list[Delivery]:
        """Receives exactly so many, waiting for them."""
        backend, deadline = self.backend(owner), self.soon()
        found: list[Delivery] = []
        position = dict(after) if after is not None else None
        empty = 0
        while len(found) < count and empty < _EMPTY and self.clock.monotonic() < deadline:
            taken = backend.receive(
                subscription, deadline=deadline, max_items=count - len(found), after=position
            )
            found += taken
            empty = 0 if taken else empty + 1
            if position is not None:
                position.update(delivery.token.position for delivery in taken)
        assert len(found) == count, f"{len(found)} of {count} items arrived"
        return found

    def nothing(
        self, subscription: SubscriptionId, owner: str = "reader", after: Mapping[int, int] | None = None
    ) -> None:
        """Asserts that nothing is handed out now."""
        self.settle_down()
        taken = self.backend(owner).receive(subscription, deadline=0.0, after=after)
        assert [delivery.envelope.input_id for delivery in taken] == []

    def settle(
        self, *deliveries: Delivery, owner: str = "reader", settlement: Settlement | None = None
    ) -> None:
        """Settles what must be confirmed."""
        pairs = [(delivery.token, settlement or Completed()) for delivery in deliveries]
        for outcome in self.backend(owner).settle(pairs, deadline=self.soon()):
            assert isinstance(outcome, SettleConfirmed), outcome

    def status(self, subscription: SubscriptionId) -> SubscriptionStatus:
        """Observes a subscription."""
        self.settle_down()
        return value(self.backend("engine").observe_subscription(subscription, deadline=self.soon()))

    def channel_status(self, channel: ChannelId) -> ChannelStatus:
        """Observes a channel."""
        self.settle_down()
        return value(self.backend("engine").observe_channel(channel, deadline=self.soon()))

    def announced(self, channel: ChannelId) -> tuple[OriginRecord, ...]:
        """Returns the writers' end of the ledger."""
        self.settle_down()
        return value(self.backend("engine").announced(channel, deadline=self.soon()))

    def settled(self, subscription: SubscriptionId) -> tuple[OriginRecord, ...]:
        """Returns the reader's end of the ledger."""
        self.settle_down()
        return value(self.backend("engine").settled(subscription, deadline=self.soon()))

    def waited(self, waitable: Waitable) -> bool:
        """Waits for something that must become ready; returns whether it did."""
        self.settle_down()
        return self.clock.wait([waitable], self.soon()) == {waitable}

    def acquired(self, channel: ChannelId, reader: str = "sink") -> Iterator[tuple[SubscriptionId, str]]:
        """Acquires each partition of a channel by an owner of its own; yields (subscription, owner)."""
        for partition in range(channel.layout.partitions):
            subscription, owner = exclusive(reader, channel, partition), f"part-{partition}"
            self.backend(owner).acquire(subscription, 1, deadline=self.soon())
            yield subscription, owner


T = TypeVar("T")


def value(observation: Observation[T]) -> T:
    """Returns what must be known."""
    assert isinstance(observation, Known), observation
    return observation.value


def unclaimed(subject: MessagingSubject) -> Iterator[tuple[ChannelSpec, str]]:
    """Yields specifications that ask for more than is claimed, each with the guarantee that is missing."""
    claimed = subject.capabilities
    plain = ChannelSpec(
        channel=channel_id(),
        profile=Profile.RELIABLE_WORK,
        slots=1,
        bounds=ROOMY,
        subscriptions=(),
        labels=LABELS,
    )
    for profile in set(Profile) - claimed.profiles:
        yield msgspec.structs.replace(plain, profile=profile), "profile"
    if claimed.durability not in _SERVERS:
        yield msgspec.structs.replace(plain, persistent=True), "persistence"
    if isinstance(claimed.copies, Known):
        yield msgspec.structs.replace(plain, copies=claimed.copies.value + 2), "copies"
