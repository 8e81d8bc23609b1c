"""The reference of the allocation contract: hosts as fixtures, and a backend that is right about them.

Used by the examiner as the arbiter, and by simulations. The cluster is the authority and outlives every
backend; a `MemoryAllocation` is one process, and keeps nothing that another could not read. It refuses to
cut a card where no table judges layouts.
"""

from videoflow.backends.memory.allocation._backend import MANAGER_FACT, MemoryAllocation
from videoflow.backends.memory.allocation._cluster import (
    Conflict,
    Interposer,
    Listing,
    MemoryCluster,
    Refused,
    Unanswered,
)
from videoflow.backends.memory.allocation._hosts import (
    Hold,
    Layout,
    MemoryCard,
    MemoryHost,
    MemoryPod,
    MemorySlice,
    MigTable,
    Written,
)
from videoflow.backends.memory.allocation._planning import MemoryPlan
from videoflow.environment import GRANT_VARIABLE

__all__ = [
    "GRANT_VARIABLE",
    "MANAGER_FACT",
    "Conflict",
    "Hold",
    "Interposer",
    "Layout",
    "Listing",
    "MemoryAllocation",
    "MemoryCard",
    "MemoryCluster",
    "MemoryHost",
    "MemoryPlan",
    "MemoryPod",
    "MemorySlice",
    "MigTable",
    "Refused",
    "Unanswered",
    "Written",
]
