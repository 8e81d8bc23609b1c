"""What the capabilities claim is tried, and what they do not claim is refused."""

import pytest

from videoflow.backends.capabilities import Profile
from videoflow.backends.messaging import Bounds, PublicationObserver
from videoflow.backends.outcomes import Accepted, Rejected, RejectReason
from videoflow.errors import IncompatibleProfile
from videoflow.testing.examiners import _messaging_laws as laws
from videoflow.testing.examiners._examiner import Examiner
from videoflow.testing.examiners._law import law
from videoflow.testing.examiners._messaging_subject import MessagingSubject
from videoflow.testing.examiners.envelopes import competing, data, exclusive, live, ordinals, reliable

_TRIED_BYTES = 1 << 24
_FRAME_BYTES = 2048


class AbilitySuite(Examiner[MessagingSubject]):
    """An ability is tried if and only if it is claimed, and its refusal if it is not."""

    @law(laws.UNCLAIMED)
    def test_a_lease_lasts_as_long_as_is_claimed(self, subject: MessagingSubject) -> None:
        seconds = subject.capabilities.lease_seconds
        work = competing()
        if seconds is None:
            with pytest.raises(IncompatibleProfile):
                subject.provision(reliable(work, lease_seconds=5.0))
            return
        channel = subject.provision(reliable(work, replicas=2, lease_seconds=seconds))
        subject.accepted(data(channel, 0), data(channel, 1))
        kept, lost = subject.receive(work, 2, "a")
        subject.advance(seconds / 2)
        assert list(subject.backend("a").renew([kept.token], deadline=subject.soon())) == [True]
        subject.advance(seconds / 2 + seconds / 10)
        (again,) = subject.receive(work, 1, "b")
        assert (ordinals([again]), again.token.transport_count) == (ordinals([lost]), 2)
        assert list(subject.backend("a").renew([lost.token], deadline=subject.soon())) == [False]

    @law(laws.UNCLAIMED)
    def test_publications_are_observed_if_and_only_if_that_is_claimed(
        self, subject: MessagingSubject
    ) -> None:
        channel = subject.provision(reliable(competing()))
        writer = subject.backend("writer")
        observes = isinstance(writer, PublicationObserver)
        assert observes == subject.capabilities.observes_publication
        if isinstance(writer, PublicationObserver):
            subject.accepted(data(channel, 0))
            (seen,) = writer.observe_publication([data(channel, 0)], deadline=subject.soon())
            assert isinstance(seen, Accepted)

    @law(laws.UNCLAIMED)
    def test_every_profile_that_is_claimed_can_be_had(self, subject: MessagingSubject) -> None:
        assert subject.capabilities.profiles <= set(Profile)
        if Profile.LIVE_LATEST in subject.capabilities.profiles:
            channel = subject.provision(live(competing("now")), profile=Profile.LIVE_LATEST)
        else:
            channel = subject.provision(reliable(competing("now")))
        subject.accepted(data(channel, 0))
        assert ordinals(subject.receive(competing("now"), 1)) == [0]

    @law(laws.UNCLAIMED)
    def test_an_envelope_as_large_as_claimed_arrives_and_a_larger_one_is_refused_or_arrives(
        self, subject: MessagingSubject
    ) -> None:
        largest = min(subject.capabilities.maximum_envelope_bytes, _TRIED_BYTES) - _FRAME_BYTES
        work = competing()
        channel = subject.provision(reliable(work), bounds=Bounds(2, 1000))
        subject.accepted(data(channel, 0, body=bytes(largest)))
        (first,) = subject.receive(work, 1)
        assert len(first.envelope.body) == largest
        subject.settle(first)
        (outcome,) = subject.publish(data(channel, 1, body=bytes(2 * largest)), seconds=0)
        if isinstance(outcome, Rejected):
            assert outcome.reason is RejectReason.TOO_LARGE
            assert subject.raw(channel) == ()
        else:
            assert isinstance(outcome, Accepted)
            assert len(subject.receive(work, 1)[0].envelope.body) == 2 * largest

    @law(laws.UNCLAIMED)
    def test_a_spread_is_kept_or_refused(self, subject: MessagingSubject) -> None:
        sink = exclusive()
        if not subject.capabilities.gated_dispatch:
            with pytest.raises(IncompatibleProfile):
                subject.provision(reliable(sink, spread=2))
            return
        channel = subject.provision(reliable(sink, spread=2))
        subject.accepted(*(data(channel, n) for n in range(4)))
        subject.backend("reader").acquire(sink, 1, deadline=subject.soon())
        first, second = subject.receive(sink, 2, after={0: -1})
        subject.settle(second)
        subject.nothing(sink, after=dict([second.token.position]))
        subject.settle(first)
        assert ordinals(subject.receive(sink, 2, after=dict([second.token.position]))) == [2, 3]

    @law(laws.UNCLAIMED)
    def test_a_profile_asked_for_with_the_wrong_reader_is_refused(self, subject: MessagingSubject) -> None:
        if Profile.LIVE_LATEST not in subject.capabilities.profiles:
            return
        with pytest.raises(IncompatibleProfile):
            subject.provision(reliable(competing("now")), profile=Profile.LIVE_LATEST)

    @law(laws.TRUE_OUTCOME)
    def test_what_is_accepted_lies_in_the_store_and_what_is_refused_does_not(
        self, subject: MessagingSubject
    ) -> None:
        work, sink = competing(), exclusive()
        channel = subject.provision(reliable(work), reliable(sink))
        subject.accepted(data(channel, 0), data(channel, 1))
        assert subject.raw(channel) == ("publication-0", "publication-1")
        subject.duplicates(data(channel, 0, suffix="-again"))
        subject.settle(*subject.receive(work, 2))
        assert subject.raw(channel) == ("publication-0", "publication-1")
        subject.backend("reader").acquire(sink, 1, deadline=subject.soon())
        first, _ = subject.receive(sink, 2, after={0: -1})
        subject.settle(first)
        assert subject.raw(channel) == ("publication-1",)
        subject.end(channel)
        subject.rejected(RejectReason.SEALED, data(channel, 2))
        assert subject.raw(channel) == ("publication-1",)

    @law(laws.READ_BACK)
    def test_what_is_read_back_is_what_was_asked_for(self, subject: MessagingSubject) -> None:
        work = reliable(competing())
        subject.provision(work)
        engine = subject.backend("engine")
        with pytest.raises(IncompatibleProfile) as caught:
            engine.ensure_subscription(live(competing()), "op", deadline=subject.soon())
        assert caught.value.misses
        assert engine.ensure_subscription(work, "op", deadline=subject.soon()) == work
