"""Random schedules: a messaging implementation against a model of a few lines.

Used by adapters' tests, through `run_state_machine_as_test`. One channel has two writers and three readers,
and the model knows what must be: whatever happens, the ledger closes.
"""

from collections.abc import Callable

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from videoflow.backends.intervals import IntervalSet
from videoflow.backends.messaging import (
    Bounds,
    Completed,
    CompletedReason,
    Delivery,
    Kind,
    Terminal,
)
from videoflow.backends.outcomes import Accepted, SettleStale
from videoflow.testing.examiners._messaging_subject import MessagingSubject
from videoflow.testing.examiners.envelopes import (
    competing,
    data,
    exclusive,
    live,
    reliable,
    skip,
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
