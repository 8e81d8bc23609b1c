"""The parts of the shared-memory log alone: budgets, slots, rings and journals."""

import os
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from videoflow.adapters.shm import ShmHost, TaskShape
from videoflow.adapters.shm._layout import JournalPlace, RingPlace
from videoflow.adapters.shm._log import Journal, Log, RingWriter, committed, entries, read_record
from videoflow.adapters.shm._memory import attach, check_budget, make
from videoflow.adapters.shm._slab import Holds, Slab
from videoflow.clock import RealClock
from videoflow.errors import MemoryShort

# What fits ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(("budget", "left"), [(10_000, None), (1 << 30, 10_000)])
def test_what_is_beyond_the_budget_or_the_machine_is_refused_before_anything_is_made(
    budget: int, left: int | None
) -> None:
    most = min(budget, left or budget)
    check_budget(most, budget, left)
    with pytest.raises(MemoryShort):
        check_budget(most + 1, budget, left)
    host = ShmHost(RealClock(), budget, left)
    before = len(os.listdir("/proc/self/fd"))
    with pytest.raises(MemoryShort):
        host.provision([], [], [TaskShape(name="a", slab_bytes=1 << 20, largest_bytes=1 << 20)])
    assert len(os.listdir("/proc/self/fd")) == before
    host.close()


def test_a_closed_host_leaves_no_descriptor_and_no_thread() -> None:
    before = sorted(os.listdir("/proc/self/fd"))
    host = ShmHost(RealClock(), 1 << 30)
    host.provision([], [], [TaskShape(name="a", slab_bytes=1 << 20, largest_bytes=1 << 20)])
    kit = host.kit("a", 0, 1)
    kit.close()
    host.worker_died("a", 0)
    host.kit("a", 0, 2).close()
    host.close()
    assert sorted(os.listdir("/proc/self/fd")) == before


# Slots ------------------------------------------------------------------------------------------

SIZES = st.integers(1, 40_000)


@given(st.lists(st.tuples(st.booleans(), SIZES, st.integers(0, 50)), max_size=120))
def test_slots_never_overlap_and_all_come_back(steps: list[tuple[bool, int, int]]) -> None:
    slab = Slab(400_000, 40_000)
    everything = slab.free_bytes()
    live: dict[int, int] = {}
    for take, size, pick in steps:
        if take:
            offset = slab.allocate(size)
            if offset is not None:
                assert offset >= 0
                assert offset + size <= 400_000
                assert all(offset + size <= o or o + s <= offset for o, s in live.items())
                live[offset] = size
        elif live:
            offset = sorted(live)[pick % len(live)]
            del live[offset]
            slab.free(offset)
    for offset in live:
        slab.free(offset)
    assert slab.live() == {}
    assert slab.free_bytes() == everything
    taken = [slab.allocate(40_000) for _ in range(400_000 // slab.span_bytes)]
    assert None not in taken, "a slab of small slots gives large ones again"


@given(st.lists(SIZES, max_size=30), st.data())
def test_a_new_incarnation_claims_what_the_old_one_had(sizes: list[int], data: st.DataObject) -> None:
    old, new = Slab(400_000, 40_000), Slab(400_000, 40_000)
    live = {offset: size for size in sizes if (offset := old.allocate(size)) is not None}
    for offset in data.draw(st.permutations(sorted(live))):
        assert new.claim(offset, live[offset])
        assert not new.claim(offset, live[offset])
    assert new.live() == old.live()
    while (offset := new.allocate(1000)) is not None:
        assert offset not in live


def test_the_last_freed_slot_comes_first() -> None:
    slab = Slab(400_000, 40_000)
    first, second, third = (slab.allocate(40_000) for _ in range(3))
    assert None not in (first, second, third)
    slab.free(first or 0)
    slab.free(third or 0)
    assert slab.allocate(40_000) == third


def test_a_slot_is_free_when_all_who_need_it_say_so() -> None:
    slab = Slab(100_000, 10_000)
    told: list[tuple[tuple[int, int], tuple[int, int, int, int]]] = []
    holds = Holds(0, slab, lambda lender, slot: told.append((lender, slot)))
    mine = (0, slab.allocate(5000) or 0, 7, 5000)
    holds.made(mine)
    holds.lend((1, 0), mine)
    holds.lend((1, 0), mine)
    holds.drop(mine)
    assert slab.live()
    holds.returned((1, 0), mine)
    holds.returned((1, 0), mine)
    assert not slab.live()
    foreign = (3, 0, 1, 100)
    holds.take(foreign)
    holds.take(foreign)
    holds.drop(foreign)
    assert holds.keep((2, 0), foreign)
    holds.drop(foreign)
    assert told == [((2, 0), foreign)]
    assert not holds.keep((2, 0), foreign)


# Rings and journals -----------------------------------------------------------------------------


@contextmanager
def log_of(size: int) -> Iterator[Log]:
    descriptor = make("test", size)
    log = Log(attach(descriptor, write=True))
    os.close(descriptor)
    try:
        yield log
    finally:
        log.close()


RING = RingPlace(8, 9, 13, 14, 15, 16, 16, 4096, 4096, JournalPlace(8192, 1024, 0))


@settings(max_examples=50)
@given(st.lists(st.tuples(st.integers(0, 900), st.booleans(), st.booleans()), max_size=80))
def test_what_is_committed_survives_any_death_and_nothing_else_does(
    steps: list[tuple[int, bool, bool]],
) -> None:
    with log_of(16384) as log:
        ring = RingWriter(log, RING)
        kept: dict[int, bytes] = {}
        for number, (length, dies, settles) in enumerate(steps):
            data = bytes([number % 256]) * length
            if settles and kept:
                kept.pop(min(kept))
                ring.release(min(kept, default=ring.head))
            if not ring.fits(length, 1, reserve=False):
                continue
            sequence = ring.append([(data, 0, length)], float(number))
            if dies:
                ring = RingWriter(log, RING)
            else:
                ring.commit()
                kept[sequence] = data
            assert ring.head == committed(log, RING)[0]
            for known, expected in kept.items():
                found, _, _, size = read_record(log, RING, known)
                assert (bytes(found), size) == (expected, len(expected))
                found.release()


@settings(max_examples=50)
@given(st.lists(st.tuples(st.integers(0, 200), st.booleans()), max_size=120))
def test_every_committed_ledger_entry_is_taken_once_in_order(steps: list[tuple[int, bool]]) -> None:
    place = JournalPlace(4096, 1024, 0)
    with log_of(8192) as log:
        journal = Journal(log, place, 0)
        sent: list[bytes] = []
        taken: list[bytes] = []

        def take() -> None:
            taken.extend(entries(log, place, journal.head))
            log.words[place.folded] = journal.head

        for number, (length, lets) in enumerate(steps):
            entry = bytes([number % 256]) * length
            if journal.full(length):
                take()
            assert not journal.full(length)
            journal.append(entry)
            sent.append(entry)
            if lets:
                take()
        take()
        assert taken == sent
