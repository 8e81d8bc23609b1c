"""Runtime stores as subjects: memory, and one SQLite file."""

import sqlite3
import tempfile
from collections.abc import Mapping
from pathlib import Path

from videoflow.adapters.sqlite import SqliteStore
from videoflow.backends.memory import MemoryRuntimeStore
from videoflow.backends.runtime import RuntimeStore
from videoflow.clock import RealClock
from videoflow.testing.examiners import StoreSubject


class MemoryStoreSubject(StoreSubject):
    """A dictionary in this process."""

    def __init__(self) -> None:
        self.clock = RealClock()
        self.store = self.memory = MemoryRuntimeStore(self.clock)

    def another(self) -> RuntimeStore:
        raise AssertionError("memory is neither shared nor durable")

    def raw(self) -> Mapping[str, bytes]:
        return {key: stored.value for key, stored in self.memory._values.items()}

    def close(self) -> None:
        self.store.close()


class SqliteStoreSubject(StoreSubject):
    """A file in a folder of its own."""

    def __init__(self) -> None:
        self.clock = RealClock()
        self._folder = tempfile.TemporaryDirectory()
        self.path = Path(self._folder.name) / "run.sqlite"
        self._opened: list[RuntimeStore] = []
        self.store = self.another()

    def another(self) -> RuntimeStore:
        self._opened.append(SqliteStore(self.path, self.clock))
        return self._opened[-1]

    def raw(self) -> Mapping[str, bytes]:
        connection = sqlite3.connect(f"file:{self.path}?mode=ro", uri=True)
        try:
            rows = connection.execute("SELECT key, value FROM records").fetchall()
        finally:
            connection.close()
        return {bytes(key).decode(): bytes(value) for key, value in rows}

    def close(self) -> None:
        for store in self._opened:
            store.close()
        self._folder.cleanup()
