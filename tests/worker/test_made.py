"""Arrays that a node makes for its outputs: where they lie, who writes to them, when they are given back."""

import itertools
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest
from numpy.typing import DTypeLike, NDArray

from tests.adapters.test_shm_passing_on import CLOCK, FIRST, READS_FIRST, SLOTS, Run, running
from videoflow import wire
from videoflow.backends.memory import MemoryPayloads, MemoryPool
from videoflow.backends.messaging import Delivery, Envelope
from videoflow.backends.outcomes import Known
from videoflow.backends.payload import PayloadRef, RetentionContract
from videoflow.testing.examiners.envelopes import data
from videoflow.worker._made import Making
from videoflow.worker._payloads import PayloadFull, Payloads
from videoflow.worker.core.actions import Publication

Array = NDArray[Any]
SIZE = 1 << 17
SHAPE = (256, 256)  # half of the largest item, and no more than a quarter of the slab
ALL = SLOTS * SIZE


class Bench:
    """What a worker does with the arrays of its node, with a reader behind it."""

    def __init__(self, run: Run) -> None:
        self.run = run
        self.store = run.workers["source"][1]
        self.payloads = Payloads(self.store, CLOCK)
        self._reader = Payloads(run.workers["middle"][1], CLOCK)
        self._numbers = itertools.count()
        process = run.workers["source"][0]._process
        self._slab = np.frombuffer(process.memory(process.place.slab), np.uint8)

    def empty(self, shape: tuple[int, ...] = SHAPE, dtype: DTypeLike = np.uint8, most: int = SIZE) -> Array:
        return self.payloads.making.empty(most, shape, dtype)

    def made(self, value: int) -> Array:
        """One that is full of a value."""
        array = self.empty()
        array[:] = value
        return array

    def is_stored(self, array: Array) -> bool:
        return np.shares_memory(array, self._slab)

    def publication(self, value: Any) -> Publication:
        envelope = data(FIRST, next(self._numbers), body=b"", size_bytes=0)
        return Publication(0, envelope, wire.freeze(value))

    def emit(self, value: Any) -> Envelope:
        publication = self.publication(value)
        self.payloads.encode(publication)
        self.run.publish("source", publication.envelope)
        self.payloads.settled()
        return publication.envelope

    def take(self) -> Delivery:
        return self.run.take("middle", READS_FIRST)

    def load(self, delivery: Delivery) -> Any:
        return self._reader.load(delivery.envelope)

    def read(self) -> Any:
        """What comes next, settled, copied."""
        delivery = self.take()
        value = self.load(delivery)
        whole = np.array(value)
        del value
        self.run.settle("middle", delivery)
        return whole

    def free_bytes(self) -> int:
        """What the slab could take, when nothing is under way."""
        self.payloads.making.sweep()
        self.run.kept()
        found = self.store.capabilities().free_bytes
        assert isinstance(found, Known)
        return found.value

    def given_back(self) -> bool:
        """Waits until all is free."""
        return self._until(lambda: self.free_bytes() == ALL)

    def gone(self, ref: PayloadRef) -> bool:
        """Waits until the store has it no more."""
        return self._until(lambda: ref not in self._inventory())

    def fill(self) -> None:
        """Writes over all that is free, and keeps it."""
        for size in (SIZE, SIZE // 2):
            while self.store.put(bytes(size), "", RetentionContract(), deadline=0.0) is not None:
                """More."""

    def _inventory(self) -> Sequence[PayloadRef]:
        found = self.store.inventory(deadline=0.0)
        assert isinstance(found, Known)
        return found.value

    def _until(self, condition: Callable[[], bool]) -> bool:
        process, deadline = self.run.workers["source"][0]._process, CLOCK.monotonic() + 10
        while not condition():
            if CLOCK.monotonic() > deadline:
                return False
            process.wait(CLOCK.monotonic() + 0.1)
        return True


@contextmanager
def bench() -> Iterator[Bench]:
    with running(size=SIZE) as run:
        yield Bench(run)


@pytest.mark.parametrize(
    "part",
    [
        lambda array: array,
        lambda array: array[64:],
        lambda array: array[::-1, ::2],
        lambda array: array.view(np.uint16).T,
    ],
    ids=["whole", "rows", "backwards", "turned"],
)
def test_what_was_made_here_is_read_from_where_it_was_written(part: Callable[[Array], Array]) -> None:
    with bench() as at:
        array = at.empty()
        array[:] = np.arange(256)
        emitted = part(array)
        envelope = at.emit(emitted)
        assert [ref.size_bytes for ref in envelope.payloads] == [array.nbytes]
        assert at.run.kept() == 1, "a copy was made"
        delivery = at.take()
        found = at.load(delivery)
        assert not found.flags.writeable
        assert found.shape == emitted.shape
        assert np.array_equal(found, emitted)
        array.flags.writeable = True  # who insists, writes into what the reader reads
        array[:] = 7
        assert np.array_equal(found, emitted)


def test_it_is_written_until_it_is_emitted_and_then_read_only() -> None:
    with bench() as at:
        array = at.made(1)
        view = array[64:]
        array[0, 0] = 2
        at.emit(view)
        with pytest.raises(ValueError, match="read-only"):
            array[0, 0] = 3
        assert at.read()[0, 0] == 1


@pytest.mark.parametrize(
    ("shape", "dtype", "most"),
    [
        ((wire.INLINE_BYTES - 1,), np.uint8, SIZE),
        ((wire.INLINE_BYTES,), np.uint8, wire.INLINE_BYTES - 1),
        ((SIZE + 1,), np.uint8, 2 * SIZE),
        ((SIZE // 8,), object, SIZE),
        ((0, SIZE), np.uint8, SIZE),
    ],
    ids=["inline", "beyond the node's largest", "beyond the store's largest", "objects", "nothing"],
)
def test_what_does_not_belong_there_lies_elsewhere(
    shape: tuple[int, ...], dtype: DTypeLike, most: int
) -> None:
    with bench() as at:
        array = at.empty(shape, dtype, most)
        assert (array.shape, array.dtype, array.flags.owndata) == (shape, dtype, True)
        assert at.free_bytes() == ALL
        fitting = at.empty((2, wire.INLINE_BYTES // 2), np.int8)
        assert at.is_stored(fitting)
        assert fitting.shape == (2, wire.INLINE_BYTES // 2)
        assert fitting.dtype == np.int8
        assert fitting.flags.c_contiguous


@pytest.mark.parametrize("shape", [(-256, -256), (256.0, 256.0)])
def test_a_shape_that_numpy_refuses_takes_nothing(shape: Any) -> None:
    with bench() as at:
        for _ in range(SLOTS):
            with pytest.raises((TypeError, ValueError)):
                at.empty(shape)
        assert at.free_bytes() == ALL


def test_a_store_of_this_process_is_not_written_to() -> None:
    making = Making(MemoryPayloads(MemoryPool(ALL), "w", CLOCK), CLOCK)
    assert making.empty(SIZE, SHAPE, np.uint8).flags.owndata


@pytest.mark.parametrize("emitted", [True, False], ids=["emitted", "not emitted"])
def test_a_node_that_keeps_all_that_it_makes_can_still_publish(emitted: bool) -> None:
    with bench() as at:
        kept = []
        for value in range(4 * SLOTS):
            kept.append(at.made(value))
            at.emit(kept[-1] if emitted else np.full(SHAPE, value, np.uint8))
            assert np.all(at.read() == value)
        assert sum(array.nbytes for array in kept if at.is_stored(array)) == ALL // 2
        assert all(np.all(array == value) for value, array in enumerate(kept))


def test_where_there_is_no_room_it_lies_elsewhere_and_is_published_later() -> None:
    with bench() as at:
        blocking = [at.publication(np.zeros(SIZE, np.uint8)) for _ in range(SLOTS)]
        for publication in blocking:
            at.payloads.encode(publication)
        array = at.made(5)
        assert not at.is_stored(array)
        publication = at.publication(array)
        with pytest.raises(PayloadFull):
            at.payloads.encode(publication)
        at.payloads.unused(blocking[0].envelope)
        at.payloads.encode(publication)
        at.run.publish("source", publication.envelope)
        assert np.all(at.read() == 5)


def test_what_was_half_stored_for_want_of_room_is_stored_later() -> None:
    with bench() as at:
        array = at.made(5)
        blocking = [at.publication(np.zeros(SIZE, np.uint8)) for _ in range(SLOTS - 1)]
        for publication in blocking:
            at.payloads.encode(publication)
        publication = at.publication([array, np.full(SIZE, 6, np.uint8)])
        with pytest.raises(PayloadFull):
            at.payloads.encode(publication)
        del array
        for one in blocking:
            at.payloads.unused(one.envelope)
        at.payloads.encode(publication)
        at.run.publish("source", publication.envelope)
        delivery = at.take()
        first, second = at.load(delivery)
        assert np.all(first == 5)
        assert np.all(second == 6)
        del first, second
        at.run.settle("middle", delivery)
        assert at.given_back()


def never_emitted(at: Bench, array: Array) -> None:
    """Nobody uses it."""


def emitted_by_an_attempt_that_failed(at: Bench, array: Array) -> None:
    wire.freeze(array[64:])


def encoded_and_not_published(at: Bench, array: Array) -> None:
    at.payloads.encode(at.publication(array))
    at.payloads.close()


def published_before(at: Bench, array: Array) -> None:
    publication = at.publication(array)
    at.payloads.encode(publication)
    at.payloads.unused(publication.envelope)


def sent_in_small(at: Bench, array: Array) -> None:
    at.emit(array[:2, :2])
    assert at.read().shape == (2, 2)


def sent_and_settled(at: Bench, array: Array) -> None:
    at.emit(array)
    at.read()


@pytest.mark.parametrize(
    "use",
    [
        never_emitted,
        emitted_by_an_attempt_that_failed,
        encoded_and_not_published,
        published_before,
        sent_in_small,
        sent_and_settled,
    ],
)
def test_it_is_given_back_when_nobody_needs_it(use: Callable[[Bench, Array], None]) -> None:
    with bench() as at:
        for _ in range(SLOTS):  # more often than there is room
            array = at.made(1)
            assert at.is_stored(array)
            use(at, array)
            assert at.free_bytes() < ALL, "the node still has it"
            del array
            assert at.given_back()


def test_what_was_collected_makes_room_for_what_is_published() -> None:
    with bench() as at:
        arrays = [at.empty((SIZE,)) for _ in range(2)]
        at.payloads.encode(at.publication(np.zeros(SIZE, np.uint8)))
        at.payloads.encode(at.publication(np.zeros(SIZE, np.uint8)))
        del arrays
        at.payloads.encode(at.publication(np.zeros(SIZE, np.uint8)))


def test_what_a_node_keeps_it_emits_again_though_readers_have_settled_it() -> None:
    with bench() as at:
        array = at.made(5)
        for _ in range(3 * SLOTS):
            at.emit(array)
            assert np.all(at.read() == 5)
        at.fill()
        at.emit(array[64:])
        assert np.all(at.read() == 5)


def test_each_publication_keeps_what_it_names_and_the_last_one_gives_it_back() -> None:
    with bench() as at:
        array = at.made(5)
        publications = [at.publication(array), at.publication(array[64:])]
        for publication in publications:
            at.payloads.encode(publication)
        del array, publication
        at.payloads.making.sweep()
        first, second = (publication.envelope for publication in publications)
        assert first.payloads == second.payloads
        at.run.publish("source", first)
        assert np.all(at.read() == 5)
        at.fill()
        at.run.publish("source", second)
        assert np.all(at.read() == 5)
        assert at.gone(first.payloads[0])
