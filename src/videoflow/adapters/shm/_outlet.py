"""The producer's end of one channel: what is a repetition, what has room, who still needs what."""

from collections.abc import Iterable, Sequence

import msgspec

from videoflow.adapters.shm._choosing import feed_of
from videoflow.adapters.shm._feeds import Feed, ProcessParts, Record
from videoflow.adapters.shm._layout import Layout
from videoflow.adapters.shm._ledger import DELIVERED, Rows, close, placed_fate
from videoflow.adapters.shm._links import Op, Peer
from videoflow.adapters.shm._live import LiveFeed
from videoflow.adapters.shm._log import RingWriter, encode, read_record
from videoflow.adapters.shm._slab import Slot, slot_of
from videoflow.adapters.shm._statements import Handle, Prepared, Statement
from videoflow.adapters.shm._waiting import Waiting
from videoflow.backends.coverage import Coverage
from videoflow.backends.messaging import ChannelId, Envelope, Kind, announced_fate
from videoflow.backends.outcomes import Accepted, Durability, Rejected, RejectReason
from videoflow.faults import reach
from videoflow.wire import decode_envelope, encode_envelope

KINDS = tuple(Kind)
_DATA = Kind.DATA
_DATA_CODE = KINDS.index(_DATA)
_HOST = Durability.HOST
_ROWS_AT_ONCE = 512


class Outlet(Waiting):
    """One writer slot's part of one partition of a channel; adopts what an earlier incarnation left.

    Args:
        process: Log, sockets, clock and holds of this process.
        number: Of the channel's partition.
        layout: Where it lies, and its specification.
        slot: Which writer slot.
        announced: What all slots announced, as far as the supervisor knew when this process started.

    Attributes:
        visible: The first sequence that is not committed, and that nobody may be given.
    """

    def __init__(
        self,
        process: ProcessParts,
        number: int,
        layout: Layout,
        slot: int,
        announced: Coverage,
    ) -> None:
        super().__init__(process.clock)
        self.log = process.log
        self.hub = process.hub
        self._holds = process.holds
        self._room_in = process.room_in
        self.number = number
        self.slot = slot
        self.partitions = 1
        self.place = layout.channels[number]
        self.rings = self.place.rings
        self.channel: ChannelId = self.place.spec.channel
        self.closed = announced
        self.ring = RingWriter(self.log, self.rings[slot])
        self.records: dict[int, Record] = {}
        self.feeds: list[Feed] = []
        for bit, subscription in enumerate(self.place.subscriptions):
            self.feeds.append(feed_of(self, subscription, layout, 1 << bit))
        self._everybody = (1 << len(self.feeds)) - 1
        self._reliable = sum(feed.bit for feed in self.feeds if not isinstance(feed, LiveFeed))
        self.dropped = Rows()
        self._items = 0
        self._bytes = 0
        self._rows = Rows()
        self._row_count = 0
        self.visible = self.ring.head
        self._adopt()

    # Publishing -------------------------------------------------------------------------------

    def commit(self) -> None:
        """Makes what was appended visible, and lets the feeds give it out."""
        first = self.visible
        if self.ring.head == first:
            return
        entry = encode(([*self._rows.take()],))
        self._row_count = 0
        self._room_in(self.ring.journal, len(entry))
        self.ring.journal.append(entry)
        reach("shm.appended")
        self.ring.commit()
        reach("shm.committed")
        self.visible = self.ring.head
        for feed in self.feeds:
            feed.committed(first)
        self.note_drops()
        if not self.feeds:
            self.ring.release(self.ring.head)

    def note_drops(self) -> None:
        """Tells the ledger what was evicted."""
        if self.dropped.rows:
            entry = encode(([], [], self.dropped.take()))
            self._room_in(self.ring.journal, len(entry))
            self.ring.journal.append(entry)
            self.ring.commit()

    def terminate(self, epoch: int, kind: Kind) -> list[Accepted | Rejected]:
        """Stamps the end of this slot above all that it published."""
        words, place = self.log.words, self.ring.place
        name = f"{self.channel}/end"
        if epoch < words[place.epoch]:
            return [Rejected(name, RejectReason.STALE, retryable=False)]
        duplicate = words[place.end] != 0
        if not duplicate:
            words[place.epoch] = epoch
            words[place.end] = 1 + KINDS.index(kind)
            self._tell_end()
        return [Accepted(name, self.ring.head, duplicate, _HOST)]

    def append(self, statement: Statement) -> bool:
        """Appends a statement or refuses it; returns False where there is no room for it."""
        prepared = self.prepare(statement)
        if prepared is None:
            return False
        if prepared.refused is not None:
            statement.refuse(prepared.refused)
        else:
            self.take(prepared)
        return True

    def prepare(self, statement: Statement) -> Prepared | None:
        """Returns what appending a statement takes; None where there is no room for it."""
        handles = statement.handles
        first = handles[0].envelope
        words, place = self.log.words, self.ring.place
        epoch = words[place.epoch]
        if first.writer.epoch != epoch:
            if first.writer.epoch < epoch:
                return Prepared(handles, refused=RejectReason.STALE)
            words[place.epoch] = first.writer.epoch
        fresh = self._fresh(handles)
        envelopes = [envelope for envelope in fresh if envelope is not None]
        if not envelopes:
            return Prepared(handles, fresh)
        if words[place.end]:
            return Prepared(handles, refused=RejectReason.SEALED)
        encoded = [encode_envelope(envelope) for envelope in envelopes]
        length = sum(map(len, encoded))
        if length > self.ring.largest:
            return Prepared(handles, refused=RejectReason.TOO_LARGE)
        data = sum(envelope.kind is _DATA for envelope in envelopes)
        if not self._room(length, len(envelopes), data, envelopes):
            return None
        return Prepared(handles, fresh, encoded)

    def take(self, prepared: Prepared) -> None:
        """Appends what was prepared, and gives each handle its outcome."""
        if self._row_count + len(prepared.encoded) > _ROWS_AT_ONCE:
            self.commit()
        fresh = [envelope for envelope in prepared.fresh if envelope is not None]
        costs = [max(e.size_bytes, len(e.body)) if e.kind is _DATA else 0 for e in fresh]
        codes = [KINDS.index(envelope.kind) for envelope in fresh]
        records = list(zip(prepared.encoded, codes, costs, strict=True))
        sequence = self._append(fresh, records, codes.count(_DATA_CODE), sum(costs))
        for handle, envelope in zip(prepared.handles, prepared.fresh, strict=True):
            name = handle.envelope.publication_id
            if envelope is None:
                handle.outcome = Accepted(name, self.ring.head - 1, True, _HOST)
                continue
            self._announce(envelope)
            handle.outcome = Accepted(name, sequence, False, _HOST)
            sequence += 1

    def extend(self, envelopes: Sequence[Envelope]) -> list[Accepted]:
        """Appends the first of these at once, as far as nothing is in their way, and returns their outcomes.

        That is: statements of one new item each, of consecutive ordinals, that have room, and whose payloads
        are held here. What is left goes through `append`. Nothing else may wait before them.
        """
        first, ring = envelopes[0], self.ring
        writer = first.writer
        node, epoch, ordinal = first.origin
        words, place = self.log.words, self.ring.place
        if words[place.end] or first.writer.epoch < words[place.epoch]:
            return []
        words[place.epoch] = first.writer.epoch
        known = self.closed.origins.get((node, epoch))
        fresh = len(envelopes) if known is None else known.closed.gap(ordinal, ordinal + len(envelopes) - 1)
        bounds, empty = self.place.spec.bounds, not self._items
        most = min(fresh, max(bounds.items - self._items, empty))
        room, longest, total, length = bounds.size_bytes - self._bytes, ring.largest, 0, 0
        records: list[tuple[bytes, int, int]] = []
        for envelope in envelopes[:most]:
            if envelope.kind is not _DATA or envelope.path or envelope.origin != (node, epoch, ordinal):
                break
            if envelope.writer is not writer and envelope.writer != writer:
                break
            size = envelope.size_bytes
            if size < len(envelope.body):
                size = len(envelope.body)
            if total + size > room and (records or not empty):
                break
            data = encode_envelope(envelope)
            if len(data) > longest:
                break
            records.append((data, _DATA_CODE, size))
            total += size
            length += len(data)
            ordinal += 1
        if not records or not ring.fits(length, len(records), reserve=True):
            return []
        sequence, origin = self._append(envelopes, records, len(records), total), first.origin
        interval = ((origin.ordinal, ordinal - 1),)
        if known is None:
            known = self.closed.origin(node, epoch)
        known.close_interval(origin.ordinal, ordinal - 1, DELIVERED)
        self._rows.close(self.number, DELIVERED, origin, (), interval)
        self._row_count += 1
        return [
            Accepted(envelope.publication_id, at, False, _HOST)
            for at, envelope in enumerate(envelopes[: len(records)], sequence)
        ]

    def _append(
        self, envelopes: Sequence[Envelope], records: Sequence[tuple[bytes, int, int]], items: int, size: int
    ) -> int:
        """Appends envelopes, each as (bytes, kind, cost); returns the sequence of the first.

        Args:
            envelopes: At least as many as records.
            records: What is appended.
            items: How many of them are items.
            size: What they cost together.
        """
        now = self.clock.monotonic()
        first = self.ring.append(records, now)
        if self.feeds:
            self._keep(first, envelopes, records, now)
            if self._reliable:
                self._items += items
                self._bytes += size
        return first

    def knows(self, envelope: Envelope) -> bool:
        """Returns whether an envelope only repeats what was announced."""
        if envelope.intervals or placed_fate(envelope) is None:
            return False
        return self.closed.covers(envelope.origin, envelope.path)

    def _fresh(self, handles: list[Handle]) -> list[Envelope | None]:
        """Returns, for each handle, what was not announced before, or None."""
        first = handles[0].envelope
        if first.intervals:
            return [self._fresh_part(handle.envelope) for handle in handles]
        if placed_fate(first) is None or not self.closed.covers(first.origin, first.path):
            return [handle.envelope for handle in handles]
        return [None for _ in handles]

    def _fresh_part(self, envelope: Envelope) -> Envelope | None:
        origin = envelope.origin
        closed = self.closed.origin(origin.node, origin.epoch).closed
        gaps = tuple(gap for low, high in envelope.intervals for gap in closed.missing(low, high))
        if not gaps or gaps == envelope.intervals:
            return envelope if gaps else None
        return msgspec.structs.replace(envelope, intervals=gaps, origin=origin._replace(ordinal=gaps[0][0]))

    def _room(self, length: int, count: int, data: int, envelopes: list[Envelope]) -> bool:
        bounds = self.place.spec.bounds
        size = sum(envelope.size_bytes for envelope in envelopes) if data else 0
        full = self._items + data > bounds.items or self._bytes + size > bounds.size_bytes
        if data and self._items and full:
            return False
        while not self.ring.fits(length, count, reserve=data > 0):
            if not self._forget():
                return False
        return True

    def _forget(self) -> bool:
        """Drops the first record where only broadcasts wait for it, and nobody has it."""
        first = next(iter(self.records.items()), None)
        waiting = [feed for feed in self.feeds if first is not None and first[1].waiting & feed.bit]
        if first is None or not waiting or not all(feed.may_forget(first[0]) for feed in waiting):
            return False
        for feed in waiting:
            feed.forget(first[0])
        return True

    def _announce(self, envelope: Envelope) -> None:
        fate = placed_fate(envelope)
        if fate is not None:
            close(self.closed, envelope, DELIVERED if announced_fate(envelope) else fate)
            self._rows.add(self.number, envelope, fate)
            self._row_count += max(1, len(envelope.intervals))

    def _keep(
        self, first: int, envelopes: Sequence[Envelope], records: Sequence[tuple[bytes, int, int]], now: float
    ) -> None:
        """Keeps what readers need of records from `first` on, each as (bytes, kind, cost)."""
        every = self._everybody
        kept = [
            Record(e, code == _DATA_CODE, cost, self._taken(e) if e.payloads else (), every, every, now)
            for e, (_, code, cost) in zip(envelopes, records, strict=False)
        ]
        self.records.update(enumerate(kept, first))

    def _taken(self, envelope: Envelope) -> tuple[Slot, ...]:
        """Returns the payload slots of an envelope, needed by its record from now on."""
        slots = tuple(map(slot_of, envelope.payloads))
        for slot in slots:
            self._holds.take(slot)
        return slots

    # What readers say -------------------------------------------------------------------------

    def done(self, sequences: Iterable[int], bit: int) -> None:
        """A subscription has settled records; what all have settled makes room."""
        records, reliable = self.records, self._reliable
        for sequence in sequences:
            record = records.get(sequence)
            if record is None or not record.waiting & bit:
                continue
            if record.slots:
                self.let_go(record, bit)
            left = record.waiting & ~bit
            if record.data and record.waiting & reliable and not left & reliable:
                self._items -= 1
                self._bytes -= record.size
            record.waiting = left
            if not left:
                del records[sequence]
        if self.ring.tail < self.visible and self.ring.tail not in records:
            self.ring.release(next(iter(records), self.visible))
            if not records and self.log.words[self.ring.place.end]:
                self._tell_end()

    def let_go(self, record: Record, bit: int) -> None:
        """A subscription's claim on the payloads of a record ends."""
        if record.holding & bit:
            record.holding &= ~bit
            if not record.holding:
                self._freed(record)

    def evict(self) -> bool:
        """Makes a tombstone of the oldest item whose payloads only live readers keep that have not got it.

        Returns:
            Whether there was one.
        """
        for sequence, record in self.records.items():
            holding = [feed for feed in self.feeds if record.holding & feed.bit]
            if record.slots and holding and all(feed.may_evict(sequence) for feed in holding):
                for feed in holding:
                    feed.evict(sequence)
                self.note_drops()
                return True
        return False

    def readers(self) -> list[Peer]:
        """Returns all replicas that read this channel."""
        return [peer for feed in self.feeds for peer in feed.peers]

    def idle(self) -> bool:
        """Returns whether nothing waits for a reader."""
        return not self.records and not self.queue

    def _freed(self, record: Record) -> None:
        for slot in record.slots:
            self._holds.drop(slot)

    def _tell_end(self) -> None:
        for peer in self.readers():
            self.hub.queue(peer, (Op.END, self.number))

    # After a death ----------------------------------------------------------------------------

    def _adopt(self) -> None:
        for sequence in range(self.ring.tail, self.ring.head):
            data, code, arrived, size = read_record(self.log, self.ring.place, sequence)
            envelope = decode_envelope(data, self.channel)
            self._keep(sequence, (envelope,), ((b"", code, size),), arrived)
            record = self.records[sequence]
            for feed in self.feeds:
                feed.adopt(sequence, record)
            if not record.holding:
                self._freed(record)
            if record.data and record.waiting & self._reliable:
                self._items += 1
                self._bytes += size
            if not record.waiting:
                del self.records[sequence]
        self.ring.release(next(iter(self.records), self.ring.head))
        for feed in self.feeds:
            feed.adopted()
