"""The examiner of the flow runtime, over any store."""

import threading
from collections.abc import Callable
from typing import Final

import pytest

from videoflow.backends.runtime import (
    CommitOutcome,
    Committed,
    DeadLetter,
    Desired,
    FirstFailure,
    FlowRuntime,
    OutboxEntry,
    SourcePosition,
    TaskCommit,
)
from videoflow.errors import ContractBroken, UnobservableState
from videoflow.faults import Fault, FaultAction
from videoflow.testing._lossy import COMMIT_DONE, COMMIT_SENT, READ_SENT, LossyStore
from videoflow.testing._schedules import injected
from videoflow.testing.examiners import _runtime_laws as laws
from videoflow.testing.examiners._examiner import PATIENCE_SECONDS, Examiner
from videoflow.testing.examiners._law import law
from videoflow.testing.examiners._store import StoreSubject

TASK: Final = "track"
_COMMITS = 40


def changes(number: int) -> TaskCommit:
    """Returns the commit of a number: every part of it says the number."""
    said = str(number).encode()
    return TaskCommit(
        state={"track/count": said, f"track/{number}": said, f"track/{number - 1}": None},
        cursor=said,
        outbox=(OutboxEntry(f"input-{number}", (said, said)),),
        source=SourcePosition(0, number, number * 10),
        flushed=number > 2,
    )


def committed(number: int) -> Committed:
    """Returns what a task finds after the commit of a number."""
    made = changes(number)
    return Committed(
        number=number,
        state={name: value for name, value in made.state.items() if value is not None},
        cursor=made.cursor,
        outbox=made.outbox,
        source=made.source,
        flushed=made.flushed,
    )


def letter(record_id: str, ordinal: int = 0, error: str = "ValueError: bad") -> DeadLetter:
    """Returns a dead letter."""
    return DeadLetter(
        record_id=record_id,
        label=record_id,
        run_id="run",
        node=TASK,
        task=TASK,
        input_id=f"input-{ordinal}",
        origin=("camera", 0, ordinal),
        error=error,
        members={"frame": b"bytes"},
    )


def lost(barrier: str, hit: int = 1) -> Fault:
    """Returns a fault by which an answer is lost: before the deed, or after it."""
    return Fault(barrier, FaultAction.DROP, hit)


class FlowRuntimeExaminer(Examiner[StoreSubject]):
    """Every law of `FlowRuntime` over a store; inherit in a class whose name begins with `Test`."""

    def runtime(self, subject: StoreSubject, run_id: str = "run") -> FlowRuntime:
        """Returns the flow runtime of a run, whose store may lose answers."""
        return FlowRuntime(LossyStore(subject.store), run_id)

    def commit(self, subject: StoreSubject, number: int, epoch: int = 1) -> CommitOutcome:
        """Commits a number."""
        return self.runtime(subject).commit(TASK, 0, changes(number), epoch, number, deadline=subject.soon())

    def load(self, subject: StoreSubject) -> Committed:
        """Returns what the task finds."""
        return self.runtime(subject).load(TASK, 0, deadline=subject.soon())

    def acquire(self, subject: StoreSubject) -> int:
        """Acquires the task's next epoch."""
        return self.runtime(subject).acquire_epoch(TASK, 0, deadline=subject.soon())

    @law(laws.EPOCHS)
    def test_a_commit_under_an_older_epoch_changes_nothing(self, subject: StoreSubject) -> None:
        assert [self.acquire(subject), self.acquire(subject)] == [1, 2]
        assert self.commit(subject, 1, epoch=2) is CommitOutcome.COMMITTED
        before = dict(subject.raw())
        assert self.commit(subject, 2, epoch=1) is CommitOutcome.STALE
        assert self.commit(subject, 1, epoch=1) is CommitOutcome.STALE
        assert dict(subject.raw()) == before

    @law(laws.EPOCHS)
    def test_acquiring_keeps_what_was_committed(self, subject: StoreSubject) -> None:
        self.acquire(subject)
        self.commit(subject, 1)
        self.acquire(subject)
        assert self.load(subject) == committed(1)
        assert self.commit(subject, 2, epoch=2) is CommitOutcome.COMMITTED

    @law(laws.EPOCHS)
    def test_an_epoch_whose_answer_was_lost_is_owned_by_one(self, subject: StoreSubject) -> None:
        for barrier in (COMMIT_SENT, COMMIT_DONE):
            with injected(lost(barrier)):
                first = self.acquire(subject)
            second = self.acquire(subject)
            assert second > first

    @law(laws.EPOCHS)
    def test_of_many_that_acquire_each_has_an_epoch_of_its_own(self, subject: StoreSubject) -> None:
        epochs: list[int] = []
        together(lambda: epochs.extend(self.acquire(subject) for _ in range(4)))
        assert sorted(epochs) == list(range(1, len(epochs) + 1))

    @law(laws.ONE_PREFIX)
    def test_all_parts_of_a_commit_are_found_together(self, subject: StoreSubject) -> None:
        self.acquire(subject)
        assert self.load(subject) == Committed()
        for number in (1, 2, 3):
            assert self.commit(subject, number) is CommitOutcome.COMMITTED
            assert self.load(subject) == committed(number)

    @law(laws.ONE_PREFIX)
    def test_a_commit_whose_answer_was_lost_is_there_whole_or_not_at_all(self, subject: StoreSubject) -> None:
        self.acquire(subject)
        self.commit(subject, 1)
        with injected(lost(COMMIT_SENT)):
            assert self.commit(subject, 2) is CommitOutcome.UNKNOWN
        assert self.load(subject) == committed(1)
        with injected(lost(COMMIT_DONE)):
            assert self.commit(subject, 2) is CommitOutcome.UNKNOWN
        assert self.load(subject) == committed(2)

    @law(laws.ONE_PREFIX)
    def test_what_a_commit_does_not_name_stays(self, subject: StoreSubject) -> None:
        self.acquire(subject)
        self.commit(subject, 1)
        bare = TaskCommit(state={"track/other": b"x"})
        outcome = self.runtime(subject).commit(TASK, 0, bare, 1, 2, deadline=subject.soon())
        assert outcome is CommitOutcome.COMMITTED
        found, first = self.load(subject), committed(1)
        assert found.state == {**first.state, "track/other": b"x"}
        assert (found.cursor, found.source, found.outbox) == (first.cursor, first.source, ())

    @law(laws.NUMBERED)
    def test_a_number_sent_again_is_committed_once(self, subject: StoreSubject) -> None:
        self.acquire(subject)
        for barrier in (COMMIT_SENT, COMMIT_DONE):
            number = self.load(subject).number + 1
            with injected(lost(barrier)):
                assert self.commit(subject, number) is CommitOutcome.UNKNOWN
            assert self.commit(subject, number) is CommitOutcome.COMMITTED
            before = dict(subject.raw())
            assert self.commit(subject, number) is CommitOutcome.COMMITTED
            assert dict(subject.raw()) == before
            assert self.load(subject) == committed(number)

    @law(laws.NUMBERED)
    def test_a_number_that_is_stored_is_not_applied_again(self, subject: StoreSubject) -> None:
        self.acquire(subject)
        self.commit(subject, 1)
        outcome = self.runtime(subject).commit(TASK, 0, changes(9), 1, 1, deadline=subject.soon())
        assert outcome is CommitOutcome.COMMITTED
        assert self.load(subject) == committed(1)

    @law(laws.NUMBERED)
    def test_a_number_that_leaves_a_gap_is_refused(self, subject: StoreSubject) -> None:
        self.acquire(subject)
        self.commit(subject, 1)
        with pytest.raises(ContractBroken):
            self.commit(subject, 3)
        assert self.load(subject) == committed(1)

    @law(laws.APART)
    def test_different_names_share_nothing(self, subject: StoreSubject) -> None:
        places = [("run", "a", 1), ("run", "a", 10), ("run", "ab", 1), ("run2", "a", 1), ("run", "A", 1)]
        for n, (run, task, partition) in enumerate(places, 1):
            runtime = self.runtime(subject, run)
            for _ in range(n):
                runtime.acquire_epoch(task, partition, deadline=subject.soon())
            runtime.commit(task, partition, changes(1), n, 1, deadline=subject.soon())
            assert runtime.acquire_epoch(task, partition, deadline=subject.soon()) == n + 1
        for run, task, partition in places:
            found = self.runtime(subject, run).load(task, partition, deadline=subject.soon())
            assert found == committed(1)
        self.runtime(subject, "run").put_dead_letter(letter("one"), deadline=subject.soon())
        assert self.runtime(subject, "run2").dead_letters(deadline=subject.soon()) == []

    @law(laws.ATTEMPTS)
    def test_an_incarnation_is_charged_with_its_last_record_only(self, subject: StoreSubject) -> None:
        runtime, deadline = self.runtime(subject), subject.soon()
        for _ in range(2):
            runtime.record_started(TASK, "detect", "x", "one", deadline=deadline)
        runtime.record_started(TASK, "detect", "x", "two", deadline=deadline)
        assert runtime.attempts("detect", "x", deadline=deadline) == {"one", "two"}
        runtime.record_started(TASK, "draw", "x", "one", deadline=deadline)
        assert runtime.attempts("detect", "x", deadline=deadline) == {"two"}
        assert runtime.attempts("draw", "x", deadline=deadline) == {"one"}
        runtime.withdraw_started(TASK, "one", deadline=deadline)
        runtime.withdraw_started(TASK, "one", deadline=deadline)
        assert runtime.attempts("draw", "x", deadline=deadline) == frozenset()
        assert runtime.attempts("detect", "x", deadline=deadline) == {"two"}

    @law(laws.RISES)
    def test_the_desired_state_only_rises(self, subject: StoreSubject) -> None:
        runtime, deadline = self.runtime(subject), subject.soon()
        assert runtime.desired(deadline=deadline) is Desired.RUN
        assert runtime.raise_desired(Desired.STOP, deadline=deadline) is Desired.STOP
        assert runtime.raise_desired(Desired.ABORT, deadline=deadline) is Desired.ABORT
        for lower in (Desired.STOP, Desired.RUN):
            assert runtime.raise_desired(lower, deadline=deadline) is Desired.ABORT
        assert runtime.desired(deadline=deadline) is Desired.ABORT

    @law(laws.RISES)
    def test_an_abort_is_not_lowered_by_a_stop_at_the_same_time(self, subject: StoreSubject) -> None:
        order = iter((Desired.STOP, Desired.ABORT, Desired.STOP))
        together(lambda: self.runtime(subject).raise_desired(next(order), deadline=subject.soon()))
        assert self.runtime(subject).desired(deadline=subject.soon()) is Desired.ABORT

    @law(laws.RISES)
    def test_a_raise_whose_answer_was_lost_is_made(self, subject: StoreSubject) -> None:
        for barrier, state in ((COMMIT_SENT, Desired.STOP), (COMMIT_DONE, Desired.ABORT)):
            with injected(lost(barrier)):
                assert self.runtime(subject).raise_desired(state, deadline=subject.soon()) is state
            assert self.runtime(subject).desired(deadline=subject.soon()) is state

    @law(laws.ONCE)
    def test_the_first_failure_stands(self, subject: StoreSubject) -> None:
        runtime, deadline = self.runtime(subject), subject.soon()
        first, second = (FirstFailure(node=n, code="node_failed", message=n) for n in ("detect", "draw"))
        assert runtime.first_failure(deadline=deadline) is None
        assert runtime.fail_first(first, deadline=deadline) == first
        assert runtime.fail_first(second, deadline=deadline) == first
        assert runtime.first_failure(deadline=deadline) == first

    @law(laws.ONCE)
    def test_what_is_said_to_stand_is_recorded(self, subject: StoreSubject) -> None:
        failure = FirstFailure(node="detect", code="node_failed", message="it failed")
        for barrier in (COMMIT_SENT, COMMIT_DONE):
            runtime, deadline = self.runtime(subject, f"run-{barrier}"), subject.soon()
            with injected(lost(barrier)):
                assert runtime.fail_first(failure, deadline=deadline) == failure
            assert runtime.first_failure(deadline=deadline) == failure
            with injected(lost(barrier)):
                assert runtime.finish("complete", deadline=deadline) == "complete"
            assert runtime.finish("failed", deadline=deadline) == "complete"

    @law(laws.ONCE)
    def test_a_dead_letter_is_recorded_once(self, subject: StoreSubject) -> None:
        runtime, deadline = self.runtime(subject), subject.soon()
        assert runtime.put_dead_letter(letter("b", 2), deadline=deadline) == "b"
        assert runtime.put_dead_letter(letter("b", 2, "another"), deadline=deadline) == "b"
        runtime.put_dead_letter(letter("a", 10), deadline=deadline)
        found = runtime.dead_letters(deadline=deadline)
        assert found == [letter("b", 2), letter("a", 10)]
        assert {aside.record_id for aside in runtime.asides(TASK, deadline=deadline)} == {"a", "b"}
        assert runtime.is_aside(TASK, "a", deadline=deadline)
        assert not runtime.is_aside("other", "a", deadline=deadline)

    @law(laws.ONCE)
    def test_a_dead_letter_that_may_not_be_written_is_said_so_and_sent_again(
        self, subject: StoreSubject
    ) -> None:
        runtime, deadline = self.runtime(subject), subject.soon()
        for barrier in (COMMIT_SENT, COMMIT_DONE):
            with injected(lost(barrier)), pytest.raises(UnobservableState):
                runtime.put_dead_letter(letter(barrier), deadline=deadline)
            runtime.put_dead_letter(letter(barrier), deadline=deadline)
        assert len(runtime.dead_letters(deadline=deadline)) == 2

    @law(laws.ONCE)
    def test_of_what_replicas_say_of_an_input_the_first_stands(self, subject: StoreSubject) -> None:
        runtime, deadline = self.runtime(subject), subject.soon()
        mine, theirs, other = (OutboxEntry(n, (v,)) for n, v in (("x", b"1"), ("x", b"2"), ("y", b"3")))
        assert runtime.put_once(TASK, [mine], deadline=deadline) == [mine]
        assert runtime.put_once(TASK, [theirs, other], deadline=deadline) == [mine, other]
        assert runtime.once(TASK, "x", deadline=deadline) == mine
        with injected(lost(COMMIT_SENT, 2)):
            assert runtime.put_once(TASK, [theirs], ["y"], deadline=deadline) == [mine]
        assert runtime.once(TASK, "y", deadline=deadline) is None
        assert runtime.put_once("another", [theirs], deadline=deadline) == [theirs]
        runtime.forget_once(TASK, deadline=deadline)
        runtime.forget_once(TASK, deadline=deadline)
        assert runtime.once(TASK, "x", deadline=deadline) is None
        assert runtime.once("another", "x", deadline=deadline) == theirs

    @law(laws.ONCE)
    def test_the_end_is_recorded_once(self, subject: StoreSubject) -> None:
        runtime, deadline = self.runtime(subject), subject.soon()
        assert runtime.finish("complete", deadline=deadline) == "complete"
        assert runtime.finish("failed", deadline=deadline) == "complete"

    @law(laws.NOT_KNOWN)
    def test_what_could_not_be_read_is_never_absent(self, subject: StoreSubject) -> None:
        runtime, deadline = self.runtime(subject), subject.soon()
        asked: list[Callable[[], object]] = [
            lambda: runtime.load(TASK, 0, deadline=deadline),
            lambda: runtime.desired(deadline=deadline),
            lambda: runtime.attempts("detect", "x", deadline=deadline),
            lambda: runtime.first_failure(deadline=deadline),
            lambda: runtime.dead_letters(deadline=deadline),
            lambda: runtime.acquire_epoch(TASK, 0, deadline=deadline),
            lambda: runtime.notes("", deadline=deadline),
            lambda: runtime.asides(TASK, deadline=deadline),
        ]
        for ask in asked:
            with injected(lost(READ_SENT)), pytest.raises(UnobservableState):
                ask()

    @law(laws.NOT_KNOWN)
    def test_a_note_that_may_not_be_written_is_said_so(self, subject: StoreSubject) -> None:
        runtime, deadline = self.runtime(subject), subject.soon()
        with injected(lost(COMMIT_SENT)), pytest.raises(UnobservableState):
            runtime.put_note("summary/sink", b"1", deadline=deadline)
        runtime.put_note("summary/sink", b"2", deadline=deadline)
        runtime.put_note("summary/sink", b"3", deadline=deadline)
        assert runtime.notes("summary/", deadline=deadline) == {"summary/sink": b"3"}

    @law(laws.SMALL)
    def test_records_do_not_grow_with_the_run(self, subject: StoreSubject) -> None:
        self.acquire(subject)
        sizes = []
        for number in range(1, _COMMITS + 1):
            assert self.commit(subject, number) is CommitOutcome.COMMITTED
            self.runtime(subject).record_started(
                TASK, TASK, f"input-{number}", "one", deadline=subject.soon()
            )
            sizes.append(len(subject.raw()))
        assert sizes[-1] == sizes[2]


def together(work: Callable[[], object]) -> None:
    """Does the same in three threads at once."""
    threads = [threading.Thread(target=work, daemon=True) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE_SECONDS)
