"""Laws of broadcast: subscriptions with a slot, one for each replica, that are handed items alone."""

import msgspec

from videoflow.backends.capabilities import Profile
from videoflow.backends.messaging import Bounds, ChannelId, Kind, SubscriptionId, SubscriptionKind
from videoflow.testing.examiners import _messaging_laws as laws
from videoflow.testing.examiners._examiner import Examiner
from videoflow.testing.examiners._law import law
from videoflow.testing.examiners._messaging_subject import MessagingSubject
from videoflow.testing.examiners.envelopes import (
    LIVE,
    ROOMY,
    channel_id,
    data,
    live,
    ordinals,
    skip,
    tally,
)

OWNERS = ("part-0", "part-1")
ADDRESSED = channel_id(layout=LIVE)


class BroadcastSuite(Examiner[MessagingSubject]):
    """Two replicas of one reader, each with a subscription of its own."""

    def broadcast(
        self, subject: MessagingSubject, capacity: int = 4, credit: Bounds = ROOMY, bounds: Bounds = ROOMY
    ) -> tuple[ChannelId, list[SubscriptionId]]:
        """Makes a channel and the subscriptions of two replicas."""
        names = [
            SubscriptionId(ADDRESSED, "sink/sink.markers", SubscriptionKind.COMPETING, None, slot)
            for slot in range(2)
        ]
        specs = [
            msgspec.structs.replace(live(name, capacity, None, credit=credit), replicas=2) for name in names
        ]
        return subject.provision(*specs, bounds=bounds, profile=Profile.LIVE_LATEST), names

    @law(laws.BROADCAST)
    def test_each_replica_is_handed_every_item(self, subject: MessagingSubject) -> None:
        channel, names = self.broadcast(subject)
        subject.accepted(*(data(channel, n) for n in range(3)))
        for name, owner in zip(names, OWNERS, strict=True):
            taken = subject.receive(name, 3, owner)
            assert ordinals(taken) == [0, 1, 2]
            subject.settle(*taken, owner=owner)
            subject.nothing(name, owner)

    @law(laws.BROADCAST)
    def test_skips_are_noted_and_not_handed_out(self, subject: MessagingSubject) -> None:
        channel, names = self.broadcast(subject)
        subject.accepted(skip(channel, (0, 4)))
        subject.accepted(data(channel, 5))
        subject.accepted(skip(channel, (6, 6)))
        for name, owner in zip(names, OWNERS, strict=True):
            (taken,) = subject.receive(name, 1, owner)
            assert taken.envelope.origin.ordinal == 5
            subject.nothing(name, owner)
            subject.settle(taken, owner=owner)
            found = tally(subject.settled(name))
            assert found == {("skipped", "skipped"): [(0, 4), (6, 6)], ("delivered", ""): [(5, 5)]}

    @law(laws.BROADCAST)
    def test_too_many_drop_the_oldest_and_leave_no_tombstone(self, subject: MessagingSubject) -> None:
        channel, names = self.broadcast(subject, capacity=3)
        for n in range(10):
            subject.accepted(data(channel, n))
        taken = subject.receive(names[0], 3, OWNERS[0])
        assert ordinals(taken) == [7, 8, 9]
        assert {delivery.envelope.kind for delivery in taken} == {Kind.DATA}
        assert tally(subject.settled(names[1])) == {("dropped", "dropped"): [(0, 6)]}
        assert subject.status(names[0]).evicted == 7
        subject.settle(*taken, owner=OWNERS[0])
        subject.nothing(names[0], OWNERS[0])

    @law(laws.BROADCAST)
    def test_a_replica_that_starts_again_is_handed_what_it_had_not_settled(
        self, subject: MessagingSubject
    ) -> None:
        channel, names = self.broadcast(subject)
        subject.accepted(*(data(channel, n) for n in range(3)))
        first, *_ = subject.receive(names[1], 2, OWNERS[1])
        subject.settle(first, owner=OWNERS[1])
        subject.kill(OWNERS[1])
        again = subject.receive(names[1], 2, OWNERS[1])
        assert ordinals(again) == [1, 2]
        assert [delivery.token.transport_count for delivery in again] == [2, 1]

    @law(laws.UNHINDERED)
    def test_it_takes_no_room_and_keeps_to_its_credit(self, subject: MessagingSubject) -> None:
        channel, names = self.broadcast(subject, credit=Bounds(2, 2**20), bounds=Bounds(1, 10))
        held = []
        for n in range(60):
            subject.accepted(data(channel, n))
            if n == 0:
                held = subject.receive(names[0], 1, OWNERS[0])
        assert ordinals(held) == [0]
        assert subject.channel_status(channel).items == 0
        assert ordinals(subject.receive(names[0], 1, OWNERS[0])) == [56]
        subject.nothing(names[0], OWNERS[0])

    @law(laws.UNHINDERED)
    def test_a_dead_reader_holds_nobody_up(self, subject: MessagingSubject) -> None:
        channel, names = self.broadcast(subject)
        subject.accepted(data(channel, 0))
        subject.receive(names[0], 1, OWNERS[0])
        subject.kill(OWNERS[0])
        for start in range(1, 9001, 500):
            subject.accepted(*(data(channel, n) for n in range(start, start + 500)))
        taken = subject.receive(names[1], 4, OWNERS[1])
        assert ordinals(taken) == [8997, 8998, 8999, 9000]

    @law(laws.BROADCAST)
    def test_its_end_is_seen_and_waits_for_what_is_held(self, subject: MessagingSubject) -> None:
        channel, names = self.broadcast(subject)
        subject.accepted(data(channel, 0))
        subject.accepted(skip(channel, (1, 1)))
        taken = subject.receive(names[0], 1, OWNERS[0])
        subject.end(channel)
        assert not subject.status(names[0]).finished
        subject.settle(*taken, owner=OWNERS[0])
        assert subject.status(names[0]).finished
        assert not subject.status(names[1]).finished
