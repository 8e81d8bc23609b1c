"""The laws of messaging, over the memory reference and the shared-memory log."""

from typing import ClassVar

import msgspec

from tests.contracts.memory_subject import MemorySubject
from tests.contracts.shm_subject import ShmSubject
from videoflow.backends.capabilities import Profile
from videoflow.backends.messaging import ChannelSpec, OwnerLabels
from videoflow.backends.payload import PayloadRef, RetentionContract
from videoflow.testing.examiners import MessagingExaminer, MessagingSubject
from videoflow.testing.examiners.envelopes import (
    LABELS,
    ROOMY,
    channel_id,
    competing,
    data,
    live,
    reliable,
)

AT_ONCE = "the supervisor makes and removes everything of a run at once, with its processes"
REAPED = "the older owner of a replica is dead and reaped before the next one starts"
GIVEN_TO_ONE = "an input is given to one replica, and what that one said is told to the others when it dies"


def put(subject: MessagingSubject, ordinal: int) -> PayloadRef:
    contract = RetentionContract(obligations=(f"intent/publication-{ordinal}",))
    content = f"publication-{ordinal}/0"
    ref = subject.payloads("writer").put(bytes(1000), content, contract, deadline=subject.soon())
    assert ref is not None
    return ref


class TestMemory(MessagingExaminer):
    def make_subject(self) -> MemorySubject:
        return MemorySubject()

    def test_what_waited_for_a_late_live_reader_takes_no_room_and_is_limited(
        self, subject: MessagingSubject
    ) -> None:
        now, work = competing("now"), competing("work")
        spec = ChannelSpec(
            channel=channel_id(),
            profile=Profile.RELIABLE_WORK,
            slots=1,
            bounds=ROOMY,
            subscriptions=(now, work),
            labels=LABELS,
        )
        engine, deadline = subject.backend("engine"), subject.soon()
        engine.ensure_channel(spec, "op", deadline=deadline)
        engine.ensure_subscription(reliable(work), "op", deadline=deadline)
        subject.accepted(*(data(channel_id(), n) for n in range(3)))
        engine.ensure_subscription(live(now), "op", deadline=deadline)
        assert subject.status(now).evicted == 2
        subject.settle(*subject.receive(work, 2))
        assert subject.channel_status(channel_id()).items == 1

    def test_removing_a_channel_takes_nothing_from_another(self, subject: MessagingSubject) -> None:
        now, work = competing("now"), competing("work", channel_id("other"))
        gone = ChannelSpec(
            channel=channel_id(),
            profile=Profile.LIVE_LATEST,
            slots=1,
            bounds=ROOMY,
            subscriptions=(now,),
            labels=OwnerLabels("flow", "run", "somebody"),
        )
        engine, deadline = subject.backend("engine"), subject.soon()
        engine.ensure_channel(gone, "op", deadline=deadline)
        engine.ensure_subscription(
            msgspec.structs.replace(live(now), labels=gone.labels), "op", deadline=deadline
        )
        stays = subject.provision(reliable(work))
        ref = put(subject, 0)
        subject.accepted(*(data(name, 0, payloads=(ref,)) for name in (gone.channel, stays)))
        subject.accepted(data(gone.channel, 1))
        assert subject.status(now).evicted == 1
        assert engine.close(gone.labels, deadline=deadline).removed == (str(gone.channel),)
        assert subject.raw_objects() == 1
        subject.settle(*subject.receive(work, 1))
        assert subject.raw_objects() == 0


class TestShm(MessagingExaminer):
    cannot: ClassVar = {
        "test_a_channel_made_anew_knows_nothing_of_the_old_one": AT_ONCE,
        "test_closing_removes_what_carries_the_labels_and_nothing_else": AT_ONCE,
        "test_removing_a_channel_lets_go_of_what_it_held": AT_ONCE,
        "test_what_can_change_is_changed_and_read_back": AT_ONCE,
        "test_what_was_published_before_a_late_reader_is_kept_for_it": AT_ONCE,
        "test_acquiring_what_nobody_made_is_unknown": AT_ONCE,
        "test_a_newer_epoch_fences_the_older_one": REAPED,
        "test_a_superseded_token_settles_nothing": REAPED,
        "test_a_repetition_is_recognised_before_and_after_settlement_and_across_writers": GIVEN_TO_ONE,
        "test_the_first_statement_for_an_input_wins_whole": GIVEN_TO_ONE,
    }

    def make_subject(self) -> ShmSubject:
        return ShmSubject()
