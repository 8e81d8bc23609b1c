"""How a task may end badly, in the words of the first failure."""

import traceback
from pathlib import Path

from videoflow.backends.runtime import FirstFailure
from videoflow.errors import FlowError, RunStalled
from videoflow.graph.spec import FlowSpec


def ended_badly(task: str, error: BaseException) -> FirstFailure:
    """Returns the failure of a worker that could not go on, for a reason that is not its node's."""
    frames = traceback.extract_tb(error.__traceback__)
    where = f"{Path(frames[-1].filename).name}:{frames[-1].lineno} in {frames[-1].name}" if frames else ""
    own = isinstance(error, FlowError)
    return FirstFailure(
        node=task,
        code=error.code if isinstance(error, FlowError) else "VF-RUN-FAILED",
        message=f"the worker of task {task} ended: {error}",
        cause=f"{type(error).__name__}: {error}",
        where=where,
        remedy=error.remedy if own and isinstance(error, FlowError) else "report this as a defect",
        exit_status=error.exit_status if isinstance(error, FlowError) else 4,
    )


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
