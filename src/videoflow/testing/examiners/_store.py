"""The examiner of the runtime store."""

import threading
from abc import abstractmethod
from collections.abc import Mapping
from typing import Any

import pytest

from videoflow.backends.outcomes import Known, Observation
from videoflow.backends.runtime import ABSENT, Change, RuntimeStore, Stored, StoreOutcome
from videoflow.clock import Clock
from videoflow.errors import ContractBroken
from videoflow.testing.examiners import _runtime_laws as laws
from videoflow.testing.examiners._examiner import PATIENCE_SECONDS, Examiner, Subject
from videoflow.testing.examiners._law import law

COMMITTED, CONFLICT = StoreOutcome.COMMITTED, StoreOutcome.CONFLICT
_COUNT = 15
_THREADS = 3
_MANY = 1200


class StoreSubject(Subject):
    """A runtime store under test.

    Attributes:
        clock: For deadlines.
        store: The store, empty.
    """

    clock: Clock
    store: RuntimeStore

    @abstractmethod
    def another(self) -> RuntimeStore:
        """Returns a second object on the same records, as another process has; closed with the subject.

        Where neither `shared` nor `survives_process` is claimed it is not called.
        """

    @abstractmethod
    def raw(self) -> Mapping[str, bytes]:
        """Returns key → value as they lie in the store, by other means than the object under test."""

    def soon(self) -> float:
        """Returns a deadline that is far enough for whatever must happen."""
        return self.clock.monotonic() + PATIENCE_SECONDS

    # Shorthands -------------------------------------------------------------------------------

    def commit(self, *changes: Change) -> StoreOutcome:
        """Commits."""
        return self.store.commit(changes, deadline=self.soon())

    def values(self, *keys: str) -> dict[str, bytes]:
        """Returns the values of keys, all known."""
        return _plain(self.store.get(keys, deadline=self.soon()))

    def scanned(self, prefix: str = "") -> dict[str, bytes]:
        """Returns the values below a prefix, in order."""
        return _plain(self.store.scan(prefix, deadline=self.soon()))

    def version(self, key: str) -> str:
        """Returns the version of a key, or `ABSENT`."""
        observed = self.store.get([key], deadline=self.soon())
        assert isinstance(observed, Known), observed
        return observed.value[key].version if key in observed.value else ABSENT

    def records(self, log: str, after: int = 0) -> list[tuple[int, bytes]]:
        """Returns a log."""
        observed = self.store.read_log(log, after, deadline=self.soon())
        assert isinstance(observed, Known), observed
        return observed.value


def _plain(observed: Observation[dict[str, Stored]]) -> dict[str, bytes]:
    assert isinstance(observed, Known), observed
    return {key: bytes(stored.value) for key, stored in observed.value.items()}


class RuntimeStoreExaminer(Examiner[StoreSubject]):
    """Every law of `RuntimeStore`; inherit in a class whose name begins with `Test`."""

    @law(laws.READS)
    def test_what_is_committed_is_read(self, subject: StoreSubject) -> None:
        changes = [Change("a/1", b"one"), Change("a/2", b""), Change("b", b"b\0\xff")]
        assert subject.commit(*changes) is COMMITTED
        assert subject.values("a/1", "a/2", "none") == {"a/1": b"one", "a/2": b""}
        assert subject.scanned() == {"a/1": b"one", "a/2": b"", "b": b"b\0\xff"}

    @law(laws.READS)
    def test_a_prefix_means_its_own_letters(self, subject: StoreSubject) -> None:
        keys = ["a_b/1", "axb/1", "a%/1", "A_b/1", "a_b/\u00e9", "a*/1", "a[x]/1"]
        subject.commit(*(Change(key, b"") for key in keys))
        assert list(subject.scanned("a_b/")) == ["a_b/1", "a_b/\u00e9"]
        for prefix in ("a%", "a*", "a[x]"):
            assert list(subject.scanned(prefix)) == [f"{prefix}/1"]

    @law(laws.READS)
    def test_a_scan_takes_exactly_the_prefix_in_ascending_order(self, subject: StoreSubject) -> None:
        keys = ["run/1/b", "run/1/a", "run/1/\u00e9", "run/1/\U0010ffff", "run/10", "run/2", "run/1"]
        subject.commit(*(Change(key, b"") for key in keys))
        assert list(subject.scanned("run/1/")) == sorted(keys[:4])

    @law(laws.READS)
    def test_many_keys_are_read_at_once(self, subject: StoreSubject) -> None:
        keys = [f"k{n}" for n in range(_MANY)]
        assert subject.commit(*(Change(key, key.encode()) for key in keys)) is COMMITTED
        assert len(subject.values(*keys)) == _MANY

    @law(laws.READS)
    def test_a_delete_deletes(self, subject: StoreSubject) -> None:
        subject.commit(Change("a", b"1"))
        assert subject.commit(Change("a", None), Change("never", None)) is COMMITTED
        assert subject.values("a") == {}
        assert "a" not in subject.raw()
        assert subject.commit(Change("a", b"2", ABSENT)) is COMMITTED

    @law(laws.ALL_OR_NONE)
    def test_all_or_nothing_under_the_expected_versions(self, subject: StoreSubject) -> None:
        subject.commit(Change("a", b"1"))
        old = subject.version("a")
        assert subject.commit(Change("a", b"2", old)) is COMMITTED
        for wrong in (
            [Change("b", b"x"), Change("a", b"3", old)],
            [Change("b", b"x"), Change("a", b"3", ABSENT)],
            [Change("b", b"x", old)],
            [Change("a", None, old), Change("b", b"x")],
            [Change("b", b"x", ABSENT), Change("c", b"y", ABSENT), Change("a", None, ABSENT)],
        ):
            assert subject.commit(*wrong) is CONFLICT
        assert subject.scanned() == {"a": b"2"}
        assert dict(subject.raw()) == {"a": b"2"}

    @law(laws.ALL_OR_NONE)
    def test_expected_versions_are_those_before_the_commit(self, subject: StoreSubject) -> None:
        subject.commit(Change("a", b"1"), Change("b", b"1"))
        a, b = subject.version("a"), subject.version("b")
        assert (
            subject.commit(Change("a", b"2", a), Change("b", None, b), Change("c", b"3", ABSENT)) is COMMITTED
        )
        assert subject.scanned() == {"a": b"2", "c": b"3"}

    @law(laws.VERSIONS)
    def test_a_version_is_never_used_again(self, subject: StoreSubject) -> None:
        seen = []
        for _ in range(3):
            subject.commit(Change("a", b"1"))
            seen.append(subject.version("a"))
            subject.commit(Change("a", None))
        assert len(set(seen)) == 3
        assert ABSENT not in seen
        subject.commit(Change("a", b"1"))
        assert [subject.commit(Change("a", b"2", old)) for old in seen] == [CONFLICT] * 3

    @law(laws.VERSIONS)
    def test_writing_the_same_value_is_a_change(self, subject: StoreSubject) -> None:
        subject.commit(Change("a", b"1"))
        old = subject.version("a")
        subject.commit(Change("a", b"1"))
        assert subject.commit(Change("a", b"2", old)) is CONFLICT

    @law(laws.ONE_WINS)
    def test_of_many_at_once_one_wins_each_time(self, subject: StoreSubject) -> None:
        subject.commit(Change("n", b"0"), Change("twin", b"0"))
        torn: list[dict[str, bytes]] = []

        def count() -> None:
            done = 0
            while done < _COUNT:
                observed = subject.store.get(["n", "twin"], deadline=subject.soon())
                assert isinstance(observed, Known)
                found = observed.value
                if found["n"].value != found["twin"].value:
                    torn.append(_plain(observed))
                number = str(int(found["n"].value) + 1).encode()
                changes = [Change("n", number, found["n"].version), Change("twin", number)]
                done += subject.store.commit(changes, deadline=subject.soon()) is COMMITTED

        threads = [threading.Thread(target=count, daemon=True) for _ in range(_THREADS)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(PATIENCE_SECONDS)
        assert torn == []
        assert subject.values("n") == {"n": str(_COUNT * _THREADS).encode()}

    @law(laws.LOGS)
    def test_a_log_is_read_in_order_after_a_number(self, subject: StoreSubject) -> None:
        for log, records in (("log", [b"one", b"two"]), ("other", [b"x"]), ("log", [b""]), ("log", [])):
            assert subject.store.append(log, records, deadline=subject.soon()) is COMMITTED
        assert subject.records("log") == [(1, b"one"), (2, b"two"), (3, b"")]
        assert subject.records("log", 2) == [(3, b"")]
        assert subject.records("log", 3) == subject.records("none") == []
        assert subject.records("other") == [(1, b"x")]
        assert subject.scanned() == {}

    @law(laws.KEEPS)
    def test_what_is_committed_lies_in_the_store(self, subject: StoreSubject) -> None:
        assert dict(subject.raw()) == {}
        subject.commit(Change("a", b"1"), Change("b", b"2"))
        subject.commit(Change("a", b"3", subject.version("a")), Change("b", None))
        assert dict(subject.raw()) == {"a": b"3"}

    @law(laws.KEEPS)
    def test_what_is_handed_in_and_out_is_a_copy(self, subject: StoreSubject) -> None:
        buffer: Any = bytearray(b"1")  # no bytes, but what a careless caller may hand in
        subject.commit(Change("a", buffer))
        buffer[:] = b"2"
        observed = subject.store.get(["a"], deadline=subject.soon())
        assert isinstance(observed, Known)
        observed.value.clear()
        assert subject.values("a") == {"a": b"1"}

    @law(laws.KEEPS)
    def test_another_process_sees_what_was_committed_where_that_is_claimed(
        self, subject: StoreSubject
    ) -> None:
        if not subject.store.capabilities().shared:
            return
        subject.commit(Change("a", b"1"))
        other = subject.another()
        assert _plain(other.scan("", deadline=subject.soon())) == {"a": b"1"}
        assert other.commit([Change("a", b"2", subject.version("a"))], deadline=subject.soon()) is COMMITTED
        assert subject.values("a") == {"a": b"2"}
        assert other.append("log", [b"theirs"], deadline=subject.soon()) is COMMITTED
        assert subject.store.append("log", [b"mine"], deadline=subject.soon()) is COMMITTED
        assert subject.records("log") == [(1, b"theirs"), (2, b"mine")]

    @law(laws.KEEPS)
    def test_what_was_committed_survives_its_process_where_that_is_claimed(
        self, subject: StoreSubject
    ) -> None:
        if not subject.store.capabilities().survives_process:
            return
        subject.commit(Change("a", b"1"))
        version = subject.version("a")
        subject.store.append("log", [b"one"], deadline=subject.soon())
        subject.store.close()
        again = subject.another()
        assert _plain(again.scan("", deadline=subject.soon())) == {"a": b"1"}
        assert again.commit([Change("a", None, version)], deadline=subject.soon()) is COMMITTED
        assert again.commit([Change("a", b"2", ABSENT)], deadline=subject.soon()) is COMMITTED
        assert again.commit([Change("a", b"3", version)], deadline=subject.soon()) is CONFLICT
        observed = again.read_log("log", 0, deadline=subject.soon())
        assert isinstance(observed, Known)
        assert observed.value == [(1, b"one")]

    @law(laws.REFUSES)
    def test_one_key_twice_is_refused_and_nothing_of_it_is_done(self, subject: StoreSubject) -> None:
        with pytest.raises(ContractBroken):
            subject.commit(Change("a", b"1"), Change("b", b"1"), Change("a", b"2"))
        assert subject.scanned() == {}
        assert subject.commit() is COMMITTED
