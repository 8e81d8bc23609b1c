"""Provisioning and observing; everything can be read, so that Unknown means only: nobody made it.

Used through `MemoryMessaging`. It refuses nothing but what the broker refuses.
"""

from collections.abc import Callable
from typing import TypeVar

from videoflow.backends.capabilities import MessagingCapabilities
from videoflow.backends.coverage import OriginRecord
from videoflow.backends.memory._broker import PROFILES
from videoflow.backends.memory._publisher import MemoryPublisher
from videoflow.backends.memory._receiver import MemoryReceiver
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
from videoflow.errors import UnknownName

T = TypeVar("T")
_MAXIMUM_ENVELOPE_BYTES = 2**40


class MemoryMessaging(MemoryPublisher, MemoryReceiver, MessagingBackend):
    """The reference of the messaging contract, for one owner; it also carries the threads engine.

    Args:
        broker: What all owners of this process share.
        owner: Worker id and incarnation, by which leases are labelled; unique per object.
        clock: Time, and the one place that waits.
    """

    def capabilities(self) -> MessagingCapabilities:
        """Returns what memory guarantees: everything, as long as the process lives."""
        return MessagingCapabilities(
            adapter="memory",
            profiles=PROFILES,
            durability=Durability.MEMORY,
            atomic_append=True,
            atomic_settle=True,
            gated_dispatch=True,
            observes_publication=False,
            crosses_processes=False,
            crosses_hosts=False,
            lease_seconds=None,
            copies=known(1, self._clock.monotonic()),
            maximum_channels=None,
            maximum_envelope_bytes=_MAXIMUM_ENVELOPE_BYTES,
            splits_retention=True,
        )

    def ensure_channel(self, spec: ChannelSpec, operation_id: str, *, deadline: float) -> ChannelSpec:
        """Creates a channel, or changes the bounds of one that differs in nothing else."""
        with self._broker.lock:
            return self._broker.ensure_channel(spec)

    def ensure_subscription(
        self, spec: SubscriptionSpec, operation_id: str, *, deadline: float
    ) -> SubscriptionSpec:
        """Specifies a subscription that its channel names; what was published before waits for it."""
        with self._broker.lock:
            return self._broker.ensure_subscription(spec)

    def observe_subscription(
        self, subscription: SubscriptionId, *, deadline: float
    ) -> Observation[SubscriptionStatus]:
        """Returns how far a subscription has come."""

        def read() -> SubscriptionStatus:
            channel, found = self._subscription(subscription)
            self._watch(found).seen = found.version
            drained, finished = found.progress(channel.sealed)
            return SubscriptionStatus(
                available=found.waiting(),
                leased=len(found.leased),
                unresolved=0,
                settled_floors=found.floors(channel.last()),
                drained=drained,
                finished=finished,
                aborted=channel.aborted,
                evicted=found.evicted,
            )

        return self._observed(read)

    def observe_channel(self, channel: ChannelId, *, deadline: float) -> Observation[ChannelStatus]:
        """Returns what a channel holds."""
        return self._observed(lambda: self._broker.channel(channel).status())

    def announced(self, channel: ChannelId, *, deadline: float) -> Observation[tuple[OriginRecord, ...]]:
        """Returns the writers' end of the ledger."""
        return self._observed(lambda: tuple(self._broker.channel(channel).announced.records()))

    def settled(
        self, subscription: SubscriptionId, *, deadline: float
    ) -> Observation[tuple[OriginRecord, ...]]:
        """Returns the reader's end of the ledger."""
        return self._observed(lambda: tuple(self._broker.subscription(subscription)[1].settled.records()))

    def release_owner(self, owner: str, *, deadline: float) -> None:
        """Returns the leases and pins of a dead owner at once."""
        with self._broker.lock:
            self._broker.release_owner(owner)

    def close(
        self, owned: OwnerLabels, expected_generation: str | None = None, *, deadline: float
    ) -> CleanupObservation:
        """Removes the channels that carry these labels, with what they hold."""
        with self._broker.lock:
            return self._broker.close(owned, expected_generation)

    def _observed(self, read: Callable[[], T]) -> Observation[T]:
        now = self._clock.monotonic()
        with self._broker.lock:
            try:
                return known(read(), now)
            except UnknownName as error:
                return unknown(UnknownReason.MISSING, now, str(error))
