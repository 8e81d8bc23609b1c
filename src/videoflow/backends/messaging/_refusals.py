"""What an implementation refuses of a channel that has one copy, in the memory of those who use it.

Used by the memory reference and by the log on one host, before anything is made.
"""

from collections.abc import Collection, Iterator

from videoflow.backends.capabilities import Profile
from videoflow.backends.messaging._names import SubscriptionKind
from videoflow.backends.messaging._specs import ChannelSpec
from videoflow.errors import Miss


def unkept_by_memory(spec: ChannelSpec, profiles: Collection[Profile], lifetime: str) -> list[Miss]:
    """Returns what memory cannot give to a channel.

    Args:
        spec: What is wanted.
        profiles: Those that the implementation claims.
        lifetime: What its channels live as long as, in words.
    """
    remedy = "choose another profile or another transport"
    return [Miss(str(spec.channel), spec.profile, *row, remedy) for row in _rows(spec, profiles, lifetime)]


def _rows(spec: ChannelSpec, profiles: Collection[Profile], lifetime: str) -> Iterator[tuple[str, str, str]]:
    if spec.profile not in profiles:
        yield "profile", spec.profile, ", ".join(sorted(profiles))
    if spec.persistent:
        yield "persistence", "persistent", lifetime
    if spec.copies != 1:
        yield "copies", str(spec.copies), "1"
    partitions = spec.channel.layout.partitions
    for reader in spec.subscriptions:
        exclusive = reader.kind is SubscriptionKind.EXCLUSIVE
        if exclusive != (reader.partition is not None) or not 0 <= (reader.partition or 0) < partitions:
            yield f"partition of {reader.reader}", str(reader.partition), f"{partitions} in all"
        if reader.slot is not None and (exclusive or reader.slot < 0):
            yield f"slot of {reader.reader}", str(reader.slot), "a competing reader, from 0"
        if reader.channel != spec.channel:
            yield f"channel of {reader.reader}", str(reader.channel), str(spec.channel)
