"""One subscription of a channel: what waits, what is leased, what was settled.

Used by the receiver and by channels. It refuses nothing: who may do what is judged by the receiver.
"""

import heapq
import math
from collections import OrderedDict, deque
from collections.abc import Callable, Mapping
from typing import Protocol

from videoflow import faults
from videoflow.backends.coverage import Cause, Coverage, Fate
from videoflow.backends.memory._cells import NOT_DISPATCHED, Cell, Entry
from videoflow.backends.messaging import (
    Envelope,
    LiveSubscriptionSpec,
    SubscriptionId,
    SubscriptionKind,
    SubscriptionSpec,
    announced_fate,
    buried_fate,
)

Position = tuple[int, int]
_REMEMBERED = 4096


class Room(Protocol):
    """What a subscription gives back to its channel."""

    def unblock(self, entry: Entry) -> None:
        """A reliable subscription no longer needs the room of an entry."""
        ...

    def unhold(self, entry: Entry) -> None:
        """A subscription no longer needs the payloads of an entry."""
        ...


def _close(coverage: Coverage, cell: Cell, fate: Fate) -> None:
    envelope, ordinals = cell.entry.envelope, cell.ordinals
    intervals = envelope.intervals if ordinals is None else ordinals.intervals()
    if intervals:
        coverage.close_intervals(envelope.origin.node, envelope.origin.epoch, intervals, fate)
    else:
        coverage.close(envelope.origin, envelope.path, fate)


class Subscription:
    """What one logical reader has not settled. Every call is made under the broker's lock.

    Items wait in `queue` in order of append; what comes back from an owner waits in `returned` and goes
    first; what is to be retried waits in `delayed` for its time.
    """

    def __init__(self, subscription: SubscriptionId, room: Room) -> None:
        self.id = subscription
        self.exclusive = subscription.kind is SubscriptionKind.EXCLUSIVE
        self.spec: SubscriptionSpec | None = None
        self.live: LiveSubscriptionSpec | None = None
        self.cells: dict[Position, Cell] = {}
        self.leased: dict[Position, Cell] = {}
        self.settled = Coverage()
        self._taken = Coverage()
        self.owner: str | None = None
        self.epoch = -1
        self.evicted = 0
        self.version = 0
        self.listeners: dict[str, list[Callable[[], None]]] = {}
        self.group: tuple[Subscription, ...] = ()
        self._room = room
        self._progress = (False, False)
        self._queue: OrderedDict[int, Cell] = OrderedDict()
        self._returned: list[Cell] = []
        self._delayed: list[tuple[float, Cell]] = []
        self._by_key: dict[str, deque[Cell]] = {}
        self._graves: dict[tuple[int, str, int, Cause], Cell] = {}
        self._window: deque[Cell] = deque()
        self._dispatched = 0
        self._held_items = 0
        self._held_bytes = 0
        self._resettled: OrderedDict[Position, tuple[int, int]] = OrderedDict()

    # Appending and evicting -------------------------------------------------------------------

    def specify(self, spec: SubscriptionSpec) -> None:
        """Takes a specification, for what waits already, too."""
        first = self.spec is None
        self.spec = spec
        outstanding = [cell for cell in self.cells.values() if cell.dispatch != NOT_DISPATCHED]
        self._window = deque(sorted(outstanding, key=lambda cell: cell.dispatch))
        if isinstance(spec, LiveSubscriptionSpec):
            self.live = spec
            for cell in tuple(self._queue.values()) if first else ():
                self._room.unblock(cell.entry)
                self._limit(cell)
        self.notify()

    def append(self, entry: Entry) -> None:
        """Takes what the channel accepted."""
        if self.id.slot is not None and not entry.data:
            self._account(entry.envelope)
            return
        cell = Cell(entry)
        self.cells[entry.position] = cell
        self._queue[entry.order] = cell
        if self.live is None:
            entry.blocking += 1
        else:
            self._limit(cell)

    def _account(self, envelope: Envelope) -> None:
        """Notes what a broadcast does not hand out: all that is no item."""
        fate = announced_fate(envelope)
        if fate is None:
            return
        origin = envelope.origin
        if envelope.intervals:
            self.settled.close_intervals(origin.node, origin.epoch, envelope.intervals, fate)
        else:
            self.settled.close(origin, envelope.path, fate)

    def _limit(self, cell: Cell) -> None:
        """Keeps the newest `capacity` items of a key; an older one becomes a tombstone (rule 11)."""
        if self.live is None or not cell.entry.data:
            return
        key = self._key(cell)
        waiting = self._by_key.setdefault(key, deque())
        waiting.append(cell)
        while len(waiting) > self.live.capacity:
            self._bury(waiting.popleft(), Cause.DROPPED)

    def _key(self, cell: Cell) -> str:
        envelope = cell.entry.envelope
        if self.live is None or self.live.latest_key is None:
            return ""
        if self.live.latest_key == "source":
            return envelope.source or envelope.origin.node
        return envelope.key

    def _bury(self, cell: Cell, cause: Cause) -> None:
        faults.reach("tombstone.before")
        cell.bury(cause)
        self.evicted += 1
        envelope = cell.entry.envelope
        self.settled.close(envelope.origin, envelope.path, buried_fate(cause))
        self._room.unhold(cell.entry)
        if self.id.slot is not None:  # a broadcast leaves no tombstone
            self._queue.pop(cell.entry.order, None)
            del self.cells[cell.entry.position]
            return
        if cell.ordinals is None or self.group:  # partitions' window would count from the first of many
            return
        grave_key = (cell.entry.position[0], envelope.origin.node, envelope.origin.epoch, cause)
        grave = self._graves.setdefault(grave_key, cell)
        if grave is not cell and grave.ordinals is not None:
            grave.ordinals.update(cell.ordinals)
            del self._queue[cell.entry.order], self.cells[cell.entry.position]

    # Leasing ----------------------------------------------------------------------------------

    def take(self, owner: str, now: float, limit: float = math.inf) -> list[Cell]:
        """Leases what may be handed out, in order, at most `limit`."""
        taken: list[Cell] = []
        while len(taken) < limit:
            cell = self._head(now)
            if cell is None or not self._admits(cell):
                break
            self._lease(cell, owner)
            taken.append(cell)
        return taken

    def held_after(self, after: Mapping[int, int]) -> list[Cell]:
        """Returns what is leased above these positions, in order of append."""
        held: list[Cell] = []
        for cell in reversed(self.leased.values()):
            slot, sequence = cell.entry.position
            if sequence > after.get(slot, -1):
                held.append(cell)
            elif len(after) == 1:
                break
        return sorted(held)

    def ready(self, now: float) -> bool:
        """Returns whether `take` would return something."""
        cell = self._head(now)
        return cell is not None and self._admits(cell)

    def due_at(self) -> float:
        """Returns when the next delayed item comes back, infinite for never."""
        return self._delayed[0][0] if self._delayed else math.inf

    def _head(self, now: float) -> Cell | None:
        while self._delayed and self._delayed[0][0] <= now:
            heapq.heappush(self._returned, heapq.heappop(self._delayed)[1])
        if self._returned:
            return self._returned[0]
        while self._queue:
            cell = next(iter(self._queue.values()))
            if self._expired(cell, now):
                self._unlist(cell)
                self._bury(cell, Cause.EXPIRED)
                continue
            return cell
        return None

    def _expired(self, cell: Cell, now: float) -> bool:
        live = self.live
        if live is None or live.max_age_seconds is None or not cell.takes_credit:
            return False
        return now - cell.entry.arrived_at > live.max_age_seconds

    def _admits(self, cell: Cell) -> bool:
        spec = self.spec
        if spec is None:
            return False
        if spec.spread is not None and cell.dispatch == NOT_DISPATCHED:
            if self.group:
                if cell.entry.place - min(s.oldest(cell) for s in self.group) >= spec.spread:
                    return False
            elif self._is_spread_out(spec.spread):
                return False
        if not self._held_items or not cell.takes_credit:
            return True
        return (
            self._held_items < spec.credit.items
            and self._held_bytes + cell.entry.envelope.size_bytes <= spec.credit.size_bytes
        )

    def _is_spread_out(self, spread: int) -> bool:
        window = self._window
        while window and window[0].settled:
            window.popleft()
        return bool(window) and self._dispatched - window[0].dispatch >= spread

    def oldest(self, cell: Cell) -> int:
        """Returns the place of the first entry that is not settled here, or that of `cell`."""
        return next(iter(self.cells.values()), cell).entry.place

    def _lease(self, cell: Cell, owner: str) -> None:
        if self._returned and self._returned[0] is cell:
            heapq.heappop(self._returned)
        else:
            self._queue.popitem(last=False)
            self._unlist(cell)
        if cell.dispatch == NOT_DISPATCHED:
            cell.dispatch = self._dispatched
            self._dispatched += 1
            if self.spec is not None and self.spec.spread is not None and not self.group:
                self._window.append(cell)
        cell.owner = owner
        cell.generation += 1
        self.leased[cell.entry.position] = cell
        if cell.takes_credit:
            self._held_items += 1
            self._held_bytes += cell.entry.envelope.size_bytes

    def _unlist(self, cell: Cell) -> None:
        """What is handed out, or buried, is no longer the latest of its key, or a grave to add to."""
        if self.live is None:
            return
        key = self._key(cell)
        waiting = self._by_key.get(key)
        if waiting and waiting[0] is cell:
            waiting.popleft()
            if not waiting:
                del self._by_key[key]
        if cell.tombstone is not None:
            origin = cell.entry.envelope.origin
            grave_key = (cell.entry.position[0], origin.node, origin.epoch, cell.tombstone)
            if self._graves.get(grave_key) is cell:
                del self._graves[grave_key]

    def _end_lease(self, cell: Cell) -> None:
        cell.owner = None
        del self.leased[cell.entry.position]
        if cell.takes_credit:
            self._held_items -= 1
            self._held_bytes -= cell.entry.envelope.size_bytes

    def give_back(self, cell: Cell, *, charged: bool, due_at: float = -math.inf) -> None:
        """Ends a lease without settling; `charged` when its holder died with it."""
        self._end_lease(cell)
        cell.transport_count += charged
        if due_at > -math.inf:
            heapq.heappush(self._delayed, (due_at, cell))
        else:
            heapq.heappush(self._returned, cell)

    def release(self, owner: str) -> bool:
        """Ends the leases of a dead owner; returns whether there were any."""
        if self.owner == owner:
            self.owner = None
        held = [cell for cell in self.leased.values() if cell.owner == owner]
        for cell in held:
            self.give_back(cell, charged=True)
        return bool(held)

    # Settling ---------------------------------------------------------------------------------

    def settle(self, cell: Cell, fate: Fate | None) -> None:
        """Ends a leased item, in the ledger, too."""
        self._end_lease(cell)
        cell.settled = True
        position = cell.entry.position
        del self.cells[position]
        if cell.generation > 1:
            self._resettled[position] = (cell.transport_count, cell.generation)
            if len(self._resettled) > _REMEMBERED:
                self._resettled.popitem(last=False)
        if self.live is None:
            self._room.unblock(cell.entry)
        if cell.tombstone is not None:
            _close(self._taken, cell, buried_fate(cell.tombstone))
            return
        if fate is not None:
            _close(self.settled, cell, fate)
            if self.live is not None:
                _close(self._taken, cell, fate)
        self._room.unhold(cell.entry)

    def settled_by_reader(self) -> Coverage:
        """Returns what the reader itself settled: no tombstone that still waits for it."""
        return self.settled if self.live is None else self._taken

    def settled_by(self, position: Position) -> tuple[int, int] | None:
        """Returns (transport count, generation) of the lease that settled a position, if not the first."""
        return self._resettled.get(position)

    # Looking ----------------------------------------------------------------------------------

    def waiting(self) -> int:
        """Returns how many are not leased."""
        return len(self.cells) - len(self.leased)

    def floors(self, last: Mapping[int, int]) -> dict[int, int]:
        """Returns, per slot, the greatest sequence up to which all is settled; `last` are the last ones."""
        floors = dict(last)
        unseen = set(last)
        for slot, sequence in self.cells:
            if slot in unseen:
                unseen.discard(slot)
                floors[slot] = sequence - 1
                if not unseen:
                    break
        return floors

    def progress(self, ended: bool) -> tuple[bool, bool]:
        """Returns (drained, finished), where `ended` says that each writer has its terminator."""
        return ended and len(self.cells) == len(self.leased), ended and not self.cells

    def tell(self, ended: bool) -> None:
        """Wakes who waits when the progress has changed since the last time."""
        progress = self.progress(ended)
        if progress != self._progress:
            self._progress = progress
            self.move_on()

    def move_on(self) -> None:
        """Says that the status has changed."""
        self.version += 1
        self.notify()

    def notify(self) -> None:
        """Wakes whoever waits for this subscription."""
        for listeners in self.listeners.values():
            for listener in listeners:
                listener()
