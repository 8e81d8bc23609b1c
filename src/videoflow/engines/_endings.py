"""How a task may end badly, in the words of the first failure."""

from videoflow.backends.runtime import FirstFailure
from videoflow.errors import RunStalled
from videoflow.graph.spec import FlowSpec
from videoflow.worker import ended_badly

__all__ = ["ended_badly", "timed_out"]


def timed_out(spec: FlowSpec, calling: tuple[str, float] | None, now: float) -> FirstFailure | None:
    """Returns the failure of a node whose call has lasted longer than its `timeout_seconds`, or None."""
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
