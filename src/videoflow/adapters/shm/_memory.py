"""Anonymous shared memory: what the machine and its container leave, and mappings of descriptors."""

import mmap
import os
from pathlib import Path

from videoflow.errors import EnvironmentFault, MemoryShort

_PAGE = mmap.PAGESIZE
_UNLIMITED = 1 << 60


def available_bytes(root: Path = Path("/")) -> int:
    """Returns the bytes that this process may still use: the machine's, or what its control groups leave.

    Args:
        root: Where `proc` and `sys` are found.
    """
    left = _UNLIMITED
    for line in _text(root / "proc/meminfo").splitlines():
        if line.startswith("MemAvailable:"):
            left = int(line.split()[1]) * 1024
    for line in _text(root / "proc/self/cgroup").splitlines():
        _, controllers, path = line.split(":", 2)
        if not controllers:
            for mount in ("sys/fs/cgroup", "sys/fs/cgroup/unified"):
                left = min(left, _group(root / mount, path, "memory.max", "memory.current"))
        elif "memory" in controllers.split(","):
            limit, usage = "memory.limit_in_bytes", "memory.usage_in_bytes"
            left = min(left, _group(root / "sys/fs/cgroup/memory", path, limit, usage))
    return max(0, left)


def check_budget(wanted_bytes: int, budget_bytes: int, *, root: Path = Path("/")) -> None:
    """Compares what is wanted with the budget and the machine, before anything is made.

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
    left = available_bytes(root)
    if wanted_bytes > left:
        raise MemoryShort(
            f"the channels of this flow need {wanted_bytes} bytes of memory",
            cause=f"the machine and its container leave {left}",
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


def whole_pages(size_bytes: int) -> int:
    """Returns the size rounded up to pages."""
    return -(-size_bytes // _PAGE) * _PAGE


def _group(mount: Path, path: str, limit: str, usage: str) -> int:
    left = _UNLIMITED
    folder = mount / path.strip("/")
    for place in (folder, *folder.parents):
        if not place.is_relative_to(mount):
            break
        most, used = _text(place / limit).strip(), _text(place / usage).strip()
        if most.isdigit() and used.isdigit() and int(most) < _UNLIMITED:
            left = min(left, int(most) - int(used) + _reclaimable(_text(place / "memory.stat")))
    return left


def _reclaimable(statistics: str) -> int:
    rows = dict(line.split(maxsplit=1) for line in statistics.splitlines() if " " in line)
    return int(rows.get("total_inactive_file", rows.get("inactive_file", 0)))


def _text(path: Path) -> str:
    try:
        return path.read_text()
    except OSError:
        return ""
