"""Tasks that move tokens: each says what it could do next, and a scheduler chooses."""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Protocol

from tests.planner.credit_logs import Group, Item, Leases, Log, Output
from videoflow.planner.plan import InputMode, TaskPlan

Action = Callable[[], None]


class Actor(Protocol):
    """Whatever can move."""

    def actions(self) -> Iterator[Action]: ...

    def delays(self, ordinal: int) -> bool: ...

    def crash(self) -> None: ...


class Source:
    """Numbers its items and publishes each on all its channels before the next."""

    def __init__(self, name: str, outputs: list[Output], items: int) -> None:
        self.name, self.outputs, self.left = name, outputs, items
        self.next = 0
        self.pending: list[tuple[Log, Group]] = []

    def actions(self) -> Iterator[Action]:
        yield from _publish(self.pending)
        if not self.pending and self.left:
            yield self._produce
        if not self.pending and not self.left:
            yield from _end(self.outputs)

    def _produce(self) -> None:
        item = Item(self.name, self.next)
        self.pending = [(output.log, output.group(item)) for output in self.outputs]
        self.next += 1
        self.left -= 1

    def delays(self, ordinal: int) -> bool:
        return False

    def crash(self) -> None:
        """A source that died produces the same items again; what stands is recognised."""


class Replica:
    """One of several that compete; it starts its leased inputs in any order."""

    def __init__(self, task: TaskPlan, leases: list[Leases], outputs: list[Output]) -> None:
        self.task, self.leases, self.outputs = task, leases, outputs
        self.held: list[tuple[Leases, int]] = []
        self.work: dict[tuple[int, int], list[tuple[Log, Group]]] = {}

    def actions(self) -> Iterator[Action]:
        for leases in self.leases:
            if len(self.held) < self.task.prefetch + self.task.batch_items and leases.can_lease():
                yield partial(self._lease, leases)
        for leases, index in self.held:
            key = (self.leases.index(leases), index)
            if key not in self.work:
                if len(self.work) < self.task.batch_items:
                    yield partial(self._start, key)
            elif self.work[key]:
                yield from _publish(self.work[key])
            else:
                yield partial(self._settle, key)
        if all(leases.is_finished for leases in self.leases):
            yield from _end(self.outputs)

    def _lease(self, leases: Leases) -> None:
        self.held.append((leases, leases.lease()))

    def _start(self, key: tuple[int, int]) -> None:
        item = self.leases[key[0]].log.items[key[1]]
        self.work[key] = [(output.log, output.group(item)) for output in self.outputs]

    def _settle(self, key: tuple[int, int]) -> None:
        leases = self.leases[key[0]]
        leases.settle(key[1])
        self.held = [held for held in self.held if not (held[0] is leases and held[1] == key[1])]
        del self.work[key]

    def delays(self, ordinal: int) -> bool:
        return any(leases.log.items[index].ordinal == ordinal for leases, index in self.held)

    def crash(self) -> None:
        for leases, index in self.held:
            leases.returned.append(index)
        self.held, self.work = [], {}


class Owner:
    """The one reader of an ordered task or a join: origin by origin, ordinal by ordinal."""

    def __init__(
        self, task: TaskPlan, inputs: list[list[Leases]], outputs: list[Output], lookahead: int
    ) -> None:
        self.task, self.inputs, self.outputs, self.lookahead = task, inputs, outputs, lookahead
        self.leases = [leases for merged in inputs for leases in merged]
        self.here: dict[int, dict[Item, int]] = {number: {} for number in range(len(self.leases))}
        self.next: dict[tuple[int, str], tuple[int, int]] = {}
        self.taken: list[tuple[Item, list[tuple[int, int]]]] = []
        self.pending: list[tuple[Log, Group]] = []
        self.answered: list[tuple[int, int]] = []
        self.kept: list[list[tuple[int, int]]] = []

    def actions(self) -> Iterator[Action]:
        for number, leases in enumerate(self.leases):
            if leases.can_lease():
                yield partial(self._lease, number)
        yield from _publish(self.pending)
        if not self.pending and self.answered:
            yield self._keep
        elif not self.pending:
            yield from self._go_on()

    def _go_on(self) -> Iterator[Action]:
        is_drained = all(leases.is_drained for leases in self.leases)
        if self.taken and (len(self.taken) > self.lookahead or is_drained):
            yield self._answer
        ready = self._ready()
        if ready is not None and len(self.taken) <= self.lookahead:
            item, members = ready
            yield partial(self._take, item, members)
        if is_drained and not self.taken and ready is None:
            if self.kept:
                yield self._release
            elif all(leases.is_finished for leases in self.leases):
                yield from _end(self.outputs)

    def _lease(self, number: int) -> None:
        index = self.leases[number].lease()
        self.here[number][self.leases[number].log.items[index]] = index

    def _ready(self) -> tuple[Item, list[tuple[int, int]]] | None:
        if self.task.mode is InputMode.ORDERED:
            for number, items in self.here.items():
                for item, index in items.items():
                    whole = item.is_skip and item.n == 0
                    position = (item.ordinal, 0 if whole else item.k)
                    if position == self.next.get((number, item.origin), (0, 0)):
                        return item, [(number, index)]
            return None
        for origin in sorted({item.origin for items in self.here.values() for item in items}):
            ordinal = self.next.get((-1, origin), (0, 0))[0]
            members = [self._members(merged, origin, ordinal) for merged in self.inputs]
            if all(members):
                return Item(origin, ordinal), [member for found in members for member in found]
        return None

    def _members(self, merged: list[Leases], origin: str, ordinal: int) -> list[tuple[int, int]]:
        """All items of one trace on one input, or none while some are missing."""
        for leases in merged:
            number = self.leases.index(leases)
            found = {i: x for i, x in self.here[number].items() if (i.origin, i.ordinal) == (origin, ordinal)}
            if found and len(found) >= next(iter(found)).n:
                return [(number, index) for index in found.values()]
        return []

    def _take(self, item: Item, members: list[tuple[int, int]]) -> None:
        for number, index in members:
            del self.here[number][self.leases[number].log.items[index]]
        if self.task.mode is InputMode.ORDERED:
            is_last = item.k + 1 >= item.n
            position = (item.ordinal + 1, 0) if is_last else (item.ordinal, item.k + 1)
            self.next[members[0][0], item.origin] = position
        else:
            self.next[-1, item.origin] = (item.ordinal + 1, 0)
        self.taken.append((item, members))

    def _answer(self) -> None:
        item, self.answered = self.taken.pop(0)
        self.pending = [(output.log, output.group(item)) for output in self.outputs]

    def _keep(self) -> None:
        """Settles the oldest: as late as its checkpoints allow, which is the worst for its writers."""
        self.kept.append(self.answered)
        self.answered = []
        while self.kept and self._kept_items() > self.task.checkpoint_items:
            self._settle(self.kept.pop(0))

    def _kept_items(self) -> int:
        return sum(1 for group in self.kept if not self._is_free(group))

    def _is_free(self, group: list[tuple[int, int]]) -> bool:
        return all(self.leases[number].log.items[index].is_skip for number, index in group)

    def _release(self) -> None:
        self._settle(self.kept.pop(0))

    def _settle(self, members: list[tuple[int, int]]) -> None:
        for number, index in members:
            self.leases[number].settle(index)

    def delays(self, ordinal: int) -> bool:
        return False

    def crash(self) -> None:
        """An owner that died reads the same again, in the same order: nothing changes here."""


def _publish(pending: list[tuple[Log, Group]]) -> Iterator[Action]:
    for entry in pending:
        log, group = entry
        if log.has_room(group):

            def publish(entry: tuple[Log, Group] = entry) -> None:
                entry[0].append(entry[1])
                pending.remove(entry)

            yield publish


def _end(outputs: list[Output]) -> Iterator[Action]:
    if any(not output.log.ended for output in outputs):

        def end() -> None:
            for output in outputs:
                output.log.ended = True

        yield end
