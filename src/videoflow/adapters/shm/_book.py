"""The supervisor's book: both ends of the ledger, added up from what different processes wrote."""

from videoflow.adapters.shm._layout import JournalPlace, Layout
from videoflow.adapters.shm._ledger import (
    DELIVERED,
    Entry,
    closed_only,
    decode_entry,
    dropped_in,
    fold,
    joined,
)
from videoflow.adapters.shm._links import Peer
from videoflow.adapters.shm._log import SETTLED, Log, cell, committed, entries
from videoflow.backends.coverage import Coverage, OriginRecord

_PREFIX_STEP = 256


class Book:
    """Takes ledger entries from the journals of all processes.

    Args:
        log: Where they lie.
        layout: Their places.
    """

    def __init__(self, log: Log, layout: Layout) -> None:
        self._log = log
        self._layout = layout
        self._announced: dict[int, Coverage] = {}
        self._settled: dict[int, Coverage] = {}
        self._by_readers: dict[int, Coverage] = {}
        self._last: dict[Peer, Entry] = {}
        self._told: dict[tuple[int, str, int], int] = {}

    def take(self) -> None:
        """Takes what has been committed since the last time."""
        for number, task in enumerate(self._layout.tasks):
            for slot, place in enumerate(task.replicas):
                taken = self._taken(place.journal, self._log.words[place.commit])
                rows = joined(taken)
                fold(self._settled, rows)
                fold(self._by_readers, rows)
                if taken:
                    self._last[number, slot] = taken[-1]
        for channel in self._layout.channels:
            for ring in channel.rings:
                taken = self._taken(ring.journal, committed(self._log, ring)[1])
                fold(self._announced, joined(taken))
                for entry in taken:
                    fold(self._settled, entry.dropped)

    def announced(self, channel: int) -> list[OriginRecord]:
        """Returns the writers' end of a channel."""
        return self._announced.get(channel, Coverage()).records()

    def settled(self, subscription: int) -> list[OriginRecord]:
        """Returns the reader's end of a subscription."""
        return self._settled.get(subscription, Coverage()).records()

    def closed(self, channel: int) -> list[OriginRecord]:
        """Returns what is announced on a channel, whatever its fate."""
        return closed_only(self._announced.get(channel, Coverage()))

    def cursors(self, subscription: int) -> list[OriginRecord]:
        """Returns what the readers of a subscription settled, whatever its fate: no tombstone that waits."""
        return closed_only(self._by_readers.get(subscription, Coverage()))

    def dropped(self, subscription: int) -> int:
        """Returns how many items of a subscription were evicted or expired."""
        return dropped_in(self._settled.get(subscription, Coverage()))

    def finish(self, dead: Peer) -> None:
        """Writes the cells of a dead reader's last settlement, which its death may have kept from it."""
        last = self._last.get(dead)
        for number, slot, first, count in last.cells if last is not None else ():
            place = self._layout.subscriptions[number]
            mask = self._layout.channels[place.channel].rings[slot].slots - 1
            for sequence in range(first, first + count):
                at = place.cells[dead[1] - place.first][slot] + (sequence & mask)
                if self._log.words[at] >> 16 <= sequence:
                    self._log.words[at] = cell(sequence, 1, SETTLED)

    def prefixes(self) -> list[tuple[int, list[OriginRecord]]]:
        """Returns, for channels of several writers, what is newly closed over all of them.

        Each writer knows its own part, full of holes; with this it keeps little.
        """
        found = []
        for number, channel in enumerate(self._layout.channels):
            coverage = self._announced.get(number) if len(channel.rings) > 1 else None
            for (node, epoch), origin in coverage.origins.items() if coverage is not None else ():
                prefix = origin.closed.closed_prefix()
                if prefix - self._told.get((number, node, epoch), 0) < _PREFIX_STEP:
                    continue
                self._told[number, node, epoch] = prefix
                bare = Coverage()
                bare.close_intervals(node, epoch, ((0, prefix - 1),), DELIVERED)
                found.append((number, bare.records()))
        return found

    def _taken(self, place: JournalPlace, head: int) -> list[Entry]:
        found = [decode_entry(data) for data in entries(self._log, place, head)]
        self._log.words[place.folded] = head
        return found
