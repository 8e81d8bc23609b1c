"""Packs one host at a time, by trying every place for each demand in turn."""

from collections.abc import Iterator, Sequence
from itertools import combinations

from videoflow.placement._catalogue import Profile
from videoflow.placement._problem import Card, Demand, Host, Kind, Problem
from videoflow.placement._rules import agree, fulfils, uncheckable

MOST_STEPS = 200_000
_GIVES = {"physical": set(Kind), "mig": {Kind.SLICE}, "time-sliced": {Kind.SHARE}, "mps": {Kind.SHARE}}
# What is on a card: kind of use, slices as (start, width, media), bytes shared, sharers.
On = tuple[str, frozenset[tuple[int, int, bool]], int, int]
EMPTY: On = ("", frozenset(), 0, 0)


class TooLarge(Exception):
    """More steps than anyone wants to wait for."""


class Packer:
    """Whether demands fit on one host together, by trying every place for each in turn."""

    def __init__(self, problem: Problem, host: Host) -> None:
        self._problem, self._host = problem, host
        self._near = {frozenset((link.first, link.second)): link.peer for link in host.links}
        self.steps = 0

    def fits(self, demands: Sequence[Demand]) -> bool:
        """Returns whether all fit together; raises `TooLarge` where that takes too long."""
        if any(uncheckable(self._problem, demand) for demand in demands) or self._host.excluded:
            return not demands
        cpu = sum(demand.millicores for demand in demands)
        memory = sum(demand.host_memory_bytes for demand in demands)
        if cpu > (self._host.free_millicores or 0) or memory > (self._host.free_memory_bytes or 0):
            return False
        seen: set[tuple[int, tuple[On, ...]]] = set()
        return self._place(demands, 0, tuple(EMPTY for _ in self._host.cards), seen)

    def fits_beside(self, cards: Sequence[On], others: Sequence[Demand], demand: Demand) -> bool:
        """Returns whether a demand fits where cards are used so by others, which stay where they are."""
        if uncheckable(self._problem, demand) or self._host.excluded:
            return False
        every = (*others, demand)
        cpu, memory = sum(d.millicores for d in every), sum(d.host_memory_bytes for d in every)
        if cpu > (self._host.free_millicores or 0) or memory > (self._host.free_memory_bytes or 0):
            return False
        return any(True for _ in self._ways(demand, tuple(cards)))

    def near(self, keys: Sequence[str]) -> bool:
        """Returns whether all these cards have verified peer access to each other."""
        return all(self._near.get(frozenset(pair)) for pair in combinations(keys, 2))

    def _place(
        self,
        demands: Sequence[Demand],
        number: int,
        cards: tuple[On, ...],
        seen: set[tuple[int, tuple[On, ...]]],
    ) -> bool:
        if number == len(demands):
            return True
        if (number, cards) in seen:
            return False
        seen.add((number, cards))
        return any(
            self._place(demands, number + 1, after, seen) for after in self._ways(demands[number], cards)
        )

    def _ways(self, demand: Demand, cards: tuple[On, ...]) -> Iterator[tuple[On, ...]]:
        allowed = [index for index, card in enumerate(self._host.cards) if suits(demand, self._host, card)]
        if demand.kind is Kind.SLICE:
            if not demand.peer or demand.count == 1:
                yield from self._cuts(demand, cards, demand.count, allowed)
            return
        for chosen in combinations(allowed, demand.count):
            keys = [self._host.cards[index].key for index in chosen]
            if demand.peer and not self.near(keys):
                continue
            if not agree(demand, self._host, [self._host.cards[index] for index in chosen]):
                continue
            after = list(cards)
            for index in chosen:
                self._step()
                taken = take(self._problem, self._host, self._host.cards[index], cards[index], demand)
                if taken is None:
                    break
                after[index] = taken
            else:
                yield tuple(after)

    def _cuts(
        self,
        demand: Demand,
        cards: tuple[On, ...],
        left: int,
        allowed: Sequence[int],
        chosen: tuple[int, ...] = (),
    ) -> Iterator[tuple[On, ...]]:
        if not left:
            yield cards
            return
        on = [self._host.cards[index] for index in chosen]
        for index in allowed:
            if not agree(demand, self._host, [*on, self._host.cards[index]]):
                continue
            for made in cut(self._host, self._host.cards[index], cards[index], demand):
                self._step()
                after = (*cards[:index], made, *cards[index + 1 :])
                later = [i for i in allowed if i >= index]
                yield from self._cuts(demand, after, left - 1, later, (*chosen, index))

    def _step(self) -> None:
        self.steps += 1
        if self.steps > MOST_STEPS:
            raise TooLarge


def suits(demand: Demand, host: Host, card: Card) -> bool:
    """Returns whether a card has what a demand asks of each."""
    return agree(demand, host, [card]) and all(
        fulfils(rule, host, card) for rule in demand.rules if rule.hard
    )


def take(problem: Problem, host: Host, card: Card, on: On, demand: Demand) -> On | None:
    """Returns a card with one more whole user or sharer, or None where it may not be had."""
    use, slices, shared, sharers = on
    if demand.kind not in _GIVES.get(host.sharing, set()) or card.locked or slices:
        return None
    if any(piece.busy for piece in card.slices) or ((card.slices or card.partitioned) and not card.managed):
        return None
    if demand.memory_bytes and (card.memory_bytes or 0) < demand.memory_bytes:
        return None
    if demand.kind is Kind.WHOLE:
        return None if use or card.users else ("whole", slices, 0, 0)
    if use == "whole" or card.free_bytes is None or card.sharers_left == sharers:
        return None
    total = shared + demand.peak_bytes
    fits = total <= max(0, card.free_bytes - problem.headroom_bytes)
    return ("shared", slices, total, sharers + 1) if fits else None


def _profile(card: Card, name: str) -> Profile | None:
    return None if card.model is None else card.model.profile(name)


def cut(host: Host, card: Card, on: On, demand: Demand) -> Iterator[On]:
    """Yields a card with one more slice for a demand."""
    use, slices, _, _ = on
    if use in ("whole", "shared") or Kind.SLICE not in _GIVES.get(host.sharing, set()):
        return
    if card.users or card.locked:
        return
    busy = {mark(card, piece.profile, piece.start) for piece in card.slices if piece.busy}
    taken = busy | slices
    for name, start, usable in possible(card):
        profile = _profile(card, name)
        media = profile is not None and profile.media
        named = name in demand.profiles if demand.profiles else not media
        here = mark(card, name, start)
        apart = all(start >= s + w or s >= start + here[1] for s, w, _ in taken)
        if named and apart and usable >= demand.memory_bytes and not (media and any(m for _, _, m in taken)):
            yield ("cut", slices | {here}, 0, 0)


def possible(card: Card) -> list[tuple[str, int, int]]:
    """Slices that are there and idle, and those that could be made: profile, start, usable bytes."""
    found = []
    for piece in card.slices:
        profile = _profile(card, piece.profile)
        usable = piece.usable_bytes if piece.usable_bytes is not None else profile and profile.usable_bytes
        if not piece.busy:
            found.append((piece.profile, piece.start, usable or 0))
    if card.managed and card.model is not None:
        standing = {(name, start) for name, start, _ in found}
        found += [
            (profile.name, start, profile.usable_bytes)
            for profile in card.model.profiles
            for start in profile.starts
            if (profile.name, start) not in standing
        ]
    return found


def mark(card: Card, name: str, start: int) -> tuple[int, int, bool]:
    """Returns a slice as it is noted: first slot, how many, whether it has media extensions."""
    profile = _profile(card, name)
    return (start, 1 if profile is None else profile.width, profile is not None and profile.media)
