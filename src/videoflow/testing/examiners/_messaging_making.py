"""Laws of making, observing and removing channels."""

import pytest

from videoflow.backends.capabilities import Profile
from videoflow.backends.messaging import Bounds, ChannelSpec, OwnerLabels
from videoflow.backends.outcomes import RejectReason, Unknown
from videoflow.errors import IncompatibleProfile, UnknownName
from videoflow.testing.examiners import _messaging_laws as laws
from videoflow.testing.examiners._examiner import Examiner
from videoflow.testing.examiners._law import law
from videoflow.testing.examiners._messaging_subject import MessagingSubject, unclaimed
from videoflow.testing.examiners.envelopes import (
    LABELS,
    ROOMY,
    channel_id,
    competing,
    data,
    exclusive,
    ordinals,
    reliable,
)


class MakingSuite(Examiner[MessagingSubject]):
    """Making, observing and removing."""

    @law(laws.READ_BACK)
    def test_making_the_same_twice_changes_nothing(self, subject: MessagingSubject) -> None:
        work = competing()
        channel = subject.provision(reliable(work))
        subject.accepted(data(channel, 0))
        subject.provision(reliable(work))
        assert ordinals(subject.receive(work, 1)) == [0]

    @law(laws.READ_BACK)
    def test_what_differs_and_cannot_change_is_refused_item_by_item(self, subject: MessagingSubject) -> None:
        work = competing()
        channel = subject.provision(reliable(work))
        subject.accepted(data(channel, 0))
        other = ChannelSpec(
            channel=channel,
            profile=Profile.RELIABLE_WORK,
            slots=2,
            bounds=ROOMY,
            subscriptions=(work, exclusive()),
            labels=LABELS,
        )
        with pytest.raises(IncompatibleProfile) as caught:
            subject.backend("engine").ensure_channel(other, "op", deadline=subject.soon())
        assert {miss.guarantee for miss in caught.value.misses} == {"slots", "subscriptions"}
        assert ordinals(subject.receive(work, 1)) == [0]

    @law(laws.READ_BACK)
    def test_what_can_change_is_changed_and_read_back(self, subject: MessagingSubject) -> None:
        work = competing()
        channel = subject.provision(reliable(work), bounds=Bounds(1, 1000))
        subject.accepted(data(channel, 0))
        subject.rejected(RejectReason.FULL, data(channel, 1))
        subject.provision(reliable(work, credit=Bounds(2, 1000)), bounds=Bounds(2, 1000))
        subject.accepted(data(channel, 1))
        assert len(subject.receive(work, 2)) == 2

    @law(laws.UNCLAIMED)
    def test_a_guarantee_that_is_not_claimed_is_refused_and_nothing_is_made(
        self, subject: MessagingSubject
    ) -> None:
        backend = subject.backend("engine")
        for spec, guarantee in unclaimed(subject):
            with pytest.raises(IncompatibleProfile) as caught:
                backend.ensure_channel(spec, "op", deadline=subject.soon())
            assert guarantee in [miss.guarantee for miss in caught.value.misses]
            assert isinstance(backend.observe_channel(channel_id(), deadline=subject.soon()), Unknown)

    @law(laws.READ_BACK)
    def test_a_reader_that_the_channel_does_not_list_is_refused(self, subject: MessagingSubject) -> None:
        subject.provision(reliable(competing()))
        stranger = reliable(competing("stranger"))
        with pytest.raises(IncompatibleProfile):
            subject.backend("engine").ensure_subscription(stranger, "op", deadline=subject.soon())

    @law(laws.NOT_EMPTY)
    def test_what_nobody_made_is_unknown_or_refused_never_empty(self, subject: MessagingSubject) -> None:
        engine, deadline = subject.backend("engine"), subject.soon()
        assert isinstance(engine.observe_channel(channel_id(), deadline=deadline), Unknown)
        assert isinstance(engine.observe_subscription(competing(), deadline=deadline), Unknown)
        assert isinstance(engine.announced(channel_id(), deadline=deadline), Unknown)
        assert isinstance(engine.settled(competing(), deadline=deadline), Unknown)
        with pytest.raises(UnknownName):
            subject.publish(data(channel_id(), 0))
        with pytest.raises(UnknownName):
            subject.backend("reader").receive(competing(), deadline=0.0)

    @law(laws.KEPT_FOR_ALL)
    def test_what_was_published_before_a_late_reader_is_kept_for_it(self, subject: MessagingSubject) -> None:
        work = competing()
        spec = ChannelSpec(
            channel=channel_id(),
            profile=Profile.RELIABLE_WORK,
            slots=1,
            bounds=ROOMY,
            subscriptions=(work,),
            labels=LABELS,
        )
        subject.backend("engine").ensure_channel(spec, "op", deadline=subject.soon())
        subject.accepted(*(data(channel_id(), n) for n in range(3)))
        subject.end(channel_id())
        subject.provision(reliable(work))
        assert ordinals(subject.receive(work, 3)) == [0, 1, 2]

    @law(laws.OWNED)
    def test_closing_removes_what_carries_the_labels_and_nothing_else(
        self, subject: MessagingSubject
    ) -> None:
        channel = subject.provision(reliable(competing()))
        subject.accepted(data(channel, 0))
        engine, deadline = subject.backend("engine"), subject.soon()
        for labels in (OwnerLabels("flow", "ru"), OwnerLabels("flow", "run", "somebody")):
            assert engine.close(labels, deadline=deadline).removed == ()
        assert subject.channel_status(channel).items == 1
        gone = engine.close(LABELS, deadline=deadline)
        assert gone.complete
        assert len(gone.removed) == 1
        assert gone.remaining == ()
        assert isinstance(engine.observe_channel(channel, deadline=deadline), Unknown)
        assert engine.close(LABELS, deadline=deadline).complete

    @law(laws.OWNED)
    def test_a_channel_made_anew_knows_nothing_of_the_old_one(self, subject: MessagingSubject) -> None:
        work = competing()
        channel = subject.provision(reliable(work))
        subject.accepted(data(channel, 0))
        subject.receive(work, 1)
        subject.backend("engine").close(LABELS, deadline=subject.soon())
        subject.provision(reliable(work))
        subject.accepted(data(channel, 0))
        assert ordinals(subject.receive(work, 1)) == [0]
