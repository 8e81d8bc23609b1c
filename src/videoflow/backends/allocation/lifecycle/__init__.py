"""What every allocator with durable claims does in the same way: the order of steps, fences, and endings.

Used by the allocators whose claims are records that are moved by compare-and-swap (memory, Kubernetes, DRA),
which bring the steps themselves. Nothing here reads or writes by itself. It refuses to go on with a claim
that another process has taken over, and never takes silence for an answer.
"""

from videoflow.backends.allocation.lifecycle._recorded import RecordedAllocation
from videoflow.backends.allocation.lifecycle._terms import (
    UNDER_WAY,
    Aborted,
    Journal,
    NotBegun,
    Phase,
    Record,
    Steps,
    Superseded,
    Taken,
    Unanswered,
    Undecided,
    changed_by,
    claim_name,
    plan_digest,
)

__all__ = [
    "UNDER_WAY",
    "Aborted",
    "Journal",
    "NotBegun",
    "Phase",
    "Record",
    "RecordedAllocation",
    "Steps",
    "Superseded",
    "Taken",
    "Unanswered",
    "Undecided",
    "changed_by",
    "claim_name",
    "plan_digest",
]
