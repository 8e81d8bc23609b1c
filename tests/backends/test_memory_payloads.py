"""The payload contract over memory: room, claims, pins, reconciliation."""

import gc
import threading
from collections.abc import Callable

import numpy as np
import pytest

from videoflow.backends.memory import MemoryPayloads, MemoryPool
from videoflow.backends.outcomes import Known
from videoflow.backends.payload import PayloadBytes, PayloadRef, RetentionContract
from videoflow.clock import Clock, ManualClock, RealClock
from videoflow.errors import MemoryShort, UnknownName
from videoflow.wire import decode_value, encode_value, freeze

INTENT = RetentionContract(obligations=("intent/p",))
NEVER = 0.0


class Stores:
    """A pool, and the stores of its owners."""

    def __init__(self, budget_bytes: int, clock: Clock) -> None:
        self.pool = MemoryPool(budget_bytes)
        self.clock = clock

    def __call__(self, owner: str = "a") -> MemoryPayloads:
        return MemoryPayloads(self.pool, owner, self.clock)

    def kept(self) -> list[str]:
        observed = self().inventory(deadline=NEVER)
        assert isinstance(observed, Known)
        return sorted(ref.content_id for ref in observed.value)


@pytest.fixture
def time() -> ManualClock:
    return ManualClock()


@pytest.fixture
def stores(time: ManualClock) -> Stores:
    return Stores(100, time)


def put(store: MemoryPayloads, size: int = 10, contract: RetentionContract = INTENT) -> PayloadRef | None:
    return store.put(bytes(size), f"p/{size}", contract, deadline=NEVER)


def made(store: MemoryPayloads, size: int = 10, contract: RetentionContract = INTENT) -> PayloadRef:
    ref = put(store, size, contract)
    assert ref is not None
    return ref


def read(store: MemoryPayloads, ref: PayloadRef) -> PayloadBytes:
    found = store.read(ref, deadline=NEVER)
    assert isinstance(found, PayloadBytes)
    return found


def release(store: MemoryPayloads, ref: PayloadRef, claim: str = "intent/p") -> tuple[int, bool]:
    (receipt,) = store.release_obligation([(ref, claim)], None, deadline=NEVER)
    assert not receipt.stale
    return receipt.remaining, receipt.reclaimed


def test_what_is_put_is_kept_itself_and_read_without_a_copy(stores: Stores) -> None:
    array = np.arange(10, dtype=np.uint8)
    ref = stores().put(array.data, "p/0", INTENT, deadline=NEVER)
    assert ref is not None
    with read(stores(), ref) as found:
        assert found.data.readonly
        seen = np.frombuffer(found.data, np.uint8)
        assert np.shares_memory(seen, array)
        del seen


def test_reserved_room_is_for_its_owner(stores: Stores) -> None:
    stores("a").reserve(60)
    assert put(stores("b"), 41) is None
    ref = made(stores("b"), 40)
    made(stores("a"), 60)
    assert put(stores("a"), 1) is None
    release(stores("b"), ref)
    made(stores("b"), 40)
    with pytest.raises(MemoryShort):
        stores("c").reserve(41)


def test_a_reservation_is_not_counted_twice(stores: Stores) -> None:
    stores("a").reserve(50)
    made(stores("a"), 30)
    assert put(stores("b"), 51) is None
    made(stores("b"), 50)
    made(stores("a"), 20)


def test_arrays_pin_what_they_lie_in(stores: Stores) -> None:
    pool = Stores(10**6, stores.clock)
    store = pool()

    def keep(array: np.ndarray[tuple[int], np.dtype[np.uint8]], index: int) -> PayloadRef:
        ref = store.put(array.data, f"p/{index}", INTENT, deadline=NEVER)
        assert ref is not None
        return ref

    encoded = encode_value(freeze(np.ones((200, 200), np.uint8)), keep)
    received = decode_value(encoded.body, encoded.payloads, lambda ref: read(store, ref))
    crop = received[10:20]
    release(store, encoded.payloads[0])
    del received
    assert pool.kept() == ["p/0"]
    assert crop.sum() == 2000
    del crop
    gc.collect()
    assert pool.kept() == []


def test_a_waiting_writer_is_woken_by_the_last_array(time: ManualClock) -> None:
    clock = RealClock()
    stores = Stores(100, clock)
    ref = made(stores("a"), 100)
    pin = read(stores("a"), ref)
    release(stores("a"), ref)
    found: list[PayloadRef | None] = []
    started = threading.Event()

    def write() -> None:
        started.set()
        found.append(stores("b").put(bytes(100), "q/0", INTENT, deadline=clock.monotonic() + 30))

    writer = threading.Thread(target=write)
    writer.start()
    assert started.wait(30)
    pin.close()
    writer.join(30)
    assert found[0] is not None


@pytest.mark.parametrize(
    ("change", "left"),
    [
        (lambda s: s("a").reconcile({"archive": frozenset(("archive/x",))}, "op", deadline=NEVER), [1, 2]),
        (lambda s: s("a").reconcile({"archive": frozenset()}, "op", deadline=NEVER), [2]),
        (lambda s: s("a").reconcile({"intent": frozenset()}, "op", deadline=NEVER), [1, 2]),
        (lambda s: s("b").reconcile({"intent": frozenset()}, "op", deadline=NEVER), [1]),
        (lambda s: s("b").reconcile({"intent": frozenset(("intent/p",))}, "op", deadline=NEVER), [1, 2]),
    ],
    ids=["named", "unnamed", "another owner's", "own", "own and named"],
)
def test_a_ledger_speaks_for_its_families_only(
    stores: Stores, change: Callable[[Stores], object], left: list[int]
) -> None:
    made(stores("a"), 1, RetentionContract(obligations=("archive/x",)))
    made(stores("b"), 2)
    change(stores)
    assert stores.kept() == [f"p/{size}" for size in left]


def test_of_a_dead_owner_the_pins_end_and_the_intents_wait_for_the_ledger(stores: Stores) -> None:
    ref = made(stores("a"), 10)
    pin = read(stores("b"), ref)
    release(stores("a"), ref)
    made(stores("b"), 20)
    pending = stores("b").create(70, "p/70", INTENT, deadline=NEVER)
    assert pending is not None
    stores.pool.owner_died("b")
    assert stores.kept() == ["p/20"]
    with pytest.raises(UnknownName):
        pending.seal()
    stores("a").reconcile({"intent": frozenset()}, "op", deadline=NEVER)
    assert stores.kept() == ["p/20"], "no ledger of a speaks for what b may have committed"
    MemoryPayloads(stores.pool, "b, once more", stores.clock, "b").reconcile(
        {"intent": frozenset()}, "op", deadline=NEVER
    )
    assert stores.kept() == []
    pin.close()
    made(stores("a"), 100)


def test_a_ttl_removes_only_what_nobody_claims(stores: Stores, time: ManualClock) -> None:
    made(stores(), 1, RetentionContract(ttl_seconds=5))
    ref = made(stores(), 2, RetentionContract(ttl_seconds=5, obligations=("archive/x",)))
    time.advance(4)
    assert stores.kept() == ["p/1", "p/2"]
    time.advance(2)
    assert stores.kept() == ["p/2"]
    release(stores(), ref, "archive/x")
    assert stores.kept() == []


def test_capabilities_promise_nothing_beyond_the_process(stores: Stores) -> None:
    made(stores(), 30)
    found = stores().capabilities()
    assert isinstance(found.durable, Known)
    assert not found.durable.value
    assert not found.crosses_processes
    assert isinstance(found.free_bytes, Known)
    assert found.free_bytes.value == 70
