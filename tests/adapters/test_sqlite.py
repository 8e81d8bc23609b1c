"""The SQLite store: all or none, versions never reused, several processes, truthful when it cannot."""

import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import TypeVar

import pytest

from tests.backends.store_suite import StoreSuite
from videoflow.adapters.sqlite import SqliteStore
from videoflow.backends.outcomes import Known, Observation, Unknown, UnknownReason
from videoflow.backends.runtime import ABSENT, Change, FlowRuntime, StoreOutcome
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


class TestLaws(StoreSuite):
    """The laws of every store."""


def test_a_commit_applies_all_or_none(store: SqliteStore) -> None:
    store.commit([Change("a", b"1")], deadline=soon())
    outcome = store.commit([Change("b", b"2"), Change("a", b"3", ABSENT)], deadline=soon())
    assert outcome is StoreOutcome.CONFLICT
    assert {k: s.value for k, s in value(store.scan("", deadline=soon())).items()} == {"a": b"1"}


def test_a_full_disk_is_said_so_and_is_nothing_to_try_again(store: SqliteStore, path: Path) -> None:
    store.commit([Change("kept", b"1")], deadline=soon())
    store._connection.execute("PRAGMA max_page_count = 30")
    large = [Change(f"key {number}", bytes(4096)) for number in range(100)]
    with pytest.raises(OutputUnwritable, match="cannot be written") as refusal:
        store.commit(large, deadline=soon())
    assert (refusal.value.where, refusal.value.exit_status) == (str(path), 3)
    assert value(store.get(["kept"], deadline=soon()))["kept"].value == b"1"


def test_a_version_is_never_used_twice(store: SqliteStore) -> None:
    store.commit([Change("a", b"1", ABSENT)], deadline=soon())
    old = value(store.get(["a"], deadline=soon()))["a"].version
    store.commit([Change("a", None, old)], deadline=soon())
    store.commit([Change("a", b"1", ABSENT)], deadline=soon())
    assert store.commit([Change("a", b"2", old)], deadline=soon()) is StoreOutcome.CONFLICT
    new = value(store.get(["a"], deadline=soon()))["a"].version
    assert store.commit([Change("a", b"2", new)], deadline=soon()) is StoreOutcome.COMMITTED


def test_scan_takes_exactly_the_prefix_in_order(store: SqliteStore) -> None:
    names = ["run/1/b", "run/1/a", "run/1/é", "run/1/\U0010ffff", "run/10", "run/2"]
    store.commit([Change(name, b"") for name in names], deadline=soon())
    found = value(store.scan("run/1/", deadline=soon()))
    assert list(found) == sorted(names[:4])


def test_get_takes_more_keys_than_one_query_holds(store: SqliteStore) -> None:
    names = [f"k{n}" for n in range(1700)]
    store.commit([Change(name, name.encode()) for name in names], deadline=soon())
    assert len(value(store.get(names, deadline=soon()))) == 1700


def test_logs_are_numbered_from_one_each(store: SqliteStore) -> None:
    store.append("x", [b"a", b"b"], deadline=soon())
    store.append("y", [b"c"], deadline=soon())
    store.append("x", [b"d"], deadline=soon())
    assert value(store.read_log("x", 1, deadline=soon())) == [(2, b"b"), (3, b"d")]
    assert value(store.read_log("y", 0, deadline=soon())) == [(1, b"c")]


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


def test_threads_count_without_losing(store: SqliteStore) -> None:
    def count() -> None:
        done = 0
        while done < 25:
            stored = value(store.get(["n"], deadline=soon())).get("n")
            number = int(stored.value) if stored else 0
            change = Change("n", str(number + 1).encode(), stored.version if stored else ABSENT)
            done += store.commit([change], deadline=soon()) is StoreOutcome.COMMITTED

    threads = [threading.Thread(target=count) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert value(store.get(["n"], deadline=soon()))["n"].value == b"75"


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


def test_the_flow_runtime_finds_what_a_closed_store_committed(path: Path) -> None:
    store = SqliteStore(path, CLOCK)
    assert FlowRuntime(store, "r").acquire_epoch("track", 0, deadline=soon()) == 1
    store.close()
    again = SqliteStore(path, CLOCK)
    assert FlowRuntime(again, "r").acquire_epoch("track", 0, deadline=soon()) == 2
    again.close()


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
