"""Laws of reading: leases, credit, spread, order, ownership."""

import pytest

from tests.backends.messaging_harness import (
    Harness,
    competing,
    data,
    exclusive,
    ordinals,
    reliable,
    skip,
)
from videoflow.backends.messaging import (
    Bounds,
    Completed,
    Retry,
    SubscriptionId,
)
from videoflow.backends.outcomes import Known, SettleConfirmed, SettleStale, SettleUnknown, Unknown
from videoflow.errors import ContractBroken, StaleAuthority


class CompetingSuite:
    """Replicas that share one subscription."""

    def test_two_replicas_never_hold_one_message(self, harness: Harness) -> None:
        work = competing()
        channel = harness.provision(reliable(work, replicas=2))
        harness.accepted(*(data(channel, n) for n in range(6)))
        first = harness.receive(work, 2, "a")
        second = harness.receive(work, 4, "b")
        assert sorted(ordinals(first) + ordinals(second)) == list(range(6))
        harness.nothing(work, "a")

    def test_each_subscription_gets_every_message(self, harness: Harness) -> None:
        readers = [competing("one"), competing("two")]
        channel = harness.provision(*map(reliable, readers))
        harness.accepted(data(channel, 0), data(channel, 1))
        for reader in readers:
            taken = harness.receive(reader, 2)
            assert ordinals(taken) == [0, 1]
            harness.settle(*taken)

    def test_credit_in_items_bounds_what_is_leased(self, harness: Harness) -> None:
        work = competing()
        channel = harness.provision(reliable(work, credit=Bounds(2, 1000)))
        harness.accepted(*(data(channel, n) for n in range(4)))
        taken = harness.receive(work, 2)
        harness.nothing(work)
        harness.settle(taken[1])
        assert ordinals(harness.receive(work, 1)) == [2]
        harness.nothing(work)

    def test_credit_in_bytes_too_and_one_oversize_item_passes_alone(self, harness: Harness) -> None:
        work = competing()
        channel = harness.provision(reliable(work, credit=Bounds(100, 25)))
        sizes = (10, 10, 10, 99, 10)
        harness.accepted(*(data(channel, n, size_bytes=size) for n, size in enumerate(sizes)))
        small = harness.receive(work, 2)
        harness.nothing(work)
        harness.settle(*small)
        third = harness.receive(work, 1)
        harness.nothing(work)
        harness.settle(*third)
        large = harness.receive(work, 1)
        assert ordinals(large) == [3]
        harness.nothing(work)
        harness.settle(*large)
        assert ordinals(harness.receive(work, 1)) == [4]

    def test_skips_consume_no_credit(self, harness: Harness) -> None:
        work = competing()
        channel = harness.provision(reliable(work, credit=Bounds(1, 10)))
        harness.accepted(
            skip(channel, (0, 0)), data(channel, 1), skip(channel, (2, 2)), skip(channel, (3, 3))
        )
        assert ordinals(harness.receive(work, 4)) == [0, 1, 2, 3]

    def test_no_more_than_asked_for(self, harness: Harness) -> None:
        work = competing()
        channel = harness.provision(reliable(work))
        harness.accepted(*(data(channel, n) for n in range(3)))
        taken = harness.backend("reader").receive(work, deadline=harness.soon(), max_items=2)
        assert 1 <= len(taken) <= 2

    def test_the_spread_holds_back_what_lies_too_far_ahead(self, harness: Harness) -> None:
        """Rule 4: nothing is handed out as dispatch p while one at or before p - W is unsettled."""
        work = competing()
        channel = harness.provision(reliable(work, spread=3, replicas=2))
        harness.accepted(*(data(channel, n) for n in range(8)))
        slow = harness.receive(work, 1, "a")
        fast = harness.receive(work, 2, "b")
        harness.nothing(work, "b")
        harness.settle(*fast, owner="b")
        harness.nothing(work, "b")
        harness.settle(*slow, owner="a")
        assert ordinals(harness.receive(work, 3, "b")) == [3, 4, 5]
        harness.nothing(work, "b")

    def test_what_a_dead_replica_held_comes_first_and_is_counted(self, harness: Harness) -> None:
        work = competing()
        channel = harness.provision(reliable(work, spread=4, replicas=2))
        harness.accepted(*(data(channel, n) for n in range(6)))
        assert ordinals(harness.receive(work, 2, "a")) == [0, 1]
        assert ordinals(harness.receive(work, 1, "b")) == [2]
        harness.kill("a")
        again = harness.receive(work, 3, "b")
        assert ordinals(again) == [0, 1, 3]
        assert [d.token.transport_count for d in again] == [2, 2, 1]

    def test_what_is_handed_back_comes_first_and_is_not_counted(self, harness: Harness) -> None:
        work = competing()
        channel = harness.provision(reliable(work))
        harness.accepted(*(data(channel, n) for n in range(3)))
        taken = harness.receive(work, 2)
        harness.backend("reader").hand_back([d.token for d in taken], deadline=harness.soon())
        again = harness.receive(work, 3)
        assert ordinals(again) == [0, 1, 2]
        assert [d.token.transport_count for d in again] == [1, 1, 1]

    def test_handing_back_twice_takes_nothing_from_the_next_holder(self, harness: Harness) -> None:
        work = competing()
        channel = harness.provision(reliable(work, replicas=2))
        harness.accepted(data(channel, 0))
        tokens = [d.token for d in harness.receive(work, 1, "a")]
        harness.backend("a").hand_back(tokens, deadline=harness.soon())
        (held,) = harness.receive(work, 1, "b")
        harness.backend("a").hand_back(tokens, deadline=harness.soon())
        harness.nothing(work, "a")
        harness.settle(held, owner="b")

    def test_a_superseded_token_settles_nothing(self, harness: Harness) -> None:
        work = competing()
        channel = harness.provision(reliable(work, replicas=2))
        harness.accepted(data(channel, 0))
        (old,) = harness.receive(work, 1, "a")
        harness.backend("engine").release_owner("a", deadline=harness.soon())
        late = harness.backend("b")
        for_old = [(old.token, Completed())]
        (outcome,) = late.settle(for_old, deadline=harness.soon())
        assert isinstance(outcome, SettleStale)
        (new,) = harness.receive(work, 1, "b")
        (outcome,) = late.settle(for_old, deadline=harness.soon())
        assert isinstance(outcome, SettleStale)
        assert outcome.current_transport_count == new.token.transport_count == 2
        assert outcome.current_generation == new.token.generation
        assert harness.status(work).leased == 1
        harness.settle(new, owner="b")
        (outcome,) = late.settle(for_old, deadline=harness.soon())
        assert isinstance(outcome, SettleStale)
        assert list(late.renew([old.token], deadline=harness.soon())) == [False]

    def test_settling_again_is_confirmed_with_the_same_receipt(self, harness: Harness) -> None:
        work = competing()
        channel = harness.provision(reliable(work))
        harness.accepted(data(channel, 0), data(channel, 1))
        first, second = harness.receive(work, 2)
        reader = harness.backend("reader")
        (receipt,) = reader.settle([(first.token, Completed())], deadline=harness.soon())
        outcomes = reader.settle([(d.token, Completed()) for d in (first, second)], deadline=harness.soon())
        assert outcomes[0] == receipt
        assert all(isinstance(outcome, SettleConfirmed) for outcome in outcomes)
        assert harness.status(work).leased == 0

    def test_the_tokens_of_one_call_are_settled_all_or_none(self, harness: Harness) -> None:
        work = competing()
        channel = harness.provision(reliable(work, replicas=2))
        harness.accepted(data(channel, 0))
        (stale,) = harness.receive(work, 1, "a")
        harness.kill("a")
        harness.receive(work, 1, "b")
        harness.accepted(data(channel, 1))
        (mine,) = harness.receive(work, 1, "b")
        pairs = [(mine.token, Completed()), (stale.token, Completed())]
        outcomes = harness.backend("b").settle(pairs, deadline=harness.soon())
        assert [type(outcome) for outcome in outcomes] == [SettleUnknown, SettleStale]
        assert harness.status(work).leased == 2
        harness.settle(mine, owner="b")

    def test_one_call_settles_across_subscriptions(self, harness: Harness) -> None:
        readers = [competing("one"), competing("two")]
        channel = harness.provision(*map(reliable, readers))
        harness.accepted(data(channel, 0))
        harness.settle(*(harness.receive(reader, 1)[0] for reader in readers))
        assert harness.channel_status(channel).items == 0

    def test_a_retry_comes_back_after_its_delay_uncharged(self, harness: Harness) -> None:
        work = competing()
        channel = harness.provision(reliable(work, spread=2))
        harness.accepted(*(data(channel, n) for n in range(4)))
        first, second = harness.receive(work, 2)
        harness.settle(first, settlement=Retry(0.05))
        harness.settle(second)
        harness.nothing(work)
        harness.advance(0.06)
        (again,) = harness.receive(work, 1)
        assert ordinals([again]) == [0]
        assert again.token.transport_count == 1
        harness.settle(again, settlement=Retry())
        assert ordinals(harness.receive(work, 1)) == [0]

    def test_a_waitable_is_ready_when_there_is_something(self, harness: Harness) -> None:
        work = competing()
        channel = harness.provision(reliable(work, credit=Bounds(1, 1000)))
        waitable = harness.backend("reader").waitable(work)
        assert not waitable.ready()
        harness.accepted(data(channel, 0), data(channel, 1))
        assert harness.clock.wait([waitable], harness.soon()) == {waitable}
        taken = harness.receive(work, 1)
        assert not waitable.ready()
        harness.settle(*taken)
        assert harness.clock.wait([waitable], harness.soon()) == {waitable}

    def test_an_interrupted_receive_returns_empty(self, harness: Harness) -> None:
        work = competing()
        harness.provision(reliable(work))
        reader = harness.backend("reader")
        reader.interrupt()
        reader.interrupt()
        assert list(reader.receive(work, deadline=harness.soon())) == []


class ExclusiveSuite:
    """One owner per partition, in channel order."""

    def acquire(
        self, harness: Harness, sink: SubscriptionId, epoch: int, owner: str = "reader"
    ) -> dict[int, int]:
        observed = harness.backend(owner).acquire(sink, epoch, deadline=harness.soon())
        assert isinstance(observed, Known)
        return dict(observed.value.settled_floors)

    def test_delivery_starts_above_the_settled_floor(self, harness: Harness) -> None:
        sink = exclusive()
        channel = harness.provision(reliable(sink))
        harness.accepted(*(data(channel, n) for n in range(4)))
        floors = self.acquire(harness, sink, 1, "a")
        assert floors == {0: -1}
        taken = harness.receive(sink, 4, "a", after=floors)
        harness.settle(taken[0], taken[1], taken[3], owner="a")
        harness.kill("a")
        observed = harness.backend("b").acquire(sink, 2, deadline=harness.soon())
        assert isinstance(observed, Known)
        assert observed.value.settled_floors == {0: taken[1].token.position[1]}
        (record,) = observed.value.settled
        assert record.ordinals == [("delivered", "", [(0, 1), (3, 3)])]
        harness.accepted(data(channel, 4))
        again = harness.receive(sink, 2, "b", after=observed.value.settled_floors)
        assert ordinals(again) == [2, 4]
        assert [d.token.transport_count for d in again] == [2, 1]

    def test_a_lost_answer_is_asked_for_again(self, harness: Harness) -> None:
        sink = exclusive()
        channel = harness.provision(reliable(sink))
        harness.accepted(*(data(channel, n) for n in range(3)))
        after = self.acquire(harness, sink, 1)
        first = harness.receive(sink, 2, after=after)
        again = harness.receive(sink, 3, after=after)
        assert ordinals(again) == [0, 1, 2]
        assert [d.token for d in again[:2]] == [d.token for d in first]
        position = dict([first[0].token.position])
        assert ordinals(harness.receive(sink, 2, after=position)) == [1, 2]
        harness.nothing(sink, after=dict([again[2].token.position]))

    def test_nothing_newer_goes_before_an_older_unsettled_one(self, harness: Harness) -> None:
        sink = exclusive()
        channel = harness.provision(reliable(sink))
        harness.accepted(*(data(channel, n) for n in range(3)))
        self.acquire(harness, sink, 1)
        assert ordinals(harness.receive(sink, 3, after={0: 10**6})) == [0, 1, 2]

    def test_credit_counts_what_is_leased_and_asking_again_costs_none(self, harness: Harness) -> None:
        sink = exclusive()
        channel = harness.provision(reliable(sink, credit=Bounds(2, 1000)))
        harness.accepted(*(data(channel, n) for n in range(4)))
        after = self.acquire(harness, sink, 1)
        taken = harness.receive(sink, 2, after=after)
        harness.nothing(sink, after=dict([taken[1].token.position]))
        assert ordinals(harness.receive(sink, 2, after=after)) == [0, 1]
        harness.settle(taken[1])
        assert ordinals(harness.receive(sink, 1, after=dict([taken[1].token.position]))) == [2]

    def test_the_order_within_each_writer_is_kept(self, harness: Harness) -> None:
        sink = exclusive()
        channel = harness.provision(reliable(sink), slots=2)
        for n in range(0, 8, 2):
            harness.accepted(data(channel, n, slot=0), data(channel, n + 1, slot=1))
        after = self.acquire(harness, sink, 1)
        taken = harness.receive(sink, 8, after=after)
        for slot in range(2):
            mine = [d for d in taken if d.token.position[0] == slot]
            assert ordinals(mine) == list(range(slot, 8, 2))
        positions = dict(d.token.position for d in taken[:3])
        rest = harness.receive(sink, 5, after={0: -1, 1: -1, **positions})
        assert ordinals(rest) == ordinals(taken[3:])
        last = {
            slot: max(s for at, s in (d.token.position for d in taken) if at == slot) for slot in range(2)
        }
        for slot in range(2):
            mine = harness.receive(sink, 4, after={**last, slot: -1})
            assert ordinals(mine) == list(range(slot, 8, 2))

    def test_a_newer_epoch_fences_the_older_one(self, harness: Harness) -> None:
        sink = exclusive()
        channel = harness.provision(reliable(sink))
        harness.accepted(data(channel, 0))
        after = self.acquire(harness, sink, 1, "a")
        (held,) = harness.receive(sink, 1, "a", after=after)
        self.acquire(harness, sink, 2, "b")
        old = harness.backend("a")
        with pytest.raises(StaleAuthority):
            old.acquire(sink, 1, deadline=harness.soon())
        with pytest.raises(StaleAuthority):
            old.receive(sink, deadline=0.0, after=after)
        (outcome,) = old.settle([(held.token, Completed())], deadline=harness.soon())
        assert isinstance(outcome, SettleStale)
        (again,) = harness.receive(sink, 1, "b", after=after)
        assert again.token.transport_count == 2
        harness.settle(again, owner="b")

    def test_acquiring_again_delivers_again_uncharged(self, harness: Harness) -> None:
        sink = exclusive()
        channel = harness.provision(reliable(sink))
        harness.accepted(data(channel, 0))
        after = self.acquire(harness, sink, 1)
        harness.receive(sink, 1, after=after)
        assert self.acquire(harness, sink, 1) == after
        (again,) = harness.receive(sink, 1, after=after)
        assert again.token.transport_count == 1

    def test_what_is_for_competing_readers_is_refused(self, harness: Harness) -> None:
        sink, work = exclusive(), competing()
        channel = harness.provision(reliable(sink), reliable(work))
        harness.accepted(data(channel, 0))
        reader = harness.backend("reader")
        with pytest.raises(ContractBroken):
            reader.acquire(work, 1, deadline=harness.soon())
        with pytest.raises(ContractBroken):
            reader.receive(sink, deadline=0.0)
        after = self.acquire(harness, sink, 1)
        (held,) = harness.receive(sink, 1, after=after)
        with pytest.raises(ContractBroken):
            reader.settle([(held.token, Retry())], deadline=harness.soon())
        harness.settle(held)

    def test_acquiring_what_nobody_made_is_unknown(self, harness: Harness) -> None:
        observed = harness.backend("reader").acquire(exclusive(), 1, deadline=harness.soon())
        assert isinstance(observed, Unknown)
