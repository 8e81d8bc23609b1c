"""Anonymous shared memory: whether it fits, and mappings of descriptors."""

import mmap
import os

from videoflow.errors import EnvironmentFault, MemoryShort


def check_budget(wanted_bytes: int, budget_bytes: int, available_bytes: int | None) -> None:
    """Compares what is wanted with the budget and the machine, before anything is made.

    Args:
        wanted_bytes: What the log and all slabs take.
        budget_bytes: What they may take.
        available_bytes: What the machine and its container leave; None where nobody knows.

    Raises:
        MemoryShort: It does not fit.
    """
    remedy = "use smaller frames, fewer replicas or smaller bounds, or give more memory"
    if wanted_bytes > budget_bytes:
        raise MemoryShort(
            f"the channels of this flow need {wanted_bytes} bytes, the budget is {budget_bytes}",
            effect="nothing was started",
            remedy=remedy,
        )
    if available_bytes is not None and wanted_bytes > available_bytes:
        raise MemoryShort(
            f"the channels of this flow need {wanted_bytes} bytes of memory",
            cause=f"the machine and its container leave {available_bytes}",
            effect="nothing was started",
            remedy=remedy,
        )


def make(name: str, size_bytes: int) -> int:
    """Returns a descriptor of new anonymous memory whose pages all exist, so that touching cannot fail.

    Raises:
        MemoryShort: The kernel has no room.
        EnvironmentFault: The system has no anonymous memory files.
    """
    if not hasattr(os, "memfd_create"):
        raise EnvironmentFault("shared memory between processes needs Linux", remedy="use the threads engine")
    descriptor = os.memfd_create(name, os.MFD_CLOEXEC)
    try:
        os.posix_fallocate(descriptor, 0, size_bytes)
    except OSError as error:
        os.close(descriptor)
        raise MemoryShort(f"{size_bytes} bytes of shared memory cannot be had", cause=str(error)) from error
    return descriptor


def attach(descriptor: int, *, write: bool, populate: bool = False) -> mmap.mmap:
    """Maps all of a descriptor's memory."""
    size = os.fstat(descriptor).st_size
    flags = mmap.MAP_SHARED | (mmap.MAP_POPULATE if populate else 0)
    protection = mmap.PROT_READ | (mmap.PROT_WRITE if write else 0)
    return mmap.mmap(descriptor, size, flags=flags, prot=protection)
