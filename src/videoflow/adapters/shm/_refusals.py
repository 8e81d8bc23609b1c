"""What the log on one host cannot give: said before any memory is made."""

from collections.abc import Iterator, Sequence

from videoflow.adapters.shm._capabilities import PROFILES
from videoflow.backends.capabilities import Profile
from videoflow.backends.messaging import (
    ChannelId,
    ChannelSpec,
    LiveSubscriptionSpec,
    SubscriptionSpec,
    unkept_by_memory,
)
from videoflow.errors import IncompatibleProfile, Miss


def refuse_unclaimed(channels: Sequence[ChannelSpec], subscriptions: Sequence[SubscriptionSpec]) -> None:
    """Raises what cannot be given, all of it at once.

    Raises:
        IncompatibleProfile: A guarantee that is not claimed, or a reader that its channel does not list.
    """
    found = {spec.channel: spec for spec in channels}
    kept = "the processes of one run"
    misses = [miss for spec in channels for miss in unkept_by_memory(spec, PROFILES, kept)]
    misses += [miss for spec in subscriptions for miss in _of_subscription(spec, found)]
    if misses:
        raise IncompatibleProfile(misses)


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
