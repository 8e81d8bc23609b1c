"""Laws that messaging and payloads keep together: who keeps the bytes, and until when (rule 16)."""

import pytest

from tests.backends.messaging_harness import (
    LABELS,
    Harness,
    channel_id,
    competing,
    data,
    exclusive,
    live,
    reliable,
    value,
)
from videoflow.backends.capabilities import Profile
from videoflow.backends.messaging import Bounds, Envelope, Layout, Reliability
from videoflow.backends.outcomes import RejectReason
from videoflow.backends.payload import Missing, PayloadBytes, PayloadRef, RetentionContract
from videoflow.errors import UnknownName


class PayloadSuite:
    """Objects that envelopes refer to."""

    def put(self, harness: Harness, ordinal: int, owner: str = "writer", size: int = 1000) -> PayloadRef:
        contract = RetentionContract(obligations=(f"intent/publication-{ordinal}",))
        content = f"publication-{ordinal}/0"
        ref = harness.payloads(owner).put(bytes([ordinal]) * size, content, contract, deadline=harness.soon())
        assert ref is not None
        return ref

    def kept(self, harness: Harness) -> int:
        harness.settle_down()
        return len(value(harness.payloads("engine").inventory(deadline=harness.soon())))

    def bytes_of(self, harness: Harness, envelope: Envelope, owner: str = "reader") -> bytes:
        found = harness.payloads(owner).read(envelope.payloads[0], deadline=harness.soon())
        assert isinstance(found, PayloadBytes)
        with found:
            return bytes(found.data)

    def test_an_object_stays_until_every_reader_has_settled(self, harness: Harness) -> None:
        readers = [competing("one"), competing("two")]
        channel = harness.provision(*map(reliable, readers))
        ref = self.put(harness, 7)
        harness.accepted(data(channel, 7, payloads=(ref,)))
        for remaining, reader in zip((1, 0), readers, strict=True):
            (delivery,) = harness.receive(reader, 1)
            assert self.bytes_of(harness, delivery.envelope) == bytes([7]) * 1000
            harness.settle(delivery)
            assert self.kept(harness) == remaining

    def test_one_settlement_of_many_that_share_an_object_frees_nothing(self, harness: Harness) -> None:
        work = competing()
        channel = harness.provision(reliable(work))
        ref = self.put(harness, 0)
        harness.accepted(*(data(channel, n, payloads=(ref,)) for n in range(4)))
        writer = harness.payloads("writer")
        writer.release_obligation([(ref, "intent/publication-0")], None, deadline=harness.soon())
        for delivery in harness.receive(work, 4):
            assert self.bytes_of(harness, delivery.envelope)
            harness.settle(delivery)
        assert self.kept(harness) == 0

    def test_a_refused_publication_leaves_the_intent_and_the_retry_uses_it(self, harness: Harness) -> None:
        work = competing()
        channel = harness.provision(reliable(work), bounds=Bounds(1, 10**6))
        harness.accepted(data(channel, 0))
        envelope = data(channel, 1, payloads=(self.put(harness, 1),))
        harness.rejected(RejectReason.FULL, envelope)
        assert self.kept(harness) == 1
        harness.settle(*harness.receive(work, 1))
        harness.accepted(envelope)
        (delivery,) = harness.receive(work, 1)
        assert self.bytes_of(harness, delivery.envelope) == bytes([1]) * 1000
        harness.settle(delivery)
        assert self.kept(harness) == 0

    def test_a_retry_of_what_was_accepted_and_settled_brings_nothing_back(self, harness: Harness) -> None:
        work = competing()
        channel = harness.provision(reliable(work))
        envelope = data(channel, 0, payloads=(self.put(harness, 0),))
        harness.accepted(envelope)
        harness.settle(*harness.receive(work, 1))
        harness.duplicates(envelope)
        assert self.kept(harness) == 0

    def test_the_object_of_a_duplicate_goes_and_the_stored_one_stays(self, harness: Harness) -> None:
        work = competing()
        channel = harness.provision(reliable(work))
        harness.accepted(data(channel, 3, payloads=(self.put(harness, 3),)))
        harness.duplicates(data(channel, 3, payloads=(self.put(harness, 3, size=2000),)))
        assert self.kept(harness) == 1
        (delivery,) = harness.receive(work, 1)
        assert len(self.bytes_of(harness, delivery.envelope)) == 1000

    def test_an_intent_ends_when_its_publication_is_in_every_layout(self, harness: Harness) -> None:
        fast = competing("fast")
        wide = channel_id(layout=Layout(Reliability.RELIABLE, "key", 1))
        slow = exclusive("slow", wide)
        first = harness.provision(reliable(fast))
        second = harness.provision(reliable(slow), bounds=Bounds(1, 10**6))
        harness.accepted(data(second, 9))
        ref = self.put(harness, 0)
        both = [data(first, 0, payloads=(ref,)), data(second, 0, payloads=(ref,))]
        outcomes = harness.publish(*both, seconds=0)
        assert [outcome.__class__.__name__ for outcome in outcomes] == ["Accepted", "Rejected"]
        harness.settle(*harness.receive(fast, 1))
        assert self.kept(harness) == 1
        harness.backend("reader").acquire(slow, 1, deadline=harness.soon())
        (old,) = harness.receive(slow, 1, after={0: -1})
        harness.settle(old)
        harness.accepted(both[1])
        (delivery,) = harness.receive(slow, 1, after=dict([old.token.position]))
        assert self.bytes_of(harness, delivery.envelope) == bytes(1000)
        harness.settle(delivery)
        assert self.kept(harness) == 0

    def test_a_dropped_item_lets_go_of_its_object(self, harness: Harness) -> None:
        now = competing("now")
        channel = harness.provision(live(now), profile=Profile.LIVE_LATEST)
        for n in range(20):
            harness.accepted(data(channel, n, payloads=(self.put(harness, n),)))
            assert self.kept(harness) == 1
        dropped, last = harness.receive(now, 2)
        assert dropped.envelope.payloads == ()
        harness.settle(dropped, last)
        assert self.kept(harness) == 0

    def test_what_one_reader_drops_stays_for_the_other(self, harness: Harness) -> None:
        now, work = competing("now"), competing("work")
        channel = harness.provision(live(now), reliable(work))
        for n in range(3):
            harness.accepted(data(channel, n, payloads=(self.put(harness, n),)))
        assert self.kept(harness) == 3
        for n, delivery in enumerate(harness.receive(work, 3)):
            assert self.bytes_of(harness, delivery.envelope) == bytes([n]) * 1000
            harness.settle(delivery)
        assert self.kept(harness) == 1

    def test_a_killed_reader_takes_nothing_with_it(self, harness: Harness) -> None:
        work = competing()
        channel = harness.provision(reliable(work))
        harness.accepted(data(channel, 5, payloads=(self.put(harness, 5),)))
        (held,) = harness.receive(work, 1, "a")
        pinned = harness.payloads("a").read(held.envelope.payloads[0], deadline=harness.soon())
        assert isinstance(pinned, PayloadBytes)
        harness.kill("a")
        (again,) = harness.receive(work, 1, "b")
        assert self.bytes_of(harness, again.envelope, "b") == bytes([5]) * 1000
        harness.settle(again, owner="b")
        assert self.kept(harness) == 0

    def test_a_port_that_nobody_reads_keeps_nothing(self, harness: Harness) -> None:
        from_here = competing()
        channel = harness.provision(reliable(from_here))
        harness.accepted(data(channel, 0, payloads=(self.put(harness, 0),)))
        harness.settle(*harness.receive(from_here, 1))
        assert self.kept(harness) == 0

    def test_removing_a_channel_lets_go_of_what_it_held(self, harness: Harness) -> None:
        channel = harness.provision(reliable(competing()), live(competing("now")))
        harness.accepted(*(data(channel, n, payloads=(self.put(harness, n),)) for n in range(3)))
        harness.backend("engine").close(LABELS, deadline=harness.soon())
        assert self.kept(harness) == 0

    def test_an_envelope_that_names_no_object_is_an_error_and_nothing_of_it_is_said(
        self, harness: Harness
    ) -> None:
        work = competing()
        channel = harness.provision(reliable(work))
        real = self.put(harness, 0)
        lost = PayloadRef(real.store, "no-such-key", 1000)
        with pytest.raises(UnknownName):
            harness.publish(data(channel, 0, payloads=(real, lost)))
        harness.nothing(work)
        found = harness.payloads("reader").read(lost, deadline=harness.soon())
        assert isinstance(found, Missing)
