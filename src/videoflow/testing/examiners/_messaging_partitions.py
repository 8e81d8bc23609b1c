"""Laws of partitioned channels: one statement in all partitions, one window over all of a reader."""

from videoflow.backends.coverage import Coverage, Hop, OriginRecord, without_elsewhere
from videoflow.backends.messaging import Bounds, ChannelId, Kind
from videoflow.backends.outcomes import Accepted, RejectReason
from videoflow.testing.examiners import _messaging_laws as laws
from videoflow.testing.examiners._examiner import Examiner
from videoflow.testing.examiners._law import law
from videoflow.testing.examiners._messaging_subject import MessagingSubject
from videoflow.testing.examiners.envelopes import (
    ROOMY,
    data,
    exclusive,
    ordinals,
    parted,
    reliable,
    skip,
    spread_out,
    tally,
)

FIRST = {0: -1}


class PartitionSuite(Examiner[MessagingSubject]):
    """Two partitions of one channel, each with an owner of its own."""

    def provision(
        self,
        subject: MessagingSubject,
        bounds: Bounds = ROOMY,
        credit: Bounds = ROOMY,
        spread: int | None = None,
    ) -> ChannelId:
        """Makes a channel of two partitions with one reader of each."""
        channel = parted()
        specs = [reliable(exclusive(channel=channel, partition=p), credit, spread, 2) for p in range(2)]
        return subject.provision(*specs, bounds=bounds)

    @law(laws.ROOM)
    def test_partitions_fill_on_their_own(self, subject: MessagingSubject) -> None:
        channel = self.provision(subject, bounds=Bounds(1, 1000))
        subject.accepted(data(channel, 0, partition=0))
        subject.rejected(RejectReason.FULL, data(channel, 1, partition=0))
        subject.accepted(data(channel, 2, partition=1))
        for number, (reader, owner) in enumerate(subject.acquired(channel)):
            assert ordinals(subject.receive(reader, 1, owner, after=FIRST)) == [(0, 2)[number]]

    @law(laws.ELSEWHERE)
    def test_the_item_comes_to_one_partition_and_a_notice_to_the_other(
        self, subject: MessagingSubject
    ) -> None:
        channel = self.provision(subject)
        statements = [spread_out(data(channel, n, partition=n % 2), n % 2) for n in range(4)]
        for statement in statements:
            subject.accepted(*statement)
        for number, (reader, owner) in enumerate(subject.acquired(channel)):
            taken = subject.receive(reader, 4, owner, after=FIRST)
            assert [d.envelope for d in taken] == [statement[number] for statement in statements]
            kinds = [Kind.DATA if n % 2 == number else Kind.IDLE for n in range(4)]
            assert [d.envelope.kind for d in taken] == kinds

    @law(laws.ELSEWHERE)
    def test_a_notice_takes_neither_room_nor_credit(self, subject: MessagingSubject) -> None:
        channel = self.provision(subject, bounds=Bounds(1, 1000), credit=Bounds(1, 1000))
        subject.accepted(*spread_out(data(channel, 0), 0))
        subject.accepted(*spread_out(data(channel, 1), 1))
        subject.accepted(*spread_out(skip(channel, (2, 4))))
        assert subject.channel_status(channel).items == 2
        for reader, owner in subject.acquired(channel):
            assert len(subject.receive(reader, 3, owner, after=FIRST)) == 3

    @law(laws.WHOLE)
    def test_a_statement_without_room_in_one_partition_is_in_none(self, subject: MessagingSubject) -> None:
        channel = self.provision(subject, bounds=Bounds(1, 1000))
        subject.accepted(*spread_out(data(channel, 0), 1))
        subject.rejected(RejectReason.FULL, *spread_out(data(channel, 1), 1))
        assert [name for name in subject.raw(channel) if name.startswith("publication-1")] == []
        for reader, owner in subject.acquired(channel):
            taken = subject.receive(reader, 1, owner, after=FIRST)
            subject.nothing(reader, owner, after=dict([taken[0].token.position]))
            subject.settle(*taken, owner=owner)
        subject.accepted(*spread_out(data(channel, 1), 1))

    @law(laws.FIRST_WINS)
    def test_a_statement_said_again_is_a_duplicate_in_every_partition(
        self, subject: MessagingSubject
    ) -> None:
        channel = self.provision(subject)
        subject.accepted(*spread_out(data(channel, 0), 0))
        subject.accepted(*spread_out(data(channel, 1), 1))
        subject.accepted(*spread_out(skip(channel, (2, 3))))
        again = [spread_out(data(channel, 0), 0), spread_out(data(channel, 1), 1)]
        for statement in [*again, spread_out(skip(channel, (2, 3)))]:
            subject.duplicates(*statement)
        for reader, owner in subject.acquired(channel):
            taken = subject.receive(reader, 3, owner, after=FIRST)
            subject.nothing(reader, owner, after=dict([taken[-1].token.position]))
            subject.settle(*taken, owner=owner)
        subject.duplicates(*again[0])
        subject.duplicates(*spread_out(data(channel, 3), 1))

    @law(laws.ELSEWHERE)
    def test_writers_announce_each_ordinal_once(self, subject: MessagingSubject) -> None:
        channel = self.provision(subject)
        subject.accepted(*spread_out(data(channel, 0), 0))
        subject.accepted(*spread_out(data(channel, 1), 1))
        subject.accepted(*spread_out(skip(channel, (2, 4))))
        assert tally(subject.announced(channel)) == {
            ("delivered", ""): [(0, 1)],
            ("skipped", "skipped"): [(2, 4)],
        }

    @law(laws.ELSEWHERE)
    def test_each_partition_says_what_it_settled_and_what_is_elsewhere(
        self, subject: MessagingSubject
    ) -> None:
        channel = self.provision(subject)
        subject.accepted(*spread_out(data(channel, 0), 0))
        subject.accepted(*spread_out(data(channel, 1), 1))
        subject.accepted(*spread_out(skip(channel, (2, 4))))
        together = Coverage()
        found = []
        for reader, owner in subject.acquired(channel):
            subject.settle(*subject.receive(reader, 3, owner, after=FIRST), owner=owner)
            records: tuple[OriginRecord, ...] = subject.settled(reader)
            found.append(tally(records))
            together.merge(without_elsewhere(records))
        assert found == [
            {("delivered", ""): [(0, 0)], ("elsewhere", ""): [(1, 1)], ("skipped", "skipped"): [(2, 4)]},
            {("delivered", ""): [(1, 1)], ("elsewhere", ""): [(0, 0), (2, 4)]},
        ]
        assert tally(tuple(together.records())) == tally(subject.announced(channel))

    @law(laws.ELSEWHERE)
    def test_the_elements_of_a_fan_out_go_to_different_partitions(self, subject: MessagingSubject) -> None:
        channel = self.provision(subject)
        hops = [Hop("detect", "crops", k, 3) for k in range(3)]
        said = [spread_out(data(channel, 0, path=(hop,)), hop.k % 2) for hop in hops]
        subject.accepted(*(envelope for element in said for envelope in element))
        subject.duplicates(*(envelope for element in said for envelope in element))
        taken = {}
        for reader, owner in subject.acquired(channel):
            deliveries = subject.receive(reader, 3, owner, after=FIRST)
            mine = [d.envelope.path[0].k for d in deliveries if d.envelope.kind is Kind.DATA]
            taken[owner] = mine
            subject.settle(*deliveries, owner=owner)
        assert taken == {"part-0": [0, 2], "part-1": [1]}
        (announced,) = subject.announced(channel)
        assert (announced.deep_ordinals, announced.deep_items) == ([(0, 0)], [("delivered", "", 3)])

    @law(laws.ENDS)
    def test_an_end_is_stamped_in_every_partition_and_each_finishes_on_its_own(
        self, subject: MessagingSubject
    ) -> None:
        channel = self.provision(subject)
        subject.accepted(*spread_out(data(channel, 0), 0))
        outcomes = subject.backend("writer").terminate(channel, 0, 0, Kind.END, deadline=subject.soon())
        assert [type(outcome) for outcome in outcomes] == [Accepted, Accepted]
        (first, one), (second, two) = subject.acquired(channel)
        subject.settle(*subject.receive(second, 1, two, after=FIRST), owner=two)
        assert subject.status(second).finished
        assert not subject.status(first).finished
        subject.settle(*subject.receive(first, 1, one, after=FIRST), owner=one)
        assert subject.status(first).finished

    @law(laws.ONE_WINDOW)
    def test_no_partition_runs_ahead_of_another_by_the_spread(self, subject: MessagingSubject) -> None:
        if not subject.capabilities.gated_dispatch:
            return
        channel = self.provision(subject, spread=3)
        for n in range(8):
            subject.accepted(*spread_out(data(channel, n), n % 2))
        (first, one), (second, two) = subject.acquired(channel)
        taken = subject.receive(first, 3, one, after=FIRST)
        last = dict([taken[-1].token.position])
        subject.nothing(first, one, after=last)
        subject.settle(*taken, owner=one)
        subject.nothing(first, one, after=last)
        slow = subject.receive(second, 3, two, after=FIRST)
        subject.settle(slow[1], owner=two)
        subject.nothing(first, one, after=last)
        subject.settle(slow[0], owner=two)
        ahead = subject.receive(first, 2, one, after=last)
        assert ordinals(ahead) == [3, 4]
        subject.nothing(first, one, after=dict([ahead[-1].token.position]))

    @law(laws.WAKES)
    def test_a_partition_is_woken_by_what_another_settles(self, subject: MessagingSubject) -> None:
        if not subject.capabilities.gated_dispatch:
            return
        channel = self.provision(subject, spread=1)
        for n in range(2):
            subject.accepted(*spread_out(data(channel, n), n % 2))
        (first, one), (second, two) = subject.acquired(channel)
        taken = subject.receive(first, 1, one, after=FIRST)
        subject.settle(*taken, owner=one)
        waitable = subject.backend(one).waitable(first)
        subject.nothing(first, one, after=dict([taken[0].token.position]))
        subject.settle(*subject.receive(second, 1, two, after=FIRST), owner=two)
        assert subject.waited(waitable)
        assert ordinals(subject.receive(first, 1, one, after=dict([taken[0].token.position]))) == [1]

    @law(laws.COMES_BACK)
    def test_what_a_dead_owner_held_keeps_the_window_shut(self, subject: MessagingSubject) -> None:
        channel = self.provision(subject, spread=2 if subject.capabilities.gated_dispatch else None)
        for n in range(4):
            subject.accepted(*spread_out(data(channel, n), n % 2))
        (first, one), (second, two) = subject.acquired(channel)
        held = subject.receive(second, 2, two, after=FIRST)
        subject.kill(two)
        taken = subject.receive(first, 2, one, after=FIRST)
        last = dict([taken[-1].token.position])
        subject.settle(*taken, owner=one)
        if subject.capabilities.gated_dispatch:
            subject.nothing(first, one, after=last)
        subject.backend(two).acquire(second, 2, deadline=subject.soon())
        again = subject.receive(second, 2, two, after=FIRST)
        assert ordinals(again) == ordinals(held)
        assert [d.token.transport_count for d in again] == [2, 2]
        subject.settle(*again, owner=two)
        assert ordinals(subject.receive(first, 2, one, after=last)) == [2, 3]
