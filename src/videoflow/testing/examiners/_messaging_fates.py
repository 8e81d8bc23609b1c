"""Laws of what becomes of items: eviction, expiry, the ledger, and how a subscription ends."""

import pytest

from tests.backends.messaging_harness import (
    Harness,
    channel_id,
    competing,
    data,
    exclusive,
    fan_out,
    live,
    ordinals,
    reliable,
    skip,
    value,
)
from videoflow.backends.capabilities import Profile
from videoflow.backends.coverage import Cause, Origin
from videoflow.backends.messaging import (
    Bounds,
    Completed,
    CompletedReason,
    Kind,
    Settlement,
    Terminal,
)
from videoflow.backends.outcomes import Known
from videoflow.errors import ContractBroken


class LiveSuite:
    """Readers of the newest (rule 11)."""

    def test_the_newest_of_each_key_is_kept_and_the_rest_is_said_to_be_dropped_once(
        self, harness: Harness
    ) -> None:
        now = competing("now")
        channel = harness.provision(live(now, capacity=2), profile=Profile.LIVE_LATEST)
        for n in range(8):
            harness.accepted(data(channel, n, source="left" if n < 6 else "right"))
        assert harness.status(now).evicted == 4
        taken = harness.receive(now, 5)
        dropped = [d for d in taken if d.envelope.kind is Kind.SKIP]
        assert [(d.envelope.intervals, d.envelope.cause) for d in dropped] == [(((0, 3),), Cause.DROPPED)]
        assert dropped[0].envelope.body == b""
        assert [n for n in ordinals(taken) if n > 0] == [4, 5, 6, 7]
        harness.settle(*taken)
        harness.nothing(now)

    def test_what_is_leased_is_not_evicted(self, harness: Harness) -> None:
        now = competing("now")
        channel = harness.provision(live(now), profile=Profile.LIVE_LATEST)
        harness.accepted(data(channel, 0))
        held = harness.receive(now, 1)
        harness.accepted(data(channel, 1))
        assert harness.status(now).evicted == 0
        harness.settle(*held)
        assert ordinals(harness.receive(now, 1)) == [1]

    def test_what_a_dead_reader_held_is_delivered_again_and_not_dropped(self, harness: Harness) -> None:
        """Rule 2: a tombstone never covers what was handed to anybody."""
        now = competing("now")
        channel = harness.provision(live(now, max_age_seconds=0.02), profile=Profile.LIVE_LATEST)
        harness.accepted(data(channel, 0))
        harness.receive(now, 1, "a")
        harness.accepted(data(channel, 1))
        harness.accepted(data(channel, 2))
        harness.kill("a")
        harness.advance(0.05)
        first, *rest = harness.receive(now, 3, "b")
        assert first.envelope.kind is Kind.DATA
        assert first.token.transport_count == 2
        assert {d.envelope.kind for d in rest} == {Kind.SKIP}

    def test_a_live_reader_never_stops_the_writer(self, harness: Harness) -> None:
        now = competing("now")
        channel = harness.provision(live(now), bounds=Bounds(1, 10), profile=Profile.LIVE_LATEST)
        for n in range(50):
            harness.accepted(data(channel, n, size_bytes=99))
        assert harness.channel_status(channel).items == 0

    def test_many_drops_cost_one_notice(self, harness: Harness) -> None:
        now = competing("now")
        channel = harness.provision(live(now), profile=Profile.LIVE_LATEST)
        for n in range(200):
            harness.accepted(data(channel, n, source=f"s{n % 2}"))
        assert harness.status(now).available == 3
        taken = harness.receive(now, 3)
        assert [d.envelope.intervals for d in taken if d.envelope.kind is Kind.SKIP] == [((0, 197),)]

    def test_below_a_fan_out_each_trace_is_said(self, harness: Harness) -> None:
        now = competing("now")
        channel = harness.provision(live(now, latest_key=None), profile=Profile.LIVE_LATEST)
        harness.accepted(*fan_out(channel, 0, 3))
        taken = harness.receive(now, 3)
        skips = [d.envelope for d in taken if d.envelope.kind is Kind.SKIP]
        assert [(skip.origin.ordinal, skip.path[0].k, skip.intervals) for skip in skips] == [
            (0, 0, ()),
            (0, 1, ()),
        ]

    def test_nothing_too_old_is_handed_out(self, harness: Harness) -> None:
        now = competing("now")
        spec = live(now, capacity=10, max_age_seconds=0.03)
        channel = harness.provision(spec, profile=Profile.LIVE_LATEST)
        harness.accepted(data(channel, 0), data(channel, 1))
        harness.advance(0.05)
        harness.accepted(data(channel, 2))
        taken = harness.receive(now, 3)
        causes = [d.envelope.cause for d in taken]
        assert causes == [Cause.EXPIRED, Cause.EXPIRED, None]

    def test_each_of_two_readers_has_its_own_guarantee(self, harness: Harness) -> None:
        now, work = competing("now"), competing("work")
        channel = harness.provision(live(now), reliable(work))
        harness.accepted(*(data(channel, n) for n in range(5)))
        taken = harness.receive(work, 5)
        assert ordinals(taken) == [0, 1, 2, 3, 4]
        assert harness.status(now).evicted == 4
        harness.settle(*harness.receive(now, 2))
        assert harness.channel_status(channel).items == 5
        harness.settle(*taken[1:])
        assert harness.channel_status(channel).items == 1

    def test_a_reader_starts_behind_what_it_settled_and_not_behind_what_was_dropped(
        self, harness: Harness
    ) -> None:
        """A reader that took a tombstone for settled would say nothing of it further down."""
        now = exclusive("now")
        channel = harness.provision(live(now), profile=Profile.LIVE_LATEST)
        harness.backend("reader").acquire(now, 1, deadline=harness.soon())
        harness.accepted(data(channel, 0))
        harness.settle(*harness.receive(now, 1, after={0: -1}))
        harness.accepted(data(channel, 1), data(channel, 2), data(channel, 3))
        harness.kill("reader")
        acquired = value(harness.backend("next").acquire(now, 2, deadline=harness.soon()))
        settled = [i for record in acquired.settled for _, _, found in record.ordinals for i in found]
        assert settled == [(0, 0)]
        dropped, kept = harness.receive(now, 2, "next", after=acquired.settled_floors)
        assert (dropped.envelope.intervals, kept.envelope.origin.ordinal) == (((1, 2),), 3)
        harness.settle(dropped, kept, owner="next")
        harness.kill("next")
        acquired = value(harness.backend("last").acquire(now, 3, deadline=harness.soon()))
        settled = [i for record in acquired.settled for _, _, found in record.ordinals for i in found]
        assert sorted(n for low, high in settled for n in range(low, high + 1)) == [0, 1, 2, 3]

    def test_an_ordered_live_reader_keeps_its_order(self, harness: Harness) -> None:
        now = exclusive("now")
        channel = harness.provision(live(now, capacity=2, latest_key="key"), profile=Profile.LIVE_LATEST)
        harness.backend("reader").acquire(now, 1, deadline=harness.soon())
        for n in range(9):
            harness.accepted(data(channel, n, key=f"k{n % 3}"))
        taken = harness.receive(now, 7, after={0: -1})
        positions = [d.token.position[1] for d in taken]
        assert positions == sorted(positions)
        harness.settle(*taken)
        assert harness.status(now).settled_floors == {0: 8}


class LedgerSuite:
    """What the channel says became of everything, and when a subscription is at its end."""

    def test_each_settlement_has_its_fate(self, harness: Harness) -> None:
        work = competing()
        channel = harness.provision(reliable(work))
        harness.accepted(*(data(channel, n) for n in range(5)))
        harness.accepted(skip(channel, (5, 9), cause=Cause.DEAD_LETTER))
        settlements: list[Settlement] = [
            Completed(),
            Terminal("record"),
            *(Completed(reason) for reason in _reasons("dropped", "expired", "abandoned")),
            Completed(*_reasons("skipped")),
        ]
        taken = harness.receive(work, 6)
        for delivery, settlement in zip(taken, settlements, strict=True):
            harness.settle(delivery, settlement=settlement)
        (announced,) = harness.announced(channel)
        assert sorted(announced.ordinals) == [
            ("delivered", "", [(0, 4)]),
            ("skipped", "dead_letter", [(5, 9)]),
        ]
        (settled,) = harness.settled(work)
        assert sorted(settled.ordinals) == [
            ("abandoned", "", [(4, 4)]),
            ("dead_lettered", "", [(1, 1)]),
            ("delivered", "", [(0, 0)]),
            ("dropped", "dropped", [(2, 2)]),
            ("dropped", "expired", [(3, 3)]),
            ("skipped", "dead_letter", [(5, 9)]),
        ]

    def test_what_is_a_duplicate_or_superseded_leaves_what_stands(self, harness: Harness) -> None:
        work = competing()
        channel = harness.provision(reliable(work))
        harness.accepted(data(channel, 0), data(channel, 1))
        for delivery, reason in zip(
            harness.receive(work, 2), _reasons("duplicate", "superseded"), strict=True
        ):
            harness.settle(delivery, settlement=Completed(reason))
        assert [record.ordinals for record in harness.settled(work)] in ([], [[]])
        assert harness.channel_status(channel).items == 0

    def test_a_terminal_names_its_record(self, harness: Harness) -> None:
        work = competing()
        channel = harness.provision(reliable(work))
        harness.accepted(data(channel, 0))
        (held,) = harness.receive(work, 1)
        with pytest.raises(ContractBroken):
            harness.backend("reader").settle([(held.token, Terminal(""))], deadline=harness.soon())

    def test_drops_are_in_the_ledger_at_once(self, harness: Harness) -> None:
        now = competing("now")
        channel = harness.provision(live(now), profile=Profile.LIVE_LATEST)
        harness.accepted(*(data(channel, n) for n in range(3)))
        (record,) = harness.settled(now)
        assert record.ordinals == [("dropped", "dropped", [(0, 1)])]
        harness.settle(*harness.receive(now, 2))
        (record,) = harness.settled(now)
        assert sorted(record.ordinals) == [
            ("delivered", "", [(2, 2)]),
            ("dropped", "dropped", [(0, 1)]),
        ]

    def test_below_a_fan_out_items_are_counted(self, harness: Harness) -> None:
        work = competing()
        channel = harness.provision(reliable(work))
        harness.accepted(*fan_out(channel, 0, 3))
        first, second, third = harness.receive(work, 3)
        harness.settle(first, second)
        harness.settle(third, settlement=Terminal("record"))
        (settled,) = harness.settled(work)
        assert settled.deep_ordinals == [(0, 0)]
        assert sorted(settled.deep_items) == [("dead_lettered", "", 1), ("delivered", "", 2)]
        (announced,) = harness.announced(channel)
        assert announced.deep_items == [("delivered", "", 3)]

    def test_the_ledger_is_small_however_long_the_run(self, harness: Harness) -> None:
        work = competing()
        channel = harness.provision(reliable(work))
        for start in range(0, 500, 50):
            harness.accepted(*(data(channel, start + n) for n in range(50)))
            harness.settle(*harness.receive(work, 50))
        (announced,), (settled,) = harness.announced(channel), harness.settled(work)
        assert announced.ordinals == settled.ordinals == [("delivered", "", [(0, 499)])]
        status = harness.channel_status(channel)
        assert (status.items, status.size_bytes, status.first) == (0, 0, {0: None})
        assert harness.status(work).settled_floors == status.last

    def test_an_end_is_reached_in_steps(self, harness: Harness) -> None:
        work = competing()
        channel = harness.provision(reliable(work), slots=2)
        harness.accepted(data(channel, 0), data(channel, 1, slot=1))
        waitable = harness.backend("reader").waitable(work)
        harness.end(channel)
        assert not harness.status(work).drained
        harness.end(channel, slot=1)
        assert not harness.status(work).drained
        first, second = harness.receive(work, 2)
        status = harness.status(work)
        assert (status.drained, status.finished, status.aborted) == (True, False, False)
        harness.settle(first)
        assert not harness.status(work).finished
        harness.settle(second)
        assert harness.status(work).finished
        assert harness.clock.wait([waitable], harness.soon()) == {waitable}

    def test_the_reader_of_an_end_is_woken_and_once_it_has_looked_no_more(self, harness: Harness) -> None:
        work = competing()
        channel = harness.provision(reliable(work))
        reader = harness.backend("reader")
        waitable = reader.waitable(work)
        harness.end(channel)
        assert harness.clock.wait([waitable], harness.soon()) == {waitable}
        observed = reader.observe_subscription(work, deadline=harness.soon())
        assert isinstance(observed, Known)
        assert observed.value.finished
        assert not waitable.ready()

    def test_a_blocked_reader_is_told_of_the_end(self, harness: Harness) -> None:
        work = competing()
        channel = harness.provision(reliable(work))
        harness.end(channel)
        assert list(harness.backend("reader").receive(work, deadline=harness.soon())) == []

    def test_what_a_dead_replica_held_undoes_drained(self, harness: Harness) -> None:
        work = competing()
        channel = harness.provision(reliable(work))
        harness.accepted(data(channel, 0))
        harness.end(channel)
        harness.receive(work, 1, "a")
        assert harness.status(work).drained
        harness.kill("a")
        assert not harness.status(work).drained
        harness.settle(*harness.receive(work, 1, "b"), owner="b")
        assert harness.status(work).finished

    def test_an_abort_is_seen(self, harness: Harness) -> None:
        work = competing()
        channel = harness.provision(reliable(work), slots=2)
        harness.end(channel, kind=Kind.ABORT)
        assert harness.status(work).aborted
        harness.end(channel, slot=1)
        status = harness.status(work)
        assert (status.finished, status.aborted) == (True, True)

    def test_origins_of_skips_are_theirs(self, harness: Harness) -> None:
        work = competing()
        channel = harness.provision(reliable(work))
        harness.accepted(skip(channel, (0, 2)))
        harness.settle(*harness.receive(work, 1))
        (record,) = harness.settled(work)
        assert Origin(record.node, record.epoch, 0) == Origin("camera", 0, 0)
        assert channel == channel_id()


def _reasons(*names: str) -> list[CompletedReason]:
    return [CompletedReason(name) for name in names]
