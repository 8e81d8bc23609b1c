"""The shell of a worker: it performs the actions of a core against the backends.

Used by the engines, one per task replica, in a thread (threads engine) or a process (local engine). It
decides nothing that the rules decide: the core does. User code and contract calls run in the thread that
calls `run`. It refuses to go on under an owner that was replaced.
"""

from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any, ClassVar

import msgspec

from videoflow import faults, wire
from videoflow.backends.coverage import Origin
from videoflow.backends.messaging import Kind
from videoflow.backends.outcomes import PublicationOutcome, SettleConfirmed, SettlementOutcome
from videoflow.backends.runtime import (
    CommitOutcome,
    Desired,
    FirstFailure,
    OutboxEntry,
    SourcePosition,
    TaskCommit,
)
from videoflow.ids import hash_id
from videoflow.planner.plan import InputMode
from videoflow.worker._control import Reporter, RunControl
from videoflow.worker._job import Backends, Job, Quit
from videoflow.worker._linger import NEVER, Linger, Publishes
from videoflow.worker._metered import MeteredPayloads, Perform, metered_records
from videoflow.worker._nodes import TaskNodes
from videoflow.worker._payloads import Payloads
from videoflow.worker._reading import Reading
from videoflow.worker._records import dead_letter
from videoflow.worker._suspending import is_kept
from videoflow.worker._writing import Writing
from videoflow.worker.core import Core, Start, first_failure, make_core
from videoflow.worker.core import actions as a


class Shell:
    """Runs one replica of a task to its end.

    Args:
        job: Which replica.
        backends: What it works against.
        nodes: The nodes of its task.
        control: What is desired of the run.
        reporter: Whom it tells.
        linger: Watches over what is held while user code runs.
    """

    def __init__(
        self,
        job: Job,
        backends: Backends,
        nodes: TaskNodes,
        control: RunControl,
        reporter: Reporter,
        linger: Callable[[Publishes], a.Lingers] = Linger,
    ) -> None:
        self._job = job
        self._backends = backends
        self._runtime = backends.runtime
        self._nodes = nodes
        self._control = control
        self._reporter = reporter
        once = job.program.task.answers_once
        meter = self._meter = job.meter
        self._payloads = (
            Payloads(backends.payloads, backends.clock, inline=once)
            if meter is None
            else MeteredPayloads(meter, backends.payloads, backends.clock, inline=once)
        )
        self._reading = Reading(job, backends, self._payloads, nodes.figures, control)
        self._writing = Writing(job, backends, self._payloads, nodes.figures, control)
        self._linger = linger(self._publish_held)
        self._perform = self._PERFORM if meter is None else metered_records(meter, self._PERFORM)

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
        answer: a.Answer = self._perform[type(action)](self, action)
        return answer

    # Starting and ending ----------------------------------------------------------------------

    def start(self) -> Core:
        """Takes the task over from an earlier incarnation, opens its nodes, and returns its core."""
        job = self._job
        self._reporter.figures(self._nodes.figures)
        deadline = self._deadline()
        exclusive = job.program.task.mode is not InputMode.COMPETING
        if exclusive:
            self._writing.epoch = self._runtime.acquire_epoch(job.task, job.slot, deadline=deadline)
        committed = self._runtime.load(job.task, job.slot, deadline=deadline)
        if job.restarted:
            self._payloads.keep_only_outbox(committed.outbox, job.flow_id, job.program.run_id)
        acquired = self._reading.acquire(self._writing.epoch)
        faults.reach("acquire.after")
        self._nodes.restore(committed.state)
        abandoned = job.abandon or (job.restarted and self._has_failed())
        over = self._reading.suspending.before.over
        if not (abandoned or over):
            abandoned = not self._opened()
        # Not before: what the outbox names is claimed when it is published again, ahead of the next call.
        self._nodes.lend(self._payloads.making.empty)
        if self._meter is not None:
            self._nodes.figures.meter = self._meter
            self._meter.start()
        asides = self._runtime.asides(job.task, deadline=deadline) if job.restarted else ()
        return make_core(
            Start(
                job.program,
                self._writing.channels,
                job.slot,
                self._writing.epoch,
                committed,
                acquired,
                abandoned,
                asides,
                over,
                self._epochs(),
                self._reading.suspending.before.announced,
                job.restarted,
            )
        )

    def _opened(self) -> bool:
        failed = self._nodes.open()
        if failed is None:
            self._reporter.opened()
            return True
        self._fail(*failed)
        return False

    def _fail(self, node: str, failure: a.Failure, method: str) -> None:
        record = first_failure(node, a.Element("", Origin(node, 0, 0)), failure, 1, 1)
        self._fail_run(a.FailRun(msgspec.structs.replace(record, message=f"node {node} failed in {method}")))

    def _drive(self, core: Core) -> Kind:
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
        self._linger.close()
        if self._meter is not None:
            self._meter.stop()
        for name, failure in self._nodes.close().items():
            self._fail(name, failure, "close")
        for name, said in self._nodes.summaries().items():
            note = msgspec.json.encode(said)
            self._runtime.put_note(f"summary/{name}/{self._job.slot}", note, deadline=self._deadline())
        self._payloads.close()

    def _deadline(self) -> float:
        return self._backends.deadline()

    def _call_batch(self, action: a.CallBatch) -> list[a.Returned] | a.Failure:
        now = self._backends.clock.monotonic()
        return self._nodes.call_batch(action.node, action.elements, [now - since for since in action.since])

    # Sources and waiting ----------------------------------------------------------------------

    def _next_item(self, action: a.NextItem) -> a.Sourced:
        self._hold(action.held, action.inner)
        answer = self._ask(action.position)
        return a.Sourced(answer, self._release())

    def _produce(self, action: a.Produce) -> a.BurstOutcome:
        call, linger = self._nodes.call, self._linger
        return action.walk.produce(action.position, self._ask, call, linger, action.held, action.inner)

    def _ask(self, position: SourcePosition) -> a.ItemReady | a.SourceEnded | a.Failure:
        faults.reach("source.item")
        answer = self._nodes.next_item(position)
        faults.reach("process.after")
        return answer

    def _hold(self, held: Sequence[a.Statement], inner: Sequence[a.InnerFate] = ()) -> None:
        self._linger.hold(held, inner)
        self._linger.inside = True

    def _release(self) -> Sequence[PublicationOutcome]:
        self._linger.inside = False
        return self._linger.release()

    def _publish_held(
        self, held: Sequence[a.Statement], inner: Sequence[a.InnerFate]
    ) -> Sequence[PublicationOutcome]:
        """Publishes what was held back; what became of its inputs inside the task is told before."""
        if inner:
            self._reporter.inner(inner)
        return self._writing.publish(a.Publish([each for _, group in held for each in group]))

    def _pause(self, action: a.Pause) -> None:
        clock, deadline = self._backends.clock, self._backends.deadline(action.seconds)
        while clock.monotonic() < deadline:
            clock.wait([], deadline)
            if self._control.quit:
                raise Quit

    # Committing and settling ------------------------------------------------------------------

    def _burst(self, action: a.Burst) -> a.BurstOutcome:
        lingers = self._linger if action.lingers else NEVER
        load, call = self._reading.load_one, self._nodes.call
        return action.walk.run(action.deliveries, load, call, lingers, action.held)

    def _checkpoint(self, action: a.Checkpoint) -> int | a.Failure:
        if action.hold:
            self._nodes.hold_changes()
        return self._nodes.checkpoint(action.node, final=action.final)

    def _commit(self, action: a.Commit) -> CommitOutcome:
        self._writing.encode([p for _, group in action.publications for p in group])
        entries = tuple(
            OutboxEntry(input_id, wire.encode_outbox([p.envelope for p in group]))
            for input_id, group in action.publications
        )
        state = self._nodes.taken_changes(action.held)
        changes = TaskCommit(
            state=state, cursor=action.cursor, outbox=entries, source=action.source, flushed=action.flushed
        )
        faults.reach("commit.before")
        stored = self._payloads.hand_over()
        job, epoch = self._job, self._writing.epoch
        while True:
            outcome = self._runtime.commit(
                job.task, job.slot, changes, epoch, action.number, deadline=self._deadline()
            )
            if outcome is not CommitOutcome.UNKNOWN:
                break
            if self._control.quit:
                raise Quit
        if outcome is CommitOutcome.STALE:
            self._payloads.take_back(stored)
        faults.reach("commit.after")
        return outcome

    def _keep_once(self, action: a.KeepOnce) -> list[Sequence[bytes] | None]:
        for _, group in action.publications:
            self._writing.encode(group)
        entries = [
            OutboxEntry(input_id, wire.encode_outbox([p.envelope for p in group]))
            for input_id, group in action.publications
        ]
        faults.reach("commit.before")
        stands = self._runtime.put_once(self._job.task, entries, action.forget, deadline=self._deadline())
        faults.reach("commit.after")
        return [
            None if stand == entry else stand.envelopes for stand, entry in zip(stands, entries, strict=True)
        ]

    def _keep_epochs(self, action: a.KeepEpochs) -> None:
        name = (
            f"epochs/{self._job.task}/{self._job.slot}/{self._writing.epoch}"  # an old owner may write late
        )
        self._runtime.put_note(name, msgspec.msgpack.encode(action.epochs), deadline=self._deadline())

    def _epochs(self) -> dict[str, int]:
        """Returns in which epochs sources are, as an earlier run or incarnation went through them."""
        epochs = self._reading.suspending.epochs()
        prefix = f"epochs/{self._job.task}/{self._job.slot}/"
        kept = self._runtime.notes(prefix, deadline=self._deadline()) if self._job.restarted else {}
        for note in kept.values():
            for node, epoch in msgspec.msgpack.decode(note, type=dict[str, int]).items():
                epochs[node] = max(epoch, epochs.get(node, 0))
        return epochs

    def _recall(self, action: a.Recall) -> Sequence[bytes] | None:
        entry = self._runtime.once(self._job.task, action.input_id, deadline=self._deadline())
        return None if entry is None else entry.envelopes

    def _settle(self, action: a.Settle) -> Sequence[SettlementOutcome]:
        if action.inner:
            self._reporter.inner(action.inner)
        if not action.settlements:
            return ()
        messaging = self._backends.messaging
        kept = self._reading.suspending.settled(action.settlements)
        given = [s for s in action.settlements if not is_kept(s[0])] if kept else action.settlements
        handles = messaging.begin_settle(given, deadline=self._deadline())
        faults.reach("settle.sent")
        outcomes = messaging.settlements(handles, deadline=self._deadline())
        if kept:
            found: dict[Hashable, SettlementOutcome] = {one.token: one for one in (*kept, *outcomes)}
            outcomes = [found[token] for token, _ in action.settlements]
        faults.reach("release.before")
        self._nodes.figures.move(len(outcomes), list(map(type, outcomes)).count(SettleConfirmed))
        return outcomes

    # Failure ----------------------------------------------------------------------------------

    def _put_aside(self, action: a.PutAside) -> str:
        figures = self._nodes.figures.nodes[action.node]
        figures.dead_letters += 1
        letter = dead_letter(self._job.program, action, self._backends.clock.wall())
        if action.failure.exception is None and self._job.died:
            letter = msgspec.structs.replace(letter, error=f"{letter.error}: {self._job.died}")
        return self._runtime.put_dead_letter(letter, deadline=self._deadline())

    def _attempts(self, action: a.Attempts) -> int:
        record_id = hash_id(self._job.program.run_id, action.node, action.input_id)
        if self._runtime.is_aside(self._job.task, record_id, deadline=self._deadline()):
            return a.PUT_ASIDE  # that stands, whatever another attempt would bring
        return len(self._runtime.attempts(action.node, action.input_id, deadline=self._deadline()))

    def _record_started(self, action: a.RecordStarted) -> None:
        self._runtime.record_started(
            self._job.task, action.node, action.input_id, self._job.incarnation, deadline=self._deadline()
        )
        self._nodes.figures.records += 1

    def _fail_run(self, action: a.FailRun) -> None:
        standing = self._runtime.fail_first(action.failure, deadline=self._deadline())
        self._runtime.put_note(self._failed_note, b"", deadline=self._deadline())
        self._tell_failed(standing)

    def _tell_failed(self, standing: FirstFailure) -> None:
        self._runtime.raise_desired(Desired.ABORT, deadline=self._deadline())
        self._reporter.failed(standing)

    def _has_failed(self) -> bool:
        """Whether this replica has failed the run before; another failure may have been the first.

        It may have died before anybody was told, so that this is done again.
        """
        if self._failed_note not in self._runtime.notes(self._failed_note, deadline=self._deadline()):
            return False
        standing = self._runtime.first_failure(deadline=self._deadline())
        if standing is not None:
            self._tell_failed(standing)
        return True

    @property
    def _failed_note(self) -> str:
        return f"failed/{self._job.task}/{self._job.slot}"

    # What performs each action; of the class, since a worker is started often where runs are simulated.
    _PERFORM: ClassVar[Mapping[type, Perform]] = {
        a.Pull: lambda self, action: self._reading.pull(action),
        a.PullMarkers: lambda self, action: self._reading.pull_markers(action),
        a.Load: lambda self, action: self._reading.load(action),
        a.Burst: _burst,
        a.Produce: _produce,
        a.Hold: lambda self, action: self._hold(action.held),
        a.Release: lambda self, _: self._release(),
        a.Call: lambda self, action: self._nodes.call(action.node, action.element, action.attempt),
        a.CallBatch: _call_batch,
        a.Control: lambda self, action: self._nodes.control(action.node, action.element, action.attempt),
        a.Flush: lambda self, action: self._nodes.flush(action.node),
        a.Checkpoint: _checkpoint,
        a.HoldState: lambda self, _: self._nodes.hold_changes(),
        a.NextItem: _next_item,
        a.Pause: _pause,
        a.Publish: lambda self, action: self._writing.publish(action),
        a.Republish: lambda self, action: self._writing.republish(action),
        a.Announced: lambda self, action: self._writing.announced(action),
        a.Commit: _commit,
        a.KeepOnce: _keep_once,
        a.ForgetOnce: lambda self, _: self._runtime.forget_once(self._job.task, deadline=self._deadline()),
        a.KeepEpochs: _keep_epochs,
        a.Recall: _recall,
        a.Settle: _settle,
        a.PutAside: _put_aside,
        a.Attempts: _attempts,
        a.RecordStarted: _record_started,
        a.FailRun: _fail_run,
        a.Suspend: lambda self, action: self._reading.suspending.suspend(keep=action.keep),
        a.Terminate: lambda self, action: self._writing.terminate(action),
    }
