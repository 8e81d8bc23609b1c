"""Which feed a subscription gets, by how it is read; used by the producer's end of a channel."""

from videoflow.adapters.shm._broadcast import BroadcastFeed
from videoflow.adapters.shm._feeds import Feed, Owner
from videoflow.adapters.shm._gated import GatedFeed
from videoflow.adapters.shm._given import GivenFeed
from videoflow.adapters.shm._layout import Layout
from videoflow.adapters.shm._live import LiveFeed
from videoflow.backends.messaging import LiveSubscriptionSpec


def feed_of(outlet: Owner, number: int, layout: Layout, bit: int) -> Feed:
    """Returns the feed of one subscription, by its number in the layout; `bit` is its own in each record."""
    place = layout.subscriptions[number]
    if place.broadcast:
        return BroadcastFeed(outlet, number, place, bit)
    if place.gated:
        return GatedFeed(outlet, number, place, bit, layout)
    if isinstance(place.spec, LiveSubscriptionSpec):
        return LiveFeed(outlet, number, place, bit)
    if place.given:
        return GivenFeed(outlet, number, place, bit)
    return Feed(outlet, number, place, bit)
