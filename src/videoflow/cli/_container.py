"""What a container allows: memory and processors, by cgroup v2 or v1. Used by `videoflow doctor`.

It refuses to take what it cannot read for zero: such a figure is None, like one without a limit.
"""

from dataclasses import dataclass
from pathlib import Path

_UNLIMITED = 1 << 60  # cgroup v1 says "no limit" with a number of about this size


@dataclass(frozen=True)
class Limits:
    """Memory in bytes and processors; None where there is no limit, or where it cannot be read."""

    memory_bytes: int | None
    processors: float | None


def read_limits(cgroup: Path = Path("/sys/fs/cgroup")) -> Limits:
    """Returns the limits of the container's own group, which is the root of what it sees."""
    limit = _number(cgroup / "memory.max")
    if limit is None:
        limit = _number(cgroup / "memory" / "memory.limit_in_bytes")
    return Limits(None if limit is None or limit >= _UNLIMITED else limit, _processors(cgroup))


def _processors(cgroup: Path) -> float | None:
    try:
        quota, period = (cgroup / "cpu.max").read_text(encoding="ascii").split()
        return None if quota == "max" else int(quota) / int(period)
    except (OSError, ValueError):
        quota_v1 = _number(cgroup / "cpu" / "cpu.cfs_quota_us")  # -1, which is no number here, is no limit
        period_v1 = _number(cgroup / "cpu" / "cpu.cfs_period_us")
        return quota_v1 / period_v1 if quota_v1 and period_v1 else None


def _number(path: Path) -> int | None:
    try:
        text = path.read_text(encoding="ascii").strip()
    except OSError:
        return None
    return int(text) if text.isdigit() else None
