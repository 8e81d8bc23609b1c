"""Puts the run report together: ledger, figures, sources, dead letters, verdict.

Used by every engine at the end of a run. It refuses to call a run complete whose ledger does not close, or
has an end that could not be read.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import msgspec

from videoflow import wire
from videoflow.backends.runtime import DeadLetter, Desired, FirstFailure, FlowRuntime
from videoflow.engines._doubts import compare_with_calls, compare_with_sources
from videoflow.engines._ledger import KeptOn, judge, take_off
from videoflow.engines._machine import processors
from videoflow.engines._profile import make_profile
from videoflow.graph.report import (
    BatchReport,
    DeadLetterReport,
    EdgeReport,
    FailureReport,
    GapReport,
    NodeReport,
    RunReport,
    SourceReport,
    Verdict,
)
from videoflow.graph.running import RunOptions
from videoflow.graph.spec import NodeKind, NodeSpec
from videoflow.planner.plan import Plan
from videoflow.worker import NodeFigures, Spending

_READ_SECONDS = 30.0
_KEPT = "they are kept for the run that goes on with this one"
_OWN_FIGURES = ("outcome", "detail", "expected")
_EXIT = {
    Verdict.COMPLETE: 0,
    Verdict.INCOMPLETE: 1,
    Verdict.FAILED: 4,
    Verdict.STALLED: 5,
    Verdict.STOPPED: 0,
}


@dataclass
class RunFacts:
    """What an engine knows of a run when it has ended.

    Attributes:
        plan: What was run.
        run_id: ULID.
        options: How.
        runtime: The records of the run.
        figures: Task → node → figures over all replicas and incarnations.
        restarts: Task → restarts.
        began_wall: When it began.
        seconds: How long it took.
        now: Monotonic seconds, for deadlines.
        edges: The ledger.
        quit: It was ended without draining; what was in flight then is accounted for as such.
        lost: Tasks that never ended, with why.
        folder: Run folder, or "".
        kept: Items kept for a run that is to go on with this one.
        called_again: Tasks that were given again what an earlier run kept, with 1.
        resumed_from: The run that it goes on with, or "".
        spendings: Task → where its time went, where the run was profiled.
    """

    plan: Plan
    run_id: str
    options: RunOptions
    runtime: FlowRuntime
    figures: Mapping[str, Mapping[str, NodeFigures]]
    restarts: Mapping[str, int]
    began_wall: float
    seconds: float
    now: float
    edges: list[EdgeReport] = field(default_factory=list)
    quit: bool = False
    lost: dict[str, str] = field(default_factory=dict)
    folder: str = ""
    kept: Mapping[KeptOn, int] = field(default_factory=dict)
    called_again: Mapping[str, int] = field(default_factory=dict)
    resumed_from: str = ""
    spendings: Mapping[str, Spending] = field(default_factory=dict)

    @property
    def deadline(self) -> float:
        """For reads of the run's records."""
        return self.now + _READ_SECONDS


def make_report(facts: RunFacts) -> RunReport:
    """Returns the account of a run."""
    failure = facts.runtime.first_failure(deadline=facts.deadline)
    letters = facts.runtime.dead_letters(deadline=facts.deadline)
    desired = facts.runtime.desired(deadline=facts.deadline)
    compare_with_sources(facts.plan, facts.edges, facts.runtime, facts.deadline)
    compare_with_calls(facts.plan, facts.edges, facts.figures, {**facts.restarts, **facts.called_again})
    for edge in facts.edges:
        judge(edge, cut_short=facts.quit, failed=failure is not None)
    take_off(facts.edges, facts.plan, facts.kept)
    sources = _sources(facts, desired, failure)
    gaps = _gaps(facts, sources, kept=bool(facts.kept))
    verdict = _verdict(facts, failure, desired, sources, len(letters))
    status = _EXIT[verdict]
    if failure is not None and failure.exit_status in (2, 3, 5):
        status = failure.exit_status
    if verdict is Verdict.INCOMPLETE and facts.options.allow_incomplete:
        status = 0
    return RunReport(
        run_id=facts.run_id,
        flow_id=facts.plan.spec.flow_id,
        engine=facts.plan.engine,
        verdict=verdict,
        exit_status=status,
        sources=sources,
        edges=facts.edges,
        nodes=[_node(facts, node) for node in facts.plan.spec.nodes],
        gaps=gaps,
        dead_letters=[letter_report(letter) for letter in letters],
        values=_values(facts),
        outputs=[path for node in facts.plan.spec.nodes for path in node.traits.outputs],
        failure=None if failure is None else _failure(failure, facts.edges),
        started_at=iso_time(facts.began_wall),
        seconds=facts.seconds,
        folder=facts.folder,
        resumed_from=facts.resumed_from,
        profile=make_profile(facts.plan, facts.spendings, processors()) if facts.options.profile else None,
    )


def letter_report(letter: DeadLetter) -> DeadLetterReport:
    """Returns a dead letter as the report shows it."""
    node, epoch, ordinal = letter.origin
    return DeadLetterReport(
        label=letter.label,
        node=letter.node,
        error=letter.error,
        attempts=letter.attempts,
        origin=f"{node}/{epoch}/{ordinal}",
        event_time=letter.event_time,
        source=letter.source,
        where=letter.where,
    )


def iso_time(wall_seconds: float) -> str:
    """Returns a wall time as documents show it: ISO 8601, UTC, milliseconds."""
    return datetime.fromtimestamp(wall_seconds, UTC).isoformat(timespec="milliseconds")


def _sources(facts: RunFacts, desired: Desired, failure: FirstFailure | None) -> list[SourceReport]:
    notes = facts.runtime.notes("summary/", deadline=facts.deadline)
    said = {name.split("/")[1]: msgspec.json.decode(note) for name, note in notes.items()}
    items: dict[str, int] = {}
    for edge in facts.edges:  # every port of a source has a statement for each of its items
        name = edge.parent.partition(".")[0]
        if edge.closed is not None:
            items[name] = max(items.get(name, 0), edge.announced)
    reports = []
    for node in facts.plan.spec.nodes:
        if node.kind is not NodeKind.PRODUCER:
            continue
        summary: dict[str, Any] = dict(said.get(node.name, {}))
        outcome = str(summary.get("outcome", "")) or _plain_outcome(facts, node, desired, failure)
        reports.append(
            SourceReport(
                node=node.name,
                outcome=outcome,
                items=items.get(node.name, 0),
                detail=str(summary.get("detail", "")),
                figures={key: value for key, value in summary.items() if key not in _OWN_FIGURES},
                required=node.traits.required,
            )
        )
    return reports


def _plain_outcome(facts: RunFacts, node: NodeSpec, desired: Desired, failure: FirstFailure | None) -> str:
    if failure is not None and failure.node == node.name:
        return "failed"
    if facts.plan.task_of(node.name).name in facts.lost:
        return "unknown"
    return "complete" if desired is Desired.RUN else "stopped"


def _gaps(facts: RunFacts, sources: Sequence[SourceReport], *, kept: bool) -> list[GapReport]:
    gaps = [
        GapReport(
            where=f"{edge.parent} -> {edge.reader}", what=edge.detail, cause="the ledger does not close"
        )
        for edge in facts.edges
        if not edge.closed
    ]
    gaps += [
        GapReport(
            where=f"{edge.parent} -> {edge.reader}",
            what=f"{edge.in_flight} of {edge.announced} items were in flight",
            cause=_KEPT if kept and not facts.quit else "the run was ended without draining",
        )
        for edge in facts.edges
        if edge.closed and edge.in_flight
    ]
    gaps += [
        GapReport(where=source.node, what=f"the source ended as {source.outcome}", cause=source.detail)
        for source in sources
        if source.outcome != "complete"
    ]
    gaps += [
        GapReport(where=task, what="the task did not end", cause=why) for task, why in facts.lost.items()
    ]
    return gaps


def _verdict(
    facts: RunFacts,
    failure: FirstFailure | None,
    desired: Desired,
    sources: Sequence[SourceReport],
    letters: int,
) -> Verdict:
    if failure is not None:
        return Verdict.STALLED if failure.exit_status == _EXIT[Verdict.STALLED] else Verdict.FAILED
    if any(edge.closed is False for edge in facts.edges):
        return Verdict.FAILED
    if desired is Desired.STOP or facts.quit:
        return Verdict.STOPPED
    if facts.lost:
        return Verdict.FAILED
    bad = any(source.outcome != "complete" for source in sources)
    unknown = any(edge.closed is None for edge in facts.edges)
    if bad or unknown or letters > facts.options.allow_dead_letters:
        return Verdict.INCOMPLETE
    return Verdict.COMPLETE


def _node(facts: RunFacts, node: NodeSpec) -> NodeReport:
    task = facts.plan.task_of(node.name)
    figures = facts.figures.get(task.name, {}).get(node.name, NodeFigures())
    busy = figures.seconds / (facts.seconds * task.replicas) if facts.seconds > 0 else None
    return NodeReport(
        node=node.name,
        task=task.name,
        items=figures.items,
        outputs=figures.outputs,
        errors=figures.errors,
        dead_letters=figures.dead_letters,
        restarts=facts.restarts.get(task.name, 0),
        p50_seconds=figures.quantile(0.5),
        p95_seconds=figures.quantile(0.95),
        p99_seconds=figures.quantile(0.99),
        busy_share=None if busy is None else min(1.0, busy),
        batches=None if node.options.batch is None else _batches(figures),
    )


def _batches(figures: NodeFigures) -> BatchReport:
    sizes = dict(sorted(figures.batches.items()))
    calls = sum(sizes.values())
    return BatchReport(
        calls=calls,
        mean_items=sum(size * count for size, count in sizes.items()) / calls if calls else 0.0,
        sizes=sizes,
        waits=figures.waits_by_seconds(),
        p50_wait_seconds=figures.wait_quantile(0.5),
        p95_wait_seconds=figures.wait_quantile(0.95),
        p99_wait_seconds=figures.wait_quantile(0.99),
    )


def _failure(failure: FirstFailure, edges: Sequence[EdgeReport]) -> FailureReport:
    abandoned = sum(edge.abandoned for edge in edges)
    effect = f"the run was aborted; {abandoned} items were abandoned" if abandoned else "the run was aborted"
    return FailureReport(
        code=failure.code,
        message=failure.message,
        node=failure.node,
        cause=failure.cause,
        where=failure.where,
        effect=effect,
        remedy=failure.remedy,
    )


def _values(facts: RunFacts) -> dict[str, Any]:
    """Returns what collecting nodes kept in their committed state: keys `row/<number>`, in order."""
    values = {}
    for node in facts.plan.spec.nodes:
        if not node.traits.collects:
            continue
        task = facts.plan.task_of(node.name)
        state = facts.runtime.load(task.name, 0, deadline=facts.deadline).state
        prefix = f"{node.name}/row/"
        rows = sorted((key, value) for key, value in state.items() if key.startswith(prefix))
        values[node.name] = [wire.decode_value(value) for _, value in rows]
    return values
