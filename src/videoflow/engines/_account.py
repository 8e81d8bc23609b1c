"""The account of a run at its end, from the two ends of every channel and what workers said of inner edges.

Used by the engines. It refuses nothing: an end that cannot be read leaves its edge unknown.
"""

from collections.abc import Callable, Iterable, Mapping
from functools import partial

from videoflow.backends.coverage import Coverage
from videoflow.backends.messaging import ChannelId, SubscriptionId
from videoflow.backends.outcomes import Known
from videoflow.backends.runtime import FlowRuntime, SourcePosition
from videoflow.engines._continuity import Records
from videoflow.engines._ledger import InnerLedger, LedgerReader
from videoflow.engines._provision import markers_of, subscriptions_of
from videoflow.graph.report import EdgeReport
from videoflow.planner.plan import CommitOrder, InputMode, Plan
from videoflow.worker import channel_id
from videoflow.worker.core import TaskProgram


def forget_unsaid(
    plan: Plan,
    run_id: str,
    inner: InnerLedger,
    runtime: FlowRuntime,
    announced: Callable[[ChannelId], Records],
    deadline: float,
) -> None:
    """Leaves out of a ledger what nodes were given by a source that died before it said what came of it.

    Nobody else has heard of such items. They come again with the next incarnation of the source, except in a
    run that was stopped meanwhile.

    Args:
        plan: What was run.
        run_id: ULID.
        inner: Fates on edges inside tasks.
        runtime: The records of the run.
        announced: Reads the writers' end of a channel; what cannot be read leaves the ledger as it is.
        deadline: Monotonic seconds.
    """
    for task in plan.tasks:
        if task.mode is not InputMode.SOURCE or len(task.nodes) == 1:
            continue
        refs = [ref for output in task.outputs for ref in output.channels]
        if task.order is CommitOrder.OUTBOX:
            at = runtime.load(task.name, 0, deadline=deadline).source or SourcePosition(0, -1, None)
            inner.cut(task.name, task.nodes[0], partial(_committed, at))
        elif refs:
            said = [announced(channel_id(ref, plan.spec.flow_id, run_id)) for ref in refs]
            if all(isinstance(records, Known) for records in said):
                inner.cut(task.name, task.nodes[0], partial(_stated, _lasts(task.nodes[0], said)))


def _committed(at: SourcePosition, epoch: int) -> int | None:
    if epoch < at.epoch:
        return None
    return at.ordinal if epoch == at.epoch else -1


def _stated(lasts: Mapping[int, int], epoch: int) -> int:
    return lasts.get(epoch, -1)


def _lasts(source: str, said: Iterable[Records]) -> dict[int, int]:
    """Returns the last item of each epoch of a source that any channel has a statement of."""
    lasts: dict[int, int] = {}
    for records in said:
        coverage = Coverage()
        coverage.merge(records.value if isinstance(records, Known) else ())
        for (node, epoch), found in coverage.origins.items():
            if node == source:
                lasts[epoch] = max(lasts.get(epoch, -1), found.closed.last(), *found.deep_open)
    return lasts


def account_of_edges(
    plan: Plan,
    run_id: str,
    programs: Mapping[str, TaskProgram],
    inner: InnerLedger,
    announced: Callable[[ChannelId], Records],
    settled: Callable[[SubscriptionId], Records],
    now: float,
) -> list[EdgeReport]:
    """Returns the ledger of every edge of the flow, fused ones included.

    Args:
        plan: What was run.
        run_id: ULID.
        programs: By task.
        inner: Fates on edges inside tasks.
        announced: Reads the writers' end of a channel.
        settled: Reads the reader's end of a subscription.
        now: Monotonic seconds.
    """
    subscriptions: dict[tuple[str, str, str], list[SubscriptionId]] = {}
    for _, subscription, name in (*subscriptions_of(plan, run_id), *markers_of(plan, run_id)):
        channel = subscription.channel
        subscriptions.setdefault((subscription.reader, channel.node, channel.port), []).append(name)
    reader = LedgerReader(
        plan=plan,
        announced=announced,
        settled=settled,
        inner=inner,
        subscriptions=subscriptions,
        inner_edges={
            edge: (task, number)
            for task, program in programs.items()
            for number, edge in enumerate(program.inner_edges)
        },
        now=now,
    )
    return reader.edges()
