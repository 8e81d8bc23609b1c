"""Laws of a runtime store; a test class inherits `StoreSuite` and has a fixture `store`."""

import threading

from videoflow.backends.outcomes import Known, Observation
from videoflow.backends.runtime import ABSENT, Change, RuntimeStore, Stored, StoreOutcome

SOON = 10.0**9


def _known(observed: Observation[dict[str, Stored]]) -> dict[str, bytes]:
    assert isinstance(observed, Known)
    return {key: stored.value for key, stored in observed.value.items()}


def _version(store: RuntimeStore, key: str) -> str:
    observed = store.get([key], deadline=SOON)
    assert isinstance(observed, Known)
    return observed.value[key].version if key in observed.value else ABSENT


class StoreSuite:
    def test_what_is_committed_is_read(self, store: RuntimeStore) -> None:
        changes = [Change("a/1", b"one"), Change("a/2", b""), Change("b", b"b")]
        assert store.commit(changes, deadline=SOON) is StoreOutcome.COMMITTED
        assert _known(store.get(["a/1", "a/2", "none"], deadline=SOON)) == {"a/1": b"one", "a/2": b""}
        assert list(_known(store.scan("a/", deadline=SOON))) == ["a/1", "a/2"]
        assert len(_known(store.scan("", deadline=SOON))) == 3

    def test_a_prefix_means_its_own_letters(self, store: RuntimeStore) -> None:
        keys = ["a_b/1", "axb/1", "a%/1", "A_b/1", "a_b/\u00e9"]
        store.commit([Change(key, b"") for key in keys], deadline=SOON)
        assert list(_known(store.scan("a_b/", deadline=SOON))) == ["a_b/1", "a_b/\u00e9"]
        assert list(_known(store.scan("a%", deadline=SOON))) == ["a%/1"]

    def test_a_delete_deletes(self, store: RuntimeStore) -> None:
        store.commit([Change("a", b"1")], deadline=SOON)
        store.commit([Change("a", None), Change("never", None)], deadline=SOON)
        assert _known(store.get(["a"], deadline=SOON)) == {}
        assert store.commit([Change("a", b"2", ABSENT)], deadline=SOON) is StoreOutcome.COMMITTED

    def test_all_or_nothing_under_the_expected_versions(self, store: RuntimeStore) -> None:
        store.commit([Change("a", b"1")], deadline=SOON)
        old = _version(store, "a")
        assert store.commit([Change("a", b"2", old)], deadline=SOON) is StoreOutcome.COMMITTED
        for wrong in (
            [Change("b", b"x"), Change("a", b"3", old)],
            [Change("b", b"x"), Change("a", b"3", ABSENT)],
            [Change("b", b"x", old)],
            [Change("a", None, old), Change("b", b"x")],
        ):
            assert store.commit(wrong, deadline=SOON) is StoreOutcome.CONFLICT
        assert _known(store.scan("", deadline=SOON)) == {"a": b"2"}

    def test_a_version_is_never_used_again(self, store: RuntimeStore) -> None:
        store.commit([Change("a", b"1")], deadline=SOON)
        old = _version(store, "a")
        store.commit([Change("a", None)], deadline=SOON)
        store.commit([Change("a", b"1")], deadline=SOON)
        assert store.commit([Change("a", b"2", old)], deadline=SOON) is StoreOutcome.CONFLICT

    def test_of_many_at_once_one_wins_each_time(self, store: RuntimeStore) -> None:
        store.commit([Change("n", b"0")], deadline=SOON)

        def count() -> None:
            for _ in range(20):
                while True:
                    observed = store.get(["n"], deadline=SOON)
                    assert isinstance(observed, Known)
                    found = observed.value["n"]
                    change = Change("n", str(int(found.value) + 1).encode(), found.version)
                    if store.commit([change], deadline=SOON) is StoreOutcome.COMMITTED:
                        break

        threads = [threading.Thread(target=count) for _ in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(30)
        assert _known(store.get(["n"], deadline=SOON)) == {"n": b"60"}

    def test_a_log_is_read_in_order_after_a_number(self, store: RuntimeStore) -> None:
        store.append("log", [b"one", b"two"], deadline=SOON)
        store.append("other", [b"x"], deadline=SOON)
        store.append("log", [b"three"], deadline=SOON)
        for after, numbers in ((0, [1, 2, 3]), (2, [3]), (3, [])):
            observed = store.read_log("log", after, deadline=SOON)
            assert isinstance(observed, Known)
            assert [number for number, _ in observed.value] == numbers
        observed = store.read_log("log", 0, deadline=SOON)
        assert isinstance(observed, Known)
        assert [record for _, record in observed.value] == [b"one", b"two", b"three"]
