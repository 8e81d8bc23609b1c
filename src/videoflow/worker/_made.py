"""Arrays that nodes write where they are sent from: no copy is made when they are emitted.

Used by the shell. It refuses nothing: where an array cannot lie in the payload store, it lies elsewhere, and
is copied when it is emitted, as every other one.
"""

import itertools
import math
import operator
from collections import deque
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from videoflow import wire
from videoflow.backends.outcomes import Known
from videoflow.backends.payload import PayloadRef, PayloadStore, PendingPayload, RetentionContract
from videoflow.clock import Clock

_MOST = 8  # that live, sent or not: a node that keeps more must not use up the room for what it sends
_SHARE = 2  # they have half of the store at most, for the same reason


class Making:
    """Makes arrays in the payload store, and keeps them there while they live.

    Args:
        store: Where they lie.
        clock: For deadlines.
    """

    def __init__(self, store: PayloadStore, clock: Clock) -> None:
        able = store.capabilities()
        room = able.free_bytes
        self._largest, self._room = able.maximum_object_bytes, 0
        if able.crosses_processes and able.forwards_references and isinstance(room, Known):
            self._room = room.value // _SHARE
        self._store = store
        self._clock = clock
        self._numbers = itertools.count()
        self._unsent: dict[int, _Memory] = {}
        self._sealed: dict[PayloadRef, str] = {}
        self._collected: deque[_Memory] = deque()

    def empty(self, most: int, shape: tuple[int, ...], dtype: DTypeLike) -> NDArray[Any]:
        """Returns a new array, C-contiguous, whose elements are whatever was there.

        Args:
            most: The largest item in bytes that the node may emit.
            shape: Its shape.
            dtype: Its dtype.
        """
        kind = np.dtype(dtype)
        size = math.prod(map(operator.index, shape)) * kind.itemsize
        fits = wire.INLINE_BYTES <= size <= min(self._largest, most) and not kind.hasobject
        if fits:
            self.sweep()
        if fits and len(self._unsent) + len(self._sealed) < min(_MOST, self._room // size):
            number = next(self._numbers)
            contract = RetentionContract(obligations=(f"pin/{number}",))
            pending = self._store.create(size, "", contract, deadline=self._clock.monotonic())
            if pending is not None:
                self._unsent[number] = memory = _Memory(self, number, pending)
                return wire.array_in(memory, shape, kind)
        return np.empty(shape, kind)

    def claim(self, refs: Sequence[PayloadRef], publication_id: str) -> None:
        """Claims, for a publication, those payloads that were made here."""
        claims = [(ref, f"intent/{publication_id}") for ref in refs if ref in self._sealed]
        if claims:
            self._store.acquire_obligation(claims, deadline=self._clock.monotonic() + 1.0)

    def sealed(self, number: int, ref: PayloadRef) -> None:
        """Takes down that one was sealed."""
        self._sealed[ref] = f"pin/{number}"
        del self._unsent[number]

    def collected(self, memory: "_Memory") -> None:
        """Takes down that no array lies in one any more; from any thread."""
        self._collected.append(memory)

    def sweep(self) -> None:
        """Gives back what was collected; from the thread of the node, and from the one that publishes."""
        while self._collected:
            try:
                memory = self._collected.popleft()
            except IndexError:  # the other thread was quicker
                return
            ref = memory.ref
            if ref is None:
                del self._unsent[memory.number]
                memory.pending.abandon()
            else:
                claims = [(ref, self._sealed.pop(ref))]
                self._store.release_obligation(claims, None, deadline=self._clock.monotonic() + 1.0)


class _Memory:
    """The memory of one array."""

    def __init__(self, making: Making, number: int, pending: PendingPayload) -> None:
        self.number = number
        self.pending = pending
        self.ref: PayloadRef | None = None
        self._making = making

    @property
    def data(self) -> memoryview:
        """See `Unsealed`."""
        return self.pending.buffer

    def seal(self) -> PayloadRef:
        """See `Unsealed`."""
        self.ref = self.pending.seal()
        self._making.sealed(self.number, self.ref)
        return self.ref

    def close(self) -> None:
        """See `Unsealed`."""
        self._making.collected(self)
