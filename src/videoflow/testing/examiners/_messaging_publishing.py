"""Laws of publishing: order, room, statements, repetitions, fencing, ends."""

import msgspec
import pytest

from tests.backends.messaging_harness import (
    LABELS,
    PATIENCE_SECONDS,
    ROOMY,
    Harness,
    channel_id,
    competing,
    data,
    exclusive,
    fan_out,
    ordinals,
    reliable,
    skip,
)
from videoflow.backends.capabilities import Profile
from videoflow.backends.coverage import Cause, Hop, Origin
from videoflow.backends.messaging import Bounds, ChannelSpec, Kind, OwnerLabels
from videoflow.backends.outcomes import Accepted, Rejected, RejectReason, Unknown
from videoflow.errors import IncompatibleProfile, UnknownName


class ProvisioningSuite:
    """Making, observing and removing."""

    def test_making_the_same_twice_changes_nothing(self, harness: Harness) -> None:
        work = competing()
        channel = harness.provision(reliable(work))
        harness.accepted(data(channel, 0))
        harness.provision(reliable(work))
        assert ordinals(harness.receive(work, 1)) == [0]

    def test_what_differs_and_cannot_change_is_refused_item_by_item(self, harness: Harness) -> None:
        work = competing()
        channel = harness.provision(reliable(work))
        harness.accepted(data(channel, 0))
        other = ChannelSpec(
            channel=channel,
            profile=Profile.RELIABLE_WORK,
            slots=2,
            bounds=ROOMY,
            subscriptions=(work, exclusive()),
            labels=LABELS,
        )
        with pytest.raises(IncompatibleProfile) as caught:
            harness.backend("engine").ensure_channel(other, "op", deadline=harness.soon())
        assert {miss.guarantee for miss in caught.value.misses} == {"slots", "subscriptions"}
        assert ordinals(harness.receive(work, 1)) == [0]

    def test_what_can_change_is_changed_and_read_back(self, harness: Harness) -> None:
        work = competing()
        channel = harness.provision(reliable(work), bounds=Bounds(1, 1000))
        harness.accepted(data(channel, 0))
        harness.rejected(RejectReason.FULL, data(channel, 1))
        harness.provision(reliable(work, credit=Bounds(2, 1000)), bounds=Bounds(2, 1000))
        harness.accepted(data(channel, 1))
        assert len(harness.receive(work, 2)) == 2

    @pytest.mark.parametrize(
        ("change", "guarantee"),
        [
            ({"profile": Profile.REPLAY_ARCHIVE}, "profile"),
            ({"persistent": True}, "persistence"),
            ({"copies": 3}, "copies"),
        ],
        ids=["profile", "persistent", "copies"],
    )
    def test_a_guarantee_that_is_not_claimed_is_refused_and_nothing_is_made(
        self, harness: Harness, change: dict[str, object], guarantee: str
    ) -> None:
        spec = ChannelSpec(
            channel=channel_id(),
            profile=Profile.RELIABLE_WORK,
            slots=1,
            bounds=ROOMY,
            subscriptions=(),
            labels=LABELS,
        )
        backend = harness.backend("engine")
        with pytest.raises(IncompatibleProfile) as caught:
            backend.ensure_channel(msgspec.structs.replace(spec, **change), "op", deadline=harness.soon())
        assert [miss.guarantee for miss in caught.value.misses] == [guarantee]
        assert isinstance(backend.observe_channel(channel_id(), deadline=harness.soon()), Unknown)

    def test_a_reader_that_the_channel_does_not_list_is_refused(self, harness: Harness) -> None:
        harness.provision(reliable(competing()))
        stranger = reliable(competing("stranger"))
        with pytest.raises(IncompatibleProfile):
            harness.backend("engine").ensure_subscription(stranger, "op", deadline=harness.soon())

    def test_what_nobody_made_is_unknown_or_refused_never_empty(self, harness: Harness) -> None:
        engine, deadline = harness.backend("engine"), harness.soon()
        assert isinstance(engine.observe_channel(channel_id(), deadline=deadline), Unknown)
        assert isinstance(engine.observe_subscription(competing(), deadline=deadline), Unknown)
        assert isinstance(engine.announced(channel_id(), deadline=deadline), Unknown)
        assert isinstance(engine.settled(competing(), deadline=deadline), Unknown)
        with pytest.raises(UnknownName):
            harness.publish(data(channel_id(), 0))
        with pytest.raises(UnknownName):
            harness.backend("reader").receive(competing(), deadline=0.0)

    def test_what_was_published_before_a_late_reader_is_kept_for_it(self, harness: Harness) -> None:
        work = competing()
        spec = ChannelSpec(
            channel=channel_id(),
            profile=Profile.RELIABLE_WORK,
            slots=1,
            bounds=ROOMY,
            subscriptions=(work,),
            labels=LABELS,
        )
        harness.backend("engine").ensure_channel(spec, "op", deadline=harness.soon())
        harness.accepted(*(data(channel_id(), n) for n in range(3)))
        harness.end(channel_id())
        harness.provision(reliable(work))
        assert ordinals(harness.receive(work, 3)) == [0, 1, 2]

    def test_closing_removes_what_carries_the_labels_and_nothing_else(self, harness: Harness) -> None:
        channel = harness.provision(reliable(competing()))
        harness.accepted(data(channel, 0))
        engine, deadline = harness.backend("engine"), harness.soon()
        for labels in (OwnerLabels("flow", "ru"), OwnerLabels("flow", "run", "somebody")):
            assert engine.close(labels, deadline=deadline).removed == ()
        assert harness.channel_status(channel).items == 1
        gone = engine.close(LABELS, deadline=deadline)
        assert gone.complete
        assert len(gone.removed) == 1
        assert gone.remaining == ()
        assert isinstance(engine.observe_channel(channel, deadline=deadline), Unknown)
        assert engine.close(LABELS, deadline=deadline).complete

    def test_a_channel_made_anew_knows_nothing_of_the_old_one(self, harness: Harness) -> None:
        work = competing()
        channel = harness.provision(reliable(work))
        harness.accepted(data(channel, 0))
        harness.receive(work, 1)
        harness.backend("engine").close(LABELS, deadline=harness.soon())
        harness.provision(reliable(work))
        harness.accepted(data(channel, 0))
        assert ordinals(harness.receive(work, 1)) == [0]


class PublishingSuite(ProvisioningSuite):
    """Statements in, definite outcomes out."""

    def test_order_and_content_are_kept(self, harness: Harness) -> None:
        work = competing()
        channel = harness.provision(reliable(work))
        sent = [data(channel, 0), skip(channel, (1, 3)), *fan_out(channel, 4, 3), data(channel, 5)]
        outcomes = harness.publish(*sent)
        sequences = [outcome.sequence for outcome in outcomes if isinstance(outcome, Accepted)]
        assert sequences == sorted(set(sequences))
        assert len(sequences) == len(sent)
        assert [d.envelope for d in harness.receive(work, len(sent))] == sent

    def test_a_full_channel_refuses_and_is_unchanged(self, harness: Harness) -> None:
        work = competing()
        channel = harness.provision(reliable(work), bounds=Bounds(2, 1000))
        harness.accepted(data(channel, 0), data(channel, 1))
        harness.rejected(RejectReason.FULL, data(channel, 2))
        harness.duplicates(data(channel, 1))
        assert harness.channel_status(channel).items == 2
        harness.settle(*harness.receive(work, 1))
        harness.accepted(data(channel, 2))

    def test_bytes_fill_a_channel_as_items_do(self, harness: Harness) -> None:
        channel = harness.provision(reliable(competing()), bounds=Bounds(100, 25))
        harness.accepted(data(channel, 0), data(channel, 1))
        harness.rejected(RejectReason.FULL, data(channel, 2))
        assert harness.channel_status(channel).size_bytes == 20

    def test_leased_items_take_room_until_every_reader_has_settled(self, harness: Harness) -> None:
        work, sink = competing(), exclusive()
        channel = harness.provision(reliable(work), reliable(sink), bounds=Bounds(1, 1000))
        harness.accepted(data(channel, 0))
        harness.settle(*harness.receive(work, 1))
        harness.rejected(RejectReason.FULL, data(channel, 1))
        harness.backend("reader").acquire(sink, 1, deadline=harness.soon())
        last = harness.receive(sink, 1, after={0: -1})
        harness.rejected(RejectReason.FULL, data(channel, 1))
        harness.settle(*last)
        harness.accepted(data(channel, 1))

    def test_what_was_given_up_is_never_sent(self, harness: Harness) -> None:
        work = competing()
        channel = harness.provision(reliable(work), bounds=Bounds(1, 1000))
        harness.accepted(data(channel, 0))
        harness.rejected(RejectReason.FULL, data(channel, 1))
        harness.settle(*harness.receive(work, 1))
        harness.nothing(work)
        harness.accepted(data(channel, 2))
        assert ordinals(harness.receive(work, 1)) == [2]

    def test_nothing_is_sent_later_than_its_deadline(self, harness: Harness) -> None:
        work = competing()
        channel = harness.provision(reliable(work), bounds=Bounds(1, 1000))
        harness.accepted(data(channel, 0))
        writer = harness.backend("writer")
        handles = writer.begin_publish([data(channel, 1)], deadline=harness.clock.monotonic() + 0.01)
        harness.advance(0.05)
        harness.settle(*harness.receive(work, 1))
        (outcome,) = writer.outcomes(handles, deadline=harness.soon())
        assert isinstance(outcome, Rejected)
        assert outcome.reason is RejectReason.FULL
        harness.nothing(work)

    def test_room_that_comes_in_time_is_used(self, harness: Harness) -> None:
        work = competing()
        channel = harness.provision(reliable(work), bounds=Bounds(1, 1000))
        harness.accepted(data(channel, 0))
        writer, deadline = harness.backend("writer"), harness.soon()
        handles = writer.begin_publish([data(channel, 1), data(channel, 2)], deadline=deadline)
        harness.settle(*harness.receive(work, 1))
        (outcome,) = writer.outcomes(handles[:1], deadline=deadline)
        assert isinstance(outcome, Accepted)
        assert ordinals(harness.receive(work, 1)) == [1]

    def test_what_waits_for_room_keeps_its_order(self, harness: Harness) -> None:
        work = competing()
        channel = harness.provision(reliable(work), bounds=Bounds(10, 100))
        harness.accepted(data(channel, 0, size_bytes=60))
        waiting = [data(channel, 1, size_bytes=60), data(channel, 2, size_bytes=1)]
        harness.rejected(RejectReason.FULL, *waiting)
        writer, deadline = harness.backend("writer"), harness.soon()
        first = writer.begin_publish(waiting[:1], deadline=deadline)
        second = writer.begin_publish(waiting[1:], deadline=deadline)
        harness.settle(*harness.receive(work, 1))
        outcomes = writer.outcomes([*second, *first], deadline=deadline)
        assert all(isinstance(outcome, Accepted) for outcome in outcomes)
        assert ordinals(harness.receive(work, 2)) == [1, 2]

    def test_what_waits_behind_what_was_given_up_is_given_up_too(self, harness: Harness) -> None:
        """Else a retry of the first would come after the second."""
        work = competing()
        channel = harness.provision(reliable(work), bounds=Bounds(1, 1000))
        harness.accepted(data(channel, 0))
        writer, deadline = harness.backend("writer"), harness.soon()
        first, second = writer.begin_publish([data(channel, n) for n in (1, 2)], deadline=deadline)
        (outcome,) = writer.outcomes([first], deadline=0.0)
        assert isinstance(outcome, Rejected)
        harness.settle(*harness.receive(work, 1))
        (outcome,) = writer.outcomes([second], deadline=deadline)
        assert isinstance(outcome, Rejected)
        harness.accepted(data(channel, 1))
        assert ordinals(harness.receive(work, 1)) == [1]

    def test_a_statement_is_accepted_whole_or_not_at_all(self, harness: Harness) -> None:
        work = competing()
        channel = harness.provision(reliable(work), bounds=Bounds(4, 1000))
        harness.accepted(data(channel, 0), data(channel, 1))
        harness.rejected(RejectReason.FULL, *fan_out(channel, 2, 3))
        assert harness.channel_status(channel).items == 2
        harness.accepted(*fan_out(channel, 2, 2))
        assert harness.channel_status(channel).items == 4

    def test_what_is_larger_than_the_bound_passes_alone(self, harness: Harness) -> None:
        work = competing()
        channel = harness.provision(reliable(work), bounds=Bounds(2, 15))
        harness.accepted(data(channel, 0))
        harness.rejected(RejectReason.FULL, *fan_out(channel, 1, 3))
        harness.settle(*harness.receive(work, 1))
        harness.accepted(*fan_out(channel, 1, 3))
        harness.rejected(RejectReason.FULL, data(channel, 2))
        harness.settle(*harness.receive(work, 3))
        harness.accepted(data(channel, 2, size_bytes=99))

    def test_skips_and_ends_take_no_room(self, harness: Harness) -> None:
        work = competing()
        channel = harness.provision(reliable(work), bounds=Bounds(1, 10))
        harness.accepted(data(channel, 0))
        harness.accepted(skip(channel, (1, 5)), skip(channel, (6, 6)))
        harness.end(channel)
        assert harness.channel_status(channel).items == 1
        assert ordinals(harness.receive(work, 3)) == [0, 1, 6]

    def test_partitions_fill_on_their_own(self, harness: Harness) -> None:
        layout = msgspec.structs.replace(channel_id().layout, key="key", partitions=2)
        channel = channel_id(layout=layout)
        readers = [exclusive("sink", channel, p) for p in range(2)]
        harness.provision(*map(reliable, readers), bounds=Bounds(1, 1000))
        harness.accepted(data(channel, 0, partition=0))
        harness.rejected(RejectReason.FULL, data(channel, 1, partition=0))
        harness.accepted(data(channel, 2, partition=1))
        engine = harness.backend("reader")
        for number, reader in enumerate(readers):
            engine.acquire(reader, 1, deadline=harness.soon())
            assert ordinals(harness.receive(reader, 1, after={0: -1})) == [(0, 2)[number]]

    # Repetitions ------------------------------------------------------------------------------

    def test_a_repetition_is_recognised_before_and_after_settlement_and_across_writers(
        self, harness: Harness
    ) -> None:
        work = competing()
        channel = harness.provision(reliable(work), slots=2)
        harness.accepted(data(channel, 0))
        harness.duplicates(data(channel, 0))
        harness.duplicates(data(channel, 0, slot=1, suffix="-again"))
        (delivery,) = harness.receive(work, 1)
        assert delivery.envelope == data(channel, 0)
        harness.settle(delivery)
        harness.duplicates(data(channel, 0))
        harness.nothing(work)

    def test_the_first_statement_for_an_input_wins_whole(self, harness: Harness) -> None:
        work = competing()
        channel = harness.provision(reliable(work), slots=2)
        harness.accepted(*fan_out(channel, 0, 2))
        harness.duplicates(*fan_out(channel, 0, 3, slot=1))
        harness.duplicates(skip(channel, (0, 0), slot=1))
        harness.accepted(skip(channel, (1, 1)))
        harness.duplicates(*fan_out(channel, 1, 2, slot=1))
        harness.duplicates(data(channel, 1, slot=1))
        assert len(harness.receive(work, 3)) == 3
        harness.nothing(work)

    def test_below_a_fan_out_each_trace_has_its_statement(self, harness: Harness) -> None:
        work = competing()
        channel = harness.provision(reliable(work))
        hops = [Hop("detect", "crops", k, 3) for k in range(3)]
        second = data(channel, 0, path=(hops[1],))
        none = msgspec.structs.replace(
            second, kind=Kind.SKIP, cause=Cause.SKIPPED, path=(hops[0],), input_id="first", body=b""
        )
        third = msgspec.structs.replace(second, path=(hops[2],), input_id="third")
        harness.accepted(second)
        harness.duplicates(second)
        harness.accepted(none)
        harness.duplicates(none)
        harness.duplicates(msgspec.structs.replace(none, kind=Kind.DATA))
        harness.accepted(third)
        harness.duplicates(second, none, third)
        assert len(harness.receive(work, 3)) == 3

    def test_of_an_interval_skip_only_the_new_part_is_said(self, harness: Harness) -> None:
        work = competing()
        channel = harness.provision(reliable(work))
        harness.accepted(data(channel, 2), skip(channel, (5, 6)))
        harness.accepted(skip(channel, (0, 7)))
        harness.duplicates(skip(channel, (1, 6)))
        rest = harness.receive(work, 3)[-1].envelope
        assert rest.intervals == ((0, 1), (3, 4), (7, 7))
        assert rest.origin == Origin("camera", 0, 0)
        harness.duplicates(data(channel, 3))

    def test_origins_are_told_apart(self, harness: Harness) -> None:
        channel = harness.provision(reliable(competing()))
        harness.accepted(data(channel, 0))
        for origin in (Origin("camera", 1, 0), Origin("other", 0, 0)):
            harness.accepted(msgspec.structs.replace(data(channel, 0), origin=origin, input_id=str(origin)))

    # Fencing and ends -------------------------------------------------------------------------

    def test_an_older_epoch_of_a_slot_is_refused(self, harness: Harness) -> None:
        channel = harness.provision(reliable(competing()), slots=2)
        harness.accepted(data(channel, 0, epoch=2))
        harness.rejected(RejectReason.STALE, data(channel, 1, epoch=1))
        harness.accepted(data(channel, 1, slot=1, epoch=0))
        (outcome,) = harness.backend("writer").terminate(channel, 0, 1, Kind.END, deadline=harness.soon())
        assert isinstance(outcome, Rejected)
        assert outcome.reason is RejectReason.STALE
        assert harness.channel_status(channel).terminators == {}

    def test_a_slot_that_ended_says_nothing_new(self, harness: Harness) -> None:
        channel = harness.provision(reliable(competing()), slots=2)
        harness.accepted(data(channel, 0))
        harness.end(channel)
        harness.duplicates(data(channel, 0))
        harness.rejected(RejectReason.SEALED, data(channel, 1))
        assert not harness.channel_status(channel).sealed
        harness.accepted(data(channel, 1, slot=1))
        harness.end(channel, slot=1)
        assert harness.channel_status(channel).sealed
        harness.duplicates(data(channel, 1, slot=1))
        harness.rejected(RejectReason.SEALED, data(channel, 2, slot=1))

    def test_an_end_lies_above_all_that_was_said_and_the_first_one_stands(self, harness: Harness) -> None:
        channel = harness.provision(reliable(competing()))
        (said,) = harness.publish(data(channel, 0))
        writer = harness.backend("writer")
        (stamp,) = writer.terminate(channel, 0, 0, Kind.ABORT, deadline=harness.soon())
        assert isinstance(said, Accepted)
        assert isinstance(stamp, Accepted)
        assert stamp.sequence > said.sequence
        assert not stamp.duplicate
        (again,) = writer.terminate(channel, 0, 0, Kind.END, deadline=harness.soon())
        assert isinstance(again, Accepted)
        assert again.duplicate
        assert harness.channel_status(channel).terminators == {0: Kind.ABORT}

    def test_a_deadline_in_the_past_never_waits(self, harness: Harness) -> None:
        channel = harness.provision(reliable(competing()), bounds=Bounds(1, 1000))
        outcomes = harness.publish(data(channel, 0), data(channel, 1), seconds=-PATIENCE_SECONDS)
        assert [type(outcome) for outcome in outcomes] == [Accepted, Rejected]
