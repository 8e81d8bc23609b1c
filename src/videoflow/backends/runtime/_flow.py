"""The flow runtime over any store: epochs, commits, attempts, desired state, failure, dead letters."""

from collections.abc import Sequence
from typing import TypeVar

import msgspec

from videoflow.backends.outcomes import Known, Observation, Unknown
from videoflow.backends.runtime._records import (
    Aside,
    CommitOutcome,
    Committed,
    DeadLetter,
    Desired,
    FirstFailure,
    Head,
    OutboxEntry,
    TaskCommit,
)
from videoflow.backends.runtime._store import ABSENT, Change, RuntimeStore, Stored, StoreOutcome
from videoflow.errors import ContractBroken, StaleAuthority, UnobservableState

T = TypeVar("T")
_RETRIES = 100


class FlowRuntime:
    """The records of one run, each under (task, partition); O(1) in the length of the run.

    Every call takes a monotonic `deadline`. What could not be read raises `UnobservableState`
    where the caller cannot go on without it.
    """

    def __init__(self, store: RuntimeStore, run_id: str) -> None:
        self.store = store
        self.run_id = run_id
        self._root = f"run/{run_id}"

    def acquire_epoch(self, task: str, partition: int, *, deadline: float) -> int:
        """Becomes the owner of a task's partition; returns the new epoch, which fences all older ones."""
        key = self._task(task, partition)
        for _ in range(_RETRIES):
            stored = self._one(key, deadline)
            head = msgspec.msgpack.decode(stored.value, type=Head) if stored else Head()
            new = msgspec.structs.replace(head, epoch=head.epoch + 1)
            change = Change(key, msgspec.msgpack.encode(new), stored.version if stored else ABSENT)
            if self.store.commit([change], deadline=deadline) is StoreOutcome.COMMITTED:
                return new.epoch
        raise UnobservableState(f"the ownership of task {task} could not be taken", cause="constant conflict")

    def load(self, task: str, partition: int, *, deadline: float) -> Committed:
        """Returns what a task committed last."""
        key = self._task(task, partition)
        stored = self._one(key, deadline)
        head = msgspec.msgpack.decode(stored.value, type=Head) if stored else Head()
        prefix = f"{key}/state/"
        state = {
            name[len(prefix) :]: item.value
            for name, item in _value(self.store.scan(prefix, deadline=deadline), prefix).items()
        }
        return Committed(
            number=head.number,
            state=state,
            cursor=head.cursor,
            outbox=head.outbox,
            source=head.source,
            flushed=head.flushed,
        )

    def commit(
        self, task: str, partition: int, changes: TaskCommit, epoch: int, number: int, *, deadline: float
    ) -> CommitOutcome:
        """Applies a task's commit, numbered from 1 without gaps within its whole life.

        A number already stored under this epoch is `COMMITTED`, so that the same commit may be sent again
        after `UNKNOWN`; under a newer epoch it is `STALE`.

        Raises:
            ContractBroken: The number leaves a gap: what lay between is lost, or was never sent.
        """
        key = self._task(task, partition)
        stored = self._one(key, deadline)
        head = msgspec.msgpack.decode(stored.value, type=Head) if stored else Head()
        if head.epoch != epoch:
            return CommitOutcome.STALE
        if head.number >= number:
            return CommitOutcome.COMMITTED
        if number > head.number + 1:
            raise ContractBroken(f"task {task} commits number {number} after {head.number}")
        new = Head(
            epoch,
            number,
            head.cursor if changes.cursor is None else changes.cursor,
            changes.outbox,
            head.source if changes.source is None else changes.source,
            head.flushed or changes.flushed,
        )
        puts = [Change(f"{key}/state/{name}", value) for name, value in changes.state.items()]
        puts.append(Change(key, msgspec.msgpack.encode(new), stored.version if stored else ABSENT))
        outcome = self.store.commit(puts, deadline=deadline)
        if outcome is StoreOutcome.COMMITTED:
            return CommitOutcome.COMMITTED
        return CommitOutcome.STALE if outcome is StoreOutcome.CONFLICT else CommitOutcome.UNKNOWN

    def put_once(
        self,
        task: str,
        entries: Sequence[OutboxEntry],
        forget: Sequence[str] = (),
        *,
        deadline: float,
    ) -> list[OutboxEntry]:
        """Records what replicas that share their input said of it, each input once (rule 5).

        Args:
            task: Whose.
            entries: By input.
            forget: Inputs whose record is needed no more, since they are settled.
            deadline: Monotonic seconds.

        Returns:
            For each entry the one that stands, which may be another's.
        """
        keys = [self._once(task, entry.input_id) for entry in entries]
        changes = [
            Change(key, msgspec.msgpack.encode(entry), ABSENT)
            for key, entry in zip(keys, entries, strict=True)
        ]
        gone = [Change(self._once(task, input_id), None) for input_id in forget]
        if changes or gone:
            outcome = self.store.commit([*changes, *gone], deadline=deadline)
            if outcome is StoreOutcome.UNKNOWN:
                self._must(outcome, "an answer")
            if outcome is StoreOutcome.COMMITTED:
                return list(entries)
        stand = [
            self._written_once(key, msgspec.msgpack.encode(entry), deadline)
            for key, entry in zip(keys, entries, strict=True)
        ]
        if gone:
            self._must(self.store.commit(gone, deadline=deadline), "an answer")
        return [msgspec.msgpack.decode(value, type=OutboxEntry) for value in stand]

    def forget_once(self, task: str, *, deadline: float) -> None:
        """Forgets all that `put_once` recorded for a task, every input of which is settled."""
        found = _value(self.store.scan(self._once(task, ""), deadline=deadline), task)
        self._must(self.store.commit([Change(key, None) for key in found], deadline=deadline), "an answer")

    def once(self, task: str, input_id: str, *, deadline: float) -> OutboxEntry | None:
        """Returns what `put_once` recorded for an input, or None."""
        stored = self._one(self._once(task, input_id), deadline)
        return msgspec.msgpack.decode(stored.value, type=OutboxEntry) if stored else None

    def record_started(
        self, task: str, node: str, input_id: str, incarnation: str, *, deadline: float
    ) -> None:
        """Records that an incarnation starts user code for an input, withdrawing its previous record."""
        pointer = f"{self._root}/started/{task}/{incarnation}"
        previous = self._one(pointer, deadline)
        now = f"{self._root}/attempt/{node}/{input_id}/{incarnation}"
        changes = [Change(pointer, now.encode()), Change(now, b"")]
        if previous is not None and previous.value.decode() != now:
            changes.append(Change(previous.value.decode(), None))
        self._must(self.store.commit(changes, deadline=deadline), "an attempt record")

    def withdraw_started(self, task: str, incarnation: str, *, deadline: float) -> None:
        """Withdraws what `record_started` wrote last for this incarnation."""
        pointer = f"{self._root}/started/{task}/{incarnation}"
        previous = self._one(pointer, deadline)
        if previous is not None:
            gone = [Change(pointer, None), Change(previous.value.decode(), None)]
            self._must(self.store.commit(gone, deadline=deadline), "an attempt record")

    def attempts(self, node: str, input_id: str, *, deadline: float) -> frozenset[str]:
        """Returns the incarnations whose record names this input."""
        prefix = f"{self._root}/attempt/{node}/{input_id}/"
        found = _value(self.store.scan(prefix, deadline=deadline), prefix)
        return frozenset(key[len(prefix) :] for key in found)

    def desired(self, *, deadline: float) -> Desired:
        """Returns the desired state of the run."""
        stored = self._one(f"{self._root}/desired", deadline)
        return Desired(int(stored.value)) if stored else Desired.RUN

    def raise_desired(self, state: Desired, *, deadline: float) -> Desired:
        """Raises the desired state by compare-and-swap; it never falls. Returns what holds now."""
        key = f"{self._root}/desired"
        for _ in range(_RETRIES):
            stored = self._one(key, deadline)
            now = Desired(int(stored.value)) if stored else Desired.RUN
            if now >= state:
                return now
            change = Change(key, str(int(state)).encode(), stored.version if stored else ABSENT)
            if self.store.commit([change], deadline=deadline) is StoreOutcome.COMMITTED:
                return state
        raise UnobservableState("the desired state could not be raised", cause="constant conflict")

    def fail_first(self, failure: FirstFailure, *, deadline: float) -> FirstFailure:
        """Records the first failure; returns the one that stands, which may be another's."""
        stands = self._written_once(f"{self._root}/failure", msgspec.msgpack.encode(failure), deadline)
        return msgspec.msgpack.decode(stands, type=FirstFailure)

    def first_failure(self, *, deadline: float) -> FirstFailure | None:
        """Returns the first failure, or None."""
        stored = self._one(f"{self._root}/failure", deadline)
        return msgspec.msgpack.decode(stored.value, type=FirstFailure) if stored else None

    def put_dead_letter(self, letter: DeadLetter, *, deadline: float) -> str:
        """Records a dead letter, once per record id; returns the reference for its settlement."""
        aside = Aside(letter.record_id, letter.node, letter.origin, letter.path)
        changes = [
            Change(f"{self._root}/dead/{letter.record_id}", msgspec.msgpack.encode(letter), ABSENT),
            Change(f"{self._root}/aside/{letter.task}/{letter.record_id}", msgspec.msgpack.encode(aside)),
        ]
        outcome = self.store.commit(changes, deadline=deadline)
        if outcome is StoreOutcome.UNKNOWN:
            self._must(outcome, "a dead letter")
        return letter.record_id

    def asides(self, task: str, *, deadline: float) -> tuple[Aside, ...]:
        """Returns which inputs a task has put aside; what the dead letters hold is not read."""
        prefix = f"{self._root}/aside/{task}/"
        found = _value(self.store.scan(prefix, deadline=deadline), prefix)
        return tuple(msgspec.msgpack.decode(item.value, type=Aside) for item in found.values())

    def is_aside(self, task: str, record_id: str, *, deadline: float) -> bool:
        """Returns whether a task has put the input of this dead letter aside."""
        return self._one(f"{self._root}/aside/{task}/{record_id}", deadline) is not None

    def dead_letters(self, *, deadline: float) -> list[DeadLetter]:
        """Returns the dead letters of the run, by origin."""
        prefix = f"{self._root}/dead/"
        found = _value(self.store.scan(prefix, deadline=deadline), prefix)
        letters = [msgspec.msgpack.decode(item.value, type=DeadLetter) for item in found.values()]
        return sorted(letters, key=lambda letter: (letter.origin, letter.node, letter.path))

    def adopt(self, earlier: "FlowRuntime", *, deadline: float) -> None:
        """Begins with what the tasks of an earlier run committed, and with its dead letters.

        Its outboxes are left out: everything in them was published and settled.
        """
        changes = []
        for family in ("task/", "dead/", "aside/"):
            prefix = f"{earlier._root}/{family}"
            for key, stored in _value(earlier.store.scan(prefix, deadline=deadline), prefix).items():
                value, rest = stored.value, key[len(prefix) :]
                if family == "task/" and rest.count("/") == 1:
                    head = msgspec.msgpack.decode(value, type=Head)
                    value = msgspec.msgpack.encode(msgspec.structs.replace(head, outbox=()))
                changes.append(Change(f"{self._root}/{family}{rest}", value))
        self._must(self.store.commit(changes, deadline=deadline), "what the earlier run had committed")

    def put_note(self, name: str, value: bytes, *, deadline: float) -> None:
        """Records a named note of the run, such as a node's closing summary; the last one stands."""
        change = Change(f"{self._root}/note/{name}", value)
        self._must(self.store.commit([change], deadline=deadline), f"the note {name}")

    def notes(self, prefix: str, *, deadline: float) -> dict[str, bytes]:
        """Returns the notes whose names begin with `prefix`."""
        root = f"{self._root}/note/"
        found = _value(self.store.scan(root + prefix, deadline=deadline), prefix)
        return {key[len(root) :]: item.value for key, item in found.items()}

    def finish(self, verdict: str, *, deadline: float) -> str:
        """Records the durable end of the run, once; returns the one that stands."""
        return self._written_once(f"{self._root}/finished", verdict.encode(), deadline).decode()

    def _once(self, task: str, input_id: str) -> str:
        return f"{self._root}/once/{task}/{input_id}"

    def _task(self, task: str, partition: int) -> str:
        return f"{self._root}/task/{task}/{partition}"

    def _one(self, key: str, deadline: float) -> Stored | None:
        return _value(self.store.get([key], deadline=deadline), key).get(key)

    def _written_once(self, key: str, value: bytes, deadline: float) -> bytes:
        """Writes a record that is written once; returns the one that stands, and is there."""
        for _ in range(_RETRIES):
            self.store.commit([Change(key, value, ABSENT)], deadline=deadline)
            stored = self._one(key, deadline)
            if stored is not None:
                return stored.value
        raise UnobservableState(f"{key} may not have been written", remedy="look at the run folder's disk")

    def _must(self, outcome: StoreOutcome, what: str) -> None:
        if outcome is StoreOutcome.UNKNOWN:
            raise UnobservableState(
                f"{what} may not have been written", remedy="look at the run folder's disk"
            )
        if outcome is StoreOutcome.CONFLICT:
            raise StaleAuthority(f"{what} was written by another owner")


def _value(observed: Observation[T], what: str) -> T:
    match observed:
        case Known(value=value):
            return value
        case Unknown(reason=reason, detail=detail):
            raise UnobservableState(f"{what} could not be read", cause=f"{reason}: {detail}")
