"""What the log on one host cannot give: said before any memory is made."""

from collections.abc import Iterator, Sequence

from videoflow.adapters.shm._capabilities import PROFILES
from videoflow.backends.capabilities import Profile
from videoflow.backends.messaging import (
    ChannelId,
    ChannelSpec,
    LiveSubscriptionSpec,
    SubscriptionKind,
    SubscriptionSpec,
)
from videoflow.errors import IncompatibleProfile, Miss


def refuse_unclaimed(channels: Sequence[ChannelSpec], subscriptions: Sequence[SubscriptionSpec]) -> None:
    """Raises what cannot be given, all of it at once.

    Raises:
        IncompatibleProfile: A guarantee that is not claimed, or a reader that its channel does not list.
    """
    found = {spec.channel: spec for spec in channels}
    misses = [miss for spec in channels for miss in _of_channel(spec)]
    misses += [miss for spec in subscriptions for miss in _of_subscription(spec, found)]
    if misses:
        raise IncompatibleProfile(misses)


def _of_channel(spec: ChannelSpec) -> Iterator[Miss]:
    wanted: list[tuple[str, str, str]] = []
    if spec.profile not in PROFILES:
        wanted.append(("profile", spec.profile, ", ".join(sorted(PROFILES))))
    if spec.persistent:
        wanted.append(("persistence", "persistent", "the processes of one run"))
    if spec.copies != 1:
        wanted.append(("copies", str(spec.copies), "1"))
    partitions = spec.channel.layout.partitions
    for reader in spec.subscriptions:
        exclusive = reader.kind is SubscriptionKind.EXCLUSIVE
        if exclusive != (reader.partition is not None) or not 0 <= (reader.partition or 0) < partitions:
            wanted.append((f"partition of {reader.reader}", str(reader.partition), f"{partitions} in all"))
    remedy = "choose another profile or another transport"
    return (Miss(str(spec.channel), spec.profile, *row, remedy) for row in wanted)


def _of_subscription(spec: SubscriptionSpec, channels: dict[ChannelId, ChannelSpec]) -> Iterator[Miss]:
    channel = channels.get(spec.subscription.channel)
    if channel is None:
        return
    wanted: list[tuple[str, str, str]] = []
    if spec.subscription not in channel.subscriptions:
        wanted.append(("a reader of its channel", "listed", "not listed"))
    if spec.lease_seconds is not None:
        wanted.append(("lease_seconds", str(spec.lease_seconds), "None"))
    if channel.profile is Profile.LIVE_LATEST and not isinstance(spec, LiveSubscriptionSpec):
        wanted.append(("a writer that never waits", "a live reader", "a reliable one"))
    remedy = "name every reader in the channel's specification, with what this adapter gives"
    for row in wanted:
        yield Miss(str(spec.subscription), channel.profile, *row, remedy)
