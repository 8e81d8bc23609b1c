"""What a reader replica holds of a subscription: its leases, what they cost in credit, what they become.

Used by the reader's end of a subscription. It refuses to lease beyond the credit where it is told to look.
"""

from collections import deque
from collections.abc import Iterable, Mapping, Sequence

import msgspec

from videoflow.adapters.shm._feeds import ProcessParts
from videoflow.adapters.shm._layout import ChannelPlace, SubscriptionPlace
from videoflow.adapters.shm._ledger import cause_code, cause_of
from videoflow.adapters.shm._log import (
    RECEIVED,
    RECORD,
    SETTLED,
    cell,
    is_settled,
    read_record,
    unpack_record,
)
from videoflow.adapters.shm._slab import Slot, slot_of
from videoflow.adapters.shm._tombstones import tombstone
from videoflow.backends.coverage import Cause
from videoflow.backends.messaging import Delivery, DeliveryToken, Envelope, Kind, LiveSubscriptionSpec
from videoflow.wire import decode_envelope

Place = tuple[int, int]  # writer slot, sequence
Given = tuple[int, int, int]  # sequence, transport count, code of a cause
_token = tuple.__new__  # a named tuple's own constructor takes as long as all else
_ONCE_RECEIVED, _ONCE_SETTLED = cell(0, 1, RECEIVED), cell(0, 1, SETTLED)
_DATA = tuple(Kind).index(Kind.DATA)
_DROPPED = cause_code(Cause.DROPPED)


class Held(msgspec.Struct, gc=False):
    """A lease.

    Attributes:
        delivery: What was handed out.
        size: Its cost in credit, -1 for none.
        slots: The payload slots that it needs.
        sequences: The records that it stands for: one, or a run of tombstones.
        cause: Code of a tombstone's cause, else 0.
    """

    delivery: Delivery
    size: int
    slots: tuple[Slot, ...]
    sequences: Sequence[int]
    cause: int = 0


class Leases:
    """What one replica of a subscription holds of the records that writers have for it.

    Args:
        process: Log, sockets, clock and holds of this process.
        number: Of the subscription.
        place: Of the channel and of the subscription.
        replica: Which reader replica this is.
        incarnation: Of this process, for its tokens.
    """

    def __init__(
        self,
        process: ProcessParts,
        number: int,
        place: tuple[ChannelPlace, SubscriptionPlace],
        replica: int,
        incarnation: int,
    ) -> None:
        self._process = process
        self._words = process.log.words
        self.number = number
        self.channel, self.place = place
        self.spec = self.place.spec
        self.subscription = self.spec.subscription
        self.generation = incarnation
        self.rings = self.channel.rings
        self._masks = [ring.slots - 1 for ring in self.rings]
        self.cells = self.place.cells[replica - self.place.first]
        self.peers = [(self.channel.writer, slot) for slot in range(len(self.rings))]
        self.heads = [0] * len(self.rings)
        self.held: dict[Place, Held] = {}
        self._items = 0
        self._bytes = 0
        self._evicted = 0
        age = self.spec.max_age_seconds if isinstance(self.spec, LiveSubscriptionSpec) else None
        self._age = float("inf") if age is None else age

    def is_settled(self, place: Place) -> bool:
        """Returns whether this replica settled a sequence."""
        slot, sequence = place
        return is_settled(self._words[self.cells[slot] + (sequence & self._masks[slot])], sequence)

    def _unsettled(self, slot: int, first: int, limit: int) -> list[tuple[int, int]]:
        """Returns what a slot has from a sequence on: (sequence, how often it was handed out, then)."""
        words, cells, mask = self._words, self.cells[slot], self._masks[slot]
        found: list[tuple[int, int]] = []
        for sequence in range(first, self.heads[slot]):
            if len(found) == limit:
                break
            word = words[cells + (sequence & mask)]
            if word >> 16 < sequence:
                found.append((sequence, 1))
            elif not is_settled(word, sequence):
                found.append((sequence, (word >> 8 & 255) + 1))
        return found

    def _lease(
        self, slot: int, wanted: Iterable[tuple[int, int]], *, limited: bool = False
    ) -> list[Delivery]:
        """Leases records, of which each is (sequence, transport count); what is held is handed out as it is.

        Args:
            slot: Whose they are.
            wanted: In their order.
            limited: Only as far as the credit goes.
        """
        words, view, leases = self._words, self._process.log.bytes, self.held
        ring, cells, mask = self.rings[slot], self.cells[slot], self._masks[slot]
        channel, subscription, generation = self.channel.spec.channel, self.subscription, self.generation
        name, oldest = f"{self.number}.{slot}.", self._process.clock.monotonic() - self._age
        index, offset, length_of_ring, header = ring.index, ring.offset, ring.size, RECORD.size
        found: list[Delivery] = []
        for sequence, count in wanted:
            place = (slot, sequence)
            lease = leases.get(place)
            if lease is None:
                start = offset + words[index + (sequence & mask)] % length_of_ring
                length, kind, arrived, size = unpack_record(view, start)
                start += header
                if kind != _DATA:
                    size = -1
                elif limited and self._items and not self._affords(size):
                    break
                envelope = decode_envelope(view[start : start + length], channel)
                if arrived < oldest and kind == _DATA and count == 1:
                    found.append(
                        self._buried(slot, [sequence], count, arrived, tombstone([envelope], Cause.EXPIRED))
                    )
                    continue
                words[cells + (sequence & mask)] = (
                    sequence << 16 | _ONCE_RECEIVED if count == 1 else cell(sequence, count, RECEIVED)
                )
                token = _token(DeliveryToken, (subscription, f"{name}{sequence}", place, count, generation))
                lease = leases[place] = Held(Delivery(token, envelope, arrived), size, (), (sequence,))
                if envelope.payloads:
                    lease.slots = self._taken(envelope)
                if size >= 0:
                    self._items += 1
                    self._bytes += size
            found.append(lease.delivery)
        return found

    def _taken(self, envelope: Envelope) -> tuple[Slot, ...]:
        """Returns the payload slots of an envelope, needed here from now on."""
        slots = tuple(map(slot_of, envelope.payloads))
        for slot in slots:
            self._process.holds.take(slot)
        return slots

    def _bury(self, slot: int, queue: deque[Given]) -> Delivery:
        """Leases a run of tombstones of one origin, the first of what was given, as one skip."""
        (sequence, count, cause), channel = queue.popleft(), self.channel.spec.channel
        data, _, arrived, _ = read_record(self._process.log, self.rings[slot], sequence)
        run, sequences = [decode_envelope(data, channel)], [sequence]
        alike = (count, cause) if cause == _DROPPED else None
        while queue and queue[0][1:] == alike and queue[0][0] == sequences[-1] + 1:
            data, _, _, _ = read_record(self._process.log, self.rings[slot], queue[0][0])
            envelope = decode_envelope(data, channel)
            if run[0].path or envelope.path or envelope.origin[:2] != run[0].origin[:2]:
                break
            run.append(envelope)
            sequences.append(queue.popleft()[0])
        return self._buried(slot, sequences, count, arrived, tombstone(run, cause_of(cause)))

    def _buried(
        self, slot: int, sequences: list[int], count: int, arrived: float, envelope: Envelope
    ) -> Delivery:
        for sequence in sequences:
            at = self.cells[slot] + (sequence & self._masks[slot])
            self._words[at] = cell(sequence, count, RECEIVED)
        self._evicted += len(sequences)
        place = slot, sequences[-1]
        token = DeliveryToken(
            self.subscription, f"{self.number}.{slot}.{place[1]}", place, count, self.generation
        )
        cause = cause_code(envelope.cause or Cause.DROPPED)
        lease = self.held[place] = Held(Delivery(token, envelope, arrived), -1, (), sequences, cause)
        return lease.delivery

    def settled(self, slot: int, leases: Mapping[int, Held]) -> list[Slot]:
        """Ends leases of a slot whose settlement is committed, by their sequences.

        Returns:
            The payload slots that came with them and are still needed here.
        """
        words, cells, mask, held = self._words, self.cells[slot], self._masks[slot], self.held
        lender, holds = self.peers[slot], self._process.holds
        kept: list[Slot] = []
        items = size = 0
        for place, lease in leases.items():
            count = lease.delivery.token.transport_count
            if count == 1 and not lease.cause:
                words[cells + (place & mask)] = place << 16 | _ONCE_SETTLED
            else:
                for sequence in lease.sequences:
                    words[cells + (sequence & mask)] = cell(sequence, count, SETTLED)
            del held[slot, place]
            if lease.size >= 0:
                items += 1
                size += lease.size
            for payload in lease.slots:
                holds.drop(payload)
            if lease.slots:
                kept += [payload for payload in set(lease.slots) if holds.keep(lender, payload)]
        self._items -= items
        self._bytes -= size
        return kept

    def _affords(self, size: int) -> bool:
        credit = self.spec.credit
        if self._items == 0:
            return True
        return self._items < credit.items and self._bytes + size <= credit.size_bytes

    def _skip_settled(self, slot: int, at: int) -> int:
        words, cells, mask, head = self._words, self.cells[slot], self._masks[slot], self.heads[slot]
        while at < head and is_settled(words[cells + (at & mask)], at):
            at += 1
        return at
