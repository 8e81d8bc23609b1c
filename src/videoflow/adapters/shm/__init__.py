"""Messages and payloads between the processes of one host, through shared memory without a server.

Used by the local engine: `ShmHost` in the supervisor, `open_worker` in each worker process. It is
for Linux, and refuses to outlive the run: the memory has no name, and goes with the last process.
"""

from collections.abc import Callable, Sequence

import msgspec

from videoflow.adapters.shm._capabilities import payload_capabilities
from videoflow.adapters.shm._host import ShmHost, WorkerKit
from videoflow.adapters.shm._kit import Kit
from videoflow.adapters.shm._layout import TaskShape
from videoflow.adapters.shm._messaging import CAPABILITIES, ShmMessaging
from videoflow.adapters.shm._payloads import Claims, ShmPayloads
from videoflow.adapters.shm._process import Process, lost_supervisor
from videoflow.clock import Clock

__all__ = [
    "CAPABILITIES",
    "ShmHost",
    "ShmMessaging",
    "ShmPayloads",
    "TaskShape",
    "WorkerKit",
    "open_worker",
    "payload_capabilities",
]


def open_worker(
    document: bytes,
    descriptors: Sequence[int],
    clock: Clock,
    owner: str,
    *,
    lost: Callable[[], None] = lost_supervisor,
) -> tuple[ShmMessaging, ShmPayloads]:
    """Opens a worker's end of the log with the kit that the supervisor made for it.

    Args:
        document: `WorkerKit.document`.
        descriptors: The kit's descriptors, inherited, in their order; they are taken over.
        clock: For deadlines.
        owner: Worker id and incarnation.
        lost: Called once, from either thread, when the supervisor is gone; ends the process by default.
    """
    process = Process(msgspec.msgpack.decode(document, type=Kit), descriptors, clock, lost)
    claims = Claims(process)
    return ShmMessaging(process, claims, owner), ShmPayloads(process, claims)
