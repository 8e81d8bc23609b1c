"""Payload memory: slots of a slab in size classes, last freed first, and who holds which slot.

The owner of a slab keeps what is free in its own memory; a new incarnation of it rebuilds that from
the log and from what its readers say they hold.
"""

from bisect import bisect_left
from collections.abc import Callable
from functools import lru_cache

from videoflow.backends.payload import PayloadRef

STORE = "shm"
SMALLEST_BYTES = 4096

Replica = tuple[int, int]  # task, slot
Slot = tuple[int, int, int, int]  # slab, offset, generation, size in bytes


@lru_cache(maxsize=256)
def slot_of(ref: PayloadRef) -> Slot:
    """Returns the slot that a reference names; one that nobody can hold where it is none of ours."""
    slab, _, offset = ref.key.partition(":")
    if ref.store != STORE or not (slab.isdigit() and offset.isdigit()):
        return -1, 0, 0, 0
    return int(slab), int(offset), ref.generation, ref.size_bytes


class Slab:
    """The free slots of one slab, cut into spans of its largest item; a span holds slots of one class.

    Args:
        size_bytes: Of the slab.
        largest_bytes: The largest item, which sets the size of a span.
    """

    def __init__(self, size_bytes: int, largest_bytes: int) -> None:
        pages = max(1, -(-largest_bytes // SMALLEST_BYTES))
        self.span_bytes = max(SMALLEST_BYTES, min(pages * SMALLEST_BYTES, size_bytes))
        self._classes = [self.span_bytes]
        while self._classes[0] >= 2 * SMALLEST_BYTES:
            self._classes.insert(0, -(-self._classes[0] // 2 // 64) * 64)
        count = size_bytes // self.span_bytes
        self._spans = list(range(count - 1, -1, -1))
        self._class_of: dict[int, int] = {}
        self._free: dict[int, list[int]] = {size: [] for size in self._classes}
        self._used: dict[int, int] = {}
        self._live: dict[int, int] = {}

    def allocate(self, size_bytes: int) -> int | None:
        """Returns the offset of a slot of at least this size, or None when there is none."""
        size = self._class(size_bytes)
        free = self._free[size]
        if not free:
            if not self._spans:
                self._close_empty()
            if not self._spans:
                return None
            self._open(self._spans.pop(), size)
        offset = free.pop()
        self._mark(offset, size)
        return offset

    def claim(self, offset: int, size_bytes: int) -> bool:
        """Takes a given slot, as an earlier incarnation had it; False when it is taken already."""
        if offset in self._live:
            return False
        size = self._class(size_bytes)
        span = offset // self.span_bytes
        if span not in self._class_of:
            self._spans.remove(span)
            self._open(span, size)
        elif self._class_of[span] != size:
            return False
        self._free[size].remove(offset)
        self._mark(offset, size)
        return True

    def free(self, offset: int) -> None:
        """Gives a slot back."""
        size = self._live.pop(offset)
        span = offset // self.span_bytes
        self._free[size].append(offset)
        self._used[span] -= 1

    def live(self) -> dict[int, int]:
        """Returns offset -> class of the slots in use."""
        return dict(self._live)

    def free_bytes(self) -> int:
        """Returns what slots of some size could still take."""
        return len(self._spans) * self.span_bytes + sum(s * len(f) for s, f in self._free.items())

    def _class(self, size_bytes: int) -> int:
        return self._classes[bisect_left(self._classes, size_bytes)]

    def _open(self, span: int, size: int) -> None:
        first = span * self.span_bytes
        self._class_of[span] = size
        self._used[span] = 0
        self._free[size] += range(first + (self.span_bytes // size - 1) * size, first - 1, -size)

    def _close_empty(self) -> None:
        empty = {span for span, used in self._used.items() if used == 0}
        for free in self._free.values():
            free[:] = [offset for offset in free if offset // self.span_bytes not in empty]
        for span in empty:
            del self._class_of[span], self._used[span]
        self._spans += empty

    def _mark(self, offset: int, size: int) -> None:
        self._live[offset] = size
        self._used[offset // self.span_bytes] += 1


class Holds:
    """How often this process needs each slot: leases, records in its rings, arrays, and its borrowers.

    A slot of another process is lent by those from whom it came. When this process settles what came
    with it and still needs it, it says so (`keep`), and returns it (`unpin`) when it needs it no more.

    Args:
        own: Number of this process's slab, or -1.
        slab: The free slots of it.
        unpin: Called with (lender, slot) when a kept slot is needed no more.
    """

    def __init__(self, own: int, slab: Slab, unpin: Callable[[Replica, Slot], None]) -> None:
        self._own = own
        self._slab = slab
        self._unpin = unpin
        self.counts: dict[Slot, int] = {}
        self._kept: dict[Slot, set[Replica]] = {}
        self._lent: dict[Replica, set[Slot]] = {}

    def take(self, slot: Slot) -> bool:
        """Needs a slot once more; False where it is one of the own slab that went to something else."""
        count = self.counts.get(slot, 0)
        if slot[0] < 0:
            return False
        if count == 0 and slot[0] == self._own and not self._slab.claim(slot[1], slot[3]):
            return False
        self.counts[slot] = count + 1
        return True

    def made(self, slot: Slot) -> None:
        """Needs a slot just allocated."""
        self.counts[slot] = 1

    def drop(self, slot: Slot) -> None:
        """Needs it once less."""
        count = self.counts[slot] - 1
        if count:
            self.counts[slot] = count
            return
        del self.counts[slot]
        if slot[0] == self._own:
            self._slab.free(slot[1])
        for lender in self._kept.pop(slot, ()):
            self._unpin(lender, slot)

    def keep(self, lender: Replica, slot: Slot) -> bool:
        """Returns whether a slot is still needed, now that what came with it is settled; if so, say it."""
        if slot not in self.counts or slot[0] == self._own:
            return False
        self._kept.setdefault(slot, set()).add(lender)
        return True

    def kept_from(self, lender: Replica, *, adopting: bool) -> list[Slot]:
        """Returns what is needed here and was lent by this lender; when adopting, by whomever it was."""
        foreign = [slot for slot in self.counts if slot[0] != self._own]
        if not adopting:
            return [slot for slot in foreign if lender in self._kept.get(slot, ())]
        for slot in foreign:
            self._kept.setdefault(slot, set()).add(lender)
        return foreign

    def lend(self, borrower: Replica, slot: Slot, *, adopting: bool = False) -> None:
        """A reader keeps a slot after it settled; once, however often it says so.

        What nobody needs here is not lent, except by a new incarnation, which learns it this way.
        """
        slots = self._lent.setdefault(borrower, set())
        if slot not in slots and (adopting or slot in self.counts) and self.take(slot):
            slots.add(slot)

    def returned(self, borrower: Replica, slot: Slot) -> None:
        """A reader needs a slot no more."""
        slots = self._lent.get(borrower)
        if slots is not None and slot in slots:
            slots.remove(slot)
            self.drop(slot)

    def only(self, borrower: Replica, held: set[Slot]) -> None:
        """A reader says all that it holds: what it does not hold is returned."""
        for slot in self._lent.get(borrower, set()) - held:
            self.returned(borrower, slot)
