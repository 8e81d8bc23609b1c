"""One channel: what was announced, the room of its partitions, the writers' ends.

Used by the broker. It refuses a writer or a partition that was not provisioned.
"""

from collections.abc import Callable, Sequence
from typing import Protocol

import msgspec

from videoflow.backends.coverage import Coverage
from videoflow.backends.memory._cells import Entry
from videoflow.backends.memory._subscription import Subscription
from videoflow.backends.messaging import ChannelSpec, ChannelStatus, Envelope, Kind, announced_fate
from videoflow.backends.outcomes import Accepted, Durability, PublicationOutcome, Rejected, RejectReason
from videoflow.backends.payload import PayloadRef
from videoflow.errors import ContractBroken, UnknownName
from videoflow.ids import hash_id


class Holds(Protocol):
    """The payload pool, as the log sees it: entries hold their payloads until settled."""

    def hold(self, refs: Sequence[PayloadRef], count: int) -> None:
        """Adds so many holds to each; raises `UnknownName` for an object that is not there."""
        ...

    def unhold(self, refs: Sequence[PayloadRef]) -> None:
        """Takes one hold from each; what nobody holds or claims is reclaimed."""
        ...

    def end_claim(self, refs: Sequence[PayloadRef], claim: str) -> None:
        """Ends a claim; what nobody holds or claims is reclaimed."""
        ...

    def owner_died(self, owner: str) -> None:
        """Ends the pins of an owner, and leaves its intents to `reconcile`."""
        ...


class _Slot:
    """One planned writer."""

    __slots__ = ("end", "epoch", "next")

    def __init__(self) -> None:
        self.epoch = -1
        self.next = 0
        self.end: tuple[Kind, int] | None = None


class Channel:
    """The log of one port in one layout. Every call is made under the broker's lock.

    Attributes:
        sealed: Each planned writer has ended.
        aborted: Some writer ended with an abort.
    """

    def __init__(self, spec: ChannelSpec, holds: Holds | None, generation: str) -> None:
        self.spec = spec
        self.generation = generation
        self.sealed = not spec.slots
        self.aborted = False
        self.announced = Coverage()
        self.slots = [_Slot() for _ in range(spec.slots)]
        self.subscriptions = {name: Subscription(name, self) for name in spec.subscriptions}
        self.waiting_for_room: dict[str, Callable[[], None]] = {}
        self._holds = holds
        partitions = range(spec.channel.layout.partitions)
        self._readers = [
            [s for s in self.subscriptions.values() if s.id.partition in (None, p)] for p in partitions
        ]
        self._used_items = [0 for _ in partitions]
        self._used_bytes = [0 for _ in partitions]
        self._appended = 0
        self._places = [0 for _ in partitions]
        for subscription in self.subscriptions.values():
            subscription.group = self._group(subscription)

    # Publishing -------------------------------------------------------------------------------

    def accept(self, statement: Sequence[Envelope], now: float) -> list[PublicationOutcome] | None:
        """Appends one statement, all of it or nothing; None when there is no room."""
        slot = self._slot(statement)
        epoch = statement[0].writer.epoch
        if epoch < slot.epoch:
            return _rejected(statement, RejectReason.STALE)
        fresh = self._fresh(statement)
        if fresh is not None:
            if slot.end is not None:
                return _rejected(statement, RejectReason.SEALED)
            if not self._fits(fresh):
                return None
            if self._holds is not None:
                self._hold(fresh, self._holds)
        slot.epoch = epoch
        if fresh is None:
            return [_duplicate(envelope) for envelope in statement]
        return [
            self._append(slot, envelope, now) if envelope is not None else _duplicate(said)
            for said, envelope in zip(statement, fresh, strict=True)
        ]

    def tell_readers(self) -> None:
        """Wakes who waits for what was appended."""
        for subscription in self.subscriptions.values():
            subscription.notify()

    def _group(self, subscription: Subscription) -> tuple[Subscription, ...]:
        """Returns the partitions of one reader, whose window is one."""
        name = subscription.id
        if name.partition is None or len(self._readers) == 1:
            return ()
        return tuple(s for s in self.subscriptions.values() if s.id.reader == name.reader)

    def _slot(self, statement: Sequence[Envelope]) -> _Slot:
        number = statement[0].writer.slot
        if not 0 <= number < len(self.slots):
            raise ContractBroken(f"{self.spec.channel} has {len(self.slots)} writers, and no number {number}")
        for envelope in statement:
            if not 0 <= envelope.partition < len(self._readers):
                raise ContractBroken(f"{self.spec.channel} has no partition {envelope.partition}")
        return self.slots[number]

    def _hold(self, statement: Sequence[Envelope | None], holds: Holds) -> None:
        """Makes the payloads of a statement the log's own, before anything is appended."""
        held: list[tuple[Sequence[PayloadRef], int]] = []
        for envelope in statement:
            if envelope is None or not envelope.payloads:
                continue
            count = len(self._readers[envelope.partition])
            try:
                holds.hold(envelope.payloads, count)
            except UnknownName:
                for refs, times in held:
                    for _ in range(times):
                        holds.unhold(refs)
                raise
            held.append((envelope.payloads, count))

    def _fresh(self, statement: Sequence[Envelope]) -> Sequence[Envelope | None] | None:
        """Returns, for each envelope, what was not announced before, or None; None when all was."""
        fresh: list[Envelope | None] = []
        for envelope in statement:
            if envelope.intervals:
                fresh.append(self._fresh_part(envelope))
            elif announced_fate(envelope) is None:
                fresh.append(envelope)
            elif self.announced.covers(envelope.origin, envelope.path):
                return None
            else:
                fresh.append(envelope)
        return fresh if any(fresh) else None

    def _fresh_part(self, envelope: Envelope) -> Envelope | None:
        origin = envelope.origin
        closed = self.announced.origin(origin.node, origin.epoch).closed
        left = tuple(gap for first, last in envelope.intervals for gap in closed.missing(first, last))
        if left == envelope.intervals:
            return envelope
        if not left:
            return None
        return msgspec.structs.replace(envelope, intervals=left, origin=origin._replace(ordinal=left[0][0]))

    def _fits(self, statement: Sequence[Envelope | None]) -> bool:
        """Whether the items fit; what is larger than the bound passes alone."""
        items: dict[int, tuple[int, int]] = {}
        for envelope in statement:
            if envelope is not None and envelope.kind is Kind.DATA:
                count, size = items.get(envelope.partition, (0, 0))
                items[envelope.partition] = count + 1, size + envelope.size_bytes
        bounds = self.spec.bounds
        for partition, (count, size) in items.items():
            used = self._used_items[partition]
            if used and (
                used + count > bounds.items or self._used_bytes[partition] + size > bounds.size_bytes
            ):
                return False
        return True

    def _append(self, slot: _Slot, envelope: Envelope, now: float) -> Accepted:
        sequence = slot.next
        slot.next += 1
        partition = envelope.partition
        place = self._places[partition]
        entry = Entry(envelope, (envelope.writer.slot, sequence), now, self._appended, place)
        self._appended += 1
        self._places[partition] += 1
        fate = announced_fate(envelope)
        origin = envelope.origin
        if fate is not None and envelope.intervals:
            self.announced.close_intervals(origin.node, origin.epoch, envelope.intervals, fate)
        elif fate is not None:
            self.announced.close(origin, envelope.path, fate)
        for reader in self._readers[envelope.partition]:
            reader.append(entry)
        if entry.blocking and entry.data:
            self._used_items[envelope.partition] += 1
            self._used_bytes[envelope.partition] += envelope.size_bytes
        return Accepted(envelope.publication_id, sequence, duplicate=False, durability=Durability.MEMORY)

    # Room -------------------------------------------------------------------------------------

    def unblock(self, entry: Entry) -> None:
        """A reliable subscription no longer needs the room of an entry."""
        entry.blocking -= 1
        if entry.blocking or not entry.data:
            return
        self._used_items[entry.envelope.partition] -= 1
        self._used_bytes[entry.envelope.partition] -= entry.envelope.size_bytes
        self.tell_writers()

    def tell_writers(self) -> None:
        """Wakes the writers that wait for room."""
        for notify in tuple(self.waiting_for_room.values()):
            notify()

    def unhold(self, entry: Entry) -> None:
        """A subscription no longer needs the payloads of an entry."""
        if entry.envelope.payloads and self._holds is not None:
            self._holds.unhold(entry.envelope.payloads)

    # Ends -------------------------------------------------------------------------------------

    def terminate(self, number: int, epoch: int, kind: Kind) -> list[PublicationOutcome]:
        """Stamps the end of a writer; the first stamp stands."""
        slot = self.slots[number]
        channel = self.spec.channel
        partitions = range(channel.layout.partitions)
        ids = [hash_id(channel.run_id, channel.node, channel.port, number, p, "end") for p in partitions]
        if epoch < slot.epoch:
            return [Rejected(name, RejectReason.STALE, retryable=False) for name in ids]
        slot.epoch = epoch
        duplicate = slot.end is not None
        if slot.end is None:
            slot.end = kind, slot.next
            slot.next += 1
            self.sealed = all(each.end is not None for each in self.slots)
            self.aborted |= kind is Kind.ABORT
            for subscription in self.subscriptions.values():
                subscription.tell(self.sealed)
                subscription.move_on()
        _, sequence = slot.end
        return [Accepted(name, sequence, duplicate=duplicate, durability=Durability.MEMORY) for name in ids]

    def last(self) -> dict[int, int]:
        """Returns, per slot, the last position appended, its terminator included."""
        return {number: slot.next - 1 for number, slot in enumerate(self.slots)}

    def status(self) -> ChannelStatus:
        """Returns what the channel holds."""
        first: dict[int, int | None] = dict.fromkeys(range(len(self.slots)))
        for subscription in self.subscriptions.values():
            for slot, floor in subscription.floors(self.last()).items():
                held = first[slot]
                if floor < self.slots[slot].next - 1:
                    first[slot] = floor + 1 if held is None else min(held, floor + 1)
        return ChannelStatus(
            first=first,
            last=self.last(),
            items=sum(self._used_items),
            size_bytes=sum(self._used_bytes),
            terminators={number: slot.end[0] for number, slot in enumerate(self.slots) if slot.end},
            sealed=self.sealed,
        )

    def drop(self) -> None:
        """Gives back what the log holds, when the channel is removed."""
        for subscription in self.subscriptions.values():
            for cell in subscription.cells.values():
                if cell.tombstone is None:
                    self.unhold(cell.entry)


def _duplicate(envelope: Envelope) -> Accepted:
    """No list of ids is kept (rule 14), so that the place of the first one is not known."""
    return Accepted(envelope.publication_id, -1, duplicate=True, durability=Durability.MEMORY)


def _rejected(statement: Sequence[Envelope], reason: RejectReason) -> list[PublicationOutcome]:
    return [Rejected(envelope.publication_id, reason, retryable=False) for envelope in statement]
