"""The floors: what three processes can do at best on this machine, with nothing promised.

Run by the benchmarks as `python -m benchmarks.floor JOB SHAPE`. Slots of shared memory, faulted in before, in
a ring; a byte in a pipe says which slot is full, and one in another pipe which is free. Shapes:

* `hop`: items are made in memory of the stage's own, as for every library that is given arrays, and each hop
  is one memcpy into a slot;
* `place`: items are made in the slots themselves;
* `forward` and `forward-place`: alike, and the processor hands on the number of the slot;
* `memcpy`: no pipeline; each core copies into a ring of its own, and the rate is that of both together.

It refuses nothing and survives nothing: when one process fails, the others are ended.
"""

import mmap
import os
import sys
import time
from collections.abc import Iterator
from functools import partial
from itertools import islice

import numpy as np

from benchmarks.work import (
    Array,
    Job,
    Maker,
    Meter,
    in_processes,
    job_of_command,
    remake,
    sources,
    write_figures,
)

_FRAME_SLOTS = 8
_SMALL_SLOTS = 128


class Ring:
    """Slots, a pipe of full ones and a pipe of free ones."""

    def __init__(self, slot_bytes: int, slots: int) -> None:
        stride = -(-slot_bytes // mmap.PAGESIZE) * mmap.PAGESIZE
        memory = np.frombuffer(mmap.mmap(-1, stride * slots), np.uint8)
        memory[:] = 1  # every page is there before anybody is measured
        self.slots: list[Array] = [memory[n * stride : n * stride + slot_bytes] for n in range(slots)]
        self._full = os.pipe()
        self._free = os.pipe()
        os.write(self._free[1], bytes(range(slots)))

    def writer(self) -> Iterator[int]:
        """Yields free slots as they come back."""
        os.close(self._full[0])
        os.close(self._free[1])
        while free := os.read(self._free[0], 256):
            yield from free

    def reader(self) -> Iterator[int]:
        """Yields full slots."""
        os.close(self._full[1])
        os.close(self._free[0])
        while full := os.read(self._full[0], 256):
            yield from full

    def fill(self, slot: int) -> None:
        """Says that a slot is full."""
        os.write(self._full[1], bytes((slot,)))

    def give_back(self, slot: int) -> None:
        """Says that a slot is free; the writer may be gone by then."""
        try:
            os.write(self._free[1], bytes((slot,)))
        except BrokenPipeError:
            return


def run_copying(job: Job, *, in_place: bool) -> None:
    """One memcpy per hop."""
    slots = _FRAME_SLOTS if job.kind == "frames" else _SMALL_SLOTS
    first, second = Ring(job.item_bytes, slots), Ring(job.item_bytes, slots)

    def produce() -> None:
        maker, free = Maker(job), first.writer()
        own = np.ones(job.item_bytes, np.uint8)
        for index in maker.indices():
            if in_place:
                slot = next(free)
                maker.make(index, first.slots[slot])
            else:
                maker.make(index, own)
                slot = next(free)
                np.copyto(first.slots[slot], own)
            first.fill(slot)

    def process() -> None:
        free = second.writer()
        own = np.ones(job.item_bytes, np.uint8)
        for slot in islice(first.reader(), job.items):
            if in_place:
                target = next(free)
                remake(first.slots[slot], second.slots[target])
            else:
                remake(first.slots[slot], own)
                target = next(free)
                np.copyto(second.slots[target], own)
            second.fill(target)
            first.give_back(slot)

    def consume() -> None:
        meter = Meter(job)
        for slot in second.reader():
            meter.take(second.slots[slot])
            second.give_back(slot)
            if meter.full:
                break
        meter.finish()

    in_processes(produce, process, consume)


def run_forwarding(job: Job, *, in_place: bool) -> None:
    """One copy in all; the processor hands on the number of the slot."""
    ring = Ring(job.item_bytes, _FRAME_SLOTS if job.kind == "frames" else _SMALL_SLOTS)
    handles = os.pipe()

    def produce() -> None:
        os.close(handles[1])
        maker, free = Maker(job), ring.writer()
        own = np.ones(job.item_bytes, np.uint8)
        for index in maker.indices():
            if in_place:
                slot = next(free)
                maker.make(index, ring.slots[slot])
            else:
                maker.make(index, own)
                slot = next(free)
                np.copyto(ring.slots[slot], own)
            ring.fill(slot)

    def process() -> None:
        for slot in islice(ring.reader(), job.items):
            os.write(handles[1], bytes((slot,)))

    def consume() -> None:
        os.close(handles[1])
        meter = Meter(job)
        while not meter.full and (full := os.read(handles[0], 256)):
            for slot in full:
                meter.take(ring.slots[slot])
                ring.give_back(slot)
        meter.finish()

    in_processes(produce, process, consume)


def run_memcpy(job: Job) -> None:
    """As many processes as there are cores to run on, copying for as long as both do."""
    cores = len(os.sched_getaffinity(0))
    times = np.frombuffer(mmap.mmap(-1, mmap.PAGESIZE), np.int64)

    def copier(core: int) -> None:
        ring = Ring(job.item_bytes, _FRAME_SLOTS if job.kind == "frames" else _SMALL_SLOTS)
        originals = sources(job)
        times[3 * core] = time.monotonic_ns()
        while any(times[3 * other] == 0 for other in range(cores)):
            os.sched_yield()
        times[3 * core + 1] = time.monotonic_ns()
        for index in range(job.items):
            np.copyto(ring.slots[index % len(ring.slots)], originals[index % len(originals)])
        times[3 * core + 2] = time.monotonic_ns()

    in_processes(*(partial(copier, core) for core in range(cores)))
    rates = [job.items / float(times[3 * n + 2] - times[3 * n + 1]) * 1e9 for n in range(cores)]
    write_figures(job.out, {"items": job.items, "lost": 0, "per_second": sum(rates)})


def main() -> None:
    """Runs one shape of the floor."""
    job, shape = job_of_command(), sys.argv[2]
    in_place = shape.endswith("place")
    if shape == "memcpy":
        run_memcpy(job)
    elif shape.startswith("forward"):
        run_forwarding(job, in_place=in_place)
    else:
        run_copying(job, in_place=in_place)


if __name__ == "__main__":
    main()
