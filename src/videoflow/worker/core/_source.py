"""The core of a source task: it numbers items, publishes them, and commits how far it has come.

Used like the reading core. It refuses to give one ordinal to two items. A source that can resume goes on
after its committed offset with the same ordinals, so that what it repeats is recognised; one that cannot
opens a new epoch and ends the old one with what the channels hold (rules 1 and 19).
"""

from collections.abc import Iterator, Sequence

from videoflow.backends.coverage import Cause, Coverage, Origin
from videoflow.backends.intervals import IntervalSet
from videoflow.backends.messaging import Envelope, Kind, Writer
from videoflow.backends.runtime import SourcePosition
from videoflow.ids import hash_id
from videoflow.worker.core._blame import first_failure
from videoflow.worker.core._burst import QUICK_SECONDS, BurstWalk, walks_in_bursts
from videoflow.worker.core._burst_outcome import BurstOutcome
from videoflow.worker.core._concluding import CONCLUDE_INPUTS, CONCLUDE_SECONDS, Start
from videoflow.worker.core._markers import Marked
from videoflow.worker.core._partitions import everywhere
from videoflow.worker.core._pending import Pending
from videoflow.worker.core._said import not_out
from videoflow.worker.core._walk import RunAborted, pause_after, resumed
from videoflow.worker.core.actions import (
    Announced,
    Commit,
    Disposition,
    Element,
    FailRun,
    Failure,
    ItemReady,
    NextItem,
    Produce,
    Publication,
    PullMarkers,
    SourceEnded,
    Steps,
    Terminate,
)

_COMMIT_ITEMS = 64
_COMMIT_SECONDS = 0.02


class SourceCore(Marked):
    """The core of a task whose entry node is a producer."""

    def __init__(self, start: Start) -> None:
        super().__init__(start)
        self._node = start.program.entry.spec
        found = start.committed.source
        self._position = found or SourcePosition(0, -1, None)
        self._said = [Coverage() for _ in start.said]
        for coverage, records in zip(self._said, start.said, strict=True):
            coverage.merge(records)
        self._uncommitted_items = 0
        self._uncommitted_seconds = 0.0
        self._burst: BurstWalk | None = None
        if walks_in_bursts(start.program) and not (self.outbox or start.program.controls):
            most = CONCLUDE_SECONDS, CONCLUDE_INPUTS
            self._burst = BurstWalk(start.program, start.channels, self.walk.writer, most)

    def run(self) -> Steps:
        """Yields actions until the source has ended; returns the kind of its terminator."""
        try:
            yield from self.republish()
            self.require_not_abandoned()
            live = not self._node.traits.resumable
            if not (live and self.start.committed.flushed):
                yield from self._run(live=live)
            kind = Kind.END
        except RunAborted:
            yield from self._conclude(commit=True)
            kind = Kind.ABORT
        yield Terminate(kind)
        return kind

    def _run(self, *, live: bool) -> Steps:
        if live:
            yield from self._open_epoch()
        stopped = yield from self._produce()
        yield from self._conclude(commit=True)
        if stopped and (yield from self.to_resume()):
            return
        yield from self.last_markers()
        yield from self._conclude(commit=True)
        last = self._position
        yield from self.flush(((self._node.name, last.epoch, last.ordinal),) if last.ordinal >= 0 else ())
        if live and not self.program.flushing:
            yield from self.commit(Commit(self.number + 1, flushed=True))

    def conclude_pending(self) -> Steps:
        """Publishes, commits and settles what was worked on."""
        yield from self._conclude(commit=False)

    def _produce(self) -> Steps:
        failures, first = 0, ""
        while True:
            if self.program.controls:
                yield from self.take_markers((yield PullMarkers()))
            made = yield from self._next_items()
            answer = made.item
            if made.inputs or isinstance(answer, ItemReady):
                failures, first = 0, ""
            if answer is None:
                if made.slow or self.due():
                    yield from self._conclude(commit=False)
            elif isinstance(answer, ItemReady):
                yield from self._item(answer, made.answers or ())
            elif isinstance(answer, SourceEnded):
                return answer.stopped
            else:
                failures += 1
                first = first or answer.error
                if answer.error != first:  # the second may only be what came of starting it again
                    answer.error = f"{answer.error}; it was started again after {first}"
                yield from self._failed(answer, failures)

    def _next_items(self) -> Steps:
        """Asks for items; what is held may be published meanwhile. Returns what that came to."""
        pending = self.pending
        if self._burst is None or self._said:
            sourced = yield NextItem(self._position, pending.publications, pending.inner)
            pending.publications = not_out(pending.publications, sourced.said)
            return BurstOutcome(item=sourced.answer)
        made = yield Produce(self._burst, self._position, pending.publications, pending.inner)
        pending.publications, pending.inner = made.publications, made.inner
        pending.seconds += made.seconds
        pending.inputs += made.inputs
        self._position = made.position
        return made

    def _item(self, item: ItemReady, answers: Sequence[object]) -> Steps:
        """Works on an item alone; nodes of the task may have answered already."""
        at = self._position
        origin = Origin(self._node.name, at.epoch, at.ordinal + 1)
        element = Element(
            hash_id(self.program.run_id, self._node.name, "item", origin.epoch, origin.ordinal),
            origin,
            last=origin.ordinal,
            source=item.source or self._node.name,
            event_time=item.time_seconds,
            low=item.time_seconds,
        )
        outcome = yield from resumed(self.walk.produced(element, item.outputs), answers)
        self._position = SourcePosition(at.epoch, origin.ordinal, item.offset)
        pending = self.pending
        said = outcome.publications
        pending.publications += [(name, self._not_said(each)) for name, each in said] if self._said else said
        pending.inner += outcome.inner
        pending.seconds += outcome.seconds + item.seconds
        pending.inputs += 1
        if self.outbox or item.seconds >= QUICK_SECONDS or self.due():
            yield from self._conclude(commit=False)

    def _not_said(self, publications: Sequence[Publication]) -> list[Publication]:
        """Leaves out what an earlier run has said, by a source that died before it had committed so far."""
        return [
            each
            for each in publications
            if not self._said[each.channel].covers(each.envelope.origin, each.envelope.path)
        ]

    def _failed(self, failure: Failure, failures: int) -> Steps:
        yield from self._conclude(commit=True)
        limit = self._node.options.retries + 1
        if failure.disposition is Disposition.TRANSIENT and failures < limit:
            yield pause_after(failures)
            return
        origin = Origin(self._node.name, self._position.epoch, self._position.ordinal + 1)
        yield FailRun(first_failure(self._node.name, Element("", origin), failure, failures, limit))
        raise RunAborted(self._node.name)

    def _conclude(self, *, commit: bool) -> Steps:
        pending, self.pending = self.pending, Pending()
        self._uncommitted_items += pending.inputs
        self._uncommitted_seconds += pending.seconds
        yield from self.report(pending)
        if self.outbox:
            if pending.inputs:
                yield from self._commit(pending.publications)
            yield from self.publish(pending.flat())
        else:
            yield from self.publish(pending.flat())
            due = self._uncommitted_items >= _COMMIT_ITEMS or self._uncommitted_seconds >= _COMMIT_SECONDS
            if self._uncommitted_items and (due or commit):
                yield from self._commit(())
        yield from self.settle(pending)

    def _commit(self, publications: Sequence[tuple[str, Sequence[Publication]]]) -> Steps:
        yield from self.commit(Commit(self.number + 1, None, publications, self._position))
        self._uncommitted_items, self._uncommitted_seconds = 0, 0.0

    def _open_epoch(self) -> Steps:
        """Starts a new epoch of a source that cannot go on where it was, and ends the one before."""
        old = self.start.committed.source
        if old is None:
            self._position = SourcePosition(0, -1, None)
        else:
            yield from self._end_epoch(old.epoch)
            self._position = SourcePosition(old.epoch + 1, -1, None)
        yield from self._commit(())

    def _end_epoch(self, epoch: int) -> Steps:
        announced = yield Announced(self._node.name, epoch)
        sets = [IntervalSet(intervals) for intervals in announced]
        last = max((found.last() for found in sets), default=-1)
        publications: list[Publication] = []
        for channel, found in enumerate(sets):
            gaps = found.missing(0, last) if last >= 0 else ()
            if gaps:
                publications += self._control(channel, Kind.SKIP, epoch, gaps[0][0], gaps)
            if self.program.channels[channel].partitions > 1 and last >= 0:
                # A death may have kept the notice of an item from a partition that does not have it.
                publications += self._control(channel, Kind.IDLE, epoch, 0, ((0, last),))
            publications += self._control(channel, Kind.EPOCH_END, epoch, last, ())
        yield from self.publish(publications)

    def _control(
        self, channel: int, kind: Kind, epoch: int, ordinal: int, intervals: tuple[tuple[int, int], ...]
    ) -> Iterator[Publication]:
        name = self._node.name
        identity = hash_id(self.program.run_id, name, channel, kind, epoch)
        envelope = Envelope(
            channel=self.start.channels[channel],
            publication_id=identity,
            kind=kind,
            writer=Writer(self.program.task.name, self.start.slot, self.start.epoch),
            input_id=identity,
            origin=Origin(name, epoch, ordinal),
            intervals=intervals,
            cause=Cause.ENDED if kind is Kind.SKIP else None,
            elsewhere=intervals if kind is Kind.IDLE else (),
            source=name,
        )
        return everywhere(self.program.channels[channel], Publication(channel, envelope))
