"""Everything, tried: the plainest solver there is, for small problems.

It knows slices from `vendor`, not from the catalogue, and neither bounds, symmetry nor memo: it lists every
way to place every demand, one after the other, and keeps the best aim.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations

from tests.placement.vendor import PROFILES, shapes
from videoflow.placement import Card, Demand, Host, Kind, Operator, Problem

GIVES = {
    "physical": ("whole", "slice", "share"),
    "mig": ("slice",),
    "time-sliced": ("share",),
    "mps": ("share",),
    "unknown": (),
}
Usable = dict[str, dict[str, int]]


@dataclass(frozen=True)
class On:
    """What has been put on one card."""

    use: str = ""
    taken: tuple[tuple[str, int], ...] = ()
    made: frozenset[tuple[str, int]] = frozenset()
    shared: int = 0
    sharers: int = 0


@dataclass(frozen=True)
class Way:
    """The cards after a demand, and what this way costs."""

    on: dict[str, On]
    wasted: int = 0
    locality: int = 0


@dataclass
class Brute:
    """One problem; `usable` says how many bytes each profile of each card gives."""

    problem: Problem
    usable: Usable
    best: tuple[int, ...] = field(default=())

    def aim(self) -> tuple[int, ...]:
        """The best aim there is."""
        start = {card.key: On() for host in self.problem.hosts for card in host.cards}
        self._try(0, start, {host.name: (0, 0) for host in self.problem.hosts}, (0, 0, 0))
        return self.best

    def _try(
        self, number: int, on: dict[str, On], used: dict[str, tuple[int, int]], so_far: tuple[int, int, int]
    ) -> None:
        if number == len(self.problem.demands):
            aim = self._aim(on, so_far)
            self.best = min(self.best, aim) if self.best else aim
            return
        demand = self.problem.demands[number]
        refused, wasted, locality = so_far
        self._try(number + 1, on, used, (refused + 1, wasted, locality))
        for host in self.problem.hosts:
            cpu, memory = used[host.name]
            cpu, memory = cpu + demand.millicores, memory + demand.host_memory_bytes
            if demand.millicores and cpu > (host.free_millicores or 0):
                continue
            if demand.host_memory_bytes and memory > (host.free_memory_bytes or 0):
                continue
            for way in self._ways(host, demand, on):
                after = (refused, wasted + way.wasted, locality + way.locality)
                self._try(number + 1, way.on, {**used, host.name: (cpu, memory)}, after)

    def _ways(self, host: Host, demand: Demand, on: dict[str, On]) -> Iterator[Way]:
        if host.excluded or demand.kind not in GIVES[host.sharing] or self._unknown_fact(demand):
            return
        cards = [card for card in host.cards if all(met(host, card, r) for r in demand.rules if r.hard)]
        if demand.kind is Kind.SLICE:
            if demand.peer and demand.count > 1:
                return
            places = [(card, *place) for card in cards for place in self._places(card)]
            for chosen in combinations(places, demand.count):
                if not agreed(host, demand, [card for card, _, _ in chosen]):
                    continue
                way = self._cut(host, demand, chosen, on)
                if way is not None:
                    yield way
            return
        for several in combinations(cards, demand.count):
            if demand.peer and not all(link(host, a, b)[1] for a, b in combinations(several, 2)):
                continue
            if not agreed(host, demand, several):
                continue
            after = dict(on)
            for card in several:
                taken = self._take(card, demand, on[card.key])
                if taken is None:
                    break
                after[card.key] = taken
            else:
                yield Way(after, 0, far(host, several) + unmet(host, several, demand))

    def _take(self, card: Card, demand: Demand, on: On) -> On | None:
        if card.locked or any(piece.busy for piece in card.slices) or on.use in ("cut", "whole"):
            return None
        if (card.slices or card.partitioned) and not card.managed:
            return None
        if demand.memory_bytes and (card.memory_bytes is None or card.memory_bytes < demand.memory_bytes):
            return None
        if demand.kind is Kind.WHOLE:
            return None if on.use or card.users else On("whole")
        if card.free_bytes is None or on.sharers == card.sharers_left:
            return None
        total = on.shared + demand.peak_bytes
        if total > max(0, card.free_bytes - self.problem.headroom_bytes):
            return None
        return On("shared", shared=total, sharers=on.sharers + 1)

    def _places(self, card: Card) -> list[tuple[str, int]]:
        there = [(piece.profile, piece.start) for piece in card.slices if not piece.busy]
        if card.managed and card.model is not None:
            every = shapes(card.model.name)
            there += [
                (name, start)
                for name, (_, starts, _) in every.items()
                for start in starts
                if (name, start) not in there
            ]
        return there

    def _cut(
        self, host: Host, demand: Demand, chosen: tuple[tuple[Card, str, int], ...], on: dict[str, On]
    ) -> Way | None:
        after, wasted = dict(on), 0
        for card, name, start in chosen:
            assert card.model is not None
            usable = self.usable[card.model.name]
            every, now = shapes(card.model.name), after[card.key]
            if card.users or card.locked or now.use in ("whole", "shared"):
                return None
            if usable[name] < demand.memory_bytes or (demand.profiles and name not in demand.profiles):
                return None
            busy = {s for p in card.slices if p.busy for s in slots(every, p.profile, p.start)}
            busy |= {s for other in now.taken for s in slots(every, *other)}
            if busy & slots(every, name, start):
                return None
            names = demand.profiles or tuple(every)
            widths = [every[n][0] for n in names if n in every and usable[n] >= demand.memory_bytes]
            wasted += max(0, every[name][0] - min(widths))
            new = (name, start) not in {(p.profile, p.start) for p in card.slices}
            made = now.made | ({(name, start)} if new else set())
            after[card.key] = On("cut", (*now.taken, (name, start)), made)
        cards = tuple({card.key: card for card, _, _ in chosen}.values())
        return Way(after, wasted, far(host, cards) + unmet(host, cards, demand))

    def _unknown_fact(self, demand: Demand) -> bool:
        known = {k for host in self.problem.hosts for k in host.facts}
        known |= {k for host in self.problem.hosts for card in host.cards for k in card.facts}
        return any(rule.hard and rule.key not in known for rule in demand.rules)

    def _aim(self, on: dict[str, On], so_far: tuple[int, int, int]) -> tuple[int, ...]:
        refused, wasted, locality = so_far
        opened = stranded = churn = 0
        for host in self.problem.hosts:
            was_open = any(c.users or c.locked or any(p.busy for p in c.slices) for c in host.cards)
            opened += not was_open and any(on[card.key].use for card in host.cards)
            for card in host.cards:
                a, b = self._card_cost(card, on[card.key])
                stranded, churn = stranded + a, churn + b
        return refused, opened, stranded + wasted, locality, churn

    def _card_cost(self, card: Card, on: On) -> tuple[int, int]:
        """Slots that nothing can cover any more, and slices made and destroyed."""
        if card.model is None:
            return 0, 0
        every = shapes(card.model.name)
        idle = [p for p in card.slices if not p.busy and (p.profile, p.start) not in on.taken]
        fresh = {s for place in on.made for s in slots(every, *place)}
        gone = [p for p in idle if on.use in ("whole", "shared") or slots(every, p.profile, p.start) & fresh]
        churn = len(on.made) + len(gone)
        if not card.managed or on.use in ("whole", "shared"):
            return 0, churn
        held = {s for p in card.slices if p.busy for s in slots(every, p.profile, p.start)}
        held |= {s for place in on.taken for s in slots(every, *place)}
        covered = set[int]()
        for name, (_, starts, _) in every.items():
            for start in starts:
                here = slots(every, name, start)
                covered |= here if not here & held else set()
        return len(set(range(PROFILES[card.model.name][0])) - held - covered), churn


def slots(every: dict[str, tuple[int, tuple[int, ...], int]], name: str, start: int) -> set[int]:
    """The memory slots of a slice."""
    return set(range(start, start + every[name][0]))


def link(host: Host, a: Card, b: Card) -> tuple[int, bool]:
    """Distance and verified peer access of two cards."""
    for found in host.links:
        if {found.first, found.second} == {a.key, b.key}:
            return found.distance, found.peer
    return 100, False


def agreed(host: Host, demand: Demand, cards: Sequence[Card]) -> bool:
    """Whether the facts that are to be one are one, and those that are to differ differ."""
    for key in demand.alike:
        if len({fact(host, card, key) for card in cards}) > 1 or fact(host, cards[0], key) is None:
            return False
    for key in demand.apart:
        values = [fact(host, card, key) for card in cards]
        if None in values or len(set(values)) < len(values):
            return False
    return True


def fact(host: Host, card: Card, key: str) -> str | None:
    """What is known of a card."""
    return {**host.facts, **card.facts}.get(key)


def far(host: Host, cards: tuple[Card, ...]) -> int:
    """The worst link among cards, where the host has any."""
    return max((link(host, a, b)[0] for a, b in combinations(cards, 2)), default=0) if host.links else 0


def unmet(host: Host, cards: tuple[Card, ...], demand: Demand) -> int:
    """Preferences that the cards do not meet."""
    return sum(not met(host, card, rule) for card in cards for rule in demand.rules)


def met(host: Host, card: Card, rule: object) -> bool:
    """Whether a card fulfils a rule; only the operators that the generator uses."""
    key, operator, values = (getattr(rule, name) for name in ("key", "operator", "values"))
    found = {**host.facts, **card.facts}.get(key)
    if operator is Operator.NOT_IN:
        return found not in values
    if operator is Operator.IN:
        return found in values
    assert operator is Operator.GE
    return found is not None and int(found) >= int(values[0])


def without(problem: Problem, key: str) -> Problem:
    """The problem without one demand."""
    return replace(problem, demands=tuple(d for d in problem.demands if d.key != key))
