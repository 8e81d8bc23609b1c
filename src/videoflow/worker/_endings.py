"""How a worker may end badly, in the words of the first failure.

Used by the engines and by worker processes. It refuses to blame a node for what is not its node's.
"""

import traceback
from pathlib import Path

from videoflow.backends.runtime import FirstFailure
from videoflow.errors import FlowError, RunFailed, said_by
from videoflow.worker.core import WorkerFatal


def ended_badly(task: str, error: BaseException) -> FirstFailure:
    """Returns the failure of a worker that could not go on: its node's where that is to blame."""
    if isinstance(error, WorkerFatal) and error.failure is not None:
        return error.failure
    frames = traceback.extract_tb(error.__traceback__)
    where = f"{Path(frames[-1].filename).name}:{frames[-1].lineno} in {frames[-1].name}" if frames else ""
    said = said_by(error)
    kind = type(error) if isinstance(error, FlowError) else RunFailed
    return FirstFailure(
        node=task,
        code=kind.code,
        message=f"the worker of task {task} ended: {said.partition(': ')[2]}",
        cause=said,
        where=where,
        remedy=error.remedy if isinstance(error, FlowError) else "report this as a defect",
        exit_status=kind.exit_status,
    )
