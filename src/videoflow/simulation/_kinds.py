"""Kinds of task, as the table of hits tells them apart.

Used wherever faults are chosen and counted.
"""

from videoflow.planner.plan import CommitOrder, InputMode, Plan, TaskPlan

KINDS = (
    "source",
    "live source",
    "competing",
    "competing outbox",
    "ordered",
    "ordered outbox",
    "join",
    "join outbox",
    "sink",
    "saving sink",
    "keeping sink",
)
"""Every kind of task, as the columns of the table."""


def kind_of(plan: Plan, task: TaskPlan) -> str:
    """Returns what kind of task it is, for the table of what was hit."""
    nodes = [plan.spec.node(name) for name in task.nodes]
    if task.mode is InputMode.SOURCE:
        return "source" if nodes[0].traits.resumable else "live source"
    if not task.outputs:
        kept = any(node.traits.checkpoints for node in nodes)
        return "saving sink" if kept else "keeping sink" if task.order is CommitOrder.OUTBOX else "sink"
    kind = {InputMode.COMPETING: "competing", InputMode.JOIN: "join", InputMode.ORDERED: "ordered"}[task.mode]
    return f"{kind} outbox" if task.order is CommitOrder.OUTBOX else kind
