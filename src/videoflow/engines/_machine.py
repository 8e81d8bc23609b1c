"""What this machine can give: memory, as far as machine and container allow.

Used by the engines before anything is made, and by `videoflow doctor`. It refuses to guess: what cannot be
read is unknown, and the planner then refuses to go on.
"""

import os
from collections.abc import Iterator
from pathlib import Path

from videoflow.backends.outcomes import Known, Observation, Unknown, UnknownReason

_DEFAULT_SHARE = 4
_NO_LIMIT = 1 << 60
_WHOLE_FILE_SYSTEM = Path("/")


def available_bytes(now: float, *, root: Path = _WHOLE_FILE_SYSTEM) -> Observation[int]:
    """Returns the smaller of the machine's available memory and what the container leaves.

    Args:
        now: Monotonic seconds, for the observation.
        root: Where `proc` and `sys` are found.
    """
    machine = _machine_bytes(root)
    if machine is None:
        return Unknown(
            UnknownReason.UNSUPPORTED, now, "this system does not say how much memory is available"
        )
    return Known(min(machine, *_container_bytes(root), _NO_LIMIT), now)


def budget_bytes(asked: int | None, available: Observation[int]) -> int:
    """Returns the memory that frames in flight may use.

    As asked; whether so much may be asked for is the planner's to judge. Else a quarter of what is available,
    rounded down to a power of two, so that the plan that is shown is the plan that is run a moment later.
    """
    if asked is not None:
        return asked
    quarter = available.value // _DEFAULT_SHARE if isinstance(available, Known) else 1 << 30
    return 1 << max(0, quarter.bit_length() - 1)


def processors() -> int:
    """Returns the number of processors that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _machine_bytes(root: Path) -> int | None:
    figures = dict(line.split(":", 1) for line in _lines(root / "proc/meminfo") if ":" in line)
    found = figures.get("MemAvailable")
    return int(found.split()[0]) * 1024 if found else None


def _container_bytes(root: Path) -> Iterator[int]:
    """Yields what each control group leaves that this process is in, by either version of them."""
    for line in _lines(root / "proc/self/cgroup"):
        _, controllers, name = line.split(":", 2)
        if not controllers:
            for mount in ("sys/fs/cgroup", "sys/fs/cgroup/unified"):
                yield from _left(root / mount, name, "memory.max", "memory.current")
        elif "memory" in controllers.split(","):
            mount = "sys/fs/cgroup/memory"
            yield from _left(root / mount, name, "memory.limit_in_bytes", "memory.usage_in_bytes")


def _left(mount: Path, name: str, limit: str, usage: str) -> Iterator[int]:
    """Yields what a group and each one above it leave; in a container the path above may not be there."""
    group = mount / name.strip("/")
    for folder in (group, *group.parents):
        if not folder.is_relative_to(mount):
            return
        most, used = _number(folder / limit), _number(folder / usage)
        if most is not None and used is not None and most < _NO_LIMIT:
            yield max(0, most - used + _reclaimable(folder))


def _reclaimable(group: Path) -> int:
    """Returns what the kernel gives back when memory is short: pages of files that nobody has used lately."""
    figures = dict(line.split(maxsplit=1) for line in _lines(group / "memory.stat") if " " in line)
    return int(figures.get("total_inactive_file", figures.get("inactive_file", 0)))


def _lines(path: Path) -> list[str]:
    try:
        return path.read_text(encoding="ascii").splitlines()
    except OSError:
        return []


def _number(path: Path) -> int | None:
    text = "".join(_lines(path))
    return int(text) if text.isdigit() else None
