"""The shell of a worker: it performs the actions of a core against the backends.

Used by the engines, one per task replica, in a thread (threads engine) or a process (local engine). It
decides nothing that the rules decide: the core does. User code and contract calls run in the thread that
calls `run`.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from videoflow import faults, wire
from videoflow.backends.coverage import Origin, OriginRecord
from videoflow.backends.messaging import (
    Acquired,
    Envelope,
    Kind,
    MessagingBackend,
    SubscriptionId,
    SubscriptionKind,
    Writer,
)
from videoflow.backends.outcomes import (
    Accepted,
    Known,
    PublicationOutcome,
    Rejected,
    RejectReason,
    SettleConfirmed,
)
from videoflow.backends.payload import PayloadStore
from videoflow.backends.runtime import CommitOutcome, Desired, FlowRuntime, OutboxEntry, TaskCommit
from videoflow.clock import Clock
from videoflow.errors import UnobservableState
from videoflow.ids import hash_id
from videoflow.planner.plan import InputMode
from videoflow.worker._control import Reporter, RunControl
from videoflow.worker._names import channel_id, subscription_id
from videoflow.worker._nodes import TaskNodes
from videoflow.worker._payloads import PayloadFull, Payloads
from videoflow.worker._records import dead_letter
from videoflow.worker.core import ReaderCore, SourceCore, Start, TaskProgram, first_failure, make_core
from videoflow.worker.core import actions as a

_STORE_SECONDS = 30.0
_WAIT_SECONDS = 0.5
_ROOM_SECONDS = 0.25


class Quit(Exception):
    """The worker was asked to end without draining."""


@dataclass(frozen=True)
class Backends:
    """What a shell works against; made for one owner."""

    messaging: MessagingBackend
    payloads: PayloadStore
    runtime: FlowRuntime
    clock: Clock


@dataclass(frozen=True)
class Job:
    """One replica of one task.

    Attributes:
        program: What it runs.
        flow_id: Name of the flow.
        slot: Number of the replica.
        incarnation: Unique per start.
        abandon: Only settle what waits as abandoned: the task is given up.
        restarted: An earlier incarnation of this replica died.
        died: How the last one died, in words, or "".
    """

    program: TaskProgram
    flow_id: str
    slot: int
    incarnation: str
    abandon: bool = False
    restarted: bool = False
    died: str = ""


class Shell:
    """Runs one replica of a task to its end."""

    def __init__(
        self, job: Job, backends: Backends, nodes: TaskNodes, control: RunControl, reporter: Reporter
    ) -> None:
        self._job = job
        self._nodes = nodes
        self._control = control
        self._reporter = reporter
        self._messaging = backends.messaging
        self._runtime = backends.runtime
        self._clock = backends.clock
        self._payloads = Payloads(backends.payloads, backends.clock)
        program = job.program
        self._task = program.task.name
        self._channels = tuple(channel_id(ref, job.flow_id, program.run_id) for ref in program.channels)
        self._subscriptions = tuple(
            subscription_id(plan, job.flow_id, program.run_id, job.slot) for _, plan in program.subscriptions
        )
        self._reported: list[a.Progress] | None = None
        self._control_seen = -1
        self._news = control.watch(lambda: self._control_seen)
        self._epoch = 0
        self._perform: dict[type, Callable[[Any], Any]] = {
            a.Pull: self._pull,
            a.Load: self._load,
            a.Call: lambda action: self._nodes.call(action.node, action.element, action.attempt),
            a.Flush: lambda action: self._nodes.flush(action.node),
            a.Checkpoint: lambda action: self._nodes.checkpoint(action.node, final=action.final),
            a.NextItem: self._next_item,
            a.Pause: self._pause,
            a.Publish: self._publish,
            a.Republish: self._republish,
            a.Announced: self._announced,
            a.Commit: self._commit,
            a.Settle: self._settle,
            a.PutAside: self._put_aside,
            a.Attempts: self._attempts,
            a.RecordStarted: self._record_started,
            a.FailRun: self._fail_run,
            a.Terminate: self._terminate,
        }

    def run(self) -> Kind | None:
        """Runs until the task has ended; returns the kind of its terminator, None when told to quit.

        Raises:
            WorkerFatal: This worker cannot go on.
        """
        try:
            return self._drive(self.start())
        except Quit:
            return None
        finally:
            self.close()

    def perform(self, action: a.Action) -> a.Answer:
        """Performs one action of the core and returns its answer; what would block is safe to repeat.

        Raises:
            Quit: The worker was told to end without draining.
            WouldBlock: The clock in use cannot wait for what is missing.
        """
        if self._control.quit:
            raise Quit
        answer: a.Answer = self._perform[type(action)](action)
        return answer

    # Starting and ending ----------------------------------------------------------------------

    def start(self) -> ReaderCore | SourceCore:
        """Takes the task over from an earlier incarnation, opens its nodes, and returns its core."""
        job = self._job
        self._reporter.figures(self._nodes.figures)
        deadline = self._deadline()
        exclusive = job.program.task.mode is not InputMode.COMPETING
        if exclusive:
            self._epoch = self._runtime.acquire_epoch(self._task, job.slot, deadline=deadline)
        committed = self._runtime.load(self._task, job.slot, deadline=deadline)
        if job.restarted:
            self._payloads.keep_only_outbox(committed.outbox, job.flow_id, job.program.run_id)
        acquired = tuple(self._acquire(subscription) for subscription in self._subscriptions)
        faults.reach("acquire.after")
        self._nodes.restore(committed.state)
        abandoned = job.abandon
        if not abandoned:
            abandoned = not self._opened()
        asides = self._runtime.asides(self._task, deadline=deadline) if job.restarted else ()
        start = Start(
            job.program, self._channels, job.slot, self._epoch, committed, acquired, abandoned, asides
        )
        return make_core(start)

    def _opened(self) -> bool:
        failed = self._nodes.open()
        if failed is None:
            self._reporter.opened()
            return True
        self._fail(*failed, "open")
        return False

    def _fail(self, node: str, failure: a.Failure, method: str) -> None:
        record = first_failure(node, a.Element("", Origin(node, 0, 0)), failure, 1, 1)
        self._fail_run(a.FailRun(msgspec.structs.replace(record, message=f"node {node} failed in {method}")))

    def _acquire(self, subscription: SubscriptionId) -> Acquired | None:
        if subscription.kind is SubscriptionKind.COMPETING:
            return None
        observed = self._messaging.acquire(subscription, self._epoch, deadline=self._deadline())
        if not isinstance(observed, Known):
            raise UnobservableState(
                f"the position of {subscription} could not be read", cause=observed.detail
            )
        return observed.value

    def _drive(self, core: ReaderCore | SourceCore) -> Kind:
        steps = core.run()
        answer: Any = None
        while True:
            try:
                action = steps.send(answer)
            except StopIteration as ended:
                kind: Kind = ended.value
                return kind
            answer = self.perform(action)

    def close(self) -> None:
        """Closes the nodes, leaves their summaries, and gives back what was stored and never published."""
        for name, failure in self._nodes.close().items():
            self._fail(name, failure, "close")
        for name, said in self._nodes.summaries().items():
            note = msgspec.json.encode(said)
            self._runtime.put_note(f"summary/{name}/{self._job.slot}", note, deadline=self._deadline())
        self._payloads.close()

    def _deadline(self, seconds: float = _STORE_SECONDS) -> float:
        return self._clock.monotonic() + seconds

    # Receiving --------------------------------------------------------------------------------

    def _pull(self, action: a.Pull) -> a.Pulled:
        while True:
            deliveries = [
                self._messaging.receive(subscription, deadline=0.0, max_items=action.max_items, after=after)
                for subscription, after in zip(self._subscriptions, action.after, strict=True)
            ]
            failed = self._control.failed_task
            if any(deliveries):
                self._nodes.figures.steps += 1
                faults.reach("receive.after")
                return a.Pulled(deliveries, self._reported or self._nothing_known(), failed)
            progress = [self._progress(subscription) for subscription in self._subscriptions]
            news = progress != self._reported or self._control.version != self._control_seen
            if not action.wait:
                self._reported = None
                return a.Pulled(deliveries, progress, failed)
            if news:
                self._reported, self._control_seen = progress, self._control.version
                return a.Pulled(deliveries, progress, failed)
            self._wait_for_input()

    def _wait_for_input(self) -> None:
        waitables = [self._messaging.waitable(s) for s in self._subscriptions]
        self._nodes.figures.waiting = True
        self._clock.wait([*waitables, self._news], self._deadline(_WAIT_SECONDS))
        self._nodes.figures.waiting = False
        if self._control.quit:
            raise Quit

    def _nothing_known(self) -> list[a.Progress]:
        return [a.Progress() for _ in self._subscriptions]

    def _progress(self, subscription: SubscriptionId) -> a.Progress:
        observed = self._messaging.observe_subscription(subscription, deadline=self._deadline())
        if not isinstance(observed, Known):
            return a.Progress()
        status = observed.value
        sealed = False
        if status.aborted:
            channel = self._messaging.observe_channel(subscription.channel, deadline=self._deadline())
            sealed = isinstance(channel, Known) and channel.value.sealed
        return a.Progress(status.drained, status.finished, status.aborted, sealed)

    def _load(self, action: a.Load) -> tuple[Any, ...] | a.Failure:
        values: list[Any] = []
        for delivery in action.members:
            value = None if delivery is None else self._payloads.load(delivery.envelope)
            if isinstance(value, a.Failure):
                return value
            values.append(value)
        faults.reach("process.before")
        return tuple(values)

    def _next_item(self, action: a.NextItem) -> a.ItemReady | a.SourceEnded | a.Failure:
        faults.reach("source.item")
        offset = action.position.offset
        answer = self._nodes.next_item(None if offset is None else offset + 1)
        faults.reach("process.after")
        return answer

    def _pause(self, action: a.Pause) -> None:
        deadline = self._deadline(action.seconds)
        while self._clock.monotonic() < deadline:
            self._clock.wait([], deadline)
            if self._control.quit:
                raise Quit

    # Publishing -------------------------------------------------------------------------------

    def _publish(self, action: a.Publish) -> Sequence[PublicationOutcome]:
        faults.reach("process.after")
        ready = self._encoded(action.publications)
        outcomes = self._published([p.envelope for p in action.publications[:ready]], action.barrier)
        for publication, outcome in zip(action.publications, outcomes, strict=False):
            if isinstance(outcome, Accepted) and outcome.duplicate:
                self._payloads.unused(publication.envelope)
        full = [
            Rejected(p.envelope.publication_id, RejectReason.FULL, retryable=True)
            for p in action.publications[ready:]
        ]
        if not full and all(isinstance(outcome, Accepted) for outcome in outcomes):
            faults.reach("publish.accepted")
            self._payloads.settled()
        return [*outcomes, *full]

    def _encoded(self, publications: Sequence[a.Publication]) -> int:
        """Puts values into envelopes; returns how many there was room for."""
        for number, publication in enumerate(publications):
            try:
                self._payloads.encode(publication)
            except PayloadFull:
                if self._control.quit:
                    raise Quit from None
                return number
        return len(publications)

    def _published(self, envelopes: Sequence[Envelope], barrier: str) -> Sequence[PublicationOutcome]:
        deadline = self._deadline(_ROOM_SECONDS)
        handles = self._messaging.begin_publish(envelopes, deadline=deadline)
        faults.reach(barrier)
        outcomes = self._messaging.outcomes(handles, deadline=deadline)
        accepted = [outcome for outcome in outcomes if isinstance(outcome, Accepted)]
        self._nodes.figures.steps += len(accepted)
        self._nodes.figures.concluded += sum(not outcome.duplicate for outcome in accepted)
        if self._control.quit:
            raise Quit
        return outcomes

    def _republish(self, action: a.Republish) -> Sequence[PublicationOutcome]:
        found = wire.decode_outbox(action.pending, self._job.flow_id, self._job.program.run_id)
        writer = Writer(self._task, self._job.slot, self._epoch)  # it speaks now: not an old one
        envelopes = [msgspec.structs.replace(envelope, writer=writer) for envelope in found]
        outcomes = self._published(envelopes, "publish.sent")
        faults.reach("outbox.published")
        return outcomes

    def _announced(self, action: a.Announced) -> tuple[Any, ...]:
        found = []
        for channel in self._channels:
            observed = self._messaging.announced(channel, deadline=self._deadline())
            if not isinstance(observed, Known):
                raise UnobservableState(f"what was announced on {channel} could not be read")
            found.append(_closed(observed.value, action.node, action.epoch))
        return tuple(found)

    def _terminate(self, action: a.Terminate) -> None:
        for channel in self._channels:
            self._messaging.terminate(
                channel, self._job.slot, self._epoch, action.kind, deadline=self._deadline()
            )
        faults.reach("terminator.sent")

    # Committing and settling ------------------------------------------------------------------

    def _commit(self, action: a.Commit) -> CommitOutcome:
        publications = [p for _, group in action.publications for p in group]
        while self._encoded(publications) < len(publications):
            pass
        entries = tuple(
            OutboxEntry(input_id, wire.encode_outbox([p.envelope for p in group]))
            for input_id, group in action.publications
        )
        state = self._nodes.taken_changes()
        changes = TaskCommit(
            state=state, cursor=action.cursor, outbox=entries, source=action.source, flushed=action.flushed
        )
        faults.reach("commit.before")
        while True:
            outcome = self._runtime.commit(
                self._task, self._job.slot, changes, self._epoch, action.number, deadline=self._deadline()
            )
            if outcome is not CommitOutcome.UNKNOWN:
                break
        faults.reach("commit.after")
        return outcome

    def _settle(self, action: a.Settle) -> Sequence[Any]:
        if action.inner:
            self._reporter.inner(action.inner)
        if not action.settlements:
            return ()
        handles = self._messaging.begin_settle(action.settlements, deadline=self._deadline())
        faults.reach("settle.sent")
        outcomes = self._messaging.settlements(handles, deadline=self._deadline())
        faults.reach("release.before")
        self._nodes.figures.steps += len(outcomes)
        self._nodes.figures.concluded += sum(isinstance(outcome, SettleConfirmed) for outcome in outcomes)
        return outcomes

    # Failure ----------------------------------------------------------------------------------

    def _put_aside(self, action: a.PutAside) -> str:
        figures = self._nodes.figures.nodes[action.node]
        figures.dead_letters += 1
        letter = dead_letter(self._job.program, action, self._clock.wall())
        if action.failure.exception is None and self._job.died:
            letter = msgspec.structs.replace(letter, error=f"{letter.error}: {self._job.died}")
        return self._runtime.put_dead_letter(letter, deadline=self._deadline())

    def _attempts(self, action: a.Attempts) -> int:
        record_id = hash_id(self._job.program.run_id, action.node, action.input_id)
        if self._runtime.is_aside(self._task, record_id, deadline=self._deadline()):
            return a.PUT_ASIDE  # that stands, whatever another attempt would bring
        return len(self._runtime.attempts(action.node, action.input_id, deadline=self._deadline()))

    def _record_started(self, action: a.RecordStarted) -> None:
        self._runtime.record_started(
            self._task, action.node, action.input_id, self._job.incarnation, deadline=self._deadline()
        )
        self._nodes.figures.records += 1

    def _fail_run(self, action: a.FailRun) -> None:
        standing = self._runtime.fail_first(action.failure, deadline=self._deadline())
        self._runtime.raise_desired(Desired.ABORT, deadline=self._deadline())
        self._reporter.failed(standing)


def _closed(records: Sequence[OriginRecord], node: str, epoch: int) -> tuple[tuple[int, int], ...]:
    found = next((r for r in records if (r.node, r.epoch) == (node, epoch)), None)
    if found is None:
        return ()
    return tuple(i for _, _, intervals in found.ordinals for i in intervals) + tuple(found.deep_ordinals)
