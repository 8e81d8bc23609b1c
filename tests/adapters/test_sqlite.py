"""The SQLite store: all or none, versions never reused, several processes, truthful when it cannot."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TypeVar

import pytest

from videoflow.adapters.sqlite import SqliteStore
from videoflow.backends.outcomes import Known, Observation, Unknown, UnknownReason
from videoflow.backends.runtime import Change, StoreOutcome
from videoflow.clock import RealClock
from videoflow.errors import OutputUnwritable, UnobservableState

T = TypeVar("T")
CLOCK = RealClock()


def soon() -> float:
    return CLOCK.monotonic() + 20.0


def value(observed: Observation[T]) -> T:
    assert isinstance(observed, Known)
    return observed.value


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "run.sqlite"


@pytest.fixture
def store(path: Path) -> Iterator[SqliteStore]:
    made = SqliteStore(path, CLOCK)
    yield made
    made.close()


def test_a_full_disk_is_said_so_and_is_nothing_to_try_again(store: SqliteStore, path: Path) -> None:
    store.commit([Change("kept", b"1")], deadline=soon())
    store._connection.execute("PRAGMA max_page_count = 30")
    large = [Change(f"key {number}", bytes(4096)) for number in range(100)]
    with pytest.raises(OutputUnwritable, match="cannot be written") as refusal:
        store.commit(large, deadline=soon())
    assert (refusal.value.where, refusal.value.exit_status) == (str(path), 3)
    assert value(store.get(["kept"], deadline=soon()))["kept"].value == b"1"


def test_a_held_lock_is_unknown_at_the_deadline_and_reads_go_on(path: Path, store: SqliteStore) -> None:
    other = SqliteStore(path, CLOCK)
    with other._transaction("BEGIN IMMEDIATE", soon()):
        past = CLOCK.monotonic() - 1
        assert store.commit([Change("a", b"1")], deadline=past) is StoreOutcome.UNKNOWN
        assert store.append("x", [b"1"], deadline=past) is StoreOutcome.UNKNOWN
        assert value(store.scan("", deadline=past)) == {}
    other.close()
    assert store.commit([Change("a", b"1")], deadline=past) is StoreOutcome.COMMITTED


def test_a_busy_connection_and_a_closed_one_are_unknown(path: Path) -> None:
    store = SqliteStore(path, CLOCK)
    with store._lock:
        seen = store.get(["a"], deadline=CLOCK.monotonic())
    assert isinstance(seen, Unknown)
    assert seen.reason is UnknownReason.TIMEOUT
    store.close()
    assert isinstance(store.get(["a"], deadline=soon()), Unknown)
    assert store.commit([Change("a", b"")], deadline=soon()) is StoreOutcome.UNKNOWN


CHILD = """
import os, signal, sys
from pathlib import Path
from videoflow.adapters.sqlite import SqliteStore
from videoflow.backends.runtime import ABSENT, Change, StoreOutcome
from videoflow.clock import RealClock
clock = RealClock()
store = SqliteStore(Path(sys.argv[1]), clock)
done = 0
while done < 20:
    stored = store.get(["n"], deadline=clock.monotonic() + 20).value.get("n")
    number = int(stored.value) if stored else 0
    next_number = Change("n", b"%d" % (number + 1), stored.version if stored else ABSENT)
    changes = [next_number, Change(f"seen/{number}", b"")]
    done += store.commit(changes, deadline=clock.monotonic() + 20) is StoreOutcome.COMMITTED
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_processes_make_one_file_at_once_count_without_losing_and_are_killed(path: Path) -> None:
    children = [subprocess.Popen([sys.executable, "-c", CHILD, str(path)]) for _ in range(3)]
    assert [child.wait(timeout=50) for child in children] == [-9, -9, -9]
    store = SqliteStore(path, CLOCK)
    found = value(store.scan("", deadline=soon()))
    assert found["n"].value == b"60"
    assert len(found) == 61
    store.close()


def test_what_is_not_a_record_file_is_refused_and_kept(path: Path) -> None:
    path.write_bytes(b"a video, perhaps" * 64)
    with pytest.raises(UnobservableState):
        SqliteStore(path, CLOCK)
    assert path.read_bytes() == b"a video, perhaps" * 64


def test_a_folder_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(OutputUnwritable) as refused:
        SqliteStore(tmp_path / "none" / "run.sqlite", CLOCK)
    assert "none" in refused.value.where


def test_it_claims_processes_but_neither_power_nor_hosts(store: SqliteStore) -> None:
    claims = store.capabilities()
    assert (claims.shared, claims.survives_process, claims.atomic_commit) == (True, True, True)
    assert (claims.survives_power, claims.crosses_hosts) == (False, False)
