"""What the log and payload memory guarantee, said before any of it is made; used by the planner."""

from typing import Final

from videoflow.backends.capabilities import PayloadCapabilities, Profile
from videoflow.backends.outcomes import known

PROFILES: Final = frozenset((Profile.LIVE_LATEST, Profile.RELIABLE_WORK))


def payload_capabilities(
    now: float, largest_bytes: int, free_bytes: int | None = None
) -> PayloadCapabilities:
    """Returns what slabs of shared memory guarantee.

    Args:
        now: Monotonic seconds, for the observations.
        largest_bytes: The largest object.
        free_bytes: What is free; None: as much as the largest object.
    """
    return PayloadCapabilities(
        adapter="shm",
        durable=known(False, now),
        evictable=known(False, now),
        persistent_volume=known(False, now),
        crosses_processes=True,
        crosses_hosts=False,
        forwards_references=True,
        digest="none",
        maximum_object_bytes=largest_bytes,
        free_bytes=known(largest_bytes if free_bytes is None else free_bytes, now),
        copies=known(1, now),
    )
