"""Order: statements of one or several inputs, by trace, in the order of their origins.

Used by the core of ordered readers and of joins. An ordinal, or a trace below a fan-out, is taken
when every parent has said something of it; since each says exactly one thing of each, the sequence has
no holes (rules 1 to 3). A parent of one deeper scope says it with all the items of its fan-out. It refuses
nothing: a repetition is reported as such.
"""

import heapq
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from videoflow.backends.coverage import Hop, Origin, OriginRecord
from videoflow.backends.intervals import IntervalSet
from videoflow.backends.messaging import Delivery, Kind
from videoflow.worker.core._groups import CursorRecord, Group, Held, Key, Member, Said

Found = list[Said | None]


@dataclass(slots=True)
class _Parent:
    deeper: bool = False
    by_key: dict[Key, Held] = field(default_factory=dict)
    parts: dict[Key, dict[int, Held]] = field(default_factory=dict)
    intervals: list[tuple[int, int, int, Held]] = field(default_factory=list)
    end: Held | None = None

    def known(self, key: Key) -> Held | None:
        """Returns what was said before of a key, one level deeper perhaps."""
        found = self.by_key.get(key)
        return self.parts.get(key[:-1], {}).get(key[-1]) if found is None else found

    def __bool__(self) -> bool:
        return bool(self.by_key or self.parts or self.intervals)


class _Line:
    """One origin node in one epoch."""

    __slots__ = ("absent", "done", "expected", "parents")

    def __init__(self, deeper: Sequence[bool], depth: int, absent: Sequence[bool]) -> None:
        self.parents = [_Parent(below) for below in deeper]
        self.absent = tuple(absent)
        self.expected: Key = (0,) * (depth + 1)
        self.done = IntervalSet()

    def passed(self, key: Key) -> bool:
        key = key[: len(self.expected)]
        return key < self.expected[: len(key)] or key[0] in self.done

    def found(self, *, gaps_closed: bool = False) -> Found:
        """Returns what each parent says of the expected trace."""
        return [self.find(parent, gaps_closed=gaps_closed) for parent in self.parents]

    def waits(self, found: Found) -> bool:
        """Returns whether a parent that will say something has not."""
        return any(said is None and not away for said, away in zip(found, self.absent, strict=True))

    def find(self, parent: _Parent, *, gaps_closed: bool = False) -> Said | None:
        """Returns what a parent says of the expected trace; a part of it only where no more will come."""
        expected = self.expected
        held = parent.by_key.get(expected)
        if held is not None:
            return Said([held], expected[0])
        parts = parent.parts.get(expected)
        if parts is not None:
            some = next(iter(parts.values())).delivery.envelope
            whole = len(parts) == some.path[-1].n
            if whole or gaps_closed:
                return Said([parts[k] for k in sorted(parts)], expected[0], many=True, whole=whole)
            return None
        for length in range(len(expected) - 1, 0, -1):
            if any(expected[length:]):
                return None
            held = parent.by_key.get(expected[:length])
            if held is not None:
                return Said([held], expected[0])
        while parent.intervals and parent.intervals[0][1] < expected[0]:
            heapq.heappop(parent.intervals)
        if parent.intervals and parent.intervals[0][0] <= expected[0] and not any(expected[1:]):
            return Said([parent.intervals[0][3]], parent.intervals[0][1])
        return None

    def first(self, parent: _Parent) -> Key | None:
        """Returns the least key that a parent holds at or after the expected one."""
        keys = [*parent.by_key, *parent.parts]
        keys += [
            (max(low, self.expected[0]),) for low, high, _, _ in parent.intervals if high >= self.expected[0]
        ]
        return min(keys, default=None)

    def silent(self, found: Found) -> list[int]:
        """Returns up to which ordinal parents go on to say nothing, of those that may say more."""
        keys = [self.first(parent) for parent, said in zip(self.parents, found, strict=True) if said is None]
        return [max(self.expected[0], key[0] - 1) for key in keys if key is not None]

    def advance(self, last: int, path: tuple[Hop, ...], length: int) -> None:
        """Moves the expectation behind a finished trace of `length` key parts, or behind an interval."""
        depth = len(self.expected) - 1
        for level in range(length - 1, 0, -1):
            hop = path[level - 1]
            if hop.k + 1 < hop.n:
                head = (*self.expected[:level], hop.k + 1)
                self.expected = head + (0,) * (depth + 1 - len(head))
                return
        ordinal = last + 1
        if self.done:
            gaps = self.done.missing(ordinal, max(self.done.last(), ordinal) + 1)
            ordinal = gaps[0][0]
        self.expected = (ordinal,) + (0,) * depth


class OrderedInputs:
    """Holds deliveries until their trace is next, and gives them out as groups.

    Args:
        deeper: Per parent: whether its items lie one fan-out below the reader's traces.
        depth: The fan-outs on the reader's traces.
        above: Per parent: the nodes that its items may have begun at; what a node flushed reaches only the
            parents below it. None: all parents have all.
    """

    def __init__(
        self, deeper: Sequence[bool], depth: int, above: Sequence[frozenset[str]] | None = None
    ) -> None:
        self._deeper = tuple(deeper)
        self._depth = depth
        self._above = above
        self._lines: dict[tuple[str, int], _Line] = {}
        self._epochs: dict[str, int] = {}
        self._ticket = 0
        self.ended_epochs: list[list[Held]] = []

    def restore_settled(self, records: Iterable[OriginRecord]) -> None:
        """Starts behind what was settled before, possibly out of order."""
        for record in records:
            line = self._line(record.node, record.epoch)
            if record.ordinals or record.deep_ordinals or record.deep_open:
                self._epochs[record.node] = max(self._epochs.get(record.node, 0), record.epoch)
            for _, _, intervals in record.ordinals:
                for first, last in intervals:
                    line.done.add(first, last)
            for first, last in record.deep_ordinals:
                line.done.add(first, last)
            ordinal = max(line.done.closed_prefix(), line.expected[0])
            if ordinal < line.expected[0]:
                continue
            levels = {
                tuple(ks): (n, set(closed))
                for o, found in record.deep_open
                if o == ordinal
                for ks, n, closed in found
            }
            head: Key = ()
            while len(head) < self._depth and head in levels:
                n, closed = levels[head]
                head = (*head, next(k for k in range(n + 1) if k not in closed))
            expected = (ordinal, *head) + (0,) * (self._depth - len(head))
            line.expected = max(line.expected, expected)

    def restore_epochs(self, epochs: Mapping[str, int]) -> None:
        """Starts with these epochs: those before them were gone through in an earlier run."""
        self._epochs |= epochs

    def restore_cursor(self, records: Iterable[CursorRecord]) -> None:
        """Starts behind what a commit covered."""
        for record in records:
            line = self._line(record.node, record.epoch)
            line.expected = max(line.expected, tuple(record.expected))
            self._epochs[record.node] = max(self._epochs.get(record.node, 0), record.epoch)

    def cursor(self) -> list[CursorRecord]:
        """Returns how far groups have been given out; of an epoch that is over, that the next one begins."""
        begins = {at: [0] * (1 + self._depth) for at in self._epochs.items()}
        given = {at: list(line.expected) for at, line in self._lines.items()}
        return [
            CursorRecord(node, epoch, expected)
            for (node, epoch), expected in sorted((begins | given).items())
            if epoch == self._epochs.get(node, 0)  # of a later one nothing was given out
        ]

    def reached(self) -> tuple[tuple[str, int, int], ...]:
        """Returns (origin node, epoch, last ordinal given out) of every origin."""
        return tuple((r.node, r.epoch, r.expected[0] - 1) for r in self.cursor() if r.expected[0] > 0)

    @property
    def holding(self) -> bool:
        """Whether anything waits here to be given out."""
        return any(parent for line in self._lines.values() for parent in line.parents)

    def hole(self) -> tuple[Origin, tuple[int, ...]]:
        """Returns why something is held although everything has come.

        Returns:
            The first trace that is waited for, and the parents that said nothing of it; without parents, a
            trace that came again.
        """
        holes = []
        for (node, epoch), line in sorted(self._lines.items()):
            keys = [key for parent in line.parents for key in (*parent.by_key, *parent.parts)]
            again = [key[0] for key in keys if line.passed(key)]
            if again:
                return Origin(node, epoch, min(again)), ()
            if keys or any(parent.intervals for parent in line.parents):
                said = zip(line.found(), line.absent, strict=True)
                silent = tuple(n for n, (found, away) in enumerate(said) if found is None and not away)
                holes.append((Origin(node, epoch, line.expected[0]), silent))
        return next((hole for hole in holes if hole[1]), holes[0])

    def add(self, parent: int, reader: int, delivery: Delivery) -> Held | None:
        """Takes a delivery in; returns it at once when it says nothing new."""
        envelope = delivery.envelope
        line = self._line(envelope.origin.node, envelope.origin.epoch)
        slots = line.parents[parent]
        self._ticket += 1
        held = Held(reader, delivery, 0, self._ticket)
        if envelope.origin.epoch < self._epochs.get(envelope.origin.node, 0):
            return held
        if envelope.kind is Kind.EPOCH_END:
            if slots.end is not None and slots.end.delivery.token.message_id != _message(held):
                return held
            slots.end = held
            return None
        if envelope.intervals:
            return self._add_intervals(line, slots, held)
        key = (envelope.origin.ordinal, *(hop.k for hop in envelope.path))
        if line.passed(key):
            return held
        known = slots.known(key)
        if known is not None:
            if known.delivery.token.message_id != delivery.token.message_id:
                held.again = True
                return held
            known.delivery = delivery
            return None
        held.remaining = 1
        if slots.deeper and len(key) == self._depth + 2:
            slots.parts.setdefault(key[:-1], {})[key[-1]] = held
        else:
            slots.by_key[key] = held
        return None

    def in_turn(self, deliveries: Sequence[Delivery]) -> int:
        """Returns how many of the first deliveries of a single parent are data that is next in turn.

        Only where nothing is held. They are not taken: see `passed`.
        """
        first = deliveries[0].envelope.origin
        line, ordinal = self._line(first.node, first.epoch), first.ordinal
        closed = line.done.last() if line.done else -1
        if line.expected != (ordinal,) or closed >= ordinal or first.epoch != self._epochs.get(first.node, 0):
            return 0
        for number, delivery in enumerate(deliveries):
            envelope = delivery.envelope
            if envelope.kind is not Kind.DATA or envelope.path or envelope.after:
                return number
            if envelope.origin != (first.node, first.epoch, ordinal + number):
                return number
        return len(deliveries)

    def passed(self, last: Origin) -> None:
        """Moves the expectation behind what was in turn and is worked on now."""
        self._line(last.node, last.epoch).expected = (last.ordinal + 1,)

    def next(self, *, gaps_closed: bool = False) -> Group | None:
        """Returns the next group in order, or None.

        Args:
            gaps_closed: Nothing more will come, and what was never said is aborted: take what is held in
                order, with None for the parents that said nothing.
        """
        ready = []
        for (node, epoch), line in self._lines.items():
            if epoch == self._epochs.get(node, 0):
                found = self._found(line, gaps_closed)
                if found is not None:
                    ready.append((_arrived(found), node, epoch, found))
                elif self._end_epoch(node, line):
                    return self.next(gaps_closed=gaps_closed)
        if not ready:
            return None
        _, node, epoch, found = min(ready, key=lambda one: one[0])
        return self._take(node, epoch, self._lines[node, epoch], found)

    def finish(self, group: Group) -> list[Held]:
        """Counts a group's traces off its deliveries; returns those that have none left."""
        done = []
        for held, count in group.shares:
            held.remaining -= count
            if held.remaining == 0:
                done.append(held)
        return done

    def _line(self, node: str, epoch: int) -> _Line:
        line = self._lines.get((node, epoch))
        if line is None:
            line = self._lines[node, epoch] = _Line(self._deeper, self._depth, self._absent(node))
        return line

    def _absent(self, origin: str) -> list[bool]:
        begun_at = origin.partition(":flush")[0]
        if self._above is None:
            return [False for _ in self._deeper]
        return [begun_at not in names for names in self._above]

    def _add_intervals(self, line: _Line, slots: _Parent, held: Held) -> Held | None:
        message_id = held.delivery.token.message_id
        for _, _, _, known in slots.intervals:
            if known.delivery.token.message_id == message_id:
                known.delivery = held.delivery
                return None
        for first, last in held.delivery.envelope.intervals:
            for low, high in line.done.missing(max(first, line.expected[0]), last):
                self._ticket += 1
                heapq.heappush(slots.intervals, (low, high, self._ticket, held))
                held.remaining += high - low + 1
        return None if held.remaining else held

    def _found(self, line: _Line, gaps_closed: bool) -> Found | None:
        """Returns what each parent says of the expected trace, or None where it may not be taken yet."""
        found = line.found()
        if gaps_closed and line.waits(found):
            keys = [key for parent in line.parents if (key := line.first(parent)) is not None]
            if not keys:
                return None
            key = min(keys)
            line.expected = key + (0,) * (self._depth + 1 - len(key))
            found = line.found(gaps_closed=True)
        elif line.waits(found):
            return None
        present = [held for said in found if said is not None for held in said.held]
        return found if present and self._may_follow(present, gaps_closed) else None

    def _take(self, node: str, epoch: int, line: _Line, found: Found) -> Group:
        present = [said for said in found if said is not None]
        ordinal = line.expected[0]
        last = min([*(said.last for said in present), *line.silent(found)])
        paths = [held.delivery.envelope.path[: self._depth] for said in present for held in said.held]
        path = max(paths, key=len)
        origin = Origin(node, epoch, ordinal)
        shares = [(held, last - ordinal + 1) for said in present for held in said.held]
        for parent, said in zip(line.parents, found, strict=True):
            if said is not None:
                _remove(parent, line.expected, last)
        line.advance(last, path, len(path) + 1)
        return Group(origin, path, last, tuple(map(_member, found)), shares, line.absent)

    def _may_follow(self, present: list[Held], gaps_closed: bool) -> bool:
        if gaps_closed:
            return True
        return all(
            (line := self._lines.get((node, epoch))) is not None and line.expected[0] > ordinal
            for held in present
            for node, epoch, ordinal in held.delivery.envelope.after
        )

    def _end_epoch(self, node: str, line: _Line) -> bool:
        ends = [parent.end for parent in line.parents]
        if any(end is None or end.delivery.envelope.origin.ordinal >= line.expected[0] for end in ends):
            return False
        self.ended_epochs.append([end for end in ends if end is not None])
        self._epochs[node] = self._epochs.get(node, 0) + 1
        return True


def _arrived(found: Found) -> int:
    """Returns when a group was complete: sources that meet here take turns as they came."""
    return max(held.arrived for said in found if said is not None for held in said.held)


def _member(said: Said | None) -> Member:
    if said is None or not said.whole:
        return None
    return said.held if said.many else said.held[0]


def _message(held: Held) -> str:
    return held.delivery.token.message_id


def _remove(parent: _Parent, expected: Key, last: int) -> None:
    if parent.parts.pop(expected, None) is not None:
        return
    for length in range(len(expected), 0, -1):
        if parent.by_key.pop(expected[:length], None) is not None:
            return
    _, high, ticket, held = heapq.heappop(parent.intervals)
    if high > last:
        heapq.heappush(parent.intervals, (last + 1, high, ticket, held))


def positions_of(deliveries: Iterable[Delivery], known: Mapping[int, int]) -> dict[int, int]:
    """Returns the greatest sequence per writer slot, of what was known and of deliveries."""
    reached = dict(known)
    for delivery in deliveries:
        slot, sequence = delivery.token.position
        reached[slot] = max(reached.get(slot, -1), sequence)
    return reached
