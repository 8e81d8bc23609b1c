"""The ledger at the end of a run: on every edge, announced = delivered, skipped, dropped, and so on.

Used by the report. Both ends are read through the backend; an end that could not be read leaves the edge
unknown, never closed. Edges are also compared with the next ones, through the nodes between them. It refuses
to judge: what is in doubt is noted, and `judge` is told how the run ended.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from videoflow.backends.coverage import Cause, Coverage, Fate, FateKind, OriginRecord, without_elsewhere
from videoflow.backends.intervals import IntervalSet
from videoflow.backends.messaging import ChannelId, SubscriptionId
from videoflow.backends.outcomes import Known
from videoflow.engines._continuity import Records, first_hole, taken
from videoflow.graph.report import EdgeReport
from videoflow.planner.plan import ControlEdgePlan, EdgePlan, Plan, Transport
from videoflow.worker.core.actions import InnerFate

KeptOn = tuple[str, str, str, int | None]
"""Reader, node and port, and for markers the replica, of an edge on which something is kept."""


class InnerLedger:
    """Fates on edges inside tasks, joined by union as workers report them."""

    def __init__(self) -> None:
        self._edges: dict[tuple[str, int], Coverage] = {}

    @staticmethod
    def of(records: Mapping[str, Mapping[int, Sequence[OriginRecord]]]) -> "InnerLedger":
        """Returns a ledger that begins with what `everything` returned."""
        ledger = InnerLedger()
        for task, edges in records.items():
            for edge, found in edges.items():
                ledger._edges.setdefault((task, edge), Coverage()).merge(found)
        return ledger

    def everything(self) -> dict[str, dict[int, list[OriginRecord]]]:
        """Returns what became of everything: task → number of the edge → records."""
        found: dict[str, dict[int, list[OriginRecord]]] = {}
        for (task, edge), coverage in self._edges.items():
            found.setdefault(task, {})[edge] = coverage.records()
        return found

    def add(self, task: str, fates: Sequence[InnerFate]) -> None:
        """Joins what one worker reported; the same fact twice changes nothing."""
        for fate in fates:
            coverage = self._edges.setdefault((task, fate.edge), Coverage())
            origin = fate.origin
            if fate.path:
                coverage.close(origin, fate.path, fate.fate)
            else:
                intervals = ((origin.ordinal, fate.last),)
                coverage.close_intervals(origin.node, origin.epoch, intervals, fate.fate)

    def cut(self, task: str, source: str, last_of: Callable[[int], int | None]) -> None:
        """Forgets what a task said of the last items of its source; `last_of` is that of `Coverage.cut`."""
        for (name, _), coverage in self._edges.items():
            if name == task:
                coverage.cut(source, last_of)

    def records(self, task: str, edge: int) -> tuple[OriginRecord, ...]:
        """Returns what became of everything on one edge."""
        coverage = self._edges.get((task, edge))
        return tuple(coverage.records()) if coverage is not None else ()


@dataclass
class _Counts:
    closed: dict[tuple[str, int], IntervalSet] = field(default_factory=dict)
    fates: dict[Fate, int] = field(default_factory=dict)

    @property
    def total(self) -> int:
        """Statements: ordinals, or traces below a fan-out."""
        return sum(self.fates.values())


def count(records: Sequence[OriginRecord]) -> _Counts:
    """Counts statements by fate."""
    counts = _Counts()
    coverage = Coverage()
    coverage.merge(records)
    for (node, epoch), found in coverage.origins.items():
        counts.closed[node, epoch] = found.closed
        for fate, ordinals in found.fates.items():
            counts.fates[fate] = counts.fates.get(fate, 0) + len(ordinals)
        for fate, items in found.deep_items.items():
            counts.fates[fate] = counts.fates.get(fate, 0) + items
    return counts


def edge_report(edge: EdgePlan | ControlEdgePlan, announced: Records, settled: Records) -> EdgeReport:
    """Returns the ledger of one edge from its two ends.

    What is announced and not settled is in flight; whether that may be is `judge`'s to say.
    """
    parent = edge.parent if edge.port == "out" else f"{edge.parent}.{edge.port}"
    report = EdgeReport(parent=parent, child=edge.child, announced=0, transport=edge.transport.value)
    if not isinstance(announced, Known) or not isinstance(settled, Known):
        report.closed = None
        report.detail = "an end of the ledger could not be read"
        return report
    said = count(announced.value)
    done = said if settled.value == announced.value else count(settled.value)
    report.announced = said.total
    for fate, items in done.fates.items():
        _add(report, fate, items)
    report.in_flight = said.total - done.total
    report.closed = (report.in_flight > 0 and _within(done, said)) or (
        report.in_flight == 0 and said.closed == done.closed
    )
    if report.in_flight or not report.closed:
        report.detail = _difference(said, done)
    return report


def judge(edge: EdgeReport, *, cut_short: bool, failed: bool) -> None:
    """Decides whether what is in doubt on an edge may be so at the end of this run.

    Args:
        edge: With the doubt in `detail`.
        cut_short: The run was ended without draining: items may be in flight, or between two edges.
        failed: A failure ended it: what was abandoned went no further.
    """
    if edge.closed and edge.detail:
        edge.closed = cut_short or (failed and not edge.in_flight)
        edge.detail = "" if edge.closed else edge.detail


def _within(done: _Counts, said: _Counts) -> bool:
    """Whether nothing was settled that was not announced."""
    return all(
        _first_outside(closed, said.closed.get(origin, IntervalSet())) is None
        for origin, closed in done.closed.items()
    )


def _add(report: EdgeReport, fate: Fate, items: int) -> None:
    if fate.kind is FateKind.DELIVERED:
        report.delivered += items
    elif fate.kind is FateKind.DEAD_LETTERED:
        report.dead_lettered += items
    elif fate.kind is FateKind.ABANDONED:
        report.abandoned += items
    else:
        counts = report.skipped if fate.kind is FateKind.SKIPPED else report.dropped
        label = fate.cause.value if fate.cause is not None else "skipped"
        counts[label] = counts.get(label, 0) + items


def _difference(said: _Counts, done: _Counts) -> str:
    for origin in sorted(said.closed.keys() | done.closed.keys()):
        mine, theirs = said.closed.get(origin, IntervalSet()), done.closed.get(origin, IntervalSet())
        if mine == theirs:
            continue
        lost = _first_outside(mine, theirs)
        if lost is not None:
            return f"item {lost} of {origin[0]} was announced and not settled"
        return f"item {_first_outside(theirs, mine)} of {origin[0]} was settled and never announced"
    return f"{said.total} statements were announced, {done.total} settled"


def _first_outside(whole: IntervalSet, part: IntervalSet) -> int | None:
    for first, last in whole.intervals():
        gaps = part.missing(first, last)
        if gaps:
            return gaps[0][0]
    return None


def take_off(edges: Sequence[EdgeReport], plan: Plan, kept: Mapping[KeptOn, int]) -> None:
    """Shows what is kept for a run to come as in flight."""
    planned: list[EdgePlan | ControlEdgePlan] = list(plan.edges)
    for control in plan.controls:
        planned += [control] * plan.task_of(control.child).replicas
    for report, edge in zip(edges, planned, strict=True):
        count = kept.get((edge.reader or "", edge.parent, edge.port, report.replica), 0)
        report.delivered -= count
        report.in_flight += count


@dataclass(frozen=True)
class LedgerReader:
    """Where the two ends of every edge are read."""

    plan: Plan
    announced: Callable[[ChannelId], Records]
    settled: Callable[[SubscriptionId], Records]
    inner: InnerLedger
    subscriptions: Mapping[tuple[str, str, str], Sequence[SubscriptionId]]
    inner_edges: dict[tuple[str, str, str, int], tuple[str, int]]
    now: float

    def edges(self) -> list[EdgeReport]:
        """Returns the ledger of every edge of the flow."""
        ends = [self._ends(edge) for edge in self.plan.edges]
        tasks = {task.name: task for task in self.plan.tasks}
        wanted = {
            name: taken(
                settled
                for edge, (_, settled) in zip(self.plan.edges, ends, strict=True)
                if edge.child == task.nodes[0]
            )
            for name, task in tasks.items()
        }
        reports = []
        for edge, (announced, settled) in zip(self.plan.edges, ends, strict=True):
            report = edge_report(edge, announced, settled)
            hole = first_hole(wanted[self.plan.task_of(edge.parent).name], announced)
            if report.closed and hole is not None:
                report.detail = f"item {hole[1]} of {hole[0]} went into {edge.parent} and never came out"
            reports.append(report)
        return [*reports, *self._markers()]

    def _markers(self) -> Iterator[EdgeReport]:
        """Yields the ledger of every edge of markers, one for each replica; nothing comes out of those.

        What came too late, or to a replica that had ended, is dropped.
        """
        for edge in self.plan.controls:
            for slot, subscription in enumerate(self.subscriptions[edge.reader, edge.parent, edge.port]):
                announced = self.announced(subscription.channel)
                report = edge_report(edge, announced, self.settled(subscription))
                report.replica = slot
                if report.closed and report.in_flight:
                    report.dropped[Cause.ENDED.value] = report.in_flight
                    report.in_flight, report.detail = 0, ""
                yield report

    def _ends(self, edge: EdgePlan) -> tuple[Records, Records]:
        if edge.transport is Transport.FUSED:
            task, number = self.inner_edges[edge.parent, edge.port, edge.child, edge.input]
            records: Records = Known(self.inner.records(task, number), self.now)
            return records, records
        subscriptions = self.subscriptions[edge.reader or "", edge.parent, edge.port]
        return self.announced(subscriptions[0].channel), joined([self.settled(s) for s in subscriptions])


def joined(partitions: Sequence[Records]) -> Records:
    """Returns what the partitions of a reader settled together; unknown where one of them is."""
    if len(partitions) == 1:
        return partitions[0]
    coverage = Coverage()
    for records in partitions:
        if not isinstance(records, Known):
            return records
        coverage.merge(without_elsewhere(records.value))
    return Known(tuple(coverage.records()), max(r.observed_at for r in partitions))
