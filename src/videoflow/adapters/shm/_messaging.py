"""The messaging contract in a worker process."""

import msgspec

from videoflow.adapters.shm._capabilities import PROFILES
from videoflow.adapters.shm._ledger import closed_only
from videoflow.adapters.shm._payloads import Claims
from videoflow.adapters.shm._process import Process
from videoflow.adapters.shm._publishing import ShmPublisher
from videoflow.adapters.shm._receiving import ShmReceiver
from videoflow.adapters.shm._status import channel_status, whole_channel_status
from videoflow.backends.capabilities import MessagingCapabilities
from videoflow.backends.coverage import OriginRecord
from videoflow.backends.messaging import (
    ChannelId,
    ChannelSpec,
    ChannelStatus,
    MessagingBackend,
    OwnerLabels,
    SubscriptionId,
    SubscriptionSpec,
    SubscriptionStatus,
)
from videoflow.backends.outcomes import (
    CleanupObservation,
    Durability,
    Observation,
    UnknownReason,
    known,
    unknown,
)
from videoflow.errors import IncompatibleProfile, Miss, UnknownName

_HEARD_SECONDS = 1e-3  # a status is asked for after an empty receive, which has just looked
CAPABILITIES = MessagingCapabilities(
    adapter="shm",
    profiles=PROFILES,
    durability=Durability.HOST,
    atomic_append=True,
    atomic_settle=True,
    gated_dispatch=True,
    observes_publication=False,
    crosses_processes=True,
    crosses_hosts=False,
    lease_seconds=None,
    copies=known(1, 0.0),
    maximum_channels=None,
    maximum_envelope_bytes=256 << 10,
    splits_retention=True,
)


class ShmMessaging(ShmPublisher, ShmReceiver, MessagingBackend):
    """Publishes and receives for one worker process, without a server between it and its peers.

    Channels and subscriptions are provisioned by the supervisor; the `ensure_*` calls read them back. The
    bounds of a channel hold for each of its writer slots. Up to 1 024 tokens of a settle call are all
    or none.

    Args:
        process: The process's part of the log.
        claims: Of its payloads, which end when a publication is accepted.
        owner: Worker id and incarnation.
    """

    def __init__(self, process: Process, claims: Claims, owner: str) -> None:
        ShmPublisher.__init__(self, process, claims)
        ShmReceiver.__init__(self, process, owner)
        layout = process.kit.layout
        self._layout = layout
        self._subscriptions = {place.spec.subscription: place for place in layout.subscriptions}

    # Provisioning -----------------------------------------------------------------------------

    def capabilities(self) -> MessagingCapabilities:
        """Returns what the log guarantees on one host."""
        return CAPABILITIES

    def ensure_channel(self, spec: ChannelSpec, operation_id: str, *, deadline: float) -> ChannelSpec:
        """Reads back what the supervisor provisioned."""
        places = self._layout.partitions_of(spec.channel)
        if not places:
            raise UnknownName(f"channel {spec.channel} was not provisioned by the supervisor")
        found = places[0].spec
        if found != spec:
            raise _different(str(spec.channel), spec.profile, spec, found)
        return found

    def ensure_subscription(
        self, spec: SubscriptionSpec, operation_id: str, *, deadline: float
    ) -> SubscriptionSpec:
        """Reads back what the supervisor provisioned."""
        place = self._subscriptions.get(spec.subscription)
        if place is None:
            raise UnknownName(f"subscription {spec.subscription} was not provisioned by the supervisor")
        if place.spec != spec:
            raise _different(str(spec.subscription), "subscription", spec, place.spec)
        return place.spec

    def observe_subscription(
        self, subscription: SubscriptionId, *, deadline: float
    ) -> Observation[SubscriptionStatus]:
        """Returns how far a subscription of this process has come."""
        inlet = self._inlets.get(subscription)
        now = self._process.clock.monotonic()
        if inlet is None:
            return unknown(UnknownReason.UNSUPPORTED, now, "the supervisor observes what others read")
        with self._process.lock:
            if now - self._process.served_at > _HEARD_SECONDS:
                self._process.service()
            return known(inlet.status(), now)

    def observe_channel(self, channel: ChannelId, *, deadline: float) -> Observation[ChannelStatus]:
        """Returns what a channel holds."""
        now = self._process.clock.monotonic()
        places = self._layout.partitions_of(channel)
        if not places:
            return unknown(UnknownReason.MISSING, now, f"channel {channel} was not provisioned")
        layout, log = self._layout, self._process.log
        return known(whole_channel_status([channel_status(log, layout, place) for place in places]), now)

    def announced(self, channel: ChannelId, *, deadline: float) -> Observation[tuple[OriginRecord, ...]]:
        """Returns what is closed on a channel that this process writes; skips count as delivered here.

        The ledger, with the cause of each skip, is read at the supervisor.
        """
        now = self._process.clock.monotonic()
        outlet = self._outlets.get(channel)
        if outlet is None:
            return unknown(UnknownReason.UNSUPPORTED, now, "only a channel's writers and the supervisor know")
        with self._process.lock:
            return known(tuple(closed_only(outlet.closed)), now)

    def settled(
        self, subscription: SubscriptionId, *, deadline: float
    ) -> Observation[tuple[OriginRecord, ...]]:
        """Returns Unknown: the reader's end of the ledger is read at the supervisor."""
        now = self._process.clock.monotonic()
        return unknown(UnknownReason.UNSUPPORTED, now, "the supervisor reads the ledger")

    def release_owner(self, owner: str, *, deadline: float) -> None:
        """Does nothing: the supervisor returns the leases of the dead."""

    def close(
        self, owned: OwnerLabels, expected_generation: str | None = None, *, deadline: float
    ) -> CleanupObservation:
        """Ends this process's use; the memory itself goes with the last process that holds it."""
        self._process.close()
        return CleanupObservation(complete=True, removed=(), remaining=())

    def linger(self, *, deadline: float) -> bool:
        """Waits until readers have settled all that this process published; its end would hold them up.

        Returns:
            Whether they have, by the deadline.
        """
        while True:
            with self._process.lock:
                self._process.service()
                done = all(outlet.idle() for outlet in self._outlets.values())
                done = done and not self._process.hub.unsent()
            if done or self._process.clock.monotonic() >= deadline:
                return done
            self._process.wait(deadline)


def _different(
    subject: str, profile: str, wanted: msgspec.Struct, found: msgspec.Struct
) -> IncompatibleProfile:
    misses = [
        Miss(subject, profile, name, str(getattr(wanted, name)), str(getattr(found, name, "")), "start anew")
        for name in wanted.__struct_fields__
        if getattr(wanted, name) != getattr(found, name, None)
    ]
    return IncompatibleProfile(misses)
