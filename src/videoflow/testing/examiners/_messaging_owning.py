"""Laws of exclusive reading: order, ownership, floors."""

import pytest

from videoflow.backends.messaging import (
    Bounds,
    Completed,
    Retry,
    SubscriptionId,
)
from videoflow.backends.outcomes import Known, SettleStale, Unknown
from videoflow.errors import ContractBroken, StaleAuthority
from videoflow.testing.examiners import _messaging_laws as laws
from videoflow.testing.examiners._examiner import Examiner
from videoflow.testing.examiners._law import law
from videoflow.testing.examiners._messaging_subject import MessagingSubject
from videoflow.testing.examiners.envelopes import competing, data, exclusive, ordinals, reliable


class ExclusiveSuite(Examiner[MessagingSubject]):
    """One owner per partition, in channel order."""

    def acquire(
        self, subject: MessagingSubject, sink: SubscriptionId, epoch: int, owner: str = "reader"
    ) -> dict[int, int]:
        observed = subject.backend(owner).acquire(sink, epoch, deadline=subject.soon())
        assert isinstance(observed, Known)
        return dict(observed.value.settled_floors)

    @law(laws.FLOORS)
    def test_delivery_starts_above_the_settled_floor(self, subject: MessagingSubject) -> None:
        sink = exclusive()
        channel = subject.provision(reliable(sink))
        subject.accepted(*(data(channel, n) for n in range(4)))
        floors = self.acquire(subject, sink, 1, "a")
        assert floors == {0: -1}
        taken = subject.receive(sink, 4, "a", after=floors)
        subject.settle(taken[0], taken[1], taken[3], owner="a")
        subject.kill("a")
        observed = subject.backend("b").acquire(sink, 2, deadline=subject.soon())
        assert isinstance(observed, Known)
        assert observed.value.settled_floors == {0: taken[1].token.position[1]}
        (record,) = observed.value.settled
        assert record.ordinals == [("delivered", "", [(0, 1), (3, 3)])]
        subject.accepted(data(channel, 4))
        again = subject.receive(sink, 2, "b", after=observed.value.settled_floors)
        assert ordinals(again) == [2, 4]
        assert [d.token.transport_count for d in again] == [2, 1]

    @law(laws.ORDERED)
    def test_a_lost_answer_is_asked_for_again(self, subject: MessagingSubject) -> None:
        sink = exclusive()
        channel = subject.provision(reliable(sink))
        subject.accepted(*(data(channel, n) for n in range(3)))
        after = self.acquire(subject, sink, 1)
        first = subject.receive(sink, 2, after=after)
        again = subject.receive(sink, 3, after=after)
        assert ordinals(again) == [0, 1, 2]
        assert [d.token for d in again[:2]] == [d.token for d in first]
        position = dict([first[0].token.position])
        assert ordinals(subject.receive(sink, 2, after=position)) == [1, 2]
        subject.nothing(sink, after=dict([again[2].token.position]))

    @law(laws.ORDERED)
    def test_nothing_newer_goes_before_an_older_unsettled_one(self, subject: MessagingSubject) -> None:
        sink = exclusive()
        channel = subject.provision(reliable(sink))
        subject.accepted(*(data(channel, n) for n in range(3)))
        self.acquire(subject, sink, 1)
        assert ordinals(subject.receive(sink, 3, after={0: 10**6})) == [0, 1, 2]

    @law(laws.CREDIT)
    def test_credit_counts_what_is_leased_and_asking_again_costs_none(
        self, subject: MessagingSubject
    ) -> None:
        sink = exclusive()
        channel = subject.provision(reliable(sink, credit=Bounds(2, 1000)))
        subject.accepted(*(data(channel, n) for n in range(4)))
        after = self.acquire(subject, sink, 1)
        taken = subject.receive(sink, 2, after=after)
        subject.nothing(sink, after=dict([taken[1].token.position]))
        assert ordinals(subject.receive(sink, 2, after=after)) == [0, 1]
        subject.settle(taken[1])
        assert ordinals(subject.receive(sink, 1, after=dict([taken[1].token.position]))) == [2]

    @law(laws.ORDERED)
    def test_the_order_within_each_writer_is_kept(self, subject: MessagingSubject) -> None:
        sink = exclusive()
        channel = subject.provision(reliable(sink), slots=2)
        for n in range(0, 8, 2):
            subject.accepted(data(channel, n, slot=0), data(channel, n + 1, slot=1))
        after = self.acquire(subject, sink, 1)
        taken = subject.receive(sink, 8, after=after)
        for slot in range(2):
            mine = [d for d in taken if d.token.position[0] == slot]
            assert ordinals(mine) == list(range(slot, 8, 2))
        positions = dict(d.token.position for d in taken[:3])
        rest = subject.receive(sink, 5, after={0: -1, 1: -1, **positions})
        assert ordinals(rest) == ordinals(taken[3:])
        last = {
            slot: max(s for at, s in (d.token.position for d in taken) if at == slot) for slot in range(2)
        }
        for slot in range(2):
            mine = subject.receive(sink, 4, after={**last, slot: -1})
            assert ordinals(mine) == list(range(slot, 8, 2))

    @law(laws.OWNERS_FENCED)
    def test_a_newer_epoch_fences_the_older_one(self, subject: MessagingSubject) -> None:
        sink = exclusive()
        channel = subject.provision(reliable(sink))
        subject.accepted(data(channel, 0))
        after = self.acquire(subject, sink, 1, "a")
        (held,) = subject.receive(sink, 1, "a", after=after)
        self.acquire(subject, sink, 2, "b")
        old = subject.backend("a")
        with pytest.raises(StaleAuthority):
            old.acquire(sink, 1, deadline=subject.soon())
        with pytest.raises(StaleAuthority):
            old.receive(sink, deadline=0.0, after=after)
        (outcome,) = old.settle([(held.token, Completed())], deadline=subject.soon())
        assert isinstance(outcome, SettleStale)
        (again,) = subject.receive(sink, 1, "b", after=after)
        assert again.token.transport_count == 2
        subject.settle(again, owner="b")

    @law(laws.OWNERS_FENCED)
    def test_acquiring_again_delivers_again_uncharged(self, subject: MessagingSubject) -> None:
        sink = exclusive()
        channel = subject.provision(reliable(sink))
        subject.accepted(data(channel, 0))
        after = self.acquire(subject, sink, 1)
        subject.receive(sink, 1, after=after)
        assert self.acquire(subject, sink, 1) == after
        (again,) = subject.receive(sink, 1, after=after)
        assert again.token.transport_count == 1

    @law(laws.RETRY)
    def test_what_is_for_competing_readers_is_refused(self, subject: MessagingSubject) -> None:
        sink, work = exclusive(), competing()
        channel = subject.provision(reliable(sink), reliable(work))
        subject.accepted(data(channel, 0))
        reader = subject.backend("reader")
        with pytest.raises(ContractBroken):
            reader.acquire(work, 1, deadline=subject.soon())
        with pytest.raises(ContractBroken):
            reader.receive(sink, deadline=0.0)
        after = self.acquire(subject, sink, 1)
        (held,) = subject.receive(sink, 1, after=after)
        with pytest.raises(ContractBroken):
            reader.settle([(held.token, Retry())], deadline=subject.soon())
        subject.settle(held)

    @law(laws.NOT_EMPTY)
    def test_acquiring_what_nobody_made_is_unknown(self, subject: MessagingSubject) -> None:
        observed = subject.backend("reader").acquire(exclusive(), 1, deadline=subject.soon())
        assert isinstance(observed, Unknown)
