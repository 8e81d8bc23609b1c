"""The runtime contract: what is correct processing and recovery?

`RuntimeStore` is a small versioned key-value store with an append log, implemented by
`backends.memory` and by adapters. `FlowRuntime` builds on any of them what a run needs to record. It
records facts and answers questions; it decides no policy.
"""

from videoflow.backends.runtime._flow import FlowRuntime
from videoflow.backends.runtime._records import (
    Aside,
    CommitOutcome,
    Committed,
    DeadLetter,
    Desired,
    FirstFailure,
    OutboxEntry,
    SourcePosition,
    TaskCommit,
)
from videoflow.backends.runtime._store import ABSENT, Change, RuntimeStore, Stored, StoreOutcome

__all__ = [
    "ABSENT",
    "Aside",
    "Change",
    "CommitOutcome",
    "Committed",
    "DeadLetter",
    "Desired",
    "FirstFailure",
    "FlowRuntime",
    "OutboxEntry",
    "RuntimeStore",
    "SourcePosition",
    "StoreOutcome",
    "Stored",
    "TaskCommit",
]
