"""One task process: a pure core in an I/O shell."""

from videoflow.worker._control import Reporter, RunControl
from videoflow.worker._endings import ended_badly
from videoflow.worker._figures import NodeFigures, TaskFigures
from videoflow.worker._job import Backends, Job, Quit
from videoflow.worker._kept import Kept
from videoflow.worker._limits import item_limits
from videoflow.worker._linger import Publishes
from videoflow.worker._meter import Meter, MeteredClock, Part, Spending, Spent
from videoflow.worker._metered import MeteredMessaging
from videoflow.worker._names import channel_id, subscription_id
from videoflow.worker._nodes import TaskNodes
from videoflow.worker._shell import Shell
from videoflow.worker._suspending import RESUMABLE_NOTE, Before, KeptDelivery
from videoflow.worker.core import WorkerFatal, make_program

__all__ = [
    "RESUMABLE_NOTE",
    "Backends",
    "Before",
    "Job",
    "Kept",
    "KeptDelivery",
    "Meter",
    "MeteredClock",
    "MeteredMessaging",
    "NodeFigures",
    "Part",
    "Publishes",
    "Quit",
    "Reporter",
    "RunControl",
    "Shell",
    "Spending",
    "Spent",
    "TaskFigures",
    "TaskNodes",
    "WorkerFatal",
    "channel_id",
    "ended_badly",
    "item_limits",
    "make_program",
    "subscription_id",
]
