"""Who may use which accelerator of this host: NVML says what there is, a ledger in SQLite who has it.

Used by the local and the threads engine, by name, and by `videoflow gpus`. Between the runs of one user it
excludes; the processes of others it sees and counts. It refuses to plan on what could not be read, to change
MIG geometry, and to call accounting isolation.
"""

from videoflow.deploy.allocation_local._backend import LocalAllocation
from videoflow.deploy.allocation_local._guarantees import capabilities_of
from videoflow.deploy.allocation_local._inventory import LocalSnapshot, Survey, Surveyed
from videoflow.deploy.allocation_local._ledger import Ledger, Share
from videoflow.deploy.allocation_local._opening import ledger_path, open_local
from videoflow.deploy.allocation_local._planning import LocalPlan
from videoflow.deploy.allocation_local._settings import (
    DEFAULT_HEADROOM_BYTES,
    LocalSettings,
    Policy,
)
from videoflow.environment import GRANT_VARIABLE, MASK_VARIABLE, ORDER_VARIABLE

__all__ = [
    "DEFAULT_HEADROOM_BYTES",
    "GRANT_VARIABLE",
    "MASK_VARIABLE",
    "ORDER_VARIABLE",
    "Ledger",
    "LocalAllocation",
    "LocalPlan",
    "LocalSettings",
    "LocalSnapshot",
    "Policy",
    "Share",
    "Survey",
    "Surveyed",
    "capabilities_of",
    "ledger_path",
    "open_local",
]
