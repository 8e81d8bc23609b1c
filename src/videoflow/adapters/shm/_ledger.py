"""Ledger rows: how coverage travels from the processes that know it to the supervisor that adds it up."""

from collections.abc import Iterable, Sequence

import msgspec

from videoflow.backends.coverage import Cause, Coverage, Fate, FateKind, Hop, Origin, OriginRecord
from videoflow.backends.messaging import Envelope, announced_fate

_KINDS = tuple(FateKind)
_CAUSES = (None, *Cause)
DELIVERED = Fate(FateKind.DELIVERED)
_ELSEWHERE = Fate(FateKind.ELSEWHERE)
_CODES = {
    Fate(kind, cause): number << 4 | of
    for number, kind in enumerate(_KINDS)
    for of, cause in enumerate(_CAUSES)
}


class Row(msgspec.Struct, array_like=True):
    """Ordinals first..last of an origin, or one trace below it, came to an end.

    Attributes:
        target: Number of the channel (announced) or subscription (settled).
        node: The origin's node.
        epoch: Its epoch.
        fate: Code of the end.
        first: First ordinal.
        last: Last ordinal.
        path: Fan-outs passed, or none.
    """

    target: int
    node: str
    epoch: int
    fate: int
    first: int
    last: int
    path: tuple[Hop, ...] = ()


class Entry(msgspec.Struct, frozen=True, array_like=True):
    """One commit.

    Attributes:
        rows: What was announced, or settled.
        cells: Of a reader: the cells that it settles, as (subscription, slot, first, count).
        dropped: Of a writer: what it evicted, by subscription.
    """

    rows: tuple[Row, ...]
    cells: tuple[tuple[int, int, int, int], ...] = ()
    dropped: tuple[Row, ...] = ()


_entries = msgspec.msgpack.Decoder(Entry)


def decode_entry(data: bytes) -> Entry:
    """Reads an entry."""
    return _entries.decode(data)


def placed_fate(envelope: Envelope) -> Fate | None:
    """Returns what an envelope is in the ledger of its partition; a notice is elsewhere."""
    fate = announced_fate(envelope)
    return _ELSEWHERE if fate is None and envelope.elsewhere else fate


def cause_code(cause: Cause) -> int:
    """Returns a number for a cause, from 1."""
    return _CAUSES.index(cause)


def cause_of(code: int) -> Cause:
    """Returns the cause of a number."""
    return tuple(Cause)[code - 1]


def _fate(code: int) -> Fate:
    return Fate(_KINDS[code >> 4], _CAUSES[code & 15])


class Rows:
    """Collects the rows of one commit, joining neighbours.

    Attributes:
        rows: What was collected.
    """

    def __init__(self) -> None:
        self.rows: list[list[object]] = []
        self._last: list[object] | None = None
        self._fate: Fate | None = None

    def add(self, target: int, envelope: Envelope, fate: Fate) -> None:
        """Adds what an envelope closes."""
        node, epoch, ordinal = envelope.origin
        row = self._last
        if (
            row is not None
            and row[5] == ordinal - 1
            and fate is self._fate
            and row[0] == target
            and row[1] == node
            and row[2] == epoch
            and not envelope.path
            and not envelope.intervals
        ):
            row[5] = ordinal
        else:
            self.close(target, fate, envelope.origin, envelope.path, envelope.intervals)

    def close(
        self,
        target: int,
        fate: Fate,
        origin: Origin,
        path: tuple[Hop, ...],
        intervals: tuple[tuple[int, int], ...] = (),
    ) -> None:
        """Adds a trace, or ordinals of its origin."""
        code = _CODES[fate]
        if path:
            self.rows.append([target, *origin[:2], code, origin.ordinal, origin.ordinal, path])
            self._last = None
            return
        for first, last in intervals or ((origin.ordinal, origin.ordinal),):
            key = [target, origin.node, origin.epoch, code]
            row = self._last
            if row is not None and row[:4] == key and row[5] == first - 1:
                row[5] = last
            else:
                self._last = [*key, first, last]
                self.rows.append(self._last)
        self._fate = fate

    def take(self) -> list[list[object]]:
        """Returns the rows, and starts anew."""
        rows, self.rows, self._last = self.rows, [], None
        return rows


def joined(entries: Iterable[Entry]) -> list[Row]:
    """Returns the rows of entries, in order, with neighbours joined; entries lose theirs to that."""
    found: list[Row] = []
    for entry in entries:
        for row in entry.rows:
            before = found[-1] if found else row
            if (
                before.last == row.first - 1
                and not row.path
                and not before.path
                and before.fate == row.fate
                and before.target == row.target
                and before.epoch == row.epoch
                and before.node == row.node
            ):
                before.last = row.last
            else:
                found.append(row)
    return found


def fold(coverage: dict[int, Coverage], rows: Iterable[Row]) -> None:
    """Adds rows to the coverage of their targets."""
    for row in rows:
        found = coverage.get(row.target)
        if found is None:
            found = coverage[row.target] = Coverage()
        if row.path:
            found.close(Origin(row.node, row.epoch, row.first), row.path, _fate(row.fate))
        else:
            found.close_intervals(row.node, row.epoch, ((row.first, row.last),), _fate(row.fate))


def close(coverage: Coverage, envelope: Envelope, fate: Fate) -> None:
    """Adds what an envelope closes."""
    origin = envelope.origin
    if envelope.intervals:
        coverage.close_intervals(origin.node, origin.epoch, envelope.intervals, fate)
    else:
        coverage.close(origin, envelope.path, fate)


def dropped_in(coverage: Coverage) -> int:
    """Returns how many items were evicted or expired."""
    number = 0
    for found in coverage.origins.values():
        number += sum(len(s) for fate, s in found.fates.items() if fate.kind is FateKind.DROPPED)
        number += sum(n for fate, n in found.deep_items.items() if fate.kind is FateKind.DROPPED)
    return number


def closed_only(coverage: Coverage) -> list[OriginRecord]:
    """Returns what is closed, whatever the fate: bounded, where fates grow with a run.

    What is elsewhere is kept apart, since another partition announced it.
    """
    records = []
    for (node, epoch), found in sorted(coverage.origins.items()):
        bare = Coverage()
        away = found.fates.get(_ELSEWHERE)
        if away is not None:
            bare.close_intervals(node, epoch, away.intervals(), _ELSEWHERE)
        bare.close_intervals(node, epoch, found.closed.intervals(), DELIVERED)
        bare.origin(node, epoch).deep_open.update(
            {o: {p: (n, set(ks)) for p, (n, ks) in levels.items()} for o, levels in found.deep_open.items()}
        )
        records += bare.records()
    return records


def loosened(records: Sequence[OriginRecord]) -> Coverage:
    """Returns a coverage that holds these records."""
    coverage = Coverage()
    coverage.merge(records)
    return coverage
