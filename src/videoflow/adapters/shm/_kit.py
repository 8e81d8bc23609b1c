"""What the supervisor tells a new worker process about the log; `ShmHost` makes it, `Process` reads it."""

import msgspec

from videoflow.adapters.shm._layout import Layout
from videoflow.adapters.shm._links import Peer
from videoflow.backends.coverage import OriginRecord


class Kit(msgspec.Struct, frozen=True, kw_only=True):
    """What a new worker process is told.

    Attributes:
        layout: All places.
        task: Number of its task.
        slot: Its replica.
        incarnation: Counted from 1 per replica.
        announced: Per channel that it writes: what all slots have announced.
        settled: Per subscription that it reads: what is settled.
        ended: Replicas that ended for good.
        started: Replicas that were started before, and may hold something of this one's.
    """

    layout: Layout
    task: int
    slot: int
    incarnation: int
    announced: dict[int, list[OriginRecord]]
    settled: dict[int, list[OriginRecord]]
    ended: list[Peer]
    started: list[Peer]
