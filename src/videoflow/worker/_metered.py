"""Messages and values of a replica whose run is profiled: the same, with what they took.

Used by the engines and the shell where a run is profiled, and nowhere else. It refuses nothing, and changes
nothing that it passes on.
"""

from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any

from videoflow.backends.capabilities import MessagingCapabilities
from videoflow.backends.coverage import OriginRecord
from videoflow.backends.messaging import (
    Acquired,
    ChannelId,
    ChannelSpec,
    ChannelStatus,
    Delivery,
    DeliveryToken,
    Envelope,
    Kind,
    MessagingBackend,
    OwnerLabels,
    Settlement,
    SubscriptionId,
    SubscriptionSpec,
    SubscriptionStatus,
)
from videoflow.backends.outcomes import (
    Accepted,
    CleanupObservation,
    Observation,
    PublicationOutcome,
    SettleConfirmed,
    SettlementOutcome,
)
from videoflow.backends.payload import PayloadStore
from videoflow.clock import Clock, Waitable
from videoflow.graph.spec import PortRef
from videoflow.wire import Value
from videoflow.worker._meter import Meter, Part, Shares
from videoflow.worker._payloads import Payloads
from videoflow.worker.core import actions as a
from videoflow.worker.core.actions import Failure, Publication

Perform = Callable[[Any, Any], Any]
"""How a shell performs an action: called with the shell, and the action."""


def port_of(channel: ChannelId) -> str:
    """Returns the port that a channel carries, as people write it."""
    return str(PortRef(node=channel.node, port=channel.port))


def _counted(channels: Sequence[ChannelId]) -> Shares:
    found: dict[ChannelId, int] = {}
    for channel in channels:
        found[channel] = found.get(channel, 0) + 1
    return [(port_of(channel), count) for channel, count in found.items()]


def metered_records(meter: Meter, perform: Mapping[type, Perform]) -> Mapping[type, Perform]:
    """Returns how a shell performs its actions, those that write records of the run measured."""

    def measured(action: type) -> Perform:
        plain = perform[action]
        return lambda shell, given: meter.spend(Part.COMMIT, "", plain, shell, given)

    plain_checkpoint = perform[a.Checkpoint]

    def checkpoint(shell: object, given: a.Checkpoint) -> object:
        return meter.spend(Part.CHECKPOINT, given.node, plain_checkpoint, shell, given)

    records = (a.Commit, a.KeepOnce, a.ForgetOnce, a.KeepEpochs, a.RecordStarted, a.PutAside)
    return {**perform, **{action: measured(action) for action in records}, a.Checkpoint: checkpoint}


class MeteredPayloads(Payloads):
    """Encodes and decodes as `Payloads` does, by port.

    Args:
        meter: What measures it.
        store: Where large arrays go.
        clock: For deadlines.
        inline: Leave arrays in the envelope.
    """

    def __init__(self, meter: Meter, store: PayloadStore, clock: Clock, *, inline: bool = False) -> None:
        super().__init__(store, clock, inline=inline)
        self._meter = meter

    def encode(self, publication: Publication) -> None:
        """See `Payloads`."""
        envelope = publication.envelope
        if envelope.body or envelope.kind is not Kind.DATA:
            super().encode(publication)
        else:
            self._meter.spend(Part.ENCODE, port_of(envelope.channel), super().encode, publication)

    def load(self, envelope: Envelope) -> Value | Failure:
        """See `Payloads`."""
        return self._meter.spend(Part.DECODE, port_of(envelope.channel), super().load, envelope)


class MeteredMessaging(MessagingBackend):
    """What a worker uses of messaging, measured by port; the rest is passed on.

    Args:
        meter: What measures it.
        backend: What does it.
    """

    def __init__(self, meter: Meter, backend: MessagingBackend) -> None:
        self._meter = meter
        self._backend = backend
        self._sent: tuple[Sequence[Hashable], list[ChannelId]] = ((), [])
        self._settled: tuple[Sequence[Hashable], list[ChannelId]] = ((), [])

    def begin_publish(self, envelopes: Sequence[Envelope], *, deadline: float) -> Sequence[Hashable]:
        """See `Publisher`."""
        if not self._meter.is_mine:
            return self._backend.begin_publish(envelopes, deadline=deadline)
        channels = [envelope.channel for envelope in envelopes]
        self._meter.begin(Part.PUBLISH)
        try:
            handles = self._backend.begin_publish(envelopes, deadline=deadline)
        finally:
            self._meter.end(_counted(channels))
        self._sent = handles, channels
        return handles

    def outcomes(self, handles: Sequence[Hashable], *, deadline: float) -> Sequence[PublicationOutcome]:
        """See `Publisher`."""
        sent, channels = self._sent
        if not self._meter.is_mine or handles is not sent:
            return self._backend.outcomes(handles, deadline=deadline)
        found: Sequence[PublicationOutcome] = ()
        self._meter.begin(Part.PUBLISH)
        try:
            found = self._backend.outcomes(handles, deadline=deadline)
        finally:
            pairs = zip(channels, found, strict=False)
            done = [channel for channel, outcome in pairs if isinstance(outcome, Accepted)]
            self._meter.end(_counted(channels), _counted(done))
        return found

    def receive(
        self,
        subscription: SubscriptionId,
        *,
        deadline: float,
        max_items: int | None = None,
        after: Mapping[int, int] | None = None,
    ) -> Sequence[Delivery]:
        """See `Receiver`. What finds nothing is no part of a hop."""
        if not self._meter.is_mine:
            return self._backend.receive(subscription, deadline=deadline, max_items=max_items, after=after)
        found: Sequence[Delivery] = ()
        self._meter.begin(Part.RECEIVE)
        try:
            found = self._backend.receive(subscription, deadline=deadline, max_items=max_items, after=after)
        finally:
            shares = ((port_of(subscription.channel), len(found)),) if found else ()
            self._meter.end(shares, shares)
        return found

    def begin_settle(
        self, settlements: Sequence[tuple[DeliveryToken, Settlement]], *, deadline: float
    ) -> Sequence[Hashable]:
        """See `Receiver`."""
        if not self._meter.is_mine:
            return self._backend.begin_settle(settlements, deadline=deadline)
        channels = [token.subscription.channel for token, _ in settlements]
        self._meter.begin(Part.SETTLE)
        try:
            handles = self._backend.begin_settle(settlements, deadline=deadline)
        finally:
            self._meter.end(_counted(channels))
        self._settled = handles, channels
        return handles

    def settlements(self, handles: Sequence[Hashable], *, deadline: float) -> Sequence[SettlementOutcome]:
        """See `Receiver`."""
        begun, channels = self._settled
        if not self._meter.is_mine or handles is not begun:
            return self._backend.settlements(handles, deadline=deadline)
        found: Sequence[SettlementOutcome] = ()
        self._meter.begin(Part.SETTLE)
        try:
            found = self._backend.settlements(handles, deadline=deadline)
        finally:
            pairs = zip(channels, found, strict=False)
            done = [channel for channel, outcome in pairs if isinstance(outcome, SettleConfirmed)]
            self._meter.end(_counted(channels), _counted(done))
        return found

    # Passed on --------------------------------------------------------------------------------

    def capabilities(self) -> MessagingCapabilities:
        """See `Provisioning`."""
        return self._backend.capabilities()

    def ensure_channel(self, spec: ChannelSpec, operation_id: str, *, deadline: float) -> ChannelSpec:
        """See `Provisioning`."""
        return self._backend.ensure_channel(spec, operation_id, deadline=deadline)

    def ensure_subscription(
        self, spec: SubscriptionSpec, operation_id: str, *, deadline: float
    ) -> SubscriptionSpec:
        """See `Provisioning`."""
        return self._backend.ensure_subscription(spec, operation_id, deadline=deadline)

    def observe_subscription(
        self, subscription: SubscriptionId, *, deadline: float
    ) -> Observation[SubscriptionStatus]:
        """See `Provisioning`."""
        return self._backend.observe_subscription(subscription, deadline=deadline)

    def observe_channel(self, channel: ChannelId, *, deadline: float) -> Observation[ChannelStatus]:
        """See `Provisioning`."""
        return self._backend.observe_channel(channel, deadline=deadline)

    def announced(self, channel: ChannelId, *, deadline: float) -> Observation[tuple[OriginRecord, ...]]:
        """See `Provisioning`."""
        return self._backend.announced(channel, deadline=deadline)

    def settled(
        self, subscription: SubscriptionId, *, deadline: float
    ) -> Observation[tuple[OriginRecord, ...]]:
        """See `Provisioning`."""
        return self._backend.settled(subscription, deadline=deadline)

    def release_owner(self, owner: str, *, deadline: float) -> None:
        """See `Provisioning`."""
        self._backend.release_owner(owner, deadline=deadline)

    def close(
        self, owned: OwnerLabels, expected_generation: str | None = None, *, deadline: float
    ) -> CleanupObservation:
        """See `Provisioning`."""
        return self._backend.close(owned, expected_generation, deadline=deadline)

    def terminate(
        self, channel: ChannelId, slot: int, epoch: int, kind: Kind, *, deadline: float
    ) -> Sequence[PublicationOutcome]:
        """See `Publisher`."""
        return self._backend.terminate(channel, slot, epoch, kind, deadline=deadline)

    def waitable(self, subscription: SubscriptionId) -> Waitable:
        """See `Receiver`."""
        return self._backend.waitable(subscription)

    def renew(self, tokens: Sequence[DeliveryToken], *, deadline: float) -> Sequence[bool]:
        """See `Receiver`."""
        return self._backend.renew(tokens, deadline=deadline)

    def hand_back(self, tokens: Sequence[DeliveryToken], *, deadline: float) -> None:
        """See `Receiver`."""
        self._backend.hand_back(tokens, deadline=deadline)

    def acquire(self, subscription: SubscriptionId, epoch: int, *, deadline: float) -> Observation[Acquired]:
        """See `Receiver`."""
        return self._backend.acquire(subscription, epoch, deadline=deadline)

    def interrupt(self) -> None:
        """See `Receiver`."""
        self._backend.interrupt()
