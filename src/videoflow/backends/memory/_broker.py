"""The broker: every channel of every run in this process, under one lock.

Used by the memory backend's publishers and receivers. It refuses a name that nobody made, and a
specification other than the one that stands.
"""

import threading
from typing import Final, NoReturn

import msgspec

from videoflow.backends.capabilities import Profile
from videoflow.backends.memory._channel import Channel, Holds
from videoflow.backends.memory._subscription import Subscription
from videoflow.backends.messaging import (
    ChannelId,
    ChannelSpec,
    Envelope,
    LiveSubscriptionSpec,
    OwnerLabels,
    SubscriptionId,
    SubscriptionSpec,
    unkept_by_memory,
)
from videoflow.backends.outcomes import CleanupObservation
from videoflow.errors import IncompatibleProfile, Miss, UnknownName

PROFILES: Final = frozenset((Profile.LIVE_LATEST, Profile.RELIABLE_WORK))
_Spec = ChannelSpec | SubscriptionSpec


class MemoryBroker:
    """What the messaging objects of one process share.

    Args:
        payloads: The pool whose objects envelopes refer to, or None where none do.
    """

    def __init__(self, payloads: Holds | None = None) -> None:
        self.lock = threading.Lock()
        self._payloads = payloads
        self._channels: dict[ChannelId, Channel] = {}
        self._made = 0
        self.removals = 0

    # Everything below is called under the lock.

    def channel(self, name: ChannelId) -> Channel:
        """Returns a channel; raises `UnknownName`."""
        found = self._channels.get(name)
        if found is None:
            raise UnknownName(f"there is no channel {name} in run {name.run_id}")
        return found

    def subscription(self, name: SubscriptionId) -> tuple[Channel, Subscription]:
        """Returns a specified subscription with its channel; raises `UnknownName`."""
        channel = self._channels.get(name.channel)
        found = None if channel is None else channel.subscriptions.get(name)
        if channel is None or found is None or found.spec is None:
            raise UnknownName(f"there is no subscription {name} in run {name.channel.run_id}")
        return channel, found

    def ensure_channel(self, spec: ChannelSpec) -> ChannelSpec:
        """Creates a channel, or changes its bounds."""
        found = self._channels.get(spec.channel)
        misses = unkept_by_memory(spec, PROFILES, "this process only")
        if found is not None:
            misses += _differences(found.spec, spec, spec.profile, mutable=("bounds",))
        if misses:
            raise IncompatibleProfile(misses)
        if found is None:
            self._made += 1
            found = self._channels[spec.channel] = Channel(spec, self._payloads, str(self._made))
        found.spec = spec
        found.tell_writers()
        return found.spec

    def ensure_subscription(self, spec: SubscriptionSpec) -> SubscriptionSpec:
        """Specifies a subscription of a channel, or changes what can be changed of it."""
        channel = self.channel(spec.subscription.channel)
        found = channel.subscriptions.get(spec.subscription)
        profile = channel.spec.profile
        if found is None:
            _miss(spec.subscription, profile, "a reader of its channel", "listed", "not listed")
        if spec.lease_seconds is not None:
            _miss(spec.subscription, profile, "lease_seconds", str(spec.lease_seconds), "None")
        if found.spec is not None:
            mutable = ("credit", "spread", "replicas", "capacity", "max_age_seconds")
            misses = _differences(found.spec, spec, profile, mutable)
            if misses:
                raise IncompatibleProfile(misses)
        elif profile is Profile.LIVE_LATEST and not isinstance(spec, LiveSubscriptionSpec):
            _miss(spec.subscription, profile, "a writer that never waits", "a live reader", "a reliable one")
        elif spec.subscription.slot is not None and not isinstance(spec, LiveSubscriptionSpec):
            _miss(spec.subscription, profile, "a broadcast to one replica", "a live reader", "a reliable one")
        found.specify(spec)
        return spec

    def end_intent(self, envelope: Envelope) -> None:
        """Ends a writer's claim: the log holds the payloads of what it accepted."""
        if self._payloads is not None:
            self._payloads.end_claim(envelope.payloads, f"intent/{envelope.publication_id}")

    def release_owner(self, owner: str) -> None:
        """Returns the leases and pins of a dead owner."""
        if self._payloads is not None:
            self._payloads.owner_died(owner)
        for channel in self._channels.values():
            channel.waiting_for_room.pop(owner, None)
            for subscription in channel.subscriptions.values():
                subscription.listeners.pop(owner, None)
                if subscription.release(owner):
                    subscription.tell(channel.sealed)
                    subscription.notify()

    def close(self, owned: OwnerLabels, expected_generation: str | None) -> CleanupObservation:
        """Removes the channels with these labels."""
        removed, remaining = [], []
        for name, channel in tuple(self._channels.items()):
            labels = channel.spec.labels
            if (labels.flow_id, labels.run_id) != (owned.flow_id, owned.run_id):
                continue
            if owned.owner not in (None, labels.owner):
                continue
            if expected_generation not in (None, channel.generation):
                remaining.append(str(name))
                continue
            channel.drop()
            self.removals += 1
            del self._channels[name]
            removed.append(str(name))
        reason = "another generation" if remaining else ""
        return CleanupObservation(not remaining, tuple(removed), tuple(remaining), reason)


def _differences(found: _Spec, wanted: _Spec, profile: Profile, mutable: tuple[str, ...]) -> list[Miss]:
    """What exists and differs in something that cannot be changed."""
    subject = str(found.channel if isinstance(found, ChannelSpec) else found.subscription)
    remedy = "close what exists, or ask for the same"
    if type(found) is not type(wanted):
        kinds = type(wanted).__name__, type(found).__name__
        return [Miss(subject, profile, "guarantee", *kinds, remedy)]
    return [
        Miss(subject, profile, name, str(getattr(wanted, name)), str(getattr(found, name)), remedy)
        for name in msgspec.structs.asdict(found)
        if name not in mutable and getattr(found, name) != getattr(wanted, name)
    ]


def _miss(subject: object, profile: str, guarantee: str, wanted: str, found: str) -> NoReturn:
    remedy = "name every reader in the channel's specification, with what this adapter gives"
    raise IncompatibleProfile([Miss(str(subject), profile, guarantee, wanted, found, remedy)])
