"""Facts of the machine and of what was measured on it, for the head of a result."""

import hashlib
import os
import platform
import subprocess
from importlib.metadata import version
from pathlib import Path

from benchmarks.environments import ENVIRONMENTS, versions, why_not
from benchmarks.measuring import ROOT

FLOOR_FILES = ("floor.py", "work.py")


def floor_hash() -> str:
    """Returns the SHA-256 of the committed floor, in hexadecimal."""
    digest = hashlib.sha256()
    for name in FLOOR_FILES:
        digest.update((ROOT / "benchmarks" / name).read_bytes())
    return digest.hexdigest()


def pin(cores: int) -> list[int]:
    """Confines this process, and all that it starts, to so many cores; returns which."""
    chosen = sorted(os.sched_getaffinity(0))[:cores]
    os.sched_setaffinity(0, chosen)
    return chosen


def load() -> str:
    """Returns the load averages over 1, 5 and 15 minutes."""
    return ", ".join(f"{value:.1f}" for value in os.getloadavg())


def facts(cores: list[int]) -> dict[str, str]:
    """Returns what a reader needs to judge the figures."""
    peers = sorted({text for name in ENVIRONMENTS if not why_not(name) for text in versions(name)})
    return {
        "processor": f"{_processor()}, {os.cpu_count()} cores; contenders pinned to {cores}",
        "memory": f"{os.sysconf('SC_PAGE_SIZE') * os.sysconf('SC_PHYS_PAGES') / 2**30:.0f} GiB",
        "system": f"{platform.system()} {platform.release()}, Python {platform.python_version()}",
        "libraries": ", ".join(f"{name} {version(name)}" for name in ("numpy", "msgspec")),
        "peers": ", ".join(peers) or "none set up",
        "commit": _commit(),
        "floor": f"sha256 {floor_hash()} of {' and '.join(FLOOR_FILES)}",
        "niceness": str(os.nice(0)),
        "load before": load(),
    }


def _processor() -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.machine()


def _commit() -> str:
    command = ["git", "-C", str(ROOT), "describe", "--always", "--dirty", "--abbrev=12"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return done.stdout.strip() or "unknown"
