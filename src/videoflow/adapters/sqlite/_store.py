"""The runtime store over SQLite: a write-ahead log without fsync, one connection per process.

Used by the local engine and its workers, and by whoever reads a run folder afterwards. It refuses a file of
another application, a file system without a write-ahead log, and a second thread on one connection.
"""

import fcntl
import os
import sqlite3
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from videoflow.backends.capabilities import RuntimeCapabilities
from videoflow.backends.outcomes import Observation, Unknown, UnknownReason, known, unknown
from videoflow.backends.runtime import ABSENT, Change, RuntimeStore, Stored, StoreOutcome
from videoflow.clock import Clock
from videoflow.errors import ContractBroken, OutputUnwritable, UnobservableState

_APPLICATION = 0x5646524E
_SCHEMA = """
CREATE TABLE records (
    version INTEGER PRIMARY KEY AUTOINCREMENT, key BLOB NOT NULL UNIQUE, value BLOB NOT NULL
);
CREATE TABLE logs (name TEXT, number INTEGER, record BLOB NOT NULL, PRIMARY KEY (name, number)) WITHOUT ROWID;
"""
_KEYS_AT_ONCE = 500
_PRIMARY_CODE = 0xFF
_FOR_GOOD = (sqlite3.SQLITE_FULL, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_IOERR)
CAPABILITIES = RuntimeCapabilities(
    adapter="sqlite",
    shared=True,
    survives_process=True,
    survives_power=False,
    atomic_commit=True,
    crosses_hosts=False,
    copies=known(1, 0.0),
)


class SqliteStore(RuntimeStore):
    """Records that survive the processes of a run, but not a loss of power.

    Any thread may call it. A version is the row's number, which is never used twice, so that a key
    deleted and made again has a new one. A disk that is full or cannot be written raises
    `OutputUnwritable` from `commit` and `append`.

    Args:
        path: The file; made when absent, in a folder that exists.
        clock: For deadlines.

    Raises:
        OutputUnwritable: The file cannot be made or opened here.
        UnobservableState: The file is not a run's record file.
    """

    def __init__(self, path: Path, clock: Clock) -> None:
        self._path = path
        self._clock = clock
        self._lock = threading.Lock()
        try:
            with _folder_locked(path.parent):
                self._connection = _opened(path)
        except (OSError, sqlite3.OperationalError) as error:
            raise OutputUnwritable(
                "the run records cannot be opened",
                cause=str(error),
                where=str(path),
                effect="nothing was started",
                remedy="use a folder on a local disk that this user may write to",
            ) from error
        except sqlite3.DatabaseError as error:
            raise UnobservableState(
                "the run records cannot be read", cause=str(error), where=str(path), remedy="remove the file"
            ) from error

    def capabilities(self) -> RuntimeCapabilities:
        """Returns what one SQLite file without fsync guarantees."""
        return CAPABILITIES

    def get(self, keys: Sequence[str], *, deadline: float) -> Observation[dict[str, Stored]]:
        """Returns those of the keys that exist."""
        found: dict[str, Stored] = {}
        try:
            with self._transaction("BEGIN", deadline):
                for start in range(0, len(keys), _KEYS_AT_ONCE):
                    part = [key.encode() for key in keys[start : start + _KEYS_AT_ONCE]]
                    marks = ",".join("?" * len(part))
                    query = f"SELECT key, value, version FROM records WHERE key IN ({marks})"
                    found |= _stored(self._connection.execute(query, part))
        except sqlite3.Error as error:
            return self._unknown(error)
        return known(found, self._clock.monotonic())

    def scan(self, prefix: str, *, deadline: float) -> Observation[dict[str, Stored]]:
        """Returns all keys that begin with `prefix`, in ascending order of key."""
        low = prefix.encode()
        query = "SELECT key, value, version FROM records WHERE key >= ? AND key < ? ORDER BY key"
        try:
            with self._transaction("BEGIN", deadline):
                found = _stored(self._connection.execute(query, (low, low + b"\xff")))
        except sqlite3.Error as error:
            return self._unknown(error)
        return known(found, self._clock.monotonic())

    def commit(self, changes: Sequence[Change], *, deadline: float) -> StoreOutcome:
        """Applies all changes or none; expected versions are those before the first change.

        Raises:
            ContractBroken: One key twice.
        """
        if len({change.key for change in changes}) < len(changes):
            raise ContractBroken("one commit changes a key twice")
        try:
            with self._transaction("BEGIN IMMEDIATE", deadline):
                if not all(self._expected(change) for change in changes):
                    return StoreOutcome.CONFLICT
                for change in changes:
                    self._apply(change)
        except sqlite3.Error as error:
            self._refuse_for_good(error)
            return StoreOutcome.UNKNOWN
        return StoreOutcome.COMMITTED

    def append(self, log: str, records: Sequence[bytes], *, deadline: float) -> StoreOutcome:
        """Appends records to a log, in order."""
        try:
            with self._transaction("BEGIN IMMEDIATE", deadline):
                query = "SELECT COALESCE(MAX(number), 0) FROM logs WHERE name = ?"
                (last,) = self._connection.execute(query, (log,)).fetchone()
                rows = ((log, last + n, record) for n, record in enumerate(records, 1))
                self._connection.executemany("INSERT INTO logs VALUES (?, ?, ?)", rows)
        except sqlite3.Error as error:
            self._refuse_for_good(error)
            return StoreOutcome.UNKNOWN
        return StoreOutcome.COMMITTED

    def _refuse_for_good(self, error: sqlite3.Error) -> None:
        """Raises for what sending the same again cannot heal; SQLite has rolled back by then."""
        if getattr(error, "sqlite_errorcode", 0) & _PRIMARY_CODE in _FOR_GOOD:
            raise OutputUnwritable(
                "the run records cannot be written",
                cause=str(error),
                where=str(self._path),
                effect="what was not recorded does not count as done",
                remedy="make room there, or name another folder with --run-dir or VIDEOFLOW_HOME",
            ) from error

    def read_log(self, log: str, after: int, *, deadline: float) -> Observation[list[tuple[int, bytes]]]:
        """Returns (number, record) of a log after a number; numbers ascend from 1."""
        query = "SELECT number, record FROM logs WHERE name = ? AND number > ? ORDER BY number"
        try:
            with self._transaction("BEGIN", deadline):
                found = [(number, record) for number, record in self._connection.execute(query, (log, after))]
        except sqlite3.Error as error:
            return self._unknown(error)
        return known(found, self._clock.monotonic())

    def close(self) -> None:
        """Ends the use of the store; what was committed stays."""
        with self._lock:
            self._connection.close()

    @contextmanager
    def _transaction(self, begin: str, deadline: float) -> Iterator[None]:
        seconds = deadline - self._clock.monotonic()
        if not self._lock.acquire(timeout=min(max(0.0, seconds), threading.TIMEOUT_MAX)):
            raise sqlite3.OperationalError("another thread uses the connection")
        try:
            left = min(max(0.0, deadline - self._clock.monotonic()), 2e6)
            self._connection.execute(f"PRAGMA busy_timeout = {int(left * 1000)}")
            self._connection.execute(begin)
            try:
                yield
                self._connection.execute("COMMIT")
            finally:
                if self._connection.in_transaction:
                    self._connection.execute("ROLLBACK")
        finally:
            self._lock.release()

    def _expected(self, change: Change) -> bool:
        if change.expected is None:
            return True
        row = self._connection.execute(
            "SELECT version FROM records WHERE key = ?", (change.key.encode(),)
        ).fetchone()
        return change.expected == (ABSENT if row is None else str(row[0]))

    def _apply(self, change: Change) -> None:
        key = change.key.encode()
        if change.value is None:
            self._connection.execute("DELETE FROM records WHERE key = ?", (key,))
        else:
            self._connection.execute("REPLACE INTO records (key, value) VALUES (?, ?)", (key, change.value))

    def _unknown(self, error: sqlite3.Error) -> Unknown:
        return unknown(_reason(error), self._clock.monotonic(), str(error))


def _reason(error: sqlite3.Error) -> UnknownReason:
    if isinstance(error, sqlite3.OperationalError):
        return (
            UnknownReason.TIMEOUT
            if "lock" in str(error) or "thread" in str(error)
            else UnknownReason.UNREACHABLE
        )
    return (
        UnknownReason.UNREACHABLE if isinstance(error, sqlite3.ProgrammingError) else UnknownReason.MALFORMED
    )


def _stored(rows: sqlite3.Cursor) -> dict[str, Stored]:
    return {key.decode(): Stored(bytes(value), str(version)) for key, value, version in rows}


@contextmanager
def _folder_locked(folder: Path) -> Iterator[None]:
    """Lets one process at a time make the file: SQLite does not wait while the journal mode changes."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def _opened(path: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(path, timeout=5.0, isolation_level=None, check_same_thread=False)
    try:
        (mode,) = connection.execute("PRAGMA journal_mode = WAL").fetchone()
        if mode != "wal":
            raise sqlite3.OperationalError(f"a write-ahead log is not possible here (journal mode {mode})")
        connection.execute("PRAGMA synchronous = OFF")
        (application,) = connection.execute("PRAGMA application_id").fetchone()
        if application == 0:
            connection.executescript(
                f"BEGIN IMMEDIATE; {_SCHEMA} PRAGMA application_id = {_APPLICATION}; COMMIT;"
            )
        elif application != _APPLICATION:
            raise sqlite3.DatabaseError("it belongs to another application")
    except sqlite3.Error:
        connection.close()
        raise
    return connection
