"""Laws of publishing: order, room, deadlines, whole statements."""

from videoflow.backends.messaging import Bounds
from videoflow.backends.outcomes import Accepted, Rejected, RejectReason
from videoflow.testing.examiners import _messaging_laws as laws
from videoflow.testing.examiners._examiner import Examiner
from videoflow.testing.examiners._law import law
from videoflow.testing.examiners._messaging_subject import MessagingSubject
from videoflow.testing.examiners.envelopes import (
    competing,
    data,
    exclusive,
    fan_out,
    ordinals,
    reliable,
    skip,
)


class PublishingSuite(Examiner[MessagingSubject]):
    """Statements in, definite outcomes out."""

    @law(laws.TRUE_OUTCOME)
    def test_order_and_content_are_kept(self, subject: MessagingSubject) -> None:
        work = competing()
        channel = subject.provision(reliable(work))
        sent = [data(channel, 0), skip(channel, (1, 3)), *fan_out(channel, 4, 3), data(channel, 5)]
        outcomes = subject.publish(*sent)
        sequences = [outcome.sequence for outcome in outcomes if isinstance(outcome, Accepted)]
        assert sequences == sorted(set(sequences))
        assert len(sequences) == len(sent)
        assert [d.envelope for d in subject.receive(work, len(sent))] == sent

    @law(laws.ROOM)
    def test_a_full_channel_refuses_and_is_unchanged(self, subject: MessagingSubject) -> None:
        work = competing()
        channel = subject.provision(reliable(work), bounds=Bounds(2, 1000))
        subject.accepted(data(channel, 0), data(channel, 1))
        subject.rejected(RejectReason.FULL, data(channel, 2))
        subject.duplicates(data(channel, 1))
        assert subject.channel_status(channel).items == 2
        subject.settle(*subject.receive(work, 1))
        subject.accepted(data(channel, 2))

    @law(laws.ROOM)
    def test_bytes_fill_a_channel_as_items_do(self, subject: MessagingSubject) -> None:
        channel = subject.provision(reliable(competing()), bounds=Bounds(100, 25))
        subject.accepted(data(channel, 0), data(channel, 1))
        subject.rejected(RejectReason.FULL, data(channel, 2))
        assert subject.channel_status(channel).size_bytes == 20

    @law(laws.KEPT_FOR_ALL)
    def test_leased_items_take_room_until_every_reader_has_settled(self, subject: MessagingSubject) -> None:
        work, sink = competing(), exclusive()
        channel = subject.provision(reliable(work), reliable(sink), bounds=Bounds(1, 1000))
        subject.accepted(data(channel, 0))
        subject.settle(*subject.receive(work, 1))
        subject.rejected(RejectReason.FULL, data(channel, 1))
        subject.backend("reader").acquire(sink, 1, deadline=subject.soon())
        last = subject.receive(sink, 1, after={0: -1})
        subject.rejected(RejectReason.FULL, data(channel, 1))
        subject.settle(*last)
        subject.accepted(data(channel, 1))

    @law(laws.DEADLINE)
    def test_what_was_given_up_is_never_sent(self, subject: MessagingSubject) -> None:
        work = competing()
        channel = subject.provision(reliable(work), bounds=Bounds(1, 1000))
        subject.accepted(data(channel, 0))
        subject.rejected(RejectReason.FULL, data(channel, 1))
        subject.settle(*subject.receive(work, 1))
        subject.nothing(work)
        subject.accepted(data(channel, 2))
        assert ordinals(subject.receive(work, 1)) == [2]

    @law(laws.DEADLINE)
    def test_nothing_is_sent_later_than_its_deadline(self, subject: MessagingSubject) -> None:
        work = competing()
        channel = subject.provision(reliable(work), bounds=Bounds(1, 1000))
        subject.accepted(data(channel, 0))
        writer = subject.backend("writer")
        handles = writer.begin_publish([data(channel, 1)], deadline=subject.clock.monotonic() + 0.01)
        subject.advance(0.05)
        subject.settle(*subject.receive(work, 1))
        (outcome,) = writer.outcomes(handles, deadline=subject.soon())
        assert isinstance(outcome, Rejected)
        assert outcome.reason is RejectReason.FULL
        subject.nothing(work)

    @law(laws.ROOM)
    def test_room_that_comes_in_time_is_used(self, subject: MessagingSubject) -> None:
        work = competing()
        channel = subject.provision(reliable(work), bounds=Bounds(1, 1000))
        subject.accepted(data(channel, 0))
        writer, deadline = subject.backend("writer"), subject.soon()
        handles = writer.begin_publish([data(channel, 1), data(channel, 2)], deadline=deadline)
        subject.settle(*subject.receive(work, 1))
        (outcome,) = writer.outcomes(handles[:1], deadline=deadline)
        assert isinstance(outcome, Accepted)
        assert ordinals(subject.receive(work, 1)) == [1]

    @law(laws.ROOM)
    def test_what_waits_for_room_keeps_its_order(self, subject: MessagingSubject) -> None:
        work = competing()
        channel = subject.provision(reliable(work), bounds=Bounds(10, 100))
        subject.accepted(data(channel, 0, size_bytes=60))
        waiting = [data(channel, 1, size_bytes=60), data(channel, 2, size_bytes=1)]
        subject.rejected(RejectReason.FULL, *waiting)
        writer, deadline = subject.backend("writer"), subject.soon()
        first = writer.begin_publish(waiting[:1], deadline=deadline)
        second = writer.begin_publish(waiting[1:], deadline=deadline)
        subject.settle(*subject.receive(work, 1))
        outcomes = writer.outcomes([*second, *first], deadline=deadline)
        assert all(isinstance(outcome, Accepted) for outcome in outcomes)
        assert ordinals(subject.receive(work, 2)) == [1, 2]

    @law(laws.DEADLINE)
    def test_what_waits_behind_what_was_given_up_is_given_up_too(self, subject: MessagingSubject) -> None:
        """Else a retry of the first would come after the second."""
        work = competing()
        channel = subject.provision(reliable(work), bounds=Bounds(1, 1000))
        subject.accepted(data(channel, 0))
        writer, deadline = subject.backend("writer"), subject.soon()
        first, second = writer.begin_publish([data(channel, n) for n in (1, 2)], deadline=deadline)
        (outcome,) = writer.outcomes([first], deadline=0.0)
        assert isinstance(outcome, Rejected)
        subject.settle(*subject.receive(work, 1))
        (outcome,) = writer.outcomes([second], deadline=deadline)
        assert isinstance(outcome, Rejected)
        subject.accepted(data(channel, 1))
        assert ordinals(subject.receive(work, 1)) == [1]

    @law(laws.WHOLE)
    def test_a_statement_is_accepted_whole_or_not_at_all(self, subject: MessagingSubject) -> None:
        work = competing()
        channel = subject.provision(reliable(work), bounds=Bounds(4, 1000))
        subject.accepted(data(channel, 0), data(channel, 1))
        subject.rejected(RejectReason.FULL, *fan_out(channel, 2, 3))
        assert subject.channel_status(channel).items == 2
        subject.accepted(*fan_out(channel, 2, 2))
        assert subject.channel_status(channel).items == 4

    @law(laws.ROOM)
    def test_what_is_larger_than_the_bound_passes_alone(self, subject: MessagingSubject) -> None:
        work = competing()
        channel = subject.provision(reliable(work), bounds=Bounds(2, 15))
        subject.accepted(data(channel, 0))
        subject.rejected(RejectReason.FULL, *fan_out(channel, 1, 3))
        subject.settle(*subject.receive(work, 1))
        subject.accepted(*fan_out(channel, 1, 3))
        subject.rejected(RejectReason.FULL, data(channel, 2))
        subject.settle(*subject.receive(work, 3))
        subject.accepted(data(channel, 2, size_bytes=99))

    @law(laws.NO_ROOM_NEEDED)
    def test_skips_and_ends_take_no_room(self, subject: MessagingSubject) -> None:
        work = competing()
        channel = subject.provision(reliable(work), bounds=Bounds(1, 10))
        subject.accepted(data(channel, 0))
        subject.accepted(skip(channel, (1, 5)), skip(channel, (6, 6)))
        subject.end(channel)
        assert subject.channel_status(channel).items == 1
        assert ordinals(subject.receive(work, 3)) == [0, 1, 6]
