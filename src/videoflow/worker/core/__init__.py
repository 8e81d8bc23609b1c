"""The pure core of a worker: what one replica of a task does, as a generator of actions."""

from videoflow.planner.plan import InputMode
from videoflow.worker.core import actions as actions
from videoflow.worker.core._batching import BatchingCore
from videoflow.worker.core._blame import blamed, first_failure
from videoflow.worker.core._concluding import Over, Start
from videoflow.worker.core._core import ReaderCore
from videoflow.worker.core._program import NodeProgram, TaskProgram, make_program
from videoflow.worker.core._source import SourceCore
from videoflow.worker.core.actions import Action, Answer, WorkerFatal

Core = ReaderCore | SourceCore | Over
"""Whatever runs a task: its `run` is a generator of actions."""


def make_core(start: Start) -> Core:
    """Returns the core for a task: a source's, or a reader's."""
    if start.over:
        return Over(start)
    if start.program.task.mode is InputMode.SOURCE:
        return SourceCore(start)
    return ReaderCore(start) if start.program.entry.spec.options.batch is None else BatchingCore(start)


__all__ = [
    "Action",
    "Answer",
    "Core",
    "NodeProgram",
    "ReaderCore",
    "SourceCore",
    "Start",
    "TaskProgram",
    "WorkerFatal",
    "actions",
    "blamed",
    "first_failure",
    "make_core",
    "make_program",
]
