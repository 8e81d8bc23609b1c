"""Hosts as the driver would describe them, and allocators on them that share a ledger."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from videoflow.adapters.nvml import DeviceReading, HostReading, Using
from videoflow.adapters.sqlite import SqliteStore
from videoflow.backends.allocation import DeviceIdentity, HostSharing, Sharing, WorkloadRequest
from videoflow.backends.outcomes import Observation, known
from videoflow.clock import RealClock
from videoflow.deploy.allocation_local import Ledger, LocalAllocation, LocalSettings
from videoflow.placement import Link
from videoflow.processes import ProcessIdentity

GIB = 1 << 30
HOST = "here"
PLACE = "boot/space"


def gpu(number: int, memory_bytes: int | None = 80 * GIB, product: str = "H100") -> DeviceReading:
    """An idle GPU."""
    identity = DeviceIdentity(HOST, number, f"GPU-{number}", None, product, memory_bytes)
    return DeviceReading(identity, used_bytes=0, users=())


def cut(whole: DeviceReading, *profiles: tuple[str, int]) -> list[DeviceReading]:
    """A GPU in MIG mode, and its slices: (profile, bytes)."""
    found = [replace(whole, partitioned=True)]
    for number, (profile, size_bytes) in enumerate(profiles):
        identity = replace(
            whole.identity,
            mig_uuid=f"MIG-{whole.identity.ordinal}-{number}",
            mig_profile=profile,
            memory_bytes=size_bytes,
        )
        found.append(replace(whole, identity=identity, sharing=HostSharing.MIG))
    return found


def used(device: DeviceReading, size_bytes: int, *pids: int) -> DeviceReading:
    """The device with memory in use, by these processes."""
    users = tuple(Using(pid, size_bytes // len(pids)) for pid in pids)
    return replace(device, used_bytes=size_bytes, users=users)


class Machine:
    """A host whose readings a test changes, with one ledger; processes live until they are said dead."""

    def __init__(self, folder: Path, *devices: DeviceReading, links: tuple[Link, ...] = ()) -> None:
        self.devices = list(devices)
        self.links = links
        self.answer: Observation[HostReading] | None = None
        self.before_look: Callable[[], None] = lambda: None
        self.dead: set[int] = set()
        self._path = folder / "gpus.sqlite"
        self._clock = RealClock()
        self._stores: list[SqliteStore] = []

    def allocator(self, pid: int = 1_000_001, **settings: Any) -> LocalAllocation:
        """An allocator in a process of this number."""
        store = SqliteStore(self._path, self._clock)
        self._stores.append(store)
        ledger = Ledger(store, self._clock, lambda holder: holder.pid not in self.dead)
        chosen = replace(LocalSettings(HOST), **settings)
        return LocalAllocation(chosen, self._look, ledger, ProcessIdentity(pid=pid, place=PLACE), self._clock)

    def close(self) -> None:
        """Closes every ledger."""
        for store in self._stores:
            store.close()

    def _look(self) -> Observation[HostReading]:
        self.before_look()
        if self.answer is not None:
            return self.answer
        return known(HostReading(tuple(self.devices), self.links, driver="570"), self._clock.monotonic())


def asks(name: str, sharing: Sharing = Sharing.EXCLUSIVE, **more: Any) -> WorkloadRequest:
    """A request."""
    return WorkloadRequest("flow", "run", name, sharing=sharing, **more)
