"""Laws that messaging and payloads keep together: who keeps the bytes, and until when (rule 16)."""

import pytest

from videoflow.backends.capabilities import Profile
from videoflow.backends.messaging import Bounds, Envelope, Layout, Reliability
from videoflow.backends.outcomes import RejectReason
from videoflow.backends.payload import Missing, PayloadBytes, PayloadRef, RetentionContract
from videoflow.errors import UnknownName
from videoflow.testing.examiners import _messaging_laws as laws
from videoflow.testing.examiners._examiner import Examiner
from videoflow.testing.examiners._law import law
from videoflow.testing.examiners._messaging_subject import MessagingSubject, value
from videoflow.testing.examiners.envelopes import (
    LABELS,
    channel_id,
    competing,
    data,
    exclusive,
    live,
    reliable,
)


class HoldingSuite(Examiner[MessagingSubject]):
    """Objects that envelopes refer to."""

    def put(
        self, subject: MessagingSubject, ordinal: int, owner: str = "writer", size: int = 1000
    ) -> PayloadRef:
        contract = RetentionContract(obligations=(f"intent/publication-{ordinal}",))
        content = f"publication-{ordinal}/0"
        ref = subject.payloads(owner).put(bytes([ordinal]) * size, content, contract, deadline=subject.soon())
        assert ref is not None
        return ref

    def kept(self, subject: MessagingSubject) -> int:
        subject.settle_down()
        return len(value(subject.payloads("engine").inventory(deadline=subject.soon())))

    def bytes_of(self, subject: MessagingSubject, envelope: Envelope, owner: str = "reader") -> bytes:
        found = subject.payloads(owner).read(envelope.payloads[0], deadline=subject.soon())
        assert isinstance(found, PayloadBytes)
        with found:
            return bytes(found.data)

    @law(laws.LOG_HOLDS)
    def test_an_object_stays_until_every_reader_has_settled(self, subject: MessagingSubject) -> None:
        readers = [competing("one"), competing("two")]
        channel = subject.provision(*map(reliable, readers))
        ref = self.put(subject, 7)
        subject.accepted(data(channel, 7, payloads=(ref,)))
        for remaining, reader in zip((1, 0), readers, strict=True):
            (delivery,) = subject.receive(reader, 1)
            assert self.bytes_of(subject, delivery.envelope) == bytes([7]) * 1000
            subject.settle(delivery)
            assert self.kept(subject) == remaining

    @law(laws.LOG_HOLDS)
    def test_one_settlement_of_many_that_share_an_object_frees_nothing(
        self, subject: MessagingSubject
    ) -> None:
        work = competing()
        channel = subject.provision(reliable(work))
        ref = self.put(subject, 0)
        subject.accepted(*(data(channel, n, payloads=(ref,)) for n in range(4)))
        writer = subject.payloads("writer")
        writer.release_obligation([(ref, "intent/publication-0")], None, deadline=subject.soon())
        for delivery in subject.receive(work, 4):
            assert self.bytes_of(subject, delivery.envelope)
            subject.settle(delivery)
        assert self.kept(subject) == 0

    @law(laws.INTENTS)
    def test_a_refused_publication_leaves_the_intent_and_the_retry_uses_it(
        self, subject: MessagingSubject
    ) -> None:
        work = competing()
        channel = subject.provision(reliable(work), bounds=Bounds(1, 10**6))
        subject.accepted(data(channel, 0))
        envelope = data(channel, 1, payloads=(self.put(subject, 1),))
        subject.rejected(RejectReason.FULL, envelope)
        assert self.kept(subject) == 1
        subject.settle(*subject.receive(work, 1))
        subject.accepted(envelope)
        (delivery,) = subject.receive(work, 1)
        assert self.bytes_of(subject, delivery.envelope) == bytes([1]) * 1000
        subject.settle(delivery)
        assert self.kept(subject) == 0

    @law(laws.INTENTS)
    def test_a_retry_of_what_was_accepted_and_settled_brings_nothing_back(
        self, subject: MessagingSubject
    ) -> None:
        work = competing()
        channel = subject.provision(reliable(work))
        envelope = data(channel, 0, payloads=(self.put(subject, 0),))
        subject.accepted(envelope)
        subject.settle(*subject.receive(work, 1))
        subject.duplicates(envelope)
        assert self.kept(subject) == 0

    @law(laws.INTENTS)
    def test_the_object_of_a_duplicate_goes_and_the_stored_one_stays(self, subject: MessagingSubject) -> None:
        work = competing()
        channel = subject.provision(reliable(work))
        subject.accepted(data(channel, 3, payloads=(self.put(subject, 3),)))
        subject.duplicates(data(channel, 3, payloads=(self.put(subject, 3, size=2000),)))
        assert self.kept(subject) == 1
        (delivery,) = subject.receive(work, 1)
        assert len(self.bytes_of(subject, delivery.envelope)) == 1000

    @law(laws.INTENTS)
    def test_an_intent_ends_when_its_publication_is_in_every_layout(self, subject: MessagingSubject) -> None:
        fast = competing("fast")
        wide = channel_id(layout=Layout(Reliability.RELIABLE, "key", 1))
        slow = exclusive("slow", wide)
        first = subject.provision(reliable(fast))
        second = subject.provision(reliable(slow), bounds=Bounds(1, 10**6))
        subject.accepted(data(second, 9))
        ref = self.put(subject, 0)
        both = [data(first, 0, payloads=(ref,)), data(second, 0, payloads=(ref,))]
        outcomes = subject.publish(*both, seconds=0)
        assert [outcome.__class__.__name__ for outcome in outcomes] == ["Accepted", "Rejected"]
        subject.settle(*subject.receive(fast, 1))
        assert self.kept(subject) == 1
        subject.backend("reader").acquire(slow, 1, deadline=subject.soon())
        (old,) = subject.receive(slow, 1, after={0: -1})
        subject.settle(old)
        subject.accepted(both[1])
        (delivery,) = subject.receive(slow, 1, after=dict([old.token.position]))
        assert self.bytes_of(subject, delivery.envelope) == bytes(1000)
        subject.settle(delivery)
        assert self.kept(subject) == 0

    @law(laws.LOG_HOLDS)
    def test_a_dropped_item_lets_go_of_its_object(self, subject: MessagingSubject) -> None:
        now = competing("now")
        channel = subject.provision(live(now), profile=Profile.LIVE_LATEST)
        for n in range(20):
            subject.accepted(data(channel, n, payloads=(self.put(subject, n),)))
            assert self.kept(subject) == 1
        dropped, last = subject.receive(now, 2)
        assert dropped.envelope.payloads == ()
        subject.settle(dropped, last)
        assert self.kept(subject) == 0

    @law(laws.LOG_HOLDS)
    def test_what_one_reader_drops_stays_for_the_other(self, subject: MessagingSubject) -> None:
        now, work = competing("now"), competing("work")
        channel = subject.provision(live(now), reliable(work))
        for n in range(3):
            subject.accepted(data(channel, n, payloads=(self.put(subject, n),)))
        assert self.kept(subject) == 3
        for n, delivery in enumerate(subject.receive(work, 3)):
            assert self.bytes_of(subject, delivery.envelope) == bytes([n]) * 1000
            subject.settle(delivery)
        assert self.kept(subject) == 1

    @law(laws.LOG_HOLDS)
    def test_a_killed_reader_takes_nothing_with_it(self, subject: MessagingSubject) -> None:
        work = competing()
        channel = subject.provision(reliable(work))
        subject.accepted(data(channel, 5, payloads=(self.put(subject, 5),)))
        (held,) = subject.receive(work, 1, "a")
        pinned = subject.payloads("a").read(held.envelope.payloads[0], deadline=subject.soon())
        assert isinstance(pinned, PayloadBytes)
        subject.kill("a")
        (again,) = subject.receive(work, 1, "b")
        assert self.bytes_of(subject, again.envelope, "b") == bytes([5]) * 1000
        subject.settle(again, owner="b")
        assert self.kept(subject) == 0

    @law(laws.LOG_HOLDS)
    def test_a_port_that_nobody_reads_keeps_nothing(self, subject: MessagingSubject) -> None:
        from_here = competing()
        channel = subject.provision(reliable(from_here))
        subject.accepted(data(channel, 0, payloads=(self.put(subject, 0),)))
        subject.settle(*subject.receive(from_here, 1))
        assert self.kept(subject) == 0

    @law(laws.LOG_HOLDS)
    def test_removing_a_channel_lets_go_of_what_it_held(self, subject: MessagingSubject) -> None:
        channel = subject.provision(reliable(competing()), live(competing("now")))
        subject.accepted(*(data(channel, n, payloads=(self.put(subject, n),)) for n in range(3)))
        subject.backend("engine").close(LABELS, deadline=subject.soon())
        assert self.kept(subject) == 0

    @law(laws.TRUE_OUTCOME)
    def test_an_envelope_that_names_no_object_is_an_error_and_nothing_of_it_is_said(
        self, subject: MessagingSubject
    ) -> None:
        work = competing()
        channel = subject.provision(reliable(work))
        real = self.put(subject, 0)
        lost = PayloadRef(real.store, "no-such-key", 1000)
        with pytest.raises(UnknownName):
            subject.publish(data(channel, 0, payloads=(real, lost)))
        subject.nothing(work)
        found = subject.payloads("reader").read(lost, deadline=subject.soon())
        assert isinstance(found, Missing)
