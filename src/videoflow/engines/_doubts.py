"""Doubts about the ledger from who else counted: sources that committed, nodes that were called.

Used by the report, which then judges whether a doubt may be so at the end of that run. It refuses nothing,
and says nothing where a count is not exact: after a restart, a node may have been called again.
"""

from collections.abc import Mapping, Sequence

from videoflow.backends.runtime import Desired, FlowRuntime
from videoflow.graph.report import EdgeReport
from videoflow.graph.spec import NodeKind
from videoflow.planner.plan import Plan
from videoflow.worker import NodeFigures


def compare_with_sources(
    plan: Plan, edges: Sequence[EdgeReport], runtime: FlowRuntime, deadline: float
) -> None:
    """Notes a doubt on edges on which not so many items were announced as their source committed.

    A source that died, and was stopped before it came again to where it had been, has announced more.
    """
    whole = runtime.desired(deadline=deadline) is Desired.RUN
    for node in plan.spec.nodes:
        if node.kind is not NodeKind.PRODUCER:
            continue
        at = runtime.load(plan.task_of(node.name).name, 0, deadline=deadline).source
        if at is None or at.epoch > 0:  # the ordinals of ended epochs are not added up here
            continue
        made = at.ordinal + 1
        for edge in edges:
            if edge.parent.split(".")[0] != node.name or not edge.closed:
                continue
            if edge.announced < made or (whole and edge.announced > made):
                edge.detail = edge.detail or f"{node.name} made {made} items, and {edge.announced} came out"


def compare_with_calls(
    plan: Plan,
    edges: Sequence[EdgeReport],
    figures: Mapping[str, Mapping[str, NodeFigures]],
    restarts: Mapping[str, int],
) -> None:
    """Notes a doubt on edges on which a node was called for another number of items than it was given."""
    for node in plan.spec.nodes:
        task = plan.task_of(node.name).name
        given = [edge for edge in edges if edge.child == node.name and edge.replica is None]
        called = figures.get(task, {}).get(node.name)
        exact = not (restarts.get(task) or node.traits.flushes or node.options.batch)
        if called is None or len(given) != 1 or not exact:
            continue
        (edge,) = given
        if edge.closed and called.items != edge.delivered:
            edge.detail = edge.detail or (
                f"{node.name} was called for {called.items} items, and {edge.delivered} were delivered"
            )
