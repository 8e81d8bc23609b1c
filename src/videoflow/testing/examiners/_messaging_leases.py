"""Laws of reading: leases, credit, spread, order, ownership."""

from videoflow.backends.messaging import (
    Bounds,
    Completed,
    Delivery,
    Retry,
)
from videoflow.backends.outcomes import SettleConfirmed, SettleStale, SettleUnknown
from videoflow.testing.examiners import _messaging_laws as laws
from videoflow.testing.examiners._examiner import Examiner
from videoflow.testing.examiners._law import law
from videoflow.testing.examiners._messaging_subject import MessagingSubject
from videoflow.testing.examiners.envelopes import competing, data, ordinals, reliable, skip


class CompetingSuite(Examiner[MessagingSubject]):
    """Replicas that share one subscription."""

    @law(laws.ONE_HOLDER)
    def test_two_replicas_never_hold_one_message(self, subject: MessagingSubject) -> None:
        work = competing()
        channel = subject.provision(reliable(work, replicas=2))
        subject.accepted(*(data(channel, n) for n in range(6)))
        first = subject.receive(work, 2, "a")
        second = subject.receive(work, 4, "b")
        assert sorted(ordinals(first) + ordinals(second)) == list(range(6))
        subject.nothing(work, "a")

    @law(laws.KEPT_FOR_ALL)
    def test_each_subscription_gets_every_message(self, subject: MessagingSubject) -> None:
        readers = [competing("one"), competing("two")]
        channel = subject.provision(*map(reliable, readers))
        subject.accepted(data(channel, 0), data(channel, 1))
        for reader in readers:
            taken = subject.receive(reader, 2)
            assert ordinals(taken) == [0, 1]
            subject.settle(*taken)

    @law(laws.CREDIT)
    def test_credit_in_items_bounds_what_is_leased(self, subject: MessagingSubject) -> None:
        work = competing()
        channel = subject.provision(reliable(work, credit=Bounds(2, 1000)))
        subject.accepted(*(data(channel, n) for n in range(4)))
        taken = subject.receive(work, 2)
        subject.nothing(work)
        subject.settle(taken[1])
        assert ordinals(subject.receive(work, 1)) == [2]
        subject.nothing(work)

    @law(laws.CREDIT)
    def test_credit_in_bytes_too_and_one_oversize_item_passes_alone(self, subject: MessagingSubject) -> None:
        work = competing()
        channel = subject.provision(reliable(work, credit=Bounds(100, 25)))
        sizes = (10, 10, 10, 99, 10)
        subject.accepted(*(data(channel, n, size_bytes=size) for n, size in enumerate(sizes)))
        small = subject.receive(work, 2)
        subject.nothing(work)
        subject.settle(*small)
        third = subject.receive(work, 1)
        subject.nothing(work)
        subject.settle(*third)
        large = subject.receive(work, 1)
        assert ordinals(large) == [3]
        subject.nothing(work)
        subject.settle(*large)
        assert ordinals(subject.receive(work, 1)) == [4]

    @law(laws.NO_ROOM_NEEDED)
    def test_skips_consume_no_credit(self, subject: MessagingSubject) -> None:
        work = competing()
        channel = subject.provision(reliable(work, credit=Bounds(1, 10)))
        subject.accepted(
            skip(channel, (0, 0)), data(channel, 1), skip(channel, (2, 2)), skip(channel, (3, 3))
        )
        assert ordinals(subject.receive(work, 4)) == [0, 1, 2, 3]

    @law(laws.CREDIT)
    def test_no_more_than_asked_for(self, subject: MessagingSubject) -> None:
        work = competing()
        channel = subject.provision(reliable(work))
        subject.accepted(*(data(channel, n) for n in range(3)))
        taken = subject.backend("reader").receive(work, deadline=subject.soon(), max_items=2)
        assert 1 <= len(taken) <= 2

    @law(laws.SPREAD)
    def test_the_spread_holds_back_what_lies_too_far_ahead(self, subject: MessagingSubject) -> None:
        """Rule 4: nothing is handed out as dispatch p while one at or before p - W is unsettled."""
        work = competing()
        channel = subject.provision(reliable(work, spread=3, replicas=2))
        subject.accepted(*(data(channel, n) for n in range(8)))
        slow = subject.receive(work, 1, "a")
        fast = subject.receive(work, 2, "b")
        subject.nothing(work, "b")
        subject.settle(*fast, owner="b")
        subject.nothing(work, "b")
        subject.settle(*slow, owner="a")
        assert ordinals(subject.receive(work, 3, "b")) == [3, 4, 5]
        subject.nothing(work, "b")

    @law(laws.COMES_BACK)
    def test_what_a_dead_replica_held_comes_first_and_is_counted(self, subject: MessagingSubject) -> None:
        work = competing()
        channel = subject.provision(reliable(work, spread=4, replicas=2))
        subject.accepted(*(data(channel, n) for n in range(6)))
        dead = ordinals(subject.receive(work, 2, "a"))
        subject.receive(work, 1, "b")
        subject.kill("a")
        again = subject.receive(work, 3, "b")
        counts = {d.envelope.origin.ordinal: d.token.transport_count for d in again}
        assert counts == {n: 2 if n in dead else 1 for n in counts}
        assert set(dead) < set(counts)

    @law(laws.UNCHARGED)
    def test_what_is_handed_back_comes_first_and_is_not_counted(self, subject: MessagingSubject) -> None:
        work = competing()
        channel = subject.provision(reliable(work))
        subject.accepted(*(data(channel, n) for n in range(3)))
        taken = subject.receive(work, 2)
        subject.backend("reader").hand_back([d.token for d in taken], deadline=subject.soon())
        again = subject.receive(work, 3)
        assert ordinals(again) == [0, 1, 2]
        assert [d.token.transport_count for d in again] == [1, 1, 1]

    @law(laws.UNCHARGED)
    def test_handing_back_twice_takes_nothing_from_the_next_holder(self, subject: MessagingSubject) -> None:
        work = competing()
        channel = subject.provision(reliable(work, replicas=2))
        subject.accepted(data(channel, 0))
        tokens = [d.token for d in subject.receive(work, 1, "a")]
        subject.backend("a").hand_back(tokens, deadline=subject.soon())
        (held,) = subject.receive(work, 1, "b")
        subject.backend("a").hand_back(tokens, deadline=subject.soon())
        subject.nothing(work, "a")
        subject.settle(held, owner="b")

    @law(laws.STALE_TOKENS)
    def test_a_superseded_token_settles_nothing(self, subject: MessagingSubject) -> None:
        work = competing()
        channel = subject.provision(reliable(work, replicas=2))
        subject.accepted(data(channel, 0))
        (old,) = subject.receive(work, 1, "a")
        subject.backend("engine").release_owner("a", deadline=subject.soon())
        late = subject.backend("b")
        for_old = [(old.token, Completed())]
        (outcome,) = late.settle(for_old, deadline=subject.soon())
        assert isinstance(outcome, SettleStale)
        (new,) = subject.receive(work, 1, "b")
        (outcome,) = late.settle(for_old, deadline=subject.soon())
        assert isinstance(outcome, SettleStale)
        assert outcome.current_transport_count == new.token.transport_count == 2
        assert outcome.current_generation == new.token.generation
        assert subject.status(work).leased == 1
        subject.settle(new, owner="b")
        (outcome,) = late.settle(for_old, deadline=subject.soon())
        assert isinstance(outcome, SettleStale)
        assert list(late.renew([old.token], deadline=subject.soon())) == [False]

    @law(laws.SETTLED_ONCE)
    def test_settling_again_is_confirmed_with_the_same_receipt(self, subject: MessagingSubject) -> None:
        work = competing()
        channel = subject.provision(reliable(work))
        subject.accepted(data(channel, 0), data(channel, 1))
        first, second = subject.receive(work, 2)
        reader = subject.backend("reader")
        (receipt,) = reader.settle([(first.token, Completed())], deadline=subject.soon())
        outcomes = reader.settle([(d.token, Completed()) for d in (first, second)], deadline=subject.soon())
        assert outcomes[0] == receipt
        assert all(isinstance(outcome, SettleConfirmed) for outcome in outcomes)
        assert subject.status(work).leased == 0

    @law(laws.SETTLED_WHOLE)
    def test_the_tokens_of_one_call_are_settled_all_or_none(self, subject: MessagingSubject) -> None:
        work = competing()
        channel = subject.provision(reliable(work, replicas=2))
        subject.accepted(data(channel, 0))
        (stale,) = subject.receive(work, 1, "a")
        subject.kill("a")
        subject.receive(work, 1, "b")
        subject.accepted(data(channel, 1))
        (mine,) = subject.receive(work, 1, "b")
        pairs = [(mine.token, Completed()), (stale.token, Completed())]
        outcomes = subject.backend("b").settle(pairs, deadline=subject.soon())
        assert [type(outcome) for outcome in outcomes] == [SettleUnknown, SettleStale]
        assert subject.status(work).leased == 2
        subject.settle(mine, owner="b")

    @law(laws.SETTLED_WHOLE)
    def test_one_call_settles_across_subscriptions(self, subject: MessagingSubject) -> None:
        readers = [competing("one"), competing("two")]
        channel = subject.provision(*map(reliable, readers))
        subject.accepted(data(channel, 0))
        subject.settle(*(subject.receive(reader, 1)[0] for reader in readers))
        assert subject.channel_status(channel).items == 0

    @law(laws.RETRY)
    def test_a_retry_comes_back_after_its_delay_uncharged(self, subject: MessagingSubject) -> None:
        work = competing()
        channel = subject.provision(reliable(work, spread=2))
        subject.accepted(*(data(channel, n) for n in range(4)))
        first, second = subject.receive(work, 2)
        subject.settle(first, settlement=Retry(0.05))
        subject.settle(second)
        subject.nothing(work)
        subject.advance(0.06)
        (again,) = subject.receive(work, 1)
        assert ordinals([again]) == [0]
        assert again.token.transport_count == 1
        subject.settle(again, settlement=Retry())
        assert ordinals(subject.receive(work, 1)) == [0]

    @law(laws.WAKES)
    def test_a_waitable_is_ready_when_there_is_something(self, subject: MessagingSubject) -> None:
        work = competing()
        channel = subject.provision(reliable(work, credit=Bounds(1, 1000)))
        waitable = subject.backend("reader").waitable(work)
        assert not waitable.ready()
        subject.accepted(data(channel, 0), data(channel, 1))
        assert subject.clock.wait([waitable], subject.soon()) == {waitable}
        taken = subject.receive(work, 1)
        assert not waitable.ready()
        subject.settle(*taken)
        assert subject.clock.wait([waitable], subject.soon()) == {waitable}

    @law(laws.WAKES)
    def test_several_subscriptions_are_waited_for_and_received_from_at_once(
        self, subject: MessagingSubject
    ) -> None:
        readers = [competing("one"), competing("two")]
        channel = subject.provision(*map(reliable, readers))
        reader = subject.backend("reader")
        waitables = reader.waitables(readers)
        assert not any(waitable.ready() for waitable in waitables)
        subject.accepted(data(channel, 0), data(channel, 1))
        taken: list[list[Delivery]] = [[] for _ in readers]
        for _ in range(2):
            assert subject.clock.wait(waitables, subject.soon())
            found = reader.receive_each([(each, None) for each in readers], max_items=1)
            for mine, more in zip(taken, found, strict=True):
                mine += more
        assert [ordinals(mine) for mine in taken] == [[0, 1], [0, 1]]
        subject.settle(*taken[0], *taken[1])

    @law(laws.WAKES)
    def test_an_interrupted_receive_returns_empty(self, subject: MessagingSubject) -> None:
        work = competing()
        subject.provision(reliable(work))
        reader = subject.backend("reader")
        reader.interrupt()
        reader.interrupt()
        assert list(reader.receive(work, deadline=subject.soon())) == []
