"""Laws of what is said: repetitions, fencing, ends."""

import msgspec

from videoflow.backends.coverage import Cause, Hop, Origin
from videoflow.backends.messaging import Bounds, Kind
from videoflow.backends.outcomes import Accepted, Rejected, RejectReason
from videoflow.testing.examiners import _messaging_laws as laws
from videoflow.testing.examiners._examiner import PATIENCE_SECONDS, Examiner
from videoflow.testing.examiners._law import law
from videoflow.testing.examiners._messaging_subject import MessagingSubject
from videoflow.testing.examiners.envelopes import competing, data, fan_out, reliable, skip


class SayingSuite(Examiner[MessagingSubject]):
    """What was said before is recognised; what is over is over."""

    # Repetitions ------------------------------------------------------------------------------

    @law(laws.FIRST_WINS)
    def test_a_repetition_is_recognised_before_and_after_settlement_and_across_writers(
        self, subject: MessagingSubject
    ) -> None:
        work = competing()
        channel = subject.provision(reliable(work), slots=2)
        subject.accepted(data(channel, 0))
        subject.duplicates(data(channel, 0))
        subject.duplicates(data(channel, 0, slot=1, suffix="-again"))
        (delivery,) = subject.receive(work, 1)
        assert delivery.envelope == data(channel, 0)
        subject.settle(delivery)
        subject.duplicates(data(channel, 0))
        subject.nothing(work)

    @law(laws.FIRST_WINS)
    def test_the_first_statement_for_an_input_wins_whole(self, subject: MessagingSubject) -> None:
        work = competing()
        channel = subject.provision(reliable(work), slots=2)
        subject.accepted(*fan_out(channel, 0, 2))
        subject.duplicates(*fan_out(channel, 0, 3, slot=1))
        subject.duplicates(skip(channel, (0, 0), slot=1))
        subject.accepted(skip(channel, (1, 1)))
        subject.duplicates(*fan_out(channel, 1, 2, slot=1))
        subject.duplicates(data(channel, 1, slot=1))
        assert len(subject.receive(work, 3)) == 3
        subject.nothing(work)

    @law(laws.FIRST_WINS)
    def test_below_a_fan_out_each_trace_has_its_statement(self, subject: MessagingSubject) -> None:
        work = competing()
        channel = subject.provision(reliable(work))
        hops = [Hop("detect", "crops", k, 3) for k in range(3)]
        second = data(channel, 0, path=(hops[1],))
        none = msgspec.structs.replace(
            second, kind=Kind.SKIP, cause=Cause.SKIPPED, path=(hops[0],), input_id="first", body=b""
        )
        third = msgspec.structs.replace(second, path=(hops[2],), input_id="third")
        subject.accepted(second)
        subject.duplicates(second)
        subject.accepted(none)
        subject.duplicates(none)
        subject.duplicates(msgspec.structs.replace(none, kind=Kind.DATA))
        subject.accepted(third)
        subject.duplicates(second, none, third)
        assert len(subject.receive(work, 3)) == 3

    @law(laws.FIRST_WINS)
    def test_of_an_interval_skip_only_the_new_part_is_said(self, subject: MessagingSubject) -> None:
        work = competing()
        channel = subject.provision(reliable(work))
        subject.accepted(data(channel, 2), skip(channel, (5, 6)))
        subject.accepted(skip(channel, (0, 7)))
        subject.duplicates(skip(channel, (1, 6)))
        rest = subject.receive(work, 3)[-1].envelope
        assert rest.intervals == ((0, 1), (3, 4), (7, 7))
        assert rest.origin == Origin("camera", 0, 0)
        subject.duplicates(data(channel, 3))

    @law(laws.FIRST_WINS)
    def test_origins_are_told_apart(self, subject: MessagingSubject) -> None:
        channel = subject.provision(reliable(competing()))
        subject.accepted(data(channel, 0))
        for origin in (Origin("camera", 1, 0), Origin("other", 0, 0)):
            subject.accepted(msgspec.structs.replace(data(channel, 0), origin=origin, input_id=str(origin)))

    # Fencing and ends -------------------------------------------------------------------------

    @law(laws.WRITERS_FENCED)
    def test_an_older_epoch_of_a_slot_is_refused(self, subject: MessagingSubject) -> None:
        channel = subject.provision(reliable(competing()), slots=2)
        subject.accepted(data(channel, 0, epoch=2))
        subject.rejected(RejectReason.STALE, data(channel, 1, epoch=1))
        subject.accepted(data(channel, 1, slot=1, epoch=0))
        (outcome,) = subject.backend("writer").terminate(channel, 0, 1, Kind.END, deadline=subject.soon())
        assert isinstance(outcome, Rejected)
        assert outcome.reason is RejectReason.STALE
        assert subject.channel_status(channel).terminators == {}

    @law(laws.ENDS)
    def test_a_slot_that_ended_says_nothing_new(self, subject: MessagingSubject) -> None:
        channel = subject.provision(reliable(competing()), slots=2)
        subject.accepted(data(channel, 0))
        subject.end(channel)
        subject.duplicates(data(channel, 0))
        subject.rejected(RejectReason.SEALED, data(channel, 1))
        assert not subject.channel_status(channel).sealed
        subject.accepted(data(channel, 1, slot=1))
        subject.end(channel, slot=1)
        assert subject.channel_status(channel).sealed
        subject.duplicates(data(channel, 1, slot=1))
        subject.rejected(RejectReason.SEALED, data(channel, 2, slot=1))

    @law(laws.ENDS)
    def test_an_end_lies_above_all_that_was_said_and_the_first_one_stands(
        self, subject: MessagingSubject
    ) -> None:
        channel = subject.provision(reliable(competing()))
        (said,) = subject.publish(data(channel, 0))
        writer = subject.backend("writer")
        (stamp,) = writer.terminate(channel, 0, 0, Kind.ABORT, deadline=subject.soon())
        assert isinstance(said, Accepted)
        assert isinstance(stamp, Accepted)
        assert stamp.sequence > said.sequence
        assert not stamp.duplicate
        (again,) = writer.terminate(channel, 0, 0, Kind.END, deadline=subject.soon())
        assert isinstance(again, Accepted)
        assert again.duplicate
        assert subject.channel_status(channel).terminators == {0: Kind.ABORT}

    @law(laws.DEADLINE)
    def test_a_deadline_in_the_past_never_waits(self, subject: MessagingSubject) -> None:
        channel = subject.provision(reliable(competing()), bounds=Bounds(1, 1000))
        outcomes = subject.publish(data(channel, 0), data(channel, 1), seconds=-PATIENCE_SECONDS)
        assert [type(outcome) for outcome in outcomes] == [Accepted, Rejected]
