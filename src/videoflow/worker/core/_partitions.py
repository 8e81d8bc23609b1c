"""Partitioned channels: which partition an item goes to, what the others learn, and who speaks for a skip.

Used by the walk, which publishes, and by the core of a task that reads its share. A statement is said once:
its data goes to one partition, and the others get a notice that it is elsewhere; a skip that belongs to no
partition goes to all, and the first one passes it on (rule 2).
"""

import zlib
from collections.abc import Iterator, Sequence
from enum import Enum

import msgspec

from videoflow.backends.messaging import Envelope, Kind
from videoflow.planner.plan import ChannelRef
from videoflow.worker.core._groups import Group
from videoflow.worker.core.actions import Element, Publication


class Voice(Enum):
    """What one partition does with a group: it works on it, it only settles it, or it cannot tell."""

    SPEAK = "speak"
    QUIET = "quiet"
    SPLIT = "split"


def voice(group: Group) -> Voice:
    """Returns whether this partition is the one that has a group."""
    envelopes = [held.delivery.envelope for held, _ in group.shares]
    away = any(envelope.kind is Kind.IDLE and envelope.elsewhere for envelope in envelopes)
    if any(envelope.kind is Kind.DATA for envelope in envelopes):
        return Voice.SPLIT if away else Voice.SPEAK
    quiet = away or all(envelope.elsewhere for envelope in envelopes)
    return Voice.QUIET if quiet else Voice.SPEAK


def key_problem(channel: ChannelRef, value: object) -> str:
    """Returns why a value has no partition, or an empty text."""
    key = channel.key
    if channel.partitions == 1 or key is None or key in ("key", "source") or key.startswith("trace:"):
        return ""
    if hasattr(value, key):
        return ""
    return f"partition_by={key!r}: what it emitted on {channel.port}, a {type(value).__name__}, has no {key}"


def spread(
    channel: ChannelRef, statement: Element, made: Sequence[tuple[Element, Publication]]
) -> Iterator[Publication]:
    """Yields one statement as it goes to the partitions of a channel.

    Args:
        channel: The layout.
        statement: The input that it is the statement for.
        made: What it says, as for a channel of one partition: a skip, or its items.
    """
    owners = [_owner(channel, element, publication.value) for element, publication in made]
    for partition in range(channel.partitions):
        for (element, publication), owner in zip(made, owners, strict=True):
            if owner not in (None, partition):
                yield _notice(publication, partition, element)
            elif owner is None and partition > 0:
                yield _copy(publication, partition, statement)
            else:
                placed = msgspec.structs.replace(publication.envelope, partition=partition)
                yield Publication(publication.channel, placed, publication.value)


def everywhere(channel: ChannelRef, publication: Publication) -> Iterator[Publication]:
    """Yields a control statement for every partition; each passes on what it did not know."""
    for partition in range(channel.partitions):
        envelope = msgspec.structs.replace(publication.envelope, partition=partition)
        yield Publication(publication.channel, envelope)


def _owner(channel: ChannelRef, element: Element, value: object) -> int | None:
    """Returns the partition of an item; None for a skip that belongs to none."""
    key = channel.key or ""
    if key.startswith("trace:"):
        depth = int(key.removeprefix("trace:"))
        if element.last != element.origin.ordinal or len(element.path) < depth:
            return None
        ks = "/".join(str(hop.k) for hop in element.path[:depth])
        return _place(f"{element.origin.node}/{element.origin.epoch}/{element.origin.ordinal}/{ks}", channel)
    if element.cause is not None:
        return None
    if key == "key":
        return _place(element.key, channel)
    if key == "source":
        return _place(element.source or element.origin.node, channel)
    return _place(str(getattr(value, key)), channel)


def _place(text: str, channel: ChannelRef) -> int:
    return zlib.crc32(text.encode()) % channel.partitions


def _notice(publication: Publication, partition: int, element: Element) -> Publication:
    """Returns the notice that a trace went to another partition."""
    envelope = publication.envelope
    told = Envelope(
        channel=envelope.channel,
        publication_id=f"{envelope.publication_id}/{partition}",
        kind=Kind.IDLE,
        writer=envelope.writer,
        input_id=envelope.input_id,
        origin=envelope.origin,
        path=element.path,
        partition=partition,
        after=envelope.after,
        elsewhere=_ordinals(element),
        low=envelope.low,
        source=envelope.source,
    )
    return Publication(publication.channel, told)


def _copy(publication: Publication, partition: int, statement: Element) -> Publication:
    """Returns a skip for a partition that does not pass it on."""
    envelope = publication.envelope
    copy = msgspec.structs.replace(
        envelope,
        publication_id=f"{envelope.publication_id}/{partition}",
        partition=partition,
        elsewhere=envelope.intervals or _ordinals(statement),
    )
    return Publication(publication.channel, copy)


def _ordinals(element: Element) -> tuple[tuple[int, int], ...]:
    return ((element.origin.ordinal, element.origin.ordinal),)
