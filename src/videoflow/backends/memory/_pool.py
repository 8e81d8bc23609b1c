"""The objects of one process: their bytes, who claims them, and the budget that they share.

Used by the payload store. It refuses an object that was never made, and one that never fits.
"""

import threading
from collections import deque
from collections.abc import Sequence
from typing import Final

from videoflow.backends.payload import PayloadRef
from videoflow.clock import Signal
from videoflow.errors import MemoryShort, UnknownName

STORE: Final = "memory"


class StoredObject:
    """One object.

    Attributes:
        ref: Its reference.
        data: Its bytes; None until it is sealed.
        owner: Who made it, and whose use of space it is.
        claims: Obligation → who made it.
        holds: How many subscriptions the log keeps it for.
        expires_at: Monotonic seconds from which it goes although nobody ever claimed it.
    """

    __slots__ = ("claims", "data", "expires_at", "holds", "owner", "ref")

    def __init__(self, ref: PayloadRef, owner: str) -> None:
        self.ref = ref
        self.owner = owner
        self.data: memoryview | None = None
        self.claims: dict[str, str] = {}
        self.holds = 0
        self.expires_at = float("inf")


class MemoryPool:
    """The objects of one process, within a budget in bytes. What all owners' stores share.

    Args:
        budget_bytes: What the objects may take together; reserved space counts.
    """

    def __init__(self, budget_bytes: int) -> None:
        self.budget_bytes = budget_bytes
        self.lock = threading.Lock()
        self.room = Signal(self._may_have_room)
        self.ended: deque[tuple[str, str]] = deque()
        self.objects: dict[str, StoredObject] = {}
        self.expiring: dict[str, StoredObject] = {}
        self.dead: set[str] = set()
        self.workers: dict[str, str] = {}
        self.minted = 0
        self._stirred = False
        self._used = 0
        self._used_by: dict[str, int] = {}
        self._reserved: dict[str, int] = {}

    # What the log calls (`Holds`).

    def hold(self, refs: Sequence[PayloadRef], count: int) -> None:
        """Adds so many holds to each object, or to none when one is not there."""
        with self.lock:
            found = [self._required(ref) for ref in refs if ref.store == STORE]
            for item in found:
                item.holds += count

    def unhold(self, refs: Sequence[PayloadRef]) -> None:
        """Takes one hold from each object."""
        with self.lock:
            for ref in refs:
                item = self.find(ref)
                if item is not None:
                    item.holds -= 1
                    self.reclaim(item)

    def end_claim(self, refs: Sequence[PayloadRef], claim: str) -> None:
        """Ends one claim on each object."""
        with self.lock:
            for ref in refs:
                item = self.find(ref)
                if item is not None and item.claims.pop(claim, None) is not None:
                    self.reclaim(item)

    def owner_died(self, owner: str) -> None:
        """Ends what an owner reserved, pinned and did not seal; its intents wait for `reconcile`."""
        with self.lock:
            self.dead.add(owner)
            self._reserved.pop(owner, None)
            for item in tuple(self.objects.values()):
                pins = [c for c, by in item.claims.items() if by == owner and c.startswith("pin/")]
                for claim in pins:
                    del item.claims[claim]
                if item.data is None and item.owner == owner:
                    item.claims.clear()
                if pins or item.owner == owner:
                    self.reclaim(item)
            self._stir()

    # What the stores call; under the lock.

    def _required(self, ref: PayloadRef) -> StoredObject:
        item = self.find(ref)
        if item is None:
            raise UnknownName(f"there is no payload {ref.key} (of {ref.content_id})")
        return item

    def find(self, ref: PayloadRef) -> StoredObject | None:
        """Returns the object that a reference names, of its very generation."""
        item = self.objects.get(ref.key) if ref.store == STORE else None
        return None if item is None or item.data is None or item.ref.generation != ref.generation else item

    def free_for(self, owner: str) -> int:
        """Returns the bytes that an owner may take: what is free, and what others did not reserve."""
        kept = sum(
            max(0, size - self._used_by.get(other, 0))
            for other, size in self._reserved.items()
            if other != owner
        )
        return self.budget_bytes - self._used - kept

    def reserve(self, owner: str, size_bytes: int) -> None:
        """Keeps space for an owner; raises `MemoryShort`."""
        reserved = sum(self._reserved.values())
        if reserved + size_bytes > self.budget_bytes or size_bytes > self.free_for(owner):
            raise MemoryShort(
                f"{size_bytes} bytes cannot be reserved for {owner}",
                cause=f"the budget is {self.budget_bytes} bytes, {reserved} of them reserved already",
                remedy="raise --memory-bytes, or lower replicas, prefetch or batch",
            )
        self._reserved[owner] = self._reserved.get(owner, 0) + size_bytes

    def make(self, owner: str, size_bytes: int, content_id: str) -> StoredObject | None:
        """Returns a new object without bytes, whose space is counted, or None when there is no room."""
        if size_bytes > self.free_for(owner):
            return None
        self.minted += 1
        ref = PayloadRef(STORE, str(self.minted), size_bytes, "", self.minted, content_id)
        item = self.objects[ref.key] = StoredObject(ref, owner)
        self._used += size_bytes
        self._used_by[owner] = self._used_by.get(owner, 0) + size_bytes
        return item

    def reclaim(self, item: StoredObject) -> bool:
        """Removes an object that nobody holds or claims; returns whether it is gone."""
        if item.holds > 0 or item.claims:
            return False
        if self.objects.pop(item.ref.key, None) is not None:
            self.expiring.pop(item.ref.key, None)
            self._used -= item.ref.size_bytes
            self._used_by[item.owner] -= item.ref.size_bytes
            if not self._used_by[item.owner]:
                del self._used_by[item.owner]
            self._stir()
        return True

    def sweep(self, now: float) -> None:
        """Ends the pins of collected arrays; removes what is past its ttl and nobody claims."""
        self._stirred = False
        while self.ended:
            key, claim = self.ended.popleft()
            item = self.objects.get(key)
            if item is not None and item.claims.pop(claim, None) is not None:
                self.reclaim(item)
        for item in [o for o in self.expiring.values() if o.expires_at <= now]:
            self.reclaim(item)

    def _stir(self) -> None:
        self._stirred = True
        self.room.notify()

    def _may_have_room(self) -> bool:
        return self._stirred or bool(self.ended)
