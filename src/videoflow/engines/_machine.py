"""What this machine can give: memory, as far as machine and container allow.

Used by the engines before anything is made, and by `videoflow doctor`. It refuses to guess: what cannot be
read is unknown, and the planner then refuses to go on.
"""

import os
from pathlib import Path

from videoflow.backends.outcomes import Known, Observation, Unknown, UnknownReason

_DEFAULT_SHARE = 4
_CGROUP_V2 = Path("/sys/fs/cgroup")
_CGROUP_V1 = Path("/sys/fs/cgroup/memory")
_NO_LIMIT = 1 << 60


def available_bytes(now: float) -> Observation[int]:
    """Returns the smaller of the machine's available memory and what the container leaves.

    Args:
        now: Monotonic seconds, for the observation.
    """
    machine = _machine_bytes()
    if machine is None:
        return Unknown(
            UnknownReason.UNSUPPORTED, now, "this system does not say how much memory is available"
        )
    left = [machine, *_container_bytes()]
    return Known(min(left), now)


def budget_bytes(asked: int | None, available: Observation[int]) -> int:
    """Returns the memory that frames in flight may use: as asked, else a quarter of what is available.

    Whether so much may be asked for is the planner's to judge.
    """
    if asked is not None:
        return asked
    return available.value // _DEFAULT_SHARE if isinstance(available, Known) else 1 << 30


def processors() -> int:
    """Returns the number of processors that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _machine_bytes() -> int | None:
    try:
        lines = Path("/proc/meminfo").read_text(encoding="ascii").splitlines()
    except OSError:
        return None
    figures = dict(line.split(":", 1) for line in lines)
    found = figures.get("MemAvailable")
    return int(found.split()[0]) * 1024 if found else None


def _container_bytes() -> list[int]:
    left = []
    for folder in _own_groups():
        limit, used = _number(folder / "memory.max"), _number(folder / "memory.current")
        if limit is not None and used is not None:
            left.append(max(0, limit - used))
    limit, used = (
        _number(_CGROUP_V1 / "memory.limit_in_bytes"),
        _number(_CGROUP_V1 / "memory.usage_in_bytes"),
    )
    if limit is not None and used is not None and limit < _NO_LIMIT:
        left.append(max(0, limit - used))
    return left


def _own_groups() -> list[Path]:
    try:
        lines = Path("/proc/self/cgroup").read_text(encoding="ascii").splitlines()
    except OSError:
        return []
    named = [line.split(":", 2)[2] for line in lines if line.startswith("0::")]
    folders = []
    for name in named:
        folder = _CGROUP_V2 / name.lstrip("/")
        while folder != _CGROUP_V2.parent:
            folders.append(folder)
            folder = folder.parent
    return folders


def _number(path: Path) -> int | None:
    try:
        text = path.read_text(encoding="ascii").strip()
    except OSError:
        return None
    return int(text) if text.isdigit() else None
