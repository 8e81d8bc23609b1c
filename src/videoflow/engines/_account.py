"""The account of a run at its end, from the two ends of every channel and what workers said of inner edges.

Used by the engines. It refuses nothing: an end that cannot be read leaves its edge unknown.
"""

from collections.abc import Callable, Mapping

from videoflow.backends.messaging import ChannelId, SubscriptionId
from videoflow.backends.runtime import FlowRuntime, SourcePosition
from videoflow.engines._continuity import Records
from videoflow.engines._ledger import InnerLedger, LedgerReader
from videoflow.engines._provision import markers_of, subscriptions_of
from videoflow.graph.report import EdgeReport
from videoflow.planner.plan import CommitOrder, InputMode, Plan
from videoflow.worker.core import TaskProgram


def forget_uncommitted(plan: Plan, inner: InnerLedger, runtime: FlowRuntime, deadline: float) -> None:
    """Leaves out of a ledger what nodes were given by a source that died before it committed it.

    Where a source commits its outputs before it says them, nobody else has heard of such items. They come
    again with its next incarnation, except in a run that was stopped meanwhile.

    Args:
        plan: What was run.
        inner: Fates on edges inside tasks.
        runtime: The records of the run.
        deadline: Monotonic seconds.
    """
    for task in plan.tasks:
        if task.mode is InputMode.SOURCE and task.order is CommitOrder.OUTBOX and len(task.nodes) > 1:
            at = runtime.load(task.name, 0, deadline=deadline).source or SourcePosition(0, -1, None)
            inner.cut(task.name, task.nodes[0], at.epoch, at.ordinal)


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
