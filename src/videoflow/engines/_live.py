"""Live figures of a run, as every engine shows them: per node, with what waits for it.

Used by the handles of runs. It refuses to take a queue that could not be read for an empty one.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from videoflow.backends.messaging import SubscriptionId, SubscriptionStatus
from videoflow.backends.outcomes import Known, Observation
from videoflow.engines._provision import subscriptions_of
from videoflow.graph.running import NodeStatus
from videoflow.planner.plan import Plan
from videoflow.worker import NodeFigures, Spending

Figures = dict[str, dict[str, NodeFigures]]
"""Task → node → figures over all replicas and incarnations."""


@dataclass(frozen=True)
class Queue:
    """What waits for a node, and what its live inputs dropped.

    Attributes:
        waiting: Items, or None where some input could not be read.
        drops: Items that were seen to be dropped.
    """

    waiting: int | None
    drops: int


def summed(parts: Iterable[tuple[str, Mapping[str, NodeFigures]]]) -> Figures:
    """Adds the figures of replicas up.

    Args:
        parts: (task, node → figures) of each replica.
    """
    total: Figures = {}
    for task, nodes in parts:
        sums = total.setdefault(task, {})
        for name, figures in nodes.items():
            sums.setdefault(name, NodeFigures()).add(figures)
    return total


def added(parts: Iterable[tuple[str, Spending | None]]) -> dict[str, Spending]:
    """Adds up where the time of replicas went.

    Args:
        parts: (task, where the time went) of each replica; None where nobody measured it.
    """
    total: dict[str, Spending] = {}
    for task, spending in parts:
        if spending is not None:
            total.setdefault(task, Spending()).add(spending)
    return total


def queues_of(
    plan: Plan, run_id: str, observe: Callable[[SubscriptionId], Observation[SubscriptionStatus]]
) -> dict[str, Queue]:
    """Returns the queue of each node that a task's inputs go to.

    Args:
        plan: What runs.
        run_id: ULID.
        observe: Reads how far a subscription has come.
    """
    queues: dict[str, Queue] = {}
    for task, _, subscription in subscriptions_of(plan, run_id):
        entry = task.nodes[0]
        before = queues.get(entry, Queue(0, 0))
        observed = observe(subscription)
        if isinstance(observed, Known):
            seen = observed.value
            waiting = None if before.waiting is None else before.waiting + seen.available
            queues[entry] = Queue(waiting, before.drops + seen.evicted)
        else:
            queues[entry] = Queue(None, before.drops)
    return queues


def node_statuses(
    figures: Figures, queues: Mapping[str, Queue], restarts: Mapping[str, int]
) -> tuple[NodeStatus, ...]:
    """Returns the live figures of every node.

    Args:
        figures: Of all tasks.
        queues: By node; a node inside a task has none.
        restarts: Task → restarts so far.
    """
    return tuple(
        _node_status(name, found, queues.get(name, Queue(None, 0)), restarts.get(task, 0))
        for task, nodes in figures.items()
        for name, found in nodes.items()
    )


def _node_status(name: str, figures: NodeFigures, queue: Queue, restarts: int) -> NodeStatus:
    return NodeStatus(
        node=name,
        items=figures.items,
        expected=figures.expected,
        seconds_per_item=figures.seconds / figures.items if figures.items else None,
        queue=queue.waiting,
        drops=queue.drops,
        errors=figures.errors,
        restarts=restarts,
    )
