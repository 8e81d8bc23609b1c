"""What the laws of messaging are tried on: an implementation, its clock, and shorthands for envelopes.

To try an implementation, write a `Harness` and a test class that inherits every suite:

    class TestMine(PublishingSuite, CompetingSuite, ExclusiveSuite, LiveSuite, LedgerSuite, PayloadSuite):
        @pytest.fixture
        def harness(self) -> Iterator[Harness]:
            with closing(MyHarness()) as harness:
                yield harness

The suites are in `messaging_publishing`, `messaging_leases`, `messaging_fates` and `messaging_payloads`.
Nothing here sleeps: what must arrive is asked for with a deadline, what must not arrive is asked for with
a deadline in the past, after `settle_down`.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, TypeVar

from videoflow.backends.capabilities import Profile
from videoflow.backends.coverage import Cause, Hop, Origin, OriginRecord
from videoflow.backends.messaging import (
    Bounds,
    ChannelId,
    ChannelSpec,
    ChannelStatus,
    Completed,
    Delivery,
    Envelope,
    Kind,
    Layout,
    LiveSubscriptionSpec,
    MessagingBackend,
    OwnerLabels,
    Reliability,
    ReliableSubscriptionSpec,
    Settlement,
    SubscriptionId,
    SubscriptionKind,
    SubscriptionSpec,
    SubscriptionStatus,
    Writer,
)
from videoflow.backends.outcomes import (
    Accepted,
    Known,
    Observation,
    PublicationOutcome,
    Rejected,
    RejectReason,
    SettleConfirmed,
)
from videoflow.backends.payload import PayloadStore
from videoflow.clock import Clock

PATIENCE_SECONDS = 10.0
LABELS = OwnerLabels("flow", "run")
ROOMY = Bounds(1000, 2**30)
RELIABLE = Layout()
LIVE = Layout(Reliability.LIVE)


class Harness(ABC):
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
    def close(self) -> None:
        """Ends the implementation."""

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
        while len(found) < count and self.clock.monotonic() < deadline:
            taken = backend.receive(
                subscription, deadline=deadline, max_items=count - len(found), after=position
            )
            found += taken
            if position is not None:
                position.update(delivery.token.position for delivery in taken)
        assert len(found) == count
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


T = TypeVar("T")


def value(observation: Observation[T]) -> T:
    """Returns what must be known."""
    assert isinstance(observation, Known), observation
    return observation.value


# Names and envelopes ------------------------------------------------------------------------------


def channel_id(node: str = "detect", layout: Layout = RELIABLE, run_id: str = "run") -> ChannelId:
    """Returns the name of a channel."""
    return ChannelId("flow", run_id, node, "out", layout)


def competing(reader: str = "work", channel: ChannelId | None = None) -> SubscriptionId:
    """Returns the name of a competing subscription."""
    return SubscriptionId(channel or channel_id(), reader, SubscriptionKind.COMPETING)


def exclusive(reader: str = "sink", channel: ChannelId | None = None, partition: int = 0) -> SubscriptionId:
    """Returns the name of an exclusive subscription."""
    return SubscriptionId(channel or channel_id(), reader, SubscriptionKind.EXCLUSIVE, partition)


def reliable(
    subscription: SubscriptionId, credit: Bounds = ROOMY, spread: int | None = None, replicas: int = 1
) -> ReliableSubscriptionSpec:
    """Returns a specification of a reader that loses nothing."""
    return ReliableSubscriptionSpec(
        subscription=subscription, credit=credit, spread=spread, replicas=replicas, labels=LABELS
    )


def live(
    subscription: SubscriptionId,
    capacity: int = 1,
    latest_key: str | None = "source",
    max_age_seconds: float | None = None,
    credit: Bounds = ROOMY,
) -> LiveSubscriptionSpec:
    """Returns a specification of a reader of the newest."""
    return LiveSubscriptionSpec(
        subscription=subscription,
        credit=credit,
        replicas=1,
        latest_key=latest_key,
        capacity=capacity,
        max_age_seconds=max_age_seconds,
        labels=LABELS,
    )


def data(
    channel: ChannelId,
    ordinal: int,
    *,
    slot: int = 0,
    epoch: int = 0,
    path: tuple[Hop, ...] = (),
    suffix: str = "",
    **more: Any,
) -> Envelope:
    """Returns the item of one ordinal of the source `camera`; `more` are fields of the envelope."""
    k = "".join(f".{hop.k}" for hop in path)
    fields: dict[str, Any] = {
        "body": f"body-{ordinal}{k}{suffix}".encode(),
        "size_bytes": 10,
        "event_time": ordinal / 25,
    }
    return Envelope(
        channel=channel,
        publication_id=f"publication-{ordinal}{k}{suffix}",
        kind=Kind.DATA,
        writer=Writer(channel.node, slot, epoch),
        input_id=f"input-{ordinal}",
        origin=Origin("camera", 0, ordinal),
        path=path,
        **(fields | more),
    )


def fan_out(channel: ChannelId, ordinal: int, count: int, **more: Any) -> list[Envelope]:
    """Returns the statement of one ordinal with so many items."""
    hops = [Hop("detect", "crops", k, count) for k in range(count)]
    return [data(channel, ordinal, path=(hop,), **more) for hop in hops]


def skip(
    channel: ChannelId,
    *intervals: tuple[int, int],
    cause: Cause = Cause.SKIPPED,
    slot: int = 0,
    epoch: int = 0,
    partition: int = 0,
) -> Envelope:
    """Returns a skip of whole ordinals of the source `camera`."""
    first = intervals[0][0]
    return Envelope(
        channel=channel,
        publication_id=f"skip-{intervals}",
        kind=Kind.SKIP,
        writer=Writer(channel.node, slot, epoch),
        input_id=f"input-{first}",
        origin=Origin("camera", 0, first),
        partition=partition,
        intervals=intervals,
        cause=cause,
    )


def ordinals(deliveries: list[Delivery]) -> list[int]:
    """Returns the ordinals of deliveries, in order."""
    return [delivery.envelope.origin.ordinal for delivery in deliveries]


def tally(records: tuple[OriginRecord, ...]) -> dict[tuple[str, str], list[tuple[int, int]]]:
    """Returns (fate, cause) → closed ordinals of the source `camera`."""
    return {
        (kind, cause): intervals
        for record in records
        if record.node == "camera"
        for kind, cause, intervals in record.ordinals
    }
