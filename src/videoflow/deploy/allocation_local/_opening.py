"""Opens the allocator of this host as the engines and the command line use it."""

import socket
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from videoflow.adapters.nvml import read_host
from videoflow.adapters.sqlite import SqliteStore
from videoflow.backends.memory import MemoryRuntimeStore
from videoflow.backends.runtime import RuntimeStore
from videoflow.clock import Clock
from videoflow.deploy.allocation_local._backend import LocalAllocation
from videoflow.deploy.allocation_local._ledger import Ledger
from videoflow.deploy.allocation_local._settings import LocalSettings, Policy
from videoflow.errors import EnvironmentFault, OutputUnwritable, UnobservableState
from videoflow.ids import hash_id
from videoflow.processes import is_alive, this_boot, this_process


def ledger_path(home: Path) -> Path:
    """Returns the ledger of one user on this machine since it was started.

    No holder outlives the start of its machine, and its containers share it: what lies in the ledger of
    another start, or of another machine that shares the folder, says nothing about the devices of this one.
    """
    return home / f"gpus-{hash_id(this_boot() or socket.gethostname())[:16]}.sqlite"


@contextmanager
def open_local(
    home: Path,
    environment: Mapping[str, str],
    clock: Clock,
    policy: str = Policy.STRICT,
    *,
    make: bool = True,
) -> Iterator[LocalAllocation]:
    """Opens the allocator of this host for one user.

    Args:
        home: The user's folder; the ledger is made in it, so that those of two users are apart.
        environment: Of this process: the mask that it inherited.
        clock: Time.
        policy: `strict` or `shared`.
        make: Whether the ledger is made where there is none; without one nothing can be reserved that lasts.

    Raises:
        EnvironmentFault: The ledger cannot be made or read there.
    """
    host = socket.gethostname()
    path = ledger_path(home)
    store = _store(path, clock, make=make)
    settings = LocalSettings.read(host, environment, Policy(policy))
    try:
        yield LocalAllocation(
            settings,
            lambda: read_host(host, clock, links=True),
            Ledger(store, clock, is_alive),
            this_process(),
            clock,
        )
    finally:
        store.close()


def _store(path: Path, clock: Clock, *, make: bool) -> RuntimeStore:
    if not (make or path.exists()):
        return MemoryRuntimeStore(clock)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        return SqliteStore(path, clock)
    except (OSError, OutputUnwritable, UnobservableState) as error:
        raise EnvironmentFault(
            "the ledger of accelerators cannot be opened",
            cause=getattr(error, "cause", "") or str(error),
            where=str(path),
            effect="nothing was started",
            remedy="let VIDEOFLOW_HOME name a folder on a local disk; remove a broken file when nothing runs",
        ) from error
