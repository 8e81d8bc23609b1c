"""Random schedules: an implementation against a model of a few lines, and against the memory reference.

Used by adapters' tests, through `run_state_machine_as_test`. `MessagingMachine` has one channel with two
Used by adapters' tests, through `run_state_machine_as_test`. `MessagingMachine` has one channel with two
writers and three readers, and a model that knows what must be: whatever happens, the ledger closes.
`TwinMachine` and `PartitionMachine` do the same with a reference and with what is tried, and compare.
"""

from collections.abc import Callable

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from videoflow.backends.coverage import IntervalSet, OriginRecord
from videoflow.backends.messaging import (
    Bounds,
    Completed,
    CompletedReason,
    Delivery,
    Envelope,
    Kind,
    Settlement,
    SubscriptionId,
    Terminal,
)
from videoflow.backends.outcomes import Accepted, Known, SettleStale
from videoflow.testing.examiners._messaging_subject import MessagingSubject
from videoflow.testing.examiners.envelopes import (
    competing,
    data,
    exclusive,
    fan_out,
    live,
    parted,
    reliable,
    skip,
    spread_out,
    tally,
)

WORK, SINK, NOW = competing(), exclusive(), competing("now")
SPREAD = 5
CREDIT = Bounds(3, 40)
ROOM = Bounds(6, 100)
Position = tuple[int, int]

picks = st.integers(0, 20)
slots = st.integers(0, 1)
SETTLEMENTS = (
    Completed(),
    Completed(CompletedReason.DROPPED),
    Completed(CompletedReason.ABANDONED),
    Terminal("record"),
)


class MessagingMachine(RuleBasedStateMachine):
    """The schedule, and what a model of a few lines knows of it."""

    make_subject: Callable[[], MessagingSubject]

    def __init__(self) -> None:
        super().__init__()
        self.subject = self.make_subject()
        self.channel = self.subject.provision(
            reliable(WORK, CREDIT, SPREAD, 2), reliable(SINK), live(NOW, 2), slots=2, bounds=ROOM
        )
        self.next = 0
        self.sent: dict[int, Kind] = {}
        self.holders = ["work-0", "work-1"]
        self.births = 2
        self.held: dict[str, dict[Position, Delivery]] = {name: {} for name in self.holders}
        self.dead: list[Delivery] = []
        self.dispatched: dict[Position, int] = {}
        self.settled_work: set[Position] = set()
        self.settled_ordinals: set[int] = set()
        self.settled_sink: set[int] = set()
        self.epoch = 0
        self.after: dict[int, int] = {}
        self.taken: dict[Position, Delivery] = {}
        self.take_over()

    # Writers ----------------------------------------------------------------------------------

    @rule(slot=slots, size=st.integers(1, 60), key=st.sampled_from("xy"))
    def publish_item(self, slot: int, size: int, key: str) -> None:
        envelope = data(self.channel, self.next, slot=slot, size_bytes=size, source=key)
        (outcome,) = self.subject.publish(envelope, owner=f"writer-{slot}", seconds=0)
        if isinstance(outcome, Accepted):
            assert not outcome.duplicate
            self.sent[self.next] = Kind.DATA
            self.next += 1

    @rule(slot=slots, width=st.integers(1, 3))
    def publish_skip(self, slot: int, width: int) -> None:
        envelope = skip(self.channel, (self.next, self.next + width - 1), slot=slot)
        self.subject.accepted(envelope, owner=f"writer-{slot}")
        self.sent.update(dict.fromkeys(range(self.next, self.next + width), Kind.SKIP))
        self.next += width

    @precondition(lambda self: self.sent)
    @rule(slot=slots, pick=picks)
    def publish_again(self, slot: int, pick: int) -> None:
        ordinal = sorted(self.sent)[pick % len(self.sent)]
        self.subject.duplicates(data(self.channel, ordinal, slot=slot, suffix="-again"))
        self.subject.duplicates(skip(self.channel, (0, ordinal), slot=slot))

    # Competing readers ------------------------------------------------------------------------

    @rule(which=slots, count=st.integers(1, 4))
    def work_receives(self, which: int, count: int) -> None:
        name = self.holders[which]
        taken = self.subject.backend(name).receive(WORK, deadline=0.0, max_items=count)
        assert len(taken) <= count
        for delivery in taken:
            position = delivery.token.position
            assert position not in self.settled_work
            assert all(position not in held for held in self.held.values())
            if position not in self.dispatched:
                assert delivery.token.transport_count == 1
                self.dispatched[position] = len(self.dispatched)
                self.check_spread(position)
            self.held[name][position] = delivery

    def check_spread(self, position: Position) -> None:
        open_ = [n for other, n in self.dispatched.items() if other not in self.settled_work]
        assert self.dispatched[position] - min(open_) < SPREAD

    @rule(which=slots, pick=picks, how=st.sampled_from(SETTLEMENTS))
    def work_settles(self, which: int, pick: int, how: Completed | Terminal) -> None:
        name = self.holders[which]
        held = self.held[name]
        if held:
            position = sorted(held)[pick % len(held)]
            delivery = held.pop(position)
            self.subject.settle(delivery, owner=name, settlement=how)
            self.settled_work.add(position)
            self.settled_ordinals.add(delivery.envelope.origin.ordinal)

    @rule(which=slots)
    def work_hands_back(self, which: int) -> None:
        name = self.holders[which]
        tokens = [delivery.token for delivery in self.held[name].values()]
        self.subject.backend(name).hand_back(tokens, deadline=self.subject.soon())
        self.held[name].clear()

    @rule(which=slots)
    def work_dies(self, which: int) -> None:
        name = self.holders[which]
        self.subject.kill(name)
        self.dead += self.held.pop(name).values()
        self.holders[which] = f"work-{self.births}"
        self.births += 1
        self.held[self.holders[which]] = {}

    @precondition(lambda self: self.dead)
    @rule(pick=picks)
    def the_dead_settle_nothing(self, pick: int) -> None:
        token = self.dead[pick % len(self.dead)].token
        (outcome,) = self.subject.backend("ghost").settle(
            [(token, Completed())], deadline=self.subject.soon()
        )
        assert isinstance(outcome, SettleStale)

    # The exclusive reader ---------------------------------------------------------------------

    @rule()
    def take_over(self) -> None:
        """A new incarnation of the sink acquires, and starts above what is settled."""
        if self.epoch:
            self.subject.kill(f"sink-{self.epoch}")
        self.epoch += 1
        self.subject.backend(f"sink-{self.epoch}").acquire(SINK, self.epoch, deadline=self.subject.soon())
        self.after = {0: -1, 1: -1}
        self.taken.clear()

    @rule(count=st.integers(1, 4))
    def sink_receives(self, count: int) -> None:
        backend = self.subject.backend(f"sink-{self.epoch}")
        for delivery in backend.receive(SINK, deadline=0.0, max_items=count, after=self.after):
            slot, sequence = delivery.token.position
            assert sequence > self.after[slot]
            assert delivery.envelope.origin.ordinal not in self.settled_sink
            self.after[slot] = sequence
            self.taken[slot, sequence] = delivery

    @rule(pick=picks)
    def sink_settles(self, pick: int) -> None:
        if self.taken:
            position = sorted(self.taken)[pick % len(self.taken)]
            delivery = self.taken.pop(position)
            self.subject.settle(delivery, owner=f"sink-{self.epoch}")
            self.settled_sink.add(delivery.envelope.origin.ordinal)

    # The live reader --------------------------------------------------------------------------

    @rule()
    def now_reads(self) -> None:
        taken = self.subject.backend("now").receive(NOW, deadline=0.0, max_items=2)
        if taken:
            self.subject.settle(*taken, owner="now")

    # What always holds ------------------------------------------------------------------------

    @invariant()
    def the_writers_end_says_what_was_accepted(self) -> None:
        said = tally(self.subject.announced(self.channel))
        for fate, kind in ((("delivered", ""), Kind.DATA), (("skipped", "skipped"), Kind.SKIP)):
            numbers = IntervalSet((n, n) for n, k in self.sent.items() if k is kind)
            assert tuple(said.get(fate, [])) == numbers.intervals()

    @invariant()
    def what_is_leased_is_what_is_held(self) -> None:
        assert self.subject.status(WORK).leased == sum(map(len, self.held.values()))
        items = [d for held in self.held.values() for d in held.values() if d.envelope.kind is Kind.DATA]
        size = sum(delivery.envelope.size_bytes for delivery in items)
        assert len(items) <= CREDIT.items
        assert size <= CREDIT.size_bytes or len(items) == 1

    @invariant()
    def room_is_bounded(self) -> None:
        status = self.subject.channel_status(self.channel)
        assert status.items <= ROOM.items
        assert status.size_bytes <= ROOM.size_bytes
        open_ = set(self.sent) - (self.settled_ordinals & self.settled_sink)
        assert status.items == sum(self.sent[n] is Kind.DATA for n in open_)

    def teardown(self) -> None:
        """Everything is read to its end, and the ledger of every reader closes."""
        subject = self.subject
        for name, held in self.held.items():
            subject.settle(*held.values(), owner=name)
        self.held.clear()
        for slot in range(2):
            subject.end(self.channel, slot)
        self.take_over()
        while taken := subject.backend("last").receive(WORK, deadline=0.0):
            subject.settle(*taken, owner="last")
        while taken := subject.backend(f"sink-{self.epoch}").receive(SINK, deadline=0.0, after=self.after):
            self.after.update(delivery.token.position for delivery in taken)
            subject.settle(*taken, owner=f"sink-{self.epoch}")
        while taken := subject.backend("now").receive(NOW, deadline=0.0):
            subject.settle(*taken, owner="now")
        everything = IntervalSet((n, n) for n in self.sent)
        for reader in (WORK, SINK, NOW):
            assert subject.status(reader).finished
            closed = IntervalSet(
                i for intervals in tally(subject.settled(reader)).values() for i in intervals
            )
            assert closed == everything
        status = subject.channel_status(self.channel)
        assert (status.items, status.size_bytes, status.sealed) == (0, 0, True)
        subject.close()


class TwinMachine(RuleBasedStateMachine):
    """One writer and one reading process, on the reference and on what is tried: both say the same.

    Attributes:
        make_subjects: Returns (reference, tried).
    """

    make_subjects: Callable[[], tuple[MessagingSubject, MessagingSubject]]

    def __init__(self) -> None:
        super().__init__()
        self.twins = self.make_subjects()
        for twin in self.twins:
            self.channel = twin.provision(reliable(WORK, CREDIT, SPREAD), reliable(SINK, CREDIT), bounds=ROOM)
        self.next = 0
        self.epoch = 0
        self.incarnation = 0
        self.ended = False
        self.after: dict[int, int] = {}
        self.held: dict[SubscriptionId, dict[Position, tuple[Delivery, ...]]] = {WORK: {}, SINK: {}}
        self.take_over()

    @property
    def reader(self) -> str:
        return f"reader-{self.incarnation}"

    def say(self, *envelopes: Envelope) -> None:
        outcomes = [
            [(type(o).__name__, getattr(o, "duplicate", None), getattr(o, "reason", None)) for o in said]
            for said in (twin.publish(*envelopes, seconds=0) for twin in self.twins)
        ]
        assert outcomes[0] == outcomes[1]
        self.next = max(self.next, envelopes[-1].origin.ordinal + 1)

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
        held = self.held[subscription]
        if not held:
            return
        start = pick % len(held)
        chosen = sorted(held)[start : start + count]
        pairs = [held.pop(position) for position in chosen]
        for number, twin in enumerate(self.twins):
            twin.settle(*(pair[number] for pair in pairs), owner=self.reader, settlement=how)

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

    def teardown(self) -> None:
        for twin in self.twins:
            twin.close()


class PartitionMachine(RuleBasedStateMachine):
    """Two partitions under one window, each with an owner that dies, on the reference and on what is tried.

    Attributes:
        make_subjects: Returns (reference, tried).
    """

    make_subjects: Callable[[], tuple[MessagingSubject, MessagingSubject]]

    def __init__(self) -> None:
        super().__init__()
        self.twins = self.make_subjects()
        self.channel = parted()
        self.readers = [exclusive(channel=self.channel, partition=p) for p in range(2)]
        for twin in self.twins:
            twin.provision(*(reliable(r, CREDIT, 4, 2) for r in self.readers), bounds=ROOM)
        self.next = 0
        self.epochs = [0, 0]
        self.after: list[list[dict[int, int]]] = [[{}, {}], [{}, {}]]
        self.held: list[dict[Position, tuple[Delivery, ...]]] = [{}, {}]
        for partition in range(2):
            self.take_over(partition)

    def say(self, *envelopes: Envelope) -> None:
        outcomes = [
            [(type(o).__name__, getattr(o, "duplicate", None)) for o in twin.publish(*envelopes, seconds=0)]
            for twin in self.twins
        ]
        assert outcomes[0] == outcomes[1]

    @rule(partition=slots, size=st.integers(20, 60))
    def publish_an_item(self, partition: int, size: int) -> None:
        envelope = data(self.channel, self.next, size_bytes=size)
        self.say(*spread_out(envelope, partition))
        self.next += 1

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
        held = self.held[partition]
        if not held:
            return
        start = pick % len(held)
        pairs = [held.pop(position) for position in sorted(held)[start : start + count]]
        for number, twin in enumerate(self.twins):
            twin.settle(*(pair[number] for pair in pairs), owner=f"part-{partition}")

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
        said: list[list[object]] = []
        for twin in self.twins:
            channel = twin.channel_status(self.channel)
            mine: list[object] = [plain(twin.announced(self.channel)), channel.items, channel.size_bytes]
            mine += [plain(twin.settled(reader)) for reader in self.readers]
            mine.append(twin.raw(self.channel))
            said.append(mine)
        assert said[0] == said[1]

    def teardown(self) -> None:
        for twin in self.twins:
            twin.close()


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
