"""Random schedules on two implementations of messaging: the reference, and what is tried, say the same.

Used by adapters' tests, through `run_state_machine_as_test`. `TwinMachine` has one writer and one reading
process; `PartitionMachine` has two partitions under one window, each with an owner of its own.
"""

from collections.abc import Callable

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from videoflow.backends.coverage import OriginRecord
from videoflow.backends.intervals import IntervalSet
from videoflow.backends.messaging import Delivery, Envelope, Settlement, SubscriptionId
from videoflow.backends.outcomes import Known
from videoflow.testing.examiners._messaging_subject import MessagingSubject
from videoflow.testing.examiners.envelopes import (
    data,
    exclusive,
    fan_out,
    parted,
    reliable,
    skip,
    spread_out,
    tally,
)
from videoflow.testing.examiners.machines._messaging import (
    CREDIT,
    ROOM,
    SETTLEMENTS,
    SINK,
    SPREAD,
    WORK,
    Position,
    picks,
    slots,
)


class _Pair(RuleBasedStateMachine):
    """The reference, and what is tried; whatever is done is done to both.

    Attributes:
        make_subjects: Returns (reference, tried).
    """

    make_subjects: Callable[[], tuple[MessagingSubject, MessagingSubject]]

    def __init__(self) -> None:
        super().__init__()
        self.twins = self.make_subjects()
        self.next = 0

    def say(self, *envelopes: Envelope) -> None:
        outcomes = [
            [(type(o).__name__, getattr(o, "duplicate", None), getattr(o, "reason", None)) for o in said]
            for said in (twin.publish(*envelopes, seconds=0) for twin in self.twins)
        ]
        assert outcomes[0] == outcomes[1]
        self.next = max(self.next, envelopes[-1].origin.ordinal + 1)

    def settle_some(
        self,
        held: dict[Position, tuple[Delivery, ...]],
        owner: str,
        span: tuple[int, int],
        how: Settlement | None = None,
    ) -> None:
        """Settles some of what both gave; `span` is (which one is the first, how many)."""
        if not held:
            return
        pick, count = span
        start = pick % len(held)
        pairs = [held.pop(position) for position in sorted(held)[start : start + count]]
        for number, twin in enumerate(self.twins):
            twin.settle(*(pair[number] for pair in pairs), owner=owner, settlement=how)

    def teardown(self) -> None:
        for twin in self.twins:
            twin.close()


class TwinMachine(_Pair):
    """One writer and one reading process, on both implementations."""

    def __init__(self) -> None:
        super().__init__()
        for twin in self.twins:
            self.channel = twin.provision(reliable(WORK, CREDIT, SPREAD), reliable(SINK, CREDIT), bounds=ROOM)
        self.epoch = 0
        self.incarnation = 0
        self.ended = False
        self.after: dict[int, int] = {}
        self.held: dict[SubscriptionId, dict[Position, tuple[Delivery, ...]]] = {WORK: {}, SINK: {}}
        self.take_over()

    @property
    def reader(self) -> str:
        return f"reader-{self.incarnation}"

    @rule(size=st.integers(20, 60), count=st.integers(1, 3))
    def publish_items(self, size: int, count: int) -> None:
        self.say(*(data(self.channel, self.next + n, size_bytes=size) for n in range(count)))

    @rule(count=st.integers(1, 4))
    def publish_a_fan_out(self, count: int) -> None:
        self.say(*fan_out(self.channel, self.next, count))

    @rule(back=st.integers(0, 6), width=st.integers(1, 4))
    def publish_a_skip(self, back: int, width: int) -> None:
        first = max(0, self.next - back)
        self.say(skip(self.channel, (first, first + width - 1)))
        self.next = max(self.next, first + width)

    @precondition(lambda self: self.next)
    @rule(pick=picks)
    def publish_again(self, pick: int) -> None:
        self.say(data(self.channel, pick % self.next, suffix="-again", size_bytes=30))

    @rule(subscription=st.sampled_from((WORK, SINK)), count=st.integers(1, 4))
    def read(self, subscription: SubscriptionId, count: int) -> None:
        after = self.after if subscription is SINK else None
        taken = []
        for twin in self.twins:
            twin.settle_down()
            found = twin.backend(self.reader).receive(
                subscription, deadline=0.0, max_items=count, after=after
            )
            taken.append(list(found))
        assert [shown(d) for d in taken[0]] == [shown(d) for d in taken[1]]
        for pair in zip(*taken, strict=True):
            position = pair[0].token.position
            self.held[subscription][position] = pair
            if subscription is SINK:
                self.after[position[0]] = position[1]

    @rule(
        subscription=st.sampled_from((WORK, SINK)),
        pick=picks,
        count=st.integers(1, 3),
        how=st.sampled_from(SETTLEMENTS),
    )
    def settle(self, subscription: SubscriptionId, pick: int, count: int, how: Settlement) -> None:
        self.settle_some(self.held[subscription], self.reader, (pick, count), how)

    @rule()
    def hand_back(self) -> None:
        for number, twin in enumerate(self.twins):
            tokens = [pair[number].token for pair in self.held[WORK].values()]
            twin.backend(self.reader).hand_back(tokens, deadline=twin.soon())
        self.held[WORK].clear()

    @rule()
    def take_over(self) -> None:
        """The reading process dies, and its next incarnation starts above what is settled."""
        if self.epoch:
            for twin in self.twins:
                twin.kill(self.reader)
        self.epoch += 1
        self.incarnation += 1
        floors = []
        for twin in self.twins:
            acquired = twin.backend(self.reader).acquire(SINK, self.epoch, deadline=twin.soon())
            assert isinstance(acquired, Known)
            floors.append((dict(acquired.value.settled_floors), closed(acquired.value.settled)))
        assert floors[0][1] == floors[1][1]
        # Whether an end takes a position is the implementation's affair: then the floor may lie on it.
        assert self.ended or floors[0][0] == floors[1][0]
        self.after = dict(floors[1][0])
        for held in self.held.values():
            held.clear()

    @rule()
    def end(self) -> None:
        self.ended = True
        for twin in self.twins:
            twin.end(self.channel)

    @invariant()
    def both_say_the_same(self) -> None:
        one, other = (self.said_by(twin) for twin in self.twins)
        assert one == other

    def said_by(self, twin: MessagingSubject) -> list[object]:
        channel = twin.channel_status(self.channel)
        said: list[object] = [
            plain(twin.announced(self.channel)),
            (channel.items, channel.size_bytes, channel.sealed, dict(channel.terminators)),
            twin.raw(self.channel),
        ]
        for subscription in (WORK, SINK):
            status = twin.status(subscription)
            said.append(plain(twin.settled(subscription)))
            said.append((status.leased, status.finished, status.aborted))
        return said


class PartitionMachine(_Pair):
    """Two partitions under one window, each with an owner that dies, on both implementations."""

    def __init__(self) -> None:
        super().__init__()
        self.channel = parted()
        self.readers = [exclusive(channel=self.channel, partition=p) for p in range(2)]
        for twin in self.twins:
            twin.provision(*(reliable(r, CREDIT, 4, 2) for r in self.readers), bounds=ROOM)
        self.epochs = [0, 0]
        self.after: list[list[dict[int, int]]] = [[{}, {}], [{}, {}]]
        self.held: list[dict[Position, tuple[Delivery, ...]]] = [{}, {}]
        for partition in range(2):
            self.take_over(partition)

    @rule(partition=slots, size=st.integers(20, 60))
    def publish_an_item(self, partition: int, size: int) -> None:
        envelope = data(self.channel, self.next, size_bytes=size)
        self.say(*spread_out(envelope, partition))

    @rule(back=st.integers(0, 4), width=st.integers(1, 3))
    def publish_a_skip(self, back: int, width: int) -> None:
        first = max(0, self.next - back)
        self.say(*spread_out(skip(self.channel, (first, first + width - 1))))
        self.next = max(self.next, first + width)

    @precondition(lambda self: self.next)
    @rule(pick=picks, partition=slots)
    def publish_again(self, pick: int, partition: int) -> None:
        number = pick % self.next
        if any(number in numbers for numbers in self.said_of()):
            self.say(*spread_out(data(self.channel, number, suffix="-again", size_bytes=30), partition))

    def said_of(self) -> list[IntervalSet]:
        return [IntervalSet(intervals) for intervals in tally(self.twins[0].announced(self.channel)).values()]

    @rule(partition=slots, count=st.integers(1, 4))
    def read(self, partition: int, count: int) -> None:
        taken = []
        for number, twin in enumerate(self.twins):
            twin.settle_down()
            after = self.after[partition][number]
            found = twin.backend(f"part-{partition}").receive(
                self.readers[partition], deadline=0.0, max_items=count, after=after
            )
            after.update(d.token.position for d in found)
            taken.append(list(found))
        assert [placed(d) for d in taken[0]] == [placed(d) for d in taken[1]]
        self.held[partition].update((pair[0].token.position, pair) for pair in zip(*taken, strict=True))

    @rule(partition=slots, pick=picks, count=st.integers(1, 3))
    def settle(self, partition: int, pick: int, count: int) -> None:
        self.settle_some(self.held[partition], f"part-{partition}", (pick, count))

    @rule(partition=slots)
    def take_over(self, partition: int) -> None:
        owner = f"part-{partition}"
        if self.epochs[partition]:
            for twin in self.twins:
                twin.kill(owner)
        self.epochs[partition] += 1
        known = []
        for number, twin in enumerate(self.twins):
            acquired = twin.backend(owner).acquire(
                self.readers[partition], self.epochs[partition], deadline=twin.soon()
            )
            assert isinstance(acquired, Known)
            known.append(closed(acquired.value.settled))
            self.after[partition][number] = dict(acquired.value.settled_floors)
        assert known[0] == known[1]
        self.held[partition].clear()

    @invariant()
    def both_say_the_same(self) -> None:
        one, other = (self.said_by(twin) for twin in self.twins)
        assert one == other

    def said_by(self, twin: MessagingSubject) -> list[object]:
        channel = twin.channel_status(self.channel)
        said: list[object] = [plain(twin.announced(self.channel)), channel.items, channel.size_bytes]
        said += [plain(twin.settled(reader)) for reader in self.readers]
        return [*said, twin.raw(self.channel)]


def shown(delivery: Delivery) -> tuple[object, ...]:
    """Returns what two implementations must agree on of a delivery."""
    token = delivery.token
    return delivery.envelope, token.position, token.transport_count


def placed(delivery: Delivery) -> tuple[object, ...]:
    """The same of a partition: whether its positions leave room for others is the implementation's affair."""
    return delivery.envelope, delivery.token.transport_count


def plain(records: tuple[OriginRecord, ...]) -> list[tuple[object, ...]]:
    """Returns records for comparison; what says nothing is left out."""
    return [
        (r.node, r.epoch, sorted(r.ordinals), r.deep_ordinals, sorted(r.deep_items), r.deep_open)
        for r in records
        if r.ordinals or r.deep_ordinals or r.deep_open
    ]


def closed(records: tuple[OriginRecord, ...]) -> dict[tuple[str, int], IntervalSet]:
    """Returns what records close, whatever the fate."""
    found: dict[tuple[str, int], IntervalSet] = {}
    for record in records:
        mine = found.setdefault((record.node, record.epoch), IntervalSet())
        for _, _, intervals in record.ordinals:
            mine.update(IntervalSet(intervals))
        mine.update(IntervalSet(record.deep_ordinals))
    return {name: numbers for name, numbers in found.items() if numbers}
