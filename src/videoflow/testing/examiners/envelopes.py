"""Names, specifications and envelopes for tests of messaging: the source `camera` and its ordinals.

Used by the examiner, and by adapters' own tests. It refuses nothing.
"""

from typing import Any, Final

import msgspec

from videoflow.backends.coverage import Cause, Hop, Origin, OriginRecord
from videoflow.backends.messaging import (
    Bounds,
    ChannelId,
    Delivery,
    Envelope,
    Kind,
    Layout,
    LiveSubscriptionSpec,
    OwnerLabels,
    Reliability,
    ReliableSubscriptionSpec,
    SubscriptionId,
    SubscriptionKind,
    Writer,
)

LABELS: Final = OwnerLabels("flow", "run")
ROOMY: Final = Bounds(1000, 2**30)
RELIABLE: Final = Layout()
LIVE: Final = Layout(Reliability.LIVE)


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
    subscription: SubscriptionId,
    credit: Bounds = ROOMY,
    spread: int | None = None,
    replicas: int = 1,
    lease_seconds: float | None = None,
) -> ReliableSubscriptionSpec:
    """Returns a specification of a reader that loses nothing."""
    return ReliableSubscriptionSpec(
        subscription=subscription,
        credit=credit,
        spread=spread,
        replicas=replicas,
        labels=LABELS,
        lease_seconds=lease_seconds,
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


def parted(partitions: int = 2, node: str = "detect") -> ChannelId:
    """Returns the name of a channel with partitions, by key."""
    return channel_id(node, Layout(Reliability.RELIABLE, "key", partitions))


def spread_out(envelope: Envelope, owner: int | None = None) -> list[Envelope]:
    """Returns a statement as it goes to every partition of its channel.

    Args:
        envelope: What is said: an item, or a skip.
        owner: The partition that has it; the others get a notice. None: a skip that belongs to none, which
            goes to all and is passed on by the first.
    """
    number = envelope.origin.ordinal
    told = envelope.intervals or ((number, number),)
    said = []
    for partition in range(envelope.channel.layout.partitions):
        name = f"{envelope.publication_id}/{partition}"
        if partition == (owner or 0):
            said.append(msgspec.structs.replace(envelope, partition=partition))
        elif owner is None:
            said.append(
                msgspec.structs.replace(envelope, partition=partition, publication_id=name, elsewhere=told)
            )
        else:
            said.append(
                Envelope(
                    channel=envelope.channel,
                    publication_id=name,
                    kind=Kind.IDLE,
                    writer=envelope.writer,
                    input_id=envelope.input_id,
                    origin=envelope.origin,
                    path=envelope.path,
                    partition=partition,
                    elsewhere=told,
                )
            )
    return said
