"""Coverage: which ordinals of which origin came to which end, as interval sets joined by union.

Used by channels (to recognise repetitions), by readers (as cursors) and by the report (as the
ledger). Joining the same fact twice changes nothing, so a crash cannot miscount; it refuses counters
that could be added twice.
"""

import functools
from collections.abc import Callable, Iterable
from enum import StrEnum
from typing import NamedTuple

import msgspec

from videoflow.backends.intervals import IntervalSet


class Cause(StrEnum):
    """Why no output was made; a later one is graver."""

    SKIPPED = "skipped"
    ENDED = "ended"
    DROPPED = "dropped"
    EXPIRED = "expired"
    DEAD_LETTER = "dead_letter"
    ABORTED = "aborted"


GRAVITY = tuple(Cause)


def gravest(causes: Iterable[Cause]) -> Cause:
    """Returns the gravest cause: aborted > dead_letter > expired > dropped > ended > skipped."""
    return max(causes, key=GRAVITY.index)


class FateKind(StrEnum):
    """How a statement ended on one edge; `elsewhere` is what one partition says of what another has."""

    DELIVERED = "delivered"
    SKIPPED = "skipped"
    DROPPED = "dropped"
    DEAD_LETTERED = "dead_lettered"
    ABANDONED = "abandoned"
    ELSEWHERE = "elsewhere"


class Fate(NamedTuple):
    """An end, with the cause of a skip or the reason of a drop."""

    kind: FateKind
    cause: Cause | None = None


class Hop(NamedTuple):
    """One fan-out passed: element k of the n that `port` of `node` emitted for one input."""

    node: str
    port: str
    k: int
    n: int


class Origin(NamedTuple):
    """The source item that something derives from; ordinals are dense from 0 in (node, epoch)."""

    node: str
    epoch: int
    ordinal: int


class OriginRecord(msgspec.Struct, array_like=True):
    """What is known of one (origin node, epoch), in plain values for a store or a report.

    Attributes:
        node: The origin's node.
        epoch: Its source epoch.
        ordinals: (fate kind, cause or "", closed intervals): ends of whole ordinals.
        deep_ordinals: Ordinals all of whose traces below a fan-out are closed, as intervals.
        deep_items: (fate kind, cause or "", items): ends of traces below a fan-out, counted.
        deep_open: (ordinal, ((k, k, …), n, (closed k, …)) …): fan-outs with elements still open.
    """

    node: str
    epoch: int
    ordinals: list[tuple[str, str, list[tuple[int, int]]]]
    deep_ordinals: list[tuple[int, int]] = []
    deep_items: list[tuple[str, str, int]] = []
    deep_open: list[tuple[int, list[tuple[list[int], int, list[int]]]]] = []


_NONE: tuple[int, frozenset[int]] = (0, frozenset())


class OriginCoverage:
    """The closed ordinals and traces of one (origin node, epoch)."""

    __slots__ = ("closed", "deep_items", "deep_open", "deep_ordinals", "fates")

    def __init__(self) -> None:
        self.closed = IntervalSet()
        self.fates: dict[Fate, IntervalSet] = {}
        self.deep_ordinals = IntervalSet()
        self.deep_items: dict[Fate, int] = {}
        self.deep_open: dict[int, dict[tuple[int, ...], tuple[int, set[int]]]] = {}

    def covers(self, ordinal: int, path: tuple[Hop, ...] = ()) -> bool:
        """Returns whether the trace, or a shorter one that stands for it, is closed."""
        if ordinal in self.closed:
            return True
        levels = self.deep_open.get(ordinal)
        if levels is None:
            return False
        ks = tuple(hop.k for hop in path)
        return any(ks[depth] in levels.get(ks[:depth], _NONE)[1] for depth in range(len(ks)))

    def close(self, ordinal: int, path: tuple[Hop, ...], fate: Fate) -> None:
        """Closes one trace, and what it completes; closing it again changes nothing."""
        if not path:
            self.close_interval(ordinal, ordinal, fate)
            return
        if self.covers(ordinal, path):
            return
        self.deep_items[fate] = self.deep_items.get(fate, 0) + 1
        levels = self.deep_open.setdefault(ordinal, {})
        parent = tuple(hop.k for hop in path[:-1])
        levels.setdefault(parent, (path[-1].n, set()))[1].add(path[-1].k)
        self._complete(ordinal, parent, path)

    def _complete(self, ordinal: int, parent: tuple[int, ...], path: tuple[Hop, ...]) -> None:
        levels = self.deep_open[ordinal]
        while len(levels[parent][1]) == levels[parent][0]:
            del levels[parent]
            if not parent:
                del self.deep_open[ordinal]
                self.deep_ordinals.add(ordinal, ordinal)
                self.closed.add(ordinal, ordinal)
                return
            hop = path[len(parent) - 1]
            parent = parent[:-1]
            levels.setdefault(parent, (hop.n, set()))[1].add(hop.k)

    def close_interval(self, first: int, last: int, fate: Fate) -> None:
        """Closes the ordinals first..last that were not closed."""
        if first > self.closed.last() and not self.deep_open:
            self._add(first, last, fate)
            return
        for low, high in self.closed.missing(first, last):
            self._add(low, high, fate)
            for ordinal in [o for o in self.deep_open if low <= o <= high]:
                del self.deep_open[ordinal]

    def _add(self, first: int, last: int, fate: Fate) -> None:
        found = self.fates.get(fate)
        if found is None:
            found = self.fates[fate] = IntervalSet()
        found.add(first, last)
        self.closed.add(first, last)


class Coverage:
    """Closed ordinals and traces of every origin, by (origin node, epoch)."""

    __slots__ = ("origins",)

    def __init__(self) -> None:
        self.origins: dict[tuple[str, int], OriginCoverage] = {}

    def origin(self, node: str, epoch: int) -> OriginCoverage:
        """Returns the coverage of one origin, empty at first."""
        found = self.origins.get((node, epoch))
        if found is None:
            found = self.origins[node, epoch] = OriginCoverage()
        return found

    def covers(self, origin: Origin, path: tuple[Hop, ...] = ()) -> bool:
        """Returns whether a trace is closed."""
        found = self.origins.get((origin.node, origin.epoch))
        return found is not None and found.covers(origin.ordinal, path)

    def close(self, origin: Origin, path: tuple[Hop, ...], fate: Fate) -> None:
        """Closes one trace."""
        self.origin(origin.node, origin.epoch).close(origin.ordinal, path, fate)

    def close_intervals(
        self, node: str, epoch: int, intervals: Iterable[tuple[int, int]], fate: Fate
    ) -> None:
        """Closes ordinals of one origin."""
        found = self.origin(node, epoch)
        for first, last in intervals:
            found.close_interval(first, last, fate)

    def records(self) -> list[OriginRecord]:
        """Returns everything in plain values, in a fixed order."""
        return [_to_record(node, epoch, found) for (node, epoch), found in sorted(self.origins.items())]

    def cut(self, node: str, last_of: Callable[[int], int | None]) -> None:
        """Forgets the last ordinals of an origin; what is closed below a fan-out is counted, and stays.

        Args:
            node: The origin.
            last_of: Epoch → the last ordinal that stays; None: all of them stay.
        """
        for (name, epoch), found in tuple(self.origins.items()):
            last = last_of(epoch) if name == node else None
            if last is not None:
                kept = self.origins[name, epoch] = OriginCoverage()
                _merge(kept, _cut(_to_record(name, epoch, found), last))

    def merge(self, records: Iterable[OriginRecord]) -> None:
        """Joins what `records` of the same edge, kept by disjoint owners, says."""
        for record in records:
            _merge(self.origin(record.node, record.epoch), record)


def without_elsewhere(records: Iterable[OriginRecord]) -> list[OriginRecord]:
    """Returns what one partition settled itself, so that the records of all can be merged."""
    away = FateKind.ELSEWHERE.value
    return [
        msgspec.structs.replace(
            record,
            ordinals=[said for said in record.ordinals if said[0] != away],
            deep_items=[said for said in record.deep_items if said[0] != away],
        )
        for record in records
    ]


@functools.cache
def _fate(kind: str, cause: str) -> Fate:
    return Fate(FateKind(kind), Cause(cause) if cause else None)


def _to_record(node: str, epoch: int, found: OriginCoverage) -> OriginRecord:
    return OriginRecord(
        node,
        epoch,
        sorted((f.kind.value, f.cause or "", list(s.intervals())) for f, s in found.fates.items()),
        list(found.deep_ordinals.intervals()),
        sorted((f.kind.value, f.cause or "", count) for f, count in found.deep_items.items()),
        [
            (ordinal, [(list(parent), n, sorted(ks)) for parent, (n, ks) in sorted(levels.items())])
            for ordinal, levels in sorted(found.deep_open.items())
        ],
    )


def _cut(record: OriginRecord, last: int) -> OriginRecord:
    ordinals = [
        (kind, cause, [(low, min(high, last)) for low, high in intervals if low <= last])
        for kind, cause, intervals in record.ordinals
    ]
    still_open = [said for said in record.deep_open if said[0] <= last]
    return msgspec.structs.replace(record, ordinals=ordinals, deep_open=still_open)


def _merge(found: OriginCoverage, record: OriginRecord) -> None:
    for kind, cause, intervals in record.ordinals:
        for first, last in intervals:
            found.close_interval(first, last, _fate(kind, cause))
    for first, last in record.deep_ordinals:
        found.deep_ordinals.add(first, last)
        found.closed.add(first, last)
    for kind, cause, count in record.deep_items:
        fate = _fate(kind, cause)
        found.deep_items[fate] = found.deep_items.get(fate, 0) + count
    for ordinal, levels in record.deep_open:
        if ordinal not in found.closed:
            _merge_open(found, ordinal, levels)


def _merge_open(found: OriginCoverage, ordinal: int, levels: list[tuple[list[int], int, list[int]]]) -> None:
    mine = found.deep_open.setdefault(ordinal, {})
    for parent, n, ks in levels:
        mine.setdefault(tuple(parent), (n, set()))[1].update(ks)
    for parent_ks in sorted(mine, key=len, reverse=True):
        n, ks_closed = mine[parent_ks]
        if len(ks_closed) < n:
            continue
        if not parent_ks:
            del found.deep_open[ordinal]
            found.deep_ordinals.add(ordinal, ordinal)
            found.closed.add(ordinal, ordinal)
            return
        above = mine.get(parent_ks[:-1])
        if above is not None:
            above[1].add(parent_ks[-1])
            del mine[parent_ks]
