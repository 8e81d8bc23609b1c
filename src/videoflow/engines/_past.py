"""What lies before a run, in the run that it goes on with, and what it keeps for one that goes on with it.

Used by the engines. A run that is not resumed has an empty past. It refuses to call a run resumable whose
account does not close with what is kept.
"""

from collections.abc import Callable, Mapping, Sequence

import msgspec

from videoflow.backends.coverage import Coverage, FateKind, OriginRecord
from videoflow.backends.messaging import ChannelId, SubscriptionId
from videoflow.backends.outcomes import Known
from videoflow.backends.runtime import FlowRuntime
from videoflow.clock import Clock
from videoflow.engines._continuity import Records
from videoflow.engines._ledger import InnerLedger, KeptOn
from videoflow.engines._live import Figures, summed
from videoflow.engines._provision import markers_of, subscriptions_of
from videoflow.engines._suspended import Resumption, Suspended
from videoflow.engines._unresumable import note_resumable
from videoflow.graph.report import GapReport, RunReport, Verdict
from videoflow.planner.plan import InputMode, Plan, TaskPlan
from videoflow.worker import (
    RESUMABLE_NOTE,
    Before,
    KeptDelivery,
    NodeFigures,
    channel_id,
    make_program,
    subscription_id,
)

_CALL_SECONDS = 30.0


class Past:
    """What came before a run, and what it keeps for the one after it.

    Args:
        plan: What it runs.
        run_id: ULID.
        runtime: The records of the run.
        resumption: The run that it goes on with, or None.
        clock: For deadlines.
    """

    def __init__(
        self, plan: Plan, run_id: str, runtime: FlowRuntime, resumption: Resumption | None, clock: Clock
    ) -> None:
        self._plan, self._run_id, self._runtime = plan, run_id, runtime
        self._resumption, self._clock = resumption, clock
        flow_id = plan.spec.flow_id
        self._channels = [channel_id(channel.ref, flow_id, run_id) for channel in plan.channels]
        readers = (*subscriptions_of(plan, run_id), *markers_of(plan, run_id))
        self._subscriptions = [name for _, _, name in readers]
        self.before = resumption.suspended if resumption else None

    def _deadline(self) -> float:
        return self._clock.monotonic() + _CALL_SECONDS

    @property
    def run_id(self) -> str:
        """Id of the run before, or ""."""
        return self.before.run_id if self.before else ""

    def begin(self) -> None:
        """Takes over what the run before has left."""
        deadline = self._deadline()
        if self._resumption is None or self.before is None:
            return
        self._resumption.claim(self._run_id)
        with self._resumption.records() as records:
            self._runtime.adopt(records, deadline=deadline)
            over = {(task, slot) for task, slot in self.before.over}
            names = [node for task, _ in over for node in self._plan.task(task).nodes]
            for name, note in records.notes("", deadline=deadline).items():
                kind, _, rest = name.partition("/")
                wanted = kind == "summary" and rest.partition("/")[0] in names
                if wanted or (kind == "kept" and msgspec.msgpack.decode(note, type=KeptDelivery).envelope):
                    self._runtime.put_note(name, note, deadline=deadline)
        epochs = self._epochs(deadline)
        for task in self._plan.tasks:
            for slot in range(task.replicas):
                inputs, _ = self._read_by(task.name, slot)
                settled = [self._settled_by(name) for name in inputs]
                said = self._announced_by(task) if task.mode is InputMode.SOURCE else []
                note = msgspec.msgpack.encode(Before(settled, (task.name, slot) in over, epochs, said))
                self._runtime.put_note(f"earlier/{task.name}/{slot}", note, deadline=deadline)

    def _epochs(self, deadline: float) -> dict[str, int]:
        """Returns, of the sources that cannot go back, the epoch in which the run before left them."""
        sources = [task for task in self._plan.tasks if task.mode is InputMode.SOURCE]
        found = {
            task.nodes[0]: self._runtime.load(task.name, 0, deadline=deadline).source for task in sources
        }
        return {name: position.epoch for name, position in found.items() if position and position.epoch}

    def give_back(self) -> None:
        """Leaves the run before as it was, for a run that did not start."""
        if self._resumption is not None:
            self._resumption.release()

    def _read_by(self, task: str, slot: int) -> tuple[list[SubscriptionId], list[SubscriptionId]]:
        """Returns what a replica reads, and the markers that it takes."""
        program = make_program(self._plan, self._plan.task(task), self._run_id)
        flow_id = self._plan.spec.flow_id
        inputs, markers = (
            [subscription_id(plan, flow_id, self._run_id, slot) for _, plan in plans]
            for plans in (program.subscriptions, program.controls)
        )
        return inputs, markers

    def _announced_by(self, task: TaskPlan) -> list[list[OriginRecord]]:
        refs = [ref for output in task.outputs for ref in output.channels]
        names = [channel_id(ref, self._plan.spec.flow_id, self._run_id) for ref in refs]
        return [] if self.before is None else [self.before.announced[self._channels.index(n)] for n in names]

    def _settled_by(self, name: SubscriptionId) -> list[OriginRecord]:
        return [] if self.before is None else self.before.settled[self._subscriptions.index(name)]

    # The account ------------------------------------------------------------------------------

    def inner(self) -> InnerLedger:
        """Returns the ledger of edges inside tasks, as it stood."""
        return InnerLedger.of(self.before.inner if self.before else {})

    def figures(self, own: Figures) -> Figures:
        """Returns figures with those of the runs before."""
        return own if self.before is None else summed([*self.before.figures.items(), *own.items()])

    def called_again(self) -> dict[str, int]:
        """Returns the tasks that were given inputs again, as if they had been restarted."""
        return dict.fromkeys(self.before.again, 1) if self.before else {}

    def announced(self, read: Callable[[ChannelId], Records]) -> Callable[[ChannelId], Records]:
        """Returns how the writers' end of a channel is read, with the runs before."""
        before = self.before
        if before is None:
            return read
        return lambda name: _joined(read(name), before.announced[self._channels.index(name)])

    def settled(
        self, read: Callable[[SubscriptionId], Records], deadline: float, *, whole: bool = True
    ) -> Callable[[SubscriptionId], Records]:
        """Returns how the readers' end is read, with the runs before.

        Args:
            read: Reads that of this run.
            deadline: Monotonic seconds.
            whole: What is kept counts as delivered, until `kept` is taken off.
        """
        kept = self._kept(deadline)
        if not kept and self.before is None:
            return read

        def together(name: SubscriptionId) -> Records:
            own = [
                record for each in kept.get(name, ()) if whole or not each.envelope for record in each.records
            ]
            return _joined(_joined(read(name), self._settled_by(name)), own)

        return together

    def kept(self, deadline: float) -> dict[KeptOn, int]:
        """Returns how many items are kept for a run to come."""
        found: dict[KeptOn, int] = {}
        for name, kept in self._kept(deadline).items():
            edge = name.reader, name.channel.node, name.channel.port, name.slot
            held = [each.records for each in kept if each.envelope]
            found[edge] = found.get(edge, 0) + sum(_statements(records) for records in held)
        return {edge: count for edge, count in found.items() if count}

    def _kept(self, deadline: float) -> Mapping[SubscriptionId, list[KeptDelivery]]:
        found: dict[SubscriptionId, list[KeptDelivery]] = {}
        for name, note in self._runtime.notes("kept/", deadline=deadline).items():
            _, task, slot, *_ = name.split("/")
            kept = msgspec.msgpack.decode(note, type=KeptDelivery)
            inputs, markers = self._read_by(task, int(slot))
            found.setdefault([*inputs, *markers][kept.subscription], []).append(kept)
        return found

    # Suspending -------------------------------------------------------------------------------

    def ask_to_suspend(self, deadline: float) -> None:
        """Notes that the run is stopped to be resumed; before it is told to stop."""
        note_resumable(self._runtime, deadline=deadline)

    def is_to_suspend(self, deadline: float) -> bool:
        """Whether that was asked, here or by a command."""
        return RESUMABLE_NOTE in self._runtime.notes(RESUMABLE_NOTE, deadline=deadline)

    def suspended(
        self,
        report: RunReport,
        forced: Sequence[str],
        inner: InnerLedger,
        read: tuple[Callable[[ChannelId], Records], Callable[[SubscriptionId], Records]],
        figures: Mapping[str, Mapping[str, NodeFigures]],
    ) -> Suspended | None:
        """Returns the account to go on with, and says in the report whether it can be.

        Args:
            report: Of the run; changed.
            forced: Sources that were ended by killing.
            inner: Fates on edges inside tasks.
            read: Both ends, as announced and settled by this run and those before it, what is kept left out.
            figures: Of nodes, with those of the runs before.
        """
        deadline = self._deadline()
        if not self.is_to_suspend(deadline):
            return None
        why = _why_not(report, forced)
        ends = [*map(read[0], self._channels), *map(read[1], self._subscriptions)]
        known = [list(end.value) for end in ends if isinstance(end, Known)]
        if len(known) < len(ends):
            why = why or "an end of the ledger could not be read"
        if why:
            report.gaps.append(GapReport(where="run", what="it cannot be resumed", cause=why))
            return None
        report.resumable = True
        total = {task: dict(nodes) for task, nodes in figures.items()}
        self._leave_out_kept(total, deadline)
        notes = self._runtime.notes("suspended/", deadline=deadline)
        replicas = [(task.name, slot) for task in self._plan.tasks for slot in range(task.replicas)]
        over = [one for one in replicas if f"suspended/{one[0]}/{one[1]}" not in notes]
        again = {name.reader.partition("/")[0] for name in self._kept(deadline)}
        again |= {node.task for node in report.nodes if node.restarts}
        return Suspended(
            run_id=self._run_id,
            first_run_id=self.before.first_run_id if self.before else self._run_id,
            announced=known[: len(self._channels)],
            settled=known[len(self._channels) :],
            inner=inner.everything(),
            figures=total,
            over=over,
            again=sorted(again | set(self.before.again if self.before else ())),
            seconds=report.seconds + (self.before.seconds if self.before else 0.0),
        )

    def _leave_out_kept(self, figures: Figures, deadline: float) -> None:
        """Takes calls that will be made again off the figures, where each was of one item."""
        for (reader, _, _, slot), count in self.kept(deadline).items():
            task = self._plan.task(reader.partition("/")[0])
            if slot is None and len(task.nodes) == 1 and len(task.inputs) == 1:
                found = figures[task.name][task.name]
                figures[task.name][task.name] = msgspec.structs.replace(found, items=found.items - count)


def _why_not(report: RunReport, forced: Sequence[str]) -> str:
    if report.verdict is not Verdict.STOPPED:
        return f"it ended as {report.verdict.value}"
    if forced:
        return f"{forced[0]} did not stop when asked, and was ended by killing"
    if any(not edge.closed for edge in report.edges):
        return "the ledger does not close"
    if any(gap.cause == "the run was ended without draining" for gap in report.gaps):
        return "it was ended without draining"
    return ""


def _joined(found: Records, more: Sequence[OriginRecord]) -> Records:
    if not isinstance(found, Known) or not more:
        return found
    coverage = Coverage()
    coverage.merge(more)
    coverage.merge(found.value)
    return Known(tuple(coverage.records()), found.observed_at, found.generation)


def _statements(records: Sequence[OriginRecord]) -> int:
    delivered = FateKind.DELIVERED.value
    spans = [span for r in records for kind, _, some in r.ordinals if kind == delivered for span in some]
    deep = [count for r in records for kind, _, count in r.deep_items if kind == delivered]
    return sum(high - low + 1 for low, high in spans) + sum(deep)
