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
    if isinstance(error, FlowError):
        return FirstFailure(
            node=task,
            code=error.code,
            message=f"the worker of task {task} ended: {error.message}",
            cause=error.cause,
            where=error.where or where,
            remedy=error.remedy,
            exit_status=error.exit_status,
        )
    said = said_by(error)
    return FirstFailure(
        node=task,
        code=RunFailed.code,
        message=f"the worker of task {task} ended: {said.partition(': ')[2]}",
        cause=said,
        where=where,
        remedy="report this as a defect",
        exit_status=RunFailed.exit_status,
    )
