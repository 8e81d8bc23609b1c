"""What every core does with work that is done: publish, commit and settle it, and flush at the end.

Used by the cores of sources and of readers. The order of a step is rule 5: a stateless task publishes, then
settles; a stateful one commits state, positions and encoded outputs before it publishes.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from videoflow.backends.coverage import Origin, OriginRecord
from videoflow.backends.messaging import (
    Acquired,
    ChannelId,
    Kind,
)
from videoflow.backends.outcomes import Accepted, Rejected, RejectReason, SettleUnknown
from videoflow.backends.runtime import Aside, CommitOutcome, Committed
from videoflow.graph.spec import NodeSpec
from videoflow.planner.plan import CommitOrder
from videoflow.worker.core._blame import first_failure
from videoflow.worker.core._pending import Pending
from videoflow.worker.core._program import TaskProgram
from videoflow.worker.core._said import not_out
from videoflow.worker.core._walk import RunAborted, Walk, pause_after, recorded
from videoflow.worker.core.actions import (
    Commit,
    Disposition,
    Element,
    FailRun,
    Failure,
    Flush,
    Hold,
    Publication,
    Publish,
    PutAside,
    Release,
    Republish,
    Settle,
    Steps,
    Terminate,
    WorkerFatal,
)

_SAID = {Accepted}
CONCLUDE_INPUTS = 64
CONCLUDE_SETTLEMENTS = 256
CONCLUDE_SECONDS = 0.002


@dataclass(frozen=True)
class Start:
    """What a core starts from.

    Attributes:
        program: The task.
        channels: What it writes, by channel number.
        slot: Number of this replica.
        epoch: Its ownership epoch.
        committed: What the task committed last.
        acquired: Per subscription: ownership, or None for competing ones.
        abandoned: The task is given up: what waits for it is only settled.
        asides: Inputs that earlier incarnations put aside.
        over: The task had ended in the run that this one goes on with.
        epochs: Source → its epoch at which to begin, where this is not the first.
        said: Of a source: what was announced in earlier runs, by channel number; empty where none were.
        restarted: An earlier incarnation of the replica died, perhaps of its last words.
    """

    program: TaskProgram
    channels: tuple[ChannelId, ...]
    slot: int
    epoch: int
    committed: Committed
    acquired: tuple[Acquired | None, ...]
    abandoned: bool = False
    asides: tuple[Aside, ...] = ()
    over: bool = False
    epochs: Mapping[str, int] = field(default_factory=dict)
    said: Sequence[Sequence[OriginRecord]] = ()
    restarted: bool = False


class Concluding:
    """Publishes, commits and settles what was worked on; shared by sources and readers."""

    def __init__(self, start: Start) -> None:
        self.start = start
        self.program = start.program
        self.walk = Walk(start.program, start.channels, start.slot, start.epoch)
        self.outbox = start.program.task.order is CommitOrder.OUTBOX
        self.number = start.committed.number
        self.pending = Pending()

    def require_not_abandoned(self) -> None:
        """Raises `RunAborted` for a task that was given up."""
        if self.start.abandoned:
            raise RunAborted(self.program.task.name)

    def republish(self) -> Steps:
        """Publishes what an earlier incarnation committed and may not have published."""
        outbox = [data for entry in self.start.committed.outbox for data in entry.envelopes]
        yield from self.say_again(outbox, ended=True)

    def say_again(self, recorded: Sequence[bytes], *, ended: bool = False) -> Steps:
        """Publishes encoded envelopes that were recorded before.

        Args:
            recorded: They.
            ended: An earlier incarnation may have ended the channels, which it did after publishing them all.
        """
        remaining = list(recorded)
        while remaining:
            outcomes = yield Republish(remaining)
            remaining = [
                data
                for data, outcome in zip(remaining, outcomes, strict=True)
                if not (ended and _is_sealed(outcome)) and is_to_come(outcome)
            ]

    def publish(self, publications: Sequence[Publication], barrier: str = "publish.sent") -> Steps:
        """Publishes until everything is accepted."""
        remaining = list(publications)
        while remaining:
            outcomes = yield Publish(remaining, barrier)
            if set(map(type, outcomes)) <= _SAID:
                return
            remaining = [p for p, o in zip(remaining, outcomes, strict=True) if is_to_come(o)]

    def commit(self, action: Commit) -> Steps:
        """Commits until it is definite."""
        while True:
            outcome = yield action
            if outcome is CommitOutcome.STALE:
                raise WorkerFatal("this worker was replaced: a newer one owns its task")
            if outcome is CommitOutcome.COMMITTED:
                self.number = action.number
                return

    def meanwhile(self, steps: Steps) -> Steps:
        """Returns what steps come to; what was worked on before comes out where they take their time."""
        if self.outbox or not self.pending.publications:
            return (yield from steps)
        yield Hold(self.pending.publications)
        try:
            found = yield from steps
        except RunAborted:
            yield from self._release()
            raise
        yield from self._release()
        return found

    def _release(self) -> Steps:
        self.pending.publications = not_out(self.pending.publications, (yield Release()))

    def report(self, pending: Pending) -> Steps:
        """Says what became of things inside the task, before a commit that keeps them from coming again."""
        inner, pending.inner = pending.inner, []
        yield from self.settle(Pending([], [], inner))

    def settle(self, pending: Pending) -> Steps:
        """Settles until nothing is unknown; a token that is not ours any more is dropped."""
        remaining, inner = list(pending.settlements), pending.inner
        while remaining or inner:
            outcomes = yield Settle(remaining, inner)
            remaining = [s for s, o in zip(remaining, outcomes, strict=True) if type(o) is SettleUnknown]
            inner = []

    def due(self) -> bool:
        """Whether enough was worked on to conclude it before looking for more."""
        pending = self.pending
        settled = len(pending.settlements) >= CONCLUDE_SETTLEMENTS
        return settled or pending.inputs >= CONCLUDE_INPUTS or pending.seconds >= CONCLUDE_SECONDS

    def flush(self, after: tuple[tuple[str, int, int], ...]) -> Steps:
        """Lets each node say its last, and commits that it has (rule 9)."""
        if not self.program.flushing or self.start.committed.flushed:
            return
        pending, consumed = Pending(), 0
        partition = self.start.slot if self.program.task.partitions > 1 else 0
        for node in self.program.flushing:
            origin = flush_origin(node.spec.name, partition)
            answer = yield from self._flush_one(node.spec, Element(origin.node, origin))
            if answer is None:
                continue
            outcome = yield from self.walk.flushed(
                node, answer.outputs, origin, after, suspect=self.start.restarted
            )
            pending.publications += outcome.publications
            pending.inner += outcome.inner
            consumed += outcome.consumed
        yield from self.flushed_into(consumed)
        yield from self.report(pending)
        yield from self.commit(Commit(self.number + 1, None, pending.publications, None, flushed=True))
        yield from self.publish(pending.flat(), "flush.published")
        yield from self.settle(pending)

    def flushed_into(self, consumed: int) -> Steps:
        """Lets a sink of this task make durable what was flushed into it.

        Args:
            consumed: How many inputs it took.
        """
        yield from ()

    def _flush_one(self, node: NodeSpec, element: Element) -> Steps:
        """Lets one node say its last, with the attempts of an input; None where that was put aside."""
        attempts, limit = 0, node.options.retries + 1
        if self.start.restarted:
            attempts, died = yield from recorded(node, element)
            if died is not None:
                yield PutAside(node.name, element, died, attempts)
                return None
        while True:
            attempts += 1
            answer = yield Flush(node.name)
            if not isinstance(answer, Failure):
                return answer
            if answer.disposition is Disposition.FATAL:
                yield FailRun(first_failure(node.name, element, answer, attempts, limit))
                raise RunAborted(node.name)
            if answer.disposition is Disposition.POISON or attempts >= limit:
                yield PutAside(node.name, element, answer, attempts)
                return None
            yield pause_after(attempts)


class Over(Concluding):
    """The core of a task that had ended in the run that this one goes on with: it only says so again."""

    def run(self) -> Steps:
        """Yields the terminator; returns its kind."""
        yield Terminate(Kind.END)
        return Kind.END


def flush_origin(node: str, partition: int) -> Origin:
    """Returns the origin that the flush outputs of a node start at, in one of its partitions."""
    return Origin(f"{node}:flush" if partition == 0 else f"{node}:flush:{partition}", 0, 0)


def _is_sealed(outcome: object) -> bool:
    return isinstance(outcome, Rejected) and outcome.reason is RejectReason.SEALED


def is_to_come(outcome: object) -> bool:
    """Returns whether a publication has to be published again.

    Raises:
        WorkerFatal: It was rejected for good.
    """
    if isinstance(outcome, Accepted):
        return False
    if isinstance(outcome, Rejected) and outcome.reason is not RejectReason.FULL:
        raise WorkerFatal(f"a publication was rejected: {outcome.reason}")
    return True
