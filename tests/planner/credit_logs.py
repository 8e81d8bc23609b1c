"""Tokens in place of items; channels that are nothing but bounds, subscriptions nothing but credits."""

from dataclasses import dataclass, field
from typing import NamedTuple
from zlib import crc32

from videoflow.planner.plan import SubscriptionPlan


class Item(NamedTuple):
    """A token; below a fan-out it is number `k` of `n`. A skip says that there is nothing here."""

    origin: str
    ordinal: int
    k: int = 0
    n: int = 1
    is_skip: bool = False


Group = tuple[Item, ...]


@dataclass
class Log:
    """A channel: full when so many data items are unsettled by some reader."""

    bound: int
    readers: tuple[str, ...]
    items: list[Item] = field(default_factory=list)
    waiting: list[set[str]] = field(default_factory=list)
    announced: set[Item] = field(default_factory=set)
    load: int = 0
    ended: bool = False

    def has_room(self, group: Group) -> bool:
        new = sum(not item.is_skip for item in group if item not in self.announced)
        return not new or self.load + new <= self.bound

    def append(self, group: Group) -> None:
        for item in group:
            if item not in self.announced:
                self.announced.add(item)
                self.items.append(item)
                self.waiting.append(set(self.readers))
                self.load += not item.is_skip

    def settle(self, index: int, reader: str) -> None:
        self.waiting[index].discard(reader)
        if not self.waiting[index] and not self.items[index].is_skip:
            self.load -= 1


@dataclass
class Leases:
    """One subscription: what is leased, and for competing readers the window on dispatches."""

    plan: SubscriptionPlan
    log: Log
    dispatched: int = 0
    returned: list[int] = field(default_factory=list)
    unsettled: set[int] = field(default_factory=set)
    charged: int = 0

    def can_lease(self) -> bool:
        if self.returned:
            return True
        if self.dispatched >= len(self.log.items):
            return False
        spread = self.plan.spread
        if spread is not None and self.unsettled and min(self.unsettled) <= self.dispatched - spread:
            return False
        return self.log.items[self.dispatched].is_skip or self.charged < self.plan.credit_items

    def lease(self) -> int:
        if self.returned:
            return self.returned.pop(0)
        index = self.dispatched
        self.dispatched += 1
        self.unsettled.add(index)
        self.charged += not self.log.items[index].is_skip
        return index

    def settle(self, index: int) -> None:
        self.unsettled.discard(index)
        self.charged -= not self.log.items[index].is_skip
        self.log.settle(index, self.plan.reader)

    @property
    def is_drained(self) -> bool:
        return self.log.ended and self.dispatched == len(self.log.items) and not self.returned

    @property
    def is_finished(self) -> bool:
        return self.is_drained and not self.unsettled


@dataclass
class Output:
    """One channel that a task writes, and how many items of it one input may make."""

    log: Log
    name: str
    burst: int
    skips: bool

    def group(self, item: Item) -> Group:
        """What the task says here for an input: sometimes nothing, below a fan-out 0 to `burst` items."""
        draw = crc32(f"{self.name} {item.origin} {item.ordinal} {item.k}".encode())
        if item.is_skip or (self.skips and draw % 7 == 0):
            return (item._replace(is_skip=True),)
        if self.burst == 1:
            return (item,)
        count = draw % (self.burst + 1) if self.skips else self.burst
        if count == 0:
            return (item._replace(k=0, n=0, is_skip=True),)
        return tuple(item._replace(k=k, n=count) for k in range(count))
