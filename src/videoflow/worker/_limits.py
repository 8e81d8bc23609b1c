"""The largest item of each port that leaves a task; used where nodes are made.

It refuses nothing: the plan has every size.
"""

from videoflow.planner.plan import Plan, TaskPlan


def item_limits(plan: Plan, task: TaskPlan) -> dict[str, dict[str, int]]:
    """Returns, per node of a task, port → the largest item in bytes, for ports that leave the task."""
    sizes = {(channel.ref.node, channel.ref.port): channel.item_bytes for channel in plan.channels}
    limits: dict[str, dict[str, int]] = {}
    for output in task.outputs:
        limits.setdefault(output.node, {})[output.port] = sizes[output.node, output.port]
    return limits
