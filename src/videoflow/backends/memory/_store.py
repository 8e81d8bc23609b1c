"""The runtime store in one process: a dictionary, with the versions and the refusals of a real one.

Used by the threads engine and by tests of whatever keeps records. It refuses a commit that changes a key
twice; a version that is not the standing one is an outcome, not an error.
"""

import threading
from collections.abc import Sequence

from videoflow.backends.capabilities import RuntimeCapabilities
from videoflow.backends.outcomes import Observation, known
from videoflow.backends.runtime import ABSENT, Change, RuntimeStore, Stored, StoreOutcome
from videoflow.clock import Clock
from videoflow.errors import ContractBroken


class MemoryRuntimeStore(RuntimeStore):
    """Versioned keys and append logs that end with the process; shared by all threads that hold it."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._values: dict[str, Stored] = {}
        self._logs: dict[str, list[bytes]] = {}
        self._version = 0

    def capabilities(self) -> RuntimeCapabilities:
        """Returns what memory guarantees: atomic commits, for this process only."""
        return RuntimeCapabilities(
            adapter="memory",
            shared=False,
            survives_process=False,
            survives_power=False,
            atomic_commit=True,
            crosses_hosts=False,
            copies=known(1, self._clock.monotonic()),
        )

    def get(self, keys: Sequence[str], *, deadline: float) -> Observation[dict[str, Stored]]:
        """Returns those of the keys that exist."""
        with self._lock:
            found = {key: self._values[key] for key in keys if key in self._values}
        return known(found, self._clock.monotonic())

    def scan(self, prefix: str, *, deadline: float) -> Observation[dict[str, Stored]]:
        """Returns all keys that begin with `prefix`, in ascending order of key."""
        with self._lock:
            names = [key for key in self._values if key.startswith(prefix)]
            found = {key: self._values[key] for key in sorted(names)}
        return known(found, self._clock.monotonic())

    def commit(self, changes: Sequence[Change], *, deadline: float) -> StoreOutcome:
        """Applies all changes or none.

        Raises:
            ContractBroken: One key twice.
        """
        if len({change.key for change in changes}) < len(changes):
            raise ContractBroken("one commit changes a key twice")
        with self._lock:
            for change in changes:
                stored = self._values.get(change.key)
                version = ABSENT if stored is None else stored.version
                if change.expected not in (None, version):
                    return StoreOutcome.CONFLICT
            self._version += 1
            for change in changes:
                if change.value is None:
                    self._values.pop(change.key, None)
                else:
                    self._values[change.key] = Stored(bytes(change.value), str(self._version))
        return StoreOutcome.COMMITTED

    def append(self, log: str, records: Sequence[bytes], *, deadline: float) -> StoreOutcome:
        """Appends records to a log, in order."""
        with self._lock:
            self._logs.setdefault(log, []).extend(map(bytes, records))
        return StoreOutcome.COMMITTED

    def read_log(self, log: str, after: int, *, deadline: float) -> Observation[list[tuple[int, bytes]]]:
        """Returns (number, record) of a log after a number; numbers ascend from 1."""
        with self._lock:
            records = self._logs.get(log, [])[max(0, after) :]
        return known(list(enumerate(records, start=max(0, after) + 1)), self._clock.monotonic())

    def close(self) -> None:
        """Ends the use; what was committed stays as long as the object."""
