"""Records and ledger entries in shared memory: appended by one process, committed by one word.

Everything before the word of a commit is invisible, so a writer may die anywhere: its next
incarnation goes on from the last commit. Readers of living writers learn a head through a message
and look below it only.
"""

import mmap
import struct
from collections.abc import Iterable

import msgspec

from videoflow.adapters.shm._layout import WORD, JournalPlace, RingPlace

RECORD = struct.Struct("<IIdQ")  # length, kind, arrival (monotonic seconds), size in credits (bytes)
_pack, unpack_record = RECORD.pack_into, RECORD.unpack_from
_LENGTH = struct.Struct("<I")
_WRAP = 0xFFFFFFFF
_RESERVE_SHARE = 4  # a quarter of the ring is left to skips


class Log:
    """The mapped log: bytes, and the same as words.

    Args:
        mapping: Of the whole log.
    """

    def __init__(self, mapping: mmap.mmap) -> None:
        self.mapping = mapping
        self.bytes = memoryview(mapping)
        self.words = self.bytes.cast("Q")

    def close(self) -> None:
        """Unmaps it, so that the memory can go; nothing may be read afterwards."""
        self.words.release()
        self.bytes.release()
        self.mapping.close()


class Journal:
    """A ring of encoded ledger entries; positions count bytes and never wrap.

    Args:
        log: Where it lies.
        place: Its place.
        head: Position up to which it is committed.
    """

    def __init__(self, log: Log, place: JournalPlace, head: int) -> None:
        self._log = log
        self._place = place
        self.head = head

    def full(self, length: int) -> bool:
        """Returns whether an entry of this length has to wait for the supervisor."""
        return self.head + 2 * length + 64 - self._log.words[self._place.folded] > self._place.size

    def half_full(self) -> bool:
        """Returns whether the supervisor should take what there is."""
        return 2 * (self.head - self._log.words[self._place.folded]) > self._place.size

    def append(self, entry: bytes) -> None:
        """Writes an entry behind the head; what commits is the caller's word."""
        place, need = self._place, _LENGTH.size + len(entry)
        at = self.head % place.size
        if at + need > place.size:
            if at + _LENGTH.size <= place.size:
                _LENGTH.pack_into(self._log.bytes, place.offset + at, _WRAP)
            self.head += place.size - at
            at = 0
        start = place.offset + at
        _LENGTH.pack_into(self._log.bytes, start, len(entry))
        self._log.bytes[start + _LENGTH.size : start + need] = entry
        self.head += need

    def roomy(self, length: int) -> bool:
        """Returns whether an entry fits, and the supervisor need not take anything yet."""
        place = self._place
        return 4 * length <= place.size and 2 * (self.head - self._log.words[place.folded]) <= place.size

    def largest(self) -> int:
        """Returns the length of the longest entry that always fits in the end."""
        return self._place.size // 4


def entries(log: Log, place: JournalPlace, head: int) -> list[bytes]:
    """Returns the committed entries that the supervisor has not taken; `take` takes them."""
    found = []
    position = log.words[place.folded]
    while position < head:
        at = position % place.size
        if at + _LENGTH.size > place.size:
            position += place.size - at
            continue
        (length,) = _LENGTH.unpack_from(log.bytes, place.offset + at)
        if length == _WRAP:
            position += place.size - at
            continue
        start = place.offset + at + _LENGTH.size
        found.append(bytes(log.bytes[start : start + length]))
        position += _LENGTH.size + length
    return found


def committed(log: Log, place: RingPlace) -> tuple[int, int, int]:
    """Returns (head, end of the journal, end of the bytes) of one commit, though its writer may live."""
    words = log.words
    while True:
        word = words[place.commit]
        half = place.halves + 2 * (word & 1)
        journal, position = words[half], words[half + 1]
        if words[place.commit] == word:
            return word >> 1, journal, position


class RingWriter:
    """The producer's end of a ring; adopts what an earlier incarnation committed.

    Attributes:
        head: Next sequence to append.
        tail: First sequence still needed, as its owner says.
        largest: Length of the longest statement that always fits in the end.
    """

    def __init__(self, log: Log, place: RingPlace) -> None:
        self._log = log
        self.place = place
        self._mask = place.slots - 1
        self.head, journal, self._position = committed(log, place)
        self.tail = log.words[place.tail]
        self.largest = place.size // _RESERVE_SHARE
        self.journal = Journal(log, place.journal, journal)

    def fits(self, length: int, count: int, *, reserve: bool) -> bool:
        """Returns whether `count` records of `length` bytes in all fit now, beside what skips may need."""
        spare = self.place.size // _RESERVE_SHARE if reserve else 0
        free_slots = self.place.slots - (self.head - self.tail) - 1
        if free_slots - (self.place.slots // _RESERVE_SHARE if reserve else 0) < count:
            return False
        first = self._log.words[self.place.index + (self.tail & self._mask)]
        used = self._position - first if self.tail < self.head else 0
        return used + 2 * length + count * (RECORD.size + 2 * WORD) + spare <= self.place.size

    def append(self, records: Iterable[tuple[bytes, int, int]], arrived: float) -> int:
        """Writes records, which nobody sees before `commit`; returns the sequence of the first.

        Args:
            records: (bytes, kind, size in credits) of each.
            arrived: When they came, in monotonic seconds.
        """
        view, words, mask, header = self._log.bytes, self._log.words, self._mask, RECORD.size
        size, offset, index = self.place.size, self.place.offset, self.place.index
        first = sequence = self.head
        position = self._position
        if self.tail == first:  # empty: from the beginning again, which is in the caches
            position += -position % size
        for data, kind, size_bytes in records:
            need = header + len(data)
            at = position % size
            if at + need > size:
                position += size - at
                at = 0
            start = offset + at
            _pack(view, start, need - header, kind, arrived, size_bytes)
            view[start + header : start + need] = data
            words[index + (sequence & mask)] = position
            position += -(-need // WORD) * WORD
            sequence += 1
        self._position, self.head = position, sequence
        return first

    def commit(self) -> None:
        """Makes records and journal entries visible together, by one word."""
        words, place = self._log.words, self.place
        half = 1 - (words[place.commit] & 1)
        words[place.halves + 2 * half] = self.journal.head
        words[place.halves + 2 * half + 1] = self._position
        words[place.commit] = self.head << 1 | half

    def release(self, tail: int) -> None:
        """Gives back the records below `tail`."""
        self.tail = tail
        self._log.words[self.place.tail] = tail


def read_record(log: Log, place: RingPlace, sequence: int) -> tuple[memoryview, int, float, int]:
    """Returns (bytes, kind, arrival, size) of a record below a learned head; the bytes are not copied."""
    position = log.words[place.index + (sequence & (place.slots - 1))]
    start = place.offset + position % place.size
    length, kind, arrived, size = unpack_record(log.bytes, start)
    begin = start + RECORD.size
    return log.bytes[begin : begin + length], kind, arrived, size


# Cells and assignments ------------------------------------------------------------------------

RECEIVED, SETTLED = 1, 2


def cell(sequence: int, count: int, state: int) -> int:
    """Returns the word of a reader's cell: which sequence, handed out how often, how far."""
    return sequence << 16 | min(count, 255) << 8 | state


def assignment(sequence: int, cause: int, count: int, replica: int) -> int:
    """Returns the word of an assignment: cause of an eviction or 0, transport count, replica or -1."""
    return sequence << 24 | cause << 16 | min(count, 255) << 8 | (replica + 1)


def is_settled(word: int, sequence: int) -> bool:
    """Returns whether a cell says that a sequence is settled, or was long ago."""
    held = word >> 16
    return held > sequence or (held == sequence and word & 255 == SETTLED)


encode = msgspec.msgpack.Encoder().encode
