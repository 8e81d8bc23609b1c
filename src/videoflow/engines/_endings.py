"""How a run may end badly for what an engine saw of it, in the words of the first failure.

Used by the engines. It refuses to blame a node for anything but a call that lasted too long.
"""

from collections.abc import Sequence

from videoflow.backends.runtime import FirstFailure
from videoflow.errors import RunStalled
from videoflow.graph.spec import FlowSpec
from videoflow.planner.plan import TaskPlan


def timed_out(spec: FlowSpec, calling: tuple[str, float] | None, now: float) -> FirstFailure | None:
    """Returns the failure of a node whose call has lasted longer than its `timeout_seconds`, or None.

    Args:
        spec: The flow.
        calling: The node in whose code a replica is, since when in monotonic seconds, or None.
        now: Monotonic seconds.
    """
    if calling is None:
        return None
    name, since = calling
    limit = spec.node(name).options.timeout_seconds
    if limit is None or now - since <= limit:
        return None
    return FirstFailure(
        node=name,
        code=RunStalled.code,
        message=f"node {name} did not return within its timeout of {limit:g} s",
        cause="a call in this engine cannot be ended from outside",
        remedy="mend the node, raise timeout_seconds, or use --engine local, which can end it",
        exit_status=RunStalled.exit_status,
    )


def stalled(waiting: Sequence[TaskPlan], seconds: float) -> FirstFailure:
    """Returns the failure of a run in which nothing has moved for too long.

    Args:
        waiting: The tasks of the replicas that have not ended; at least one.
        seconds: For how long nothing may move.
    """
    names = dict.fromkeys(task.name for task in waiting)
    return FirstFailure(
        node=waiting[0].nodes[0],
        code=RunStalled.code,
        message=f"no progress for {seconds:g} s",
        cause=f"tasks that have not ended: {', '.join(names)}",
        remedy="report this as a defect, with plan.json",
        exit_status=RunStalled.exit_status,
    )
