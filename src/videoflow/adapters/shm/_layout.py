"""Where everything lies in the shared log: computed once by the supervisor, told to every worker.

Offsets of words count in eight-byte words of the log, others in bytes. Each word and each region
has one writer: a ring and what hangs on it its producer replica, cells and the settlement journal
their reader replica, the `folded` words the supervisor.
"""

from collections.abc import Iterator, Sequence

import msgspec

from videoflow.backends.messaging import (
    ChannelId,
    ChannelSpec,
    LiveSubscriptionSpec,
    ReliableSubscriptionSpec,
    SubscriptionId,
    SubscriptionKind,
    SubscriptionSpec,
)
from videoflow.errors import UnknownName

WORD = 8
_LINE_WORDS = 8
_INLINE_BYTES = 20 << 10
_SPARE_BYTES = 1 << 20
_MOST_RING_BYTES = 64 << 20
_ANNOUNCED_BYTES = 256 << 10
_SETTLED_BYTES = 512 << 10


class TaskShape(msgspec.Struct, frozen=True, kw_only=True):
    """A task, as far as the log is concerned.

    Attributes:
        name: Its name.
        replicas: Its processes.
        reads: Subscriptions of its inputs.
        writes: Channels of its outputs.
        slab_bytes: Payload memory of each replica; 0 for none.
        largest_bytes: Its largest payload.
    """

    name: str
    replicas: int = 1
    reads: tuple[SubscriptionId, ...] = ()
    writes: tuple[ChannelId, ...] = ()
    slab_bytes: int = 0
    largest_bytes: int = 0


class JournalPlace(msgspec.Struct, frozen=True, array_like=True):
    """A ring of ledger entries: bytes, and the word up to which the supervisor has taken them."""

    offset: int
    size: int
    folded: int


class RingPlace(msgspec.Struct, frozen=True, array_like=True):
    """One producer replica's part of a channel.

    Attributes:
        commit: Word: head << 1 | half; the only word that publishes anything.
        halves: Two words for each half: end of the journal, end of the bytes.
        tail: Word: first sequence still needed.
        end: Word: 0, or 1 + the kind of terminator.
        epoch: Word: greatest epoch of the writer.
        index: Words: sequence modulo `slots` -> position in bytes.
        slots: Most records held.
        offset: Of the bytes.
        size: Of the bytes.
        journal: What was announced.
    """

    commit: int
    halves: int
    tail: int
    end: int
    epoch: int
    index: int
    slots: int
    offset: int
    size: int
    journal: JournalPlace


class ChannelPlace(msgspec.Struct, frozen=True, array_like=True):
    """One partition of a channel: its ring per writer slot, and its subscriptions by number."""

    spec: ChannelSpec
    writer: int
    rings: tuple[RingPlace, ...]
    subscriptions: tuple[int, ...]
    partition: int = 0


class SubscriptionPlace(msgspec.Struct, frozen=True, array_like=True):
    """A subscription.

    Attributes:
        reliable: Its specification, if it is reliable.
        live: Its specification, if it is live.
        channel: Number of its channel.
        reader: Number of the reading task.
        given: Whether the writer decides who gets what (competing, or live), per sequence.
        assigned: Per writer slot: word with the number of sequences dispatched so far.
        assignments: Per writer slot: words, one per record: to whom.
        stamps: Per writer slot: words, one per record: the number of its dispatch; 0 where not needed.
        cells: Per reader replica and writer slot: words, one per record: how far it is.
        epochs: Per reader replica: word with the epoch of ownership.
        first: The first replica that reads it; the only one where its input is partitioned, or a broadcast.
    """

    reliable: ReliableSubscriptionSpec | None
    live: LiveSubscriptionSpec | None
    channel: int
    reader: int
    given: bool
    assigned: tuple[int, ...]
    assignments: tuple[int, ...]
    stamps: tuple[int, ...]
    cells: tuple[tuple[int, ...], ...]
    epochs: tuple[int, ...]
    first: int = 0

    @property
    def broadcast(self) -> bool:
        """Whether it is for one replica alone, which is handed nothing but items."""
        return self.spec.subscription.slot is not None

    @property
    def gated(self) -> bool:
        """Whether its reader may see no further than its spread: the partitions of one task."""
        return self.reliable is not None and self.reliable.spread is not None and not self.given

    @property
    def spec(self) -> SubscriptionSpec:
        """The specification, as provisioned."""
        spec = self.reliable or self.live
        assert spec is not None
        return spec


class ReplicaPlace(msgspec.Struct, frozen=True, array_like=True):
    """One process: the word that commits its settlements, their journal, and its slab (-1: none)."""

    commit: int
    journal: JournalPlace
    slab: int


class TaskPlace(msgspec.Struct, frozen=True, array_like=True):
    """A task and its processes."""

    shape: TaskShape
    replicas: tuple[ReplicaPlace, ...]


class SlabPlace(msgspec.Struct, frozen=True, array_like=True):
    """The payload memory of one process."""

    size: int
    largest: int


class Layout(msgspec.Struct, frozen=True):
    """All places."""

    channels: tuple[ChannelPlace, ...]
    subscriptions: tuple[SubscriptionPlace, ...]
    tasks: tuple[TaskPlace, ...]
    slabs: tuple[SlabPlace, ...]
    log_bytes: int

    def partitions_of(self, channel: ChannelId) -> list[ChannelPlace]:
        """Returns the places of a channel's partitions, in order; none where it was not provisioned."""
        return [place for place in self.channels if place.spec.channel == channel]

    def total_bytes(self) -> int:
        """Returns the log and all slabs."""
        return self.log_bytes + sum(slab.size for slab in self.slabs)


class _Space:
    """Hands out aligned places, one after the other."""

    def __init__(self) -> None:
        self.bytes = 0

    def region(self, size: int) -> int:
        start = self.bytes
        self.bytes += -(-size // (WORD * _LINE_WORDS)) * WORD * _LINE_WORDS
        return start

    def words(self, count: int) -> int:
        return self.region(count * WORD) // WORD


def plan_layout(
    channels: Sequence[ChannelSpec],
    subscriptions: Sequence[SubscriptionSpec],
    tasks: Sequence[TaskShape],
) -> Layout:
    """Places channels, subscriptions and tasks.

    Raises:
        UnknownName: A task reads or writes what is not listed, or a channel or subscription has no task.
    """
    space = _Space()
    journals = _Journals(
        space, sum(t.replicas * (1 + sum(c.layout.partitions for c in t.writes)) for t in tasks)
    )
    task_places, slabs = _task_places(tasks, space, journals)
    channel_places = list(_channel_places(channels, subscriptions, tasks, space, journals))
    subscription_places = tuple(_subscription_places(subscriptions, tasks, channel_places, space))
    return Layout(tuple(channel_places), subscription_places, task_places, slabs, space.bytes)


class _Journals:
    """Places ledger entries; the words of the supervisor lie side by side, before everything else."""

    def __init__(self, space: _Space, count: int) -> None:
        self._space = space
        self._folded = iter(range(space.words(max(1, count)), count))

    def place(self, size: int) -> JournalPlace:
        """Places the next one."""
        return JournalPlace(self._space.region(size), size, next(self._folded))


def _task_places(
    tasks: Sequence[TaskShape], space: _Space, journals: _Journals
) -> tuple[tuple[TaskPlace, ...], tuple[SlabPlace, ...]]:
    """Places tasks, and gives a slab to each replica that is to have one."""
    slabs: list[SlabPlace] = []
    found = []
    for task in tasks:
        places = []
        for _ in range(task.replicas):
            slab = -1
            if task.slab_bytes:
                slab = len(slabs)
                slabs.append(SlabPlace(task.slab_bytes, task.largest_bytes))
            places.append(ReplicaPlace(space.words(1), journals.place(_SETTLED_BYTES), slab))
        found.append(TaskPlace(task, tuple(places)))
    return tuple(found), tuple(slabs)


def _channel_places(
    channels: Sequence[ChannelSpec],
    subscriptions: Sequence[SubscriptionSpec],
    tasks: Sequence[TaskShape],
    space: _Space,
    journals: _Journals,
) -> Iterator[ChannelPlace]:
    """Places each partition of each channel."""
    writers = {channel: number for number, task in enumerate(tasks) for channel in task.writes}
    for spec in channels:
        _check(spec, writers, tasks)
        for partition in range(spec.channel.layout.partitions):
            rings = tuple(_ring(space, spec, journals.place(_ANNOUNCED_BYTES)) for _ in range(spec.slots))
            mine = tuple(
                n for n, s in enumerate(subscriptions) if _part(s.subscription) == (spec.channel, partition)
            )
            yield ChannelPlace(spec, writers[spec.channel], rings, mine, partition)


def _subscription_places(
    subscriptions: Sequence[SubscriptionSpec],
    tasks: Sequence[TaskShape],
    channels: Sequence[ChannelPlace],
    space: _Space,
) -> Iterator[SubscriptionPlace]:
    """Places subscriptions of channels that are placed."""
    readers = {sub: number for number, task in enumerate(tasks) for sub in task.reads}
    numbers = {(place.spec.channel, place.partition): number for number, place in enumerate(channels)}
    for sub in subscriptions:
        if sub.subscription not in readers or _part(sub.subscription) not in numbers:
            raise UnknownName(f"no task reads {sub.subscription}, or its channel is not provisioned")
        number, reader = numbers[_part(sub.subscription)], readers[sub.subscription]
        first, count = 0, tasks[reader].replicas
        if sub.subscription.slot is not None:
            first, count = sub.subscription.slot, 1
        elif sub.subscription.channel.layout.partitions > 1:
            first, count = sub.subscription.partition or 0, 1
        yield _subscription(space, sub, (number, channels[number]), reader, (first, count))


def _part(subscription: SubscriptionId) -> tuple[ChannelId, int]:
    return subscription.channel, subscription.partition or 0


def _check(spec: ChannelSpec, writers: dict[ChannelId, int], tasks: Sequence[TaskShape]) -> None:
    if spec.channel not in writers or tasks[writers[spec.channel]].replicas != spec.slots:
        raise UnknownName(f"no task with {spec.slots} replicas writes channel {spec.channel}")


def _ring(space: _Space, spec: ChannelSpec, journal: JournalPlace) -> RingPlace:
    slots = 1 << (4 * spec.bounds.items + 4096).bit_length()
    inline = min(spec.bounds.items * _INLINE_BYTES, spec.bounds.size_bytes)
    size = min(inline + _SPARE_BYTES, _MOST_RING_BYTES)
    words = space.words(8)
    return RingPlace(
        commit=words,
        halves=words + 1,
        tail=words + 5,
        end=words + 6,
        epoch=words + 7,
        index=space.words(slots),
        slots=slots,
        offset=space.region(size),
        size=size // WORD * WORD,
        journal=journal,
    )


def _subscription(
    space: _Space,
    spec: SubscriptionSpec,
    channel: tuple[int, ChannelPlace],
    reader: int,
    replicas: tuple[int, int],
) -> SubscriptionPlace:
    """Places a subscription, read by so many replicas of a task from a first one on."""
    rings, (first, count) = channel[1].rings, replicas
    given = isinstance(spec, LiveSubscriptionSpec) or spec.subscription.kind is SubscriptionKind.COMPETING
    stamped = spec.spread is not None and len(rings) > 1
    return SubscriptionPlace(
        None if isinstance(spec, LiveSubscriptionSpec) else spec,
        spec if isinstance(spec, LiveSubscriptionSpec) else None,
        channel[0],
        reader,
        given,
        tuple(space.words(1) for _ in rings),
        tuple(space.words(ring.slots) if given else 0 for ring in rings),
        tuple(space.words(ring.slots) if stamped else 0 for ring in rings),
        tuple(tuple(space.words(ring.slots) for ring in rings) for _ in range(count)),
        tuple(space.words(1) for _ in range(count)),
        first,
    )
