"""The payload contract in one process: objects are kept as they are, under named claims.

Used by the threads engine, by `drive`, and by every adapter's examiner as the specification. It refuses what
cannot be kept: an object beyond the budget, one that is to outlive the process, a claim that is not its
caller's.
"""

from collections.abc import Mapping, Sequence
from typing import Final

from videoflow.backends.capabilities import PayloadCapabilities
from videoflow.backends.memory._pool import STORE, MemoryPool, StoredObject
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
from videoflow.clock import Clock
from videoflow.errors import ContractBroken, UnknownName, ValueRefused

_FOREVER: Final = float("inf")
_OWNED: Final = ("intent", "pin")
_WITHOUT_RECEIPT: Final = (*_OWNED, "dead_letter", "archive")


class _Pin(PayloadBytes):
    """A read: it may be closed by whichever thread collects the last array, so it takes no lock."""

    def __init__(self, pool: MemoryPool, data: memoryview, ended: tuple[str, str]) -> None:
        self.data = data
        self.digest_verified = False
        self._pool = pool
        self._ended: tuple[str, str] | None = ended

    def close(self) -> None:
        """Ends the pin, once."""
        ended, self._ended = self._ended, None
        if ended is not None:
            self._pool.ended.append(ended)
            self._pool.room.notify()

    def __del__(self) -> None:
        self.close()


class _Pending(PendingPayload):
    def __init__(self, pool: MemoryPool, item: StoredObject) -> None:
        self._memory = bytearray(item.ref.size_bytes)
        self.buffer = memoryview(self._memory)
        self._pool = pool
        self._item: StoredObject | None = item

    def seal(self) -> PayloadRef:
        """Makes the bytes immutable and returns their reference."""
        item, self._item = self._item, None
        if item is None or item.ref.key not in self._pool.objects:
            raise UnknownName("the pending payload was sealed or abandoned, or its owner has died")
        self.buffer.release()
        item.data = memoryview(self._memory).toreadonly()
        return item.ref

    def abandon(self) -> None:
        """Frees the buffer, once."""
        item, self._item = self._item, None
        if item is not None:
            self.buffer.release()
            with self._pool.lock:
                item.claims.clear()
                self._pool.reclaim(item)


class MemoryPayloads(PayloadStore):
    """The reference of the payload contract, for one owner.

    Args:
        pool: What all owners of this process share.
        owner: Worker id and incarnation, by which intents and pins are labelled.
        clock: Time, and the one place that waits.
        worker: The worker id, which all incarnations share; None: `owner` names no incarnation.
    """

    def __init__(self, pool: MemoryPool, owner: str, clock: Clock, worker: str | None = None) -> None:
        self._pool = pool
        self._owner = owner
        self._clock = clock
        self._worker = pool.workers[owner] = owner if worker is None else worker

    def capabilities(self) -> PayloadCapabilities:
        """Returns what memory guarantees: nothing beyond the process."""
        now = self._clock.monotonic()
        with self._pool.lock:
            self._pool.sweep(now)
            free = self._pool.free_for(self._owner)
        return PayloadCapabilities(
            adapter=STORE,
            durable=known(False, now),
            evictable=known(False, now),
            persistent_volume=known(False, now),
            crosses_processes=False,
            crosses_hosts=False,
            forwards_references=True,
            digest="none",
            maximum_object_bytes=self._pool.budget_bytes,
            free_bytes=known(free, now),
            copies=known(1, now),
        )

    def create(
        self, size_bytes: int, content_id: str, contract: RetentionContract, *, deadline: float
    ) -> PendingPayload | None:
        """Returns a writable buffer, or None when there was no room until the deadline."""
        item = self._room_for(size_bytes, content_id, contract, deadline)
        return None if item is None else _Pending(self._pool, item)

    def put(
        self, data: Buffer, content_id: str, contract: RetentionContract, *, deadline: float
    ) -> PayloadRef | None:
        """Keeps the object itself; nobody may write to it any more."""
        memory = memoryview(data)
        item = self._room_for(memory.nbytes, content_id, contract, deadline)
        if item is None:
            return None
        item.data = memory.cast("B").toreadonly() if memory.nbytes else memoryview(b"")
        return item.ref

    def reserve(self, size_bytes: int) -> None:
        """Keeps space that only this owner may use."""
        with self._pool.lock:
            self._pool.sweep(self._clock.monotonic())
            self._pool.reserve(self._owner, size_bytes)

    def read(
        self, ref: PayloadRef, *, deadline: float
    ) -> PayloadBytes | TransientFailure | Missing | Corrupt:
        """Returns pinned bytes, or `Missing`; nothing else can happen in one process."""
        with self._pool.lock:
            item = self._pool.find(ref)
            if item is None:
                return Missing(f"there is no object {ref.key}")
            self._pool.minted += 1
            claim = f"pin/{self._owner}/{self._pool.minted}"
            item.claims[claim] = self._owner
            return _Pin(self._pool, memoryview(item.data or b""), (ref.key, claim))

    def acquire_obligation(
        self, claims: Sequence[tuple[PayloadRef, str]], *, deadline: float
    ) -> Sequence[ObligationReceipt | Missing]:
        """Makes named claims; they have no duration here."""
        with self._pool.lock:
            receipts: list[ObligationReceipt | Missing] = []
            for ref, claim in claims:
                item = self._pool.find(ref)
                if item is None:
                    receipts.append(Missing(f"there is no object {ref.key}"))
                else:
                    item.claims[claim] = self._owner
                    receipts.append(ObligationReceipt(claim, _FOREVER))
            return receipts

    def renew_obligation(
        self, claims: Sequence[tuple[PayloadRef, str]], *, deadline: float
    ) -> Sequence[ObligationReceipt | Missing]:
        """Says which claims are in force."""
        with self._pool.lock:
            found = [(self._pool.find(ref), claim) for ref, claim in claims]
        return [
            ObligationReceipt(claim, _FOREVER)
            if item is not None and claim in item.claims
            else Missing(f"there is no claim {claim}")
            for item, claim in found
        ]

    def release_obligation(
        self,
        claims: Sequence[tuple[PayloadRef, str]],
        completion_receipt: SettleConfirmed | None,
        *,
        deadline: float,
    ) -> Sequence[ReleaseReceipt]:
        """Ends claims, idempotently; a reader's claim only with the receipt of its settlement."""
        with self._pool.lock:
            self._pool.sweep(self._clock.monotonic())
            return [self._released(ref, claim, completion_receipt) for ref, claim in claims]

    def reconcile(
        self, ledger: Mapping[str, frozenset[str]], operation_id: str, *, deadline: float
    ) -> Observation[int]:
        """Ends the claims that a ledger does not name, of the families that it speaks for.

        Intents and pins of other workers are kept, dead or alive: no ledger of ours speaks for them.
        """
        now = self._clock.monotonic()
        with self._pool.lock:
            self._pool.sweep(now)
            before = len(self._pool.objects)
            for item in [o for o in self._pool.objects.values() if o.data is not None]:
                for claim, owner in tuple(item.claims.items()):
                    family = claim.partition("/")[0]
                    theirs = family in _OWNED and not self._own(owner)
                    if family in ledger and claim not in ledger[family] and not theirs:
                        del item.claims[claim]
                self._pool.reclaim(item)
            return known(before - len(self._pool.objects), now)

    def _own(self, owner: str) -> bool:
        """Whether an owner is this one, or an earlier incarnation of the same worker."""
        return owner == self._owner or (
            owner in self._pool.dead and self._pool.workers.get(owner) == self._worker
        )

    def inventory(self, *, deadline: float) -> Observation[tuple[PayloadRef, ...]]:
        """Returns what is stored."""
        now = self._clock.monotonic()
        with self._pool.lock:
            self._pool.sweep(now)
            return known(tuple(o.ref for o in self._pool.objects.values() if o.data is not None), now)

    def _room_for(
        self, size_bytes: int, content_id: str, contract: RetentionContract, deadline: float
    ) -> StoredObject | None:
        self._require_possible(size_bytes, content_id, contract)
        pool = self._pool
        while True:
            now = self._clock.monotonic()
            with pool.lock:
                pool.sweep(now)
                item = pool.make(self._owner, size_bytes, content_id)
                if item is not None:
                    item.claims = dict.fromkeys(contract.obligations, self._owner)
                    if contract.ttl_seconds is not None:
                        item.expires_at = now + contract.ttl_seconds
                        pool.expiring[item.ref.key] = item
                    return item
            if deadline <= now:
                return None
            self._clock.wait([pool.room], deadline)

    def _require_possible(self, size_bytes: int, content_id: str, contract: RetentionContract) -> None:
        subject = f"the payload {content_id} of {size_bytes} bytes is refused"
        if size_bytes > self._pool.budget_bytes:
            raise ValueRefused(subject, cause=f"the budget is {self._pool.budget_bytes} bytes")
        if contract.durable_required:
            raise ValueRefused(subject, cause="it is to outlive the process, and memory does not")
        ttl, horizon = contract.ttl_seconds, contract.horizon_seconds
        if ttl is not None and horizon is not None and horizon > ttl and not contract.obligations:
            raise ValueRefused(
                subject,
                cause=f"it is to be readable for {horizon} s, is kept for {ttl} s, and nothing pins it",
                remedy="give it an obligation, or a longer ttl",
            )

    def _released(
        self, ref: PayloadRef, claim: str, completion_receipt: SettleConfirmed | None
    ) -> ReleaseReceipt:
        item = self._pool.objects.get(ref.key) if ref.store == STORE else None
        if item is None:
            return ReleaseReceipt(0, reclaimed=True)
        if item.ref.generation != ref.generation:
            return ReleaseReceipt(len(item.claims), reclaimed=False, stale=True)
        if completion_receipt is None and claim.partition("/")[0] not in _WITHOUT_RECEIPT:
            raise ContractBroken(f"the claim {claim} is a reader's: it ends with its settlement's receipt")
        item.claims.pop(claim, None)
        remaining = len(item.claims) + item.holds
        return ReleaseReceipt(remaining, reclaimed=self._pool.reclaim(item))
