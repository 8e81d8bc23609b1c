"""What the machine and the container allow: memory and processors. Used by `videoflow doctor`.

Reads cgroup v2 and v1. It refuses to take what it cannot read for zero or for no limit of the machine's: such
a figure is None.
"""

import math
from dataclasses import dataclass
from pathlib import Path

_CGROUP = Path("/sys/fs/cgroup")
_UNLIMITED = 1 << 60  # cgroup v1 says "no limit" with a number of about this size


@dataclass(frozen=True)
class Limits:
    """Memory in bytes and processors; None where there is no limit, or where it cannot be read."""

    total_bytes: int | None
    available_bytes: int | None
    container_bytes: int | None
    container_processors: float | None


def read_limits(cgroup: Path = _CGROUP, meminfo: Path = Path("/proc/meminfo")) -> Limits:
    """Returns what holds now; `available_bytes` is the smaller of the machine's and the container's."""
    fields = _meminfo(meminfo)
    available = fields.get("MemAvailable")
    limit = _number(cgroup / "memory.max") or _number(cgroup / "memory" / "memory.limit_in_bytes")
    limit = None if limit is None or limit >= _UNLIMITED else limit
    used = _number(cgroup / "memory.current")
    if used is None:
        used = _number(cgroup / "memory" / "memory.usage_in_bytes")
    left = None if limit is None or used is None else max(0, limit - used)
    return Limits(
        total_bytes=fields.get("MemTotal"),
        available_bytes=min((figure for figure in (available, left) if figure is not None), default=None),
        container_bytes=limit,
        container_processors=_processors(cgroup),
    )


def _meminfo(path: Path) -> dict[str, int]:
    try:
        lines = path.read_text(encoding="ascii").splitlines()
    except OSError:
        return {}
    pairs = (line.split()[:2] for line in lines)
    return {name.rstrip(":"): int(number) * 1024 for name, number in pairs}


def _number(path: Path) -> int | None:
    try:
        text = path.read_text(encoding="ascii").strip()
    except OSError:
        return None
    return int(text) if text.isdigit() else None


def _processors(cgroup: Path) -> float | None:
    try:
        quota, period = (cgroup / "cpu.max").read_text(encoding="ascii").split()
        allowed = math.inf if quota == "max" else int(quota) / int(period)
    except (OSError, ValueError):
        quota_v1 = _number(cgroup / "cpu" / "cpu.cfs_quota_us")  # -1, which is no number here, is no limit
        period_v1 = _number(cgroup / "cpu" / "cpu.cfs_period_us")
        allowed = quota_v1 / period_v1 if quota_v1 and period_v1 else math.inf
    return None if math.isinf(allowed) else allowed
