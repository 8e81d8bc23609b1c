"""Laws of what becomes of items: eviction, expiry, the ledger, and how a subscription ends."""

import pytest

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
from videoflow.testing.examiners import _messaging_laws as laws
from videoflow.testing.examiners._examiner import Examiner
from videoflow.testing.examiners._law import law
from videoflow.testing.examiners._messaging_subject import MessagingSubject, value
from videoflow.testing.examiners.envelopes import (
    channel_id,
    competing,
    data,
    exclusive,
    fan_out,
    live,
    ordinals,
    reliable,
    skip,
)


class LiveSuite(Examiner[MessagingSubject]):
    """Readers of the newest (rule 11)."""

    @law(laws.NEWEST)
    def test_the_newest_of_each_key_is_kept_and_the_rest_is_said_to_be_dropped_once(
        self, subject: MessagingSubject
    ) -> None:
        now = competing("now")
        channel = subject.provision(live(now, capacity=2), profile=Profile.LIVE_LATEST)
        for n in range(8):
            subject.accepted(data(channel, n, source="left" if n < 6 else "right"))
        assert subject.status(now).evicted == 4
        taken = subject.receive(now, 5)
        dropped = [d for d in taken if d.envelope.kind is Kind.SKIP]
        assert [(d.envelope.intervals, d.envelope.cause) for d in dropped] == [(((0, 3),), Cause.DROPPED)]
        assert dropped[0].envelope.body == b""
        assert [n for n in ordinals(taken) if n > 0] == [4, 5, 6, 7]
        subject.settle(*taken)
        subject.nothing(now)

    @law(laws.NEWEST)
    def test_what_is_leased_is_not_evicted(self, subject: MessagingSubject) -> None:
        now = competing("now")
        channel = subject.provision(live(now), profile=Profile.LIVE_LATEST)
        subject.accepted(data(channel, 0))
        held = subject.receive(now, 1)
        subject.accepted(data(channel, 1))
        assert subject.status(now).evicted == 0
        subject.settle(*held)
        assert ordinals(subject.receive(now, 1)) == [1]

    @law(laws.TOMBSTONES)
    def test_what_a_dead_reader_held_is_delivered_again_and_not_dropped(
        self, subject: MessagingSubject
    ) -> None:
        """Rule 2: a tombstone never covers what was handed to anybody."""
        now = competing("now")
        channel = subject.provision(live(now, max_age_seconds=0.02), profile=Profile.LIVE_LATEST)
        subject.accepted(data(channel, 0))
        subject.receive(now, 1, "a")
        subject.accepted(data(channel, 1))
        subject.accepted(data(channel, 2))
        subject.kill("a")
        subject.advance(0.05)
        first, *rest = subject.receive(now, 3, "b")
        assert first.envelope.kind is Kind.DATA
        assert first.token.transport_count == 2
        assert {d.envelope.kind for d in rest} == {Kind.SKIP}

    @law(laws.NEVER_BLOCKS)
    def test_a_live_reader_never_stops_the_writer(self, subject: MessagingSubject) -> None:
        now = competing("now")
        channel = subject.provision(live(now), bounds=Bounds(1, 10), profile=Profile.LIVE_LATEST)
        for n in range(50):
            subject.accepted(data(channel, n, size_bytes=99))
        assert subject.channel_status(channel).items == 0

    @law(laws.TOMBSTONES)
    def test_many_drops_cost_one_notice(self, subject: MessagingSubject) -> None:
        now = competing("now")
        channel = subject.provision(live(now), profile=Profile.LIVE_LATEST)
        for n in range(200):
            subject.accepted(data(channel, n, source=f"s{n % 2}"))
        assert subject.status(now).available == 3
        taken = subject.receive(now, 3)
        assert [d.envelope.intervals for d in taken if d.envelope.kind is Kind.SKIP] == [((0, 197),)]

    @law(laws.TOMBSTONES)
    def test_below_a_fan_out_each_trace_is_said(self, subject: MessagingSubject) -> None:
        now = competing("now")
        channel = subject.provision(live(now, latest_key=None), profile=Profile.LIVE_LATEST)
        subject.accepted(*fan_out(channel, 0, 3))
        taken = subject.receive(now, 3)
        skips = [d.envelope for d in taken if d.envelope.kind is Kind.SKIP]
        assert [(skip.origin.ordinal, skip.path[0].k, skip.intervals) for skip in skips] == [
            (0, 0, ()),
            (0, 1, ()),
        ]

    @law(laws.AGE)
    def test_nothing_too_old_is_handed_out(self, subject: MessagingSubject) -> None:
        now = competing("now")
        spec = live(now, capacity=10, max_age_seconds=0.03)
        channel = subject.provision(spec, profile=Profile.LIVE_LATEST)
        subject.accepted(data(channel, 0), data(channel, 1))
        subject.advance(0.05)
        subject.accepted(data(channel, 2))
        taken = subject.receive(now, 3)
        causes = [d.envelope.cause for d in taken]
        assert causes == [Cause.EXPIRED, Cause.EXPIRED, None]

    @law(laws.NEVER_BLOCKS)
    def test_each_of_two_readers_has_its_own_guarantee(self, subject: MessagingSubject) -> None:
        now, work = competing("now"), competing("work")
        channel = subject.provision(live(now), reliable(work))
        subject.accepted(*(data(channel, n) for n in range(5)))
        taken = subject.receive(work, 5)
        assert ordinals(taken) == [0, 1, 2, 3, 4]
        assert subject.status(now).evicted == 4
        subject.settle(*subject.receive(now, 2))
        assert subject.channel_status(channel).items == 5
        subject.settle(*taken[1:])
        assert subject.channel_status(channel).items == 1

    @law(laws.FLOORS)
    def test_a_reader_starts_behind_what_it_settled_and_not_behind_what_was_dropped(
        self, subject: MessagingSubject
    ) -> None:
        """A reader that took a tombstone for settled would say nothing of it further down."""
        now = exclusive("now")
        channel = subject.provision(live(now), profile=Profile.LIVE_LATEST)
        subject.backend("reader").acquire(now, 1, deadline=subject.soon())
        subject.accepted(data(channel, 0))
        subject.settle(*subject.receive(now, 1, after={0: -1}))
        subject.accepted(data(channel, 1), data(channel, 2), data(channel, 3))
        subject.kill("reader")
        acquired = value(subject.backend("next").acquire(now, 2, deadline=subject.soon()))
        settled = [i for record in acquired.settled for _, _, found in record.ordinals for i in found]
        assert settled == [(0, 0)]
        dropped, kept = subject.receive(now, 2, "next", after=acquired.settled_floors)
        assert (dropped.envelope.intervals, kept.envelope.origin.ordinal) == (((1, 2),), 3)
        subject.settle(dropped, kept, owner="next")
        subject.kill("next")
        acquired = value(subject.backend("last").acquire(now, 3, deadline=subject.soon()))
        settled = [i for record in acquired.settled for _, _, found in record.ordinals for i in found]
        assert sorted(n for low, high in settled for n in range(low, high + 1)) == [0, 1, 2, 3]

    @law(laws.ORDERED)
    def test_an_ordered_live_reader_keeps_its_order(self, subject: MessagingSubject) -> None:
        now = exclusive("now")
        channel = subject.provision(live(now, capacity=2, latest_key="key"), profile=Profile.LIVE_LATEST)
        subject.backend("reader").acquire(now, 1, deadline=subject.soon())
        for n in range(9):
            subject.accepted(data(channel, n, key=f"k{n % 3}"))
        taken = subject.receive(now, 7, after={0: -1})
        positions = [d.token.position[1] for d in taken]
        assert positions == sorted(positions)
        subject.settle(*taken)
        assert subject.status(now).settled_floors == {0: 8}


class LedgerSuite(Examiner[MessagingSubject]):
    """What the channel says became of everything, and when a subscription is at its end."""

    @law(laws.LEDGER)
    def test_each_settlement_has_its_fate(self, subject: MessagingSubject) -> None:
        work = competing()
        channel = subject.provision(reliable(work))
        subject.accepted(*(data(channel, n) for n in range(5)))
        subject.accepted(skip(channel, (5, 9), cause=Cause.DEAD_LETTER))
        settlements: list[Settlement] = [
            Completed(),
            Terminal("record"),
            *(Completed(reason) for reason in _reasons("dropped", "expired", "abandoned")),
            Completed(*_reasons("skipped")),
        ]
        taken = subject.receive(work, 6)
        for delivery, settlement in zip(taken, settlements, strict=True):
            subject.settle(delivery, settlement=settlement)
        (announced,) = subject.announced(channel)
        assert sorted(announced.ordinals) == [
            ("delivered", "", [(0, 4)]),
            ("skipped", "dead_letter", [(5, 9)]),
        ]
        (settled,) = subject.settled(work)
        assert sorted(settled.ordinals) == [
            ("abandoned", "", [(4, 4)]),
            ("dead_lettered", "", [(1, 1)]),
            ("delivered", "", [(0, 0)]),
            ("dropped", "dropped", [(2, 2)]),
            ("dropped", "expired", [(3, 3)]),
            ("skipped", "dead_letter", [(5, 9)]),
        ]

    @law(laws.LEDGER)
    def test_what_is_a_duplicate_or_superseded_leaves_what_stands(self, subject: MessagingSubject) -> None:
        work = competing()
        channel = subject.provision(reliable(work))
        subject.accepted(data(channel, 0), data(channel, 1))
        for delivery, reason in zip(
            subject.receive(work, 2), _reasons("duplicate", "superseded"), strict=True
        ):
            subject.settle(delivery, settlement=Completed(reason))
        assert [record.ordinals for record in subject.settled(work)] in ([], [[]])
        assert subject.channel_status(channel).items == 0

    @law(laws.RETRY)
    def test_a_terminal_names_its_record(self, subject: MessagingSubject) -> None:
        work = competing()
        channel = subject.provision(reliable(work))
        subject.accepted(data(channel, 0))
        (held,) = subject.receive(work, 1)
        with pytest.raises(ContractBroken):
            subject.backend("reader").settle([(held.token, Terminal(""))], deadline=subject.soon())

    @law(laws.LEDGER)
    def test_drops_are_in_the_ledger_at_once(self, subject: MessagingSubject) -> None:
        now = competing("now")
        channel = subject.provision(live(now), profile=Profile.LIVE_LATEST)
        subject.accepted(*(data(channel, n) for n in range(3)))
        (record,) = subject.settled(now)
        assert record.ordinals == [("dropped", "dropped", [(0, 1)])]
        subject.settle(*subject.receive(now, 2))
        (record,) = subject.settled(now)
        assert sorted(record.ordinals) == [
            ("delivered", "", [(2, 2)]),
            ("dropped", "dropped", [(0, 1)]),
        ]

    @law(laws.LEDGER)
    def test_below_a_fan_out_items_are_counted(self, subject: MessagingSubject) -> None:
        work = competing()
        channel = subject.provision(reliable(work))
        subject.accepted(*fan_out(channel, 0, 3))
        first, second, third = subject.receive(work, 3)
        subject.settle(first, second)
        subject.settle(third, settlement=Terminal("record"))
        (settled,) = subject.settled(work)
        assert settled.deep_ordinals == [(0, 0)]
        assert sorted(settled.deep_items) == [("dead_lettered", "", 1), ("delivered", "", 2)]
        (announced,) = subject.announced(channel)
        assert announced.deep_items == [("delivered", "", 3)]

    @law(laws.BOUNDED)
    def test_the_ledger_is_small_however_long_the_run(self, subject: MessagingSubject) -> None:
        work = competing()
        channel = subject.provision(reliable(work))
        for start in range(0, 500, 50):
            subject.accepted(*(data(channel, start + n) for n in range(50)))
            subject.settle(*subject.receive(work, 50))
        (announced,), (settled,) = subject.announced(channel), subject.settled(work)
        assert announced.ordinals == settled.ordinals == [("delivered", "", [(0, 499)])]
        status = subject.channel_status(channel)
        assert (status.items, status.size_bytes, status.first) == (0, 0, {0: None})
        assert subject.status(work).settled_floors == status.last

    @law(laws.COMPLETION)
    def test_an_end_is_reached_in_steps(self, subject: MessagingSubject) -> None:
        work = competing()
        channel = subject.provision(reliable(work), slots=2)
        subject.accepted(data(channel, 0), data(channel, 1, slot=1))
        waitable = subject.backend("reader").waitable(work)
        subject.end(channel)
        assert not subject.status(work).drained
        subject.end(channel, slot=1)
        assert not subject.status(work).drained
        first, second = subject.receive(work, 2)
        status = subject.status(work)
        assert (status.drained, status.finished, status.aborted) == (True, False, False)
        subject.settle(first)
        assert not subject.status(work).finished
        subject.settle(second)
        assert subject.status(work).finished
        assert subject.clock.wait([waitable], subject.soon()) == {waitable}

    @law(laws.WAKES)
    def test_the_reader_of_an_end_is_woken_and_once_it_has_looked_no_more(
        self, subject: MessagingSubject
    ) -> None:
        work = competing()
        channel = subject.provision(reliable(work))
        reader = subject.backend("reader")
        waitable = reader.waitable(work)
        subject.end(channel)
        assert subject.clock.wait([waitable], subject.soon()) == {waitable}
        observed = reader.observe_subscription(work, deadline=subject.soon())
        assert isinstance(observed, Known)
        assert observed.value.finished
        assert not waitable.ready()

    @law(laws.WAKES)
    def test_a_blocked_reader_is_told_of_the_end(self, subject: MessagingSubject) -> None:
        work = competing()
        channel = subject.provision(reliable(work))
        subject.end(channel)
        assert list(subject.backend("reader").receive(work, deadline=subject.soon())) == []

    @law(laws.COMPLETION)
    def test_what_a_dead_replica_held_undoes_drained(self, subject: MessagingSubject) -> None:
        work = competing()
        channel = subject.provision(reliable(work))
        subject.accepted(data(channel, 0))
        subject.end(channel)
        subject.receive(work, 1, "a")
        assert subject.status(work).drained
        subject.kill("a")
        assert not subject.status(work).drained
        subject.settle(*subject.receive(work, 1, "b"), owner="b")
        assert subject.status(work).finished

    @law(laws.COMPLETION)
    def test_an_abort_is_seen(self, subject: MessagingSubject) -> None:
        work = competing()
        channel = subject.provision(reliable(work), slots=2)
        subject.end(channel, kind=Kind.ABORT)
        assert subject.status(work).aborted
        subject.end(channel, slot=1)
        status = subject.status(work)
        assert (status.finished, status.aborted) == (True, True)

    @law(laws.LEDGER)
    def test_origins_of_skips_are_theirs(self, subject: MessagingSubject) -> None:
        work = competing()
        channel = subject.provision(reliable(work))
        subject.accepted(skip(channel, (0, 2)))
        subject.settle(*subject.receive(work, 1))
        (record,) = subject.settled(work)
        assert Origin(record.node, record.epoch, 0) == Origin("camera", 0, 0)
        assert channel == channel_id()


def _reasons(*names: str) -> list[CompletedReason]:
    return [CompletedReason(name) for name in names]
