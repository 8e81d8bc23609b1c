"""The payload contract in a worker process: slots of its own slab, views of the slabs of others."""

import contextlib
import itertools
import weakref
from collections.abc import Collection, Mapping, Sequence

import numpy as np

from videoflow.adapters.shm._process import Process
from videoflow.adapters.shm._slab import STORE, Slot, slot_of
from videoflow.backends.capabilities import PayloadCapabilities
from videoflow.backends.outcomes import Observation, SettleConfirmed, known
from videoflow.backends.payload import (
    Buffer,
    Corrupt,
    Missing,
    ObligationReceipt,
    PayloadBytes,
    PayloadRef,
    PayloadStore,
    PendingPayload,
    ReleaseReceipt,
    RetentionContract,
    TransientFailure,
)
from videoflow.errors import ContractBroken, MemoryShort, UnknownName, ValueRefused
from videoflow.faults import reach

_INTENT = "intent"
_WITHOUT_RECEIPT = (_INTENT, "pin", "dead_letter", "archive")
_FOREVER = float("inf")


class Claims:
    """Named claims of this process on slots; each is one hold, however often it is made.

    Args:
        process: Whose they are.
    """

    def __init__(self, process: Process) -> None:
        self._process = process
        self._names: dict[Slot, set[str]] = {}

    def make(self, slot: Slot, name: str, *, new: bool = False) -> bool:
        """Makes a claim; False where the slot is gone. `new`: the slot was just allocated."""
        names = self._names.setdefault(slot, set())
        if name not in names:
            if new and not names:
                self._process.holds.made(slot)
            elif not self._process.holds.take(slot):
                del self._names[slot]
                return False
            names.add(name)
        return True

    def end(self, slot: Slot, name: str) -> bool:
        """Ends a claim; False where there is none."""
        names = self._names.get(slot)
        if names is None or name not in names:
            return False
        names.remove(name)
        if not names:
            del self._names[slot]
        self._process.holds.drop(slot)
        return True

    def of(self, slot: Slot) -> frozenset[str]:
        """Returns the claims on a slot."""
        return frozenset(self._names.get(slot, ()))

    def keep_only(self, ledger: Mapping[str, frozenset[str]], pending: Collection[Slot]) -> int:
        """Ends what a ledger does not require of what is sealed; returns how many slots that freed."""
        freed = 0
        for slot, names in list(self._names.items()):
            for name in () if slot in pending else list(names):
                family = name.partition("/")[0]
                if family in ledger and name not in ledger[family]:
                    self.end(slot, name)
                    freed += slot not in self._process.holds.counts
        return freed

    def accepted(self, slot: Slot, publication_id: str) -> None:
        """Ends the creator's claim, now that the log holds the publication."""
        self.end(slot, f"{_INTENT}/{publication_id}")
        self.end(slot, _INTENT)


class _Pinned(PayloadBytes):
    """A view of a slot; the pin ends once, at `close` or collection, in whichever thread that is."""

    def __init__(self, process: Process, slot: Slot, data: memoryview) -> None:
        self.data = data
        self.digest_verified = False
        self._process = process
        self._slot: Slot | None = slot

    def close(self) -> None:
        slot, self._slot = self._slot, None
        if slot is not None:
            self._process.dropped.append(slot)

    def __del__(self) -> None:
        self.close()


class _Pending(PendingPayload):
    """A slot being filled; it stays taken until the arrays over its buffer are collected."""

    def __init__(self, store: "ShmPayloads", ref: PayloadRef, claims: tuple[str, ...]) -> None:
        self._store = store
        self._ref: PayloadRef | None = ref
        self._claims = claims
        self.buffer = store.writable(ref)

    def seal(self) -> PayloadRef:
        ref, self._ref = self._ref, None
        if ref is None:
            raise UnknownName("the pending payload was sealed or abandoned")
        self._store.sealed(ref)
        reach("payload.sealed")
        return ref

    def abandon(self) -> None:
        ref, self._ref = self._ref, None
        if ref is not None:
            self._store.forget(ref, self._claims)
            with contextlib.suppress(BufferError):  # arrays lie over it: it stays taken until they are gone
                self.buffer.release()


class ShmPayloads(PayloadStore):
    """Payloads of one worker process.

    Readers' claims are no calls here: the log holds them. A payload that is made stays claimed, as
    `intent/<publication>` or by whatever its contract names, until the publication that its content id
    names is accepted.

    Args:
        process: The process's part of the log.
        claims: Shared with its messaging.
    """

    def __init__(self, process: Process, claims: Claims) -> None:
        self._process = process
        self._claims = claims
        self._numbers = itertools.count((process.kit.incarnation << 40) + 1)
        self._own = process.place.slab
        self._pending: set[Slot] = set()
        self._readable: dict[int, memoryview] = {}
        self._largest = process.slab.span_bytes if self._own >= 0 else 0
        self._buffers: dict[int, weakref.ref[np.ndarray[tuple[int], np.dtype[np.uint8]]]] = {}
        self._size = process.kit.layout.slabs[self._own].size if self._own >= 0 else 0

    def capabilities(self) -> PayloadCapabilities:
        """Returns what a slab guarantees."""
        now = self._process.clock.monotonic()
        return PayloadCapabilities(
            adapter=STORE,
            durable=known(False, now),
            evictable=known(False, now),
            persistent_volume=known(False, now),
            crosses_processes=True,
            crosses_hosts=False,
            forwards_references=True,
            digest="none",
            maximum_object_bytes=self._largest,
            free_bytes=known(self._process.slab.free_bytes() if self._own >= 0 else 0, now),
            copies=known(1, now),
        )

    def create(
        self, size_bytes: int, content_id: str, contract: RetentionContract, *, deadline: float
    ) -> PendingPayload | None:
        """Returns a writable slot, or None when none came free until the deadline."""
        self._check(size_bytes, contract)
        made = self._made(size_bytes, content_id, contract, deadline)
        return None if made is None else _Pending(self, made[0], contract.obligations or (_INTENT,))

    def put(
        self, data: Buffer, content_id: str, contract: RetentionContract, *, deadline: float
    ) -> PayloadRef | None:
        """Copies bytes into a slot."""
        view = memoryview(data).cast("B")
        self._check(view.nbytes, contract)
        made = self._made(view.nbytes, content_id, contract, deadline)
        if made is None:
            return None
        ref, slot = made
        self._process.memory(slot[0])[slot[1] : slot[1] + view.nbytes] = view
        self._pending.discard(slot)
        reach("payload.sealed")
        return ref

    def reserve(self, size_bytes: int) -> None:
        """Checks that the slab, which only this process allocates from, is large enough."""
        if size_bytes > self._size:
            raise MemoryShort(
                f"{size_bytes} bytes of payloads were reserved, the slab of this process has {self._size}",
                remedy="raise the memory budget",
            )

    def read(
        self, ref: PayloadRef, *, deadline: float
    ) -> PayloadBytes | TransientFailure | Missing | Corrupt:
        """Returns a view, pinned until it is closed or collected; of what this process holds only."""
        slot = slot_of(ref)
        with self._process.lock:
            if self._process.dropped:
                self._process.sweep()
            if slot not in self._process.holds.counts or slot in self._pending:
                return Missing("nothing that this process has not settled refers to it")
            self._process.holds.take(slot)
        whole = self._readable.get(slot[0])
        if whole is None:
            whole = self._readable[slot[0]] = memoryview(self._process.memory(slot[0])).toreadonly()
        return _Pinned(self._process, slot, whole[slot[1] : slot[1] + ref.size_bytes])

    def acquire_obligation(
        self, claims: Sequence[tuple[PayloadRef, str]], *, deadline: float
    ) -> Sequence[ObligationReceipt | Missing]:
        """Makes claims of this process, on what it holds."""
        with self._process.lock:
            return [self._claim(slot_of(ref), name) for ref, name in claims]

    def renew_obligation(
        self, claims: Sequence[tuple[PayloadRef, str]], *, deadline: float
    ) -> Sequence[ObligationReceipt | Missing]:
        """Says which claims are in force: they have no duration here."""
        with self._process.lock:
            return [
                ObligationReceipt(name, _FOREVER)
                if name in self._claims.of(slot_of(ref))
                else Missing(f"there is no claim {name}")
                for ref, name in claims
            ]

    def release_obligation(
        self,
        claims: Sequence[tuple[PayloadRef, str]],
        completion_receipt: SettleConfirmed | None,
        *,
        deadline: float,
    ) -> Sequence[ReleaseReceipt]:
        """Ends claims of this process; a reader's claim only with the receipt of its settlement.

        Raises:
            ContractBroken: A reader's claim without a receipt.
        """
        for _, name in claims:
            if completion_receipt is None and name.partition("/")[0] not in _WITHOUT_RECEIPT:
                raise ContractBroken(f"the claim {name} is a reader's: it ends with its settlement's receipt")
        receipts = []
        with self._process.lock:
            for ref, name in claims:
                slot = slot_of(ref)
                known_here = slot in self._process.holds.counts
                if not self._claims.end(slot, name) and name.startswith(f"{_INTENT}/"):
                    self._claims.end(slot, _INTENT)
                remaining = self._process.holds.counts.get(slot, 0)
                reclaimed = known_here and not remaining
                receipts.append(ReleaseReceipt(remaining, reclaimed, stale=not known_here))
            self._process.sweep()
            self._process.hub.flush()
        return receipts

    def reconcile(
        self, ledger: Mapping[str, frozenset[str]], operation_id: str, *, deadline: float
    ) -> Observation[int]:
        """Ends the claims of this process that the ledger does not require."""
        with self._process.lock:
            freed = self._claims.keep_only(ledger, self._pending)
            return known(freed, self._process.clock.monotonic())

    def inventory(self, *, deadline: float) -> Observation[tuple[PayloadRef, ...]]:
        """Returns the objects in this process's slab."""
        with self._process.lock:
            self._process.sweep()
            refs = [
                PayloadRef(STORE, f"{slab}:{offset}", size, "", generation)
                for slab, offset, generation, size in self._process.holds.counts.keys() - self._pending
                if slab == self._own
            ]
        return known(tuple(refs), self._process.clock.monotonic())

    def writable(self, ref: PayloadRef) -> memoryview:
        """Returns the bytes of a new slot, which stays taken as long as anything lies over them."""
        slot = slot_of(ref)
        array = np.frombuffer(self._process.memory(slot[0]), np.uint8, ref.size_bytes, slot[1])
        process, key = self._process, id(array)
        process.holds.take(slot)

        def collected(_: object) -> None:
            process.dropped.append(slot)
            self._pending.discard(slot)
            self._buffers.pop(key, None)

        self._buffers[key] = weakref.ref(array, collected)
        return array.data

    def sealed(self, ref: PayloadRef) -> None:
        """Lets a slot be seen."""
        with self._process.lock:
            self._pending.discard(slot_of(ref))

    def forget(self, ref: PayloadRef, names: tuple[str, ...]) -> None:
        """Ends the claims that a slot was made with, and never sealed."""
        with self._process.lock:
            for name in names:
                self._claims.end(slot_of(ref), name)

    def _made(
        self, size_bytes: int, content_id: str, contract: RetentionContract, deadline: float
    ) -> tuple[PayloadRef, Slot] | None:
        """Returns a new slot, claimed and not yet seen, or None when none came free until the deadline."""
        process = self._process
        while True:
            with process.lock:
                process.introduce()
                process.service()
                offset = None if process.awaiting else self._allocated(max(1, size_bytes))
                if offset is not None:
                    key = f"{self._own}:{offset}"
                    ref = PayloadRef(STORE, key, size_bytes, "", next(self._numbers), content_id)
                    slot = self._own, offset, ref.generation, size_bytes
                    self._pending.add(slot)
                    for name in contract.obligations or (_INTENT,):
                        self._claims.make(slot, name, new=True)
                    return ref, slot
            if process.clock.monotonic() >= deadline:
                return None
            process.wait(deadline)

    def _allocated(self, size_bytes: int) -> int | None:
        """Returns a slot of the slab, if need be of an item that live readers have not got."""
        process = self._process
        offset = process.slab.allocate(size_bytes)
        while offset is None and any(outlet.evict() for outlet in process.outlets.values()):
            offset = process.slab.allocate(size_bytes)
        return offset

    def _claim(self, slot: Slot, name: str) -> ObligationReceipt | Missing:
        if slot not in self._process.holds.counts or not self._claims.make(slot, name):
            return Missing("nothing that this process has not settled refers to it")
        return ObligationReceipt(name, _FOREVER)

    def _check(self, size_bytes: int, contract: RetentionContract) -> None:
        if size_bytes > self._largest:
            raise ValueRefused(
                f"a payload of {size_bytes} bytes is larger than the largest that was planned,"
                f" {self._largest}",
                remedy="set max_item_bytes of the node's class",
            )
        if contract.durable_required:
            raise ValueRefused(
                "a payload is to outlive the processes of its run, and shared memory does not",
                remedy="use a store that claims to be durable",
            )
        horizon, ttl = contract.horizon_seconds, contract.ttl_seconds
        if horizon is not None and ttl is not None and horizon > ttl and not contract.obligations:
            raise ValueRefused("a horizon beyond the time to live is promised by nothing")
