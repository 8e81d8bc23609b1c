"""Looks over answers and certificates without the solver.

For tests, and for whoever would rather not trust a search: it shares the types and the catalogue with the
solver and nothing else. It packs one host at a time, by trying everything, and does not look over what
would take too many steps: it says so, and that is no pass.
"""

from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from itertools import combinations, product

from videoflow.placement._answer import Answer, Certificate, Device, Measure, Proof
from videoflow.placement._catalogue import Profile
from videoflow.placement._problem import Card, Demand, Host, Kind, Problem
from videoflow.placement._rules import fulfils, uncheckable

MOST_STEPS = 200_000
_PARTS = 1 << 20
_GIVES = {"physical": set(Kind), "mig": {Kind.SLICE}, "time-sliced": {Kind.SHARE}, "mps": {Kind.SHARE}}
# What is on a card: kind of use, slices as (start, width, media), bytes shared, sharers.
_On = tuple[str, frozenset[tuple[int, int, bool]], int, int]
_EMPTY: _On = ("", frozenset(), 0, 0)


class TooLarge(Exception):
    """More steps than anyone wants to wait for."""


class _Packer:
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
        seen: set[tuple[int, tuple[_On, ...]]] = set()
        return self._place(demands, 0, tuple(_EMPTY for _ in self._host.cards), seen)

    def near(self, keys: Sequence[str]) -> bool:
        """Returns whether all these cards have verified peer access to each other."""
        return all(self._near.get(frozenset(pair)) for pair in combinations(keys, 2))

    def _place(
        self,
        demands: Sequence[Demand],
        number: int,
        cards: tuple[_On, ...],
        seen: set[tuple[int, tuple[_On, ...]]],
    ) -> bool:
        if number == len(demands):
            return True
        if (number, cards) in seen:
            return False
        seen.add((number, cards))
        return any(
            self._place(demands, number + 1, after, seen) for after in self._ways(demands[number], cards)
        )

    def _ways(self, demand: Demand, cards: tuple[_On, ...]) -> Iterator[tuple[_On, ...]]:
        allowed = [
            index
            for index, card in enumerate(self._host.cards)
            if all(fulfils(rule, self._host, card) for rule in demand.rules if rule.hard)
        ]
        if demand.kind is Kind.SLICE:
            if not demand.peer or demand.count == 1:
                yield from self._cuts(demand, cards, demand.count, allowed)
            return
        for chosen in combinations(allowed, demand.count):
            keys = [self._host.cards[index].key for index in chosen]
            if demand.peer and not self.near(keys):
                continue
            after = list(cards)
            for index in chosen:
                self._step()
                taken = _take(self._problem, self._host, self._host.cards[index], cards[index], demand)
                if taken is None:
                    break
                after[index] = taken
            else:
                yield tuple(after)

    def _cuts(
        self, demand: Demand, cards: tuple[_On, ...], left: int, allowed: Sequence[int]
    ) -> Iterator[tuple[_On, ...]]:
        if not left:
            yield cards
            return
        for index in allowed:
            for cut in _cut(self._host, self._host.cards[index], cards[index], demand):
                self._step()
                after = (*cards[:index], cut, *cards[index + 1 :])
                yield from self._cuts(demand, after, left - 1, [i for i in allowed if i >= index])

    def _step(self) -> None:
        self.steps += 1
        if self.steps > MOST_STEPS:
            raise TooLarge


def _take(problem: Problem, host: Host, card: Card, on: _On, demand: Demand) -> _On | None:
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


def _cut(host: Host, card: Card, on: _On, demand: Demand) -> Iterator[_On]:
    use, slices, _, _ = on
    if use in ("whole", "shared") or Kind.SLICE not in _GIVES.get(host.sharing, set()):
        return
    if card.users or card.locked:
        return
    busy = {_mark(card, piece.profile, piece.start) for piece in card.slices if piece.busy}
    taken = busy | slices
    for name, start, usable in _possible(card):
        profile = _profile(card, name)
        media = profile is not None and profile.media
        named = name in demand.profiles if demand.profiles else not media
        mark = _mark(card, name, start)
        apart = all(start >= s + w or s >= start + mark[1] for s, w, _ in taken)
        if named and apart and usable >= demand.memory_bytes and not (media and any(m for _, _, m in taken)):
            yield ("cut", slices | {mark}, 0, 0)


def _possible(card: Card) -> list[tuple[str, int, int]]:
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


def _mark(card: Card, name: str, start: int) -> tuple[int, int, bool]:
    profile = _profile(card, name)
    return (start, 1 if profile is None else profile.width, profile is not None and profile.media)


def certificate_faults(problem: Problem, certificate: Certificate) -> tuple[str, ...]:
    """Returns what is wrong with a certificate; empty: its demands do not fit together, for its reason."""
    demands = {demand.key: demand for demand in problem.demands}
    core = [demands[key] for key in certificate.core if key in demands]
    if not core or len(core) != len(certificate.core) or len(set(certificate.core)) != len(core):
        return ("the core names no demand, an unknown one, or one twice",)
    try:
        if certificate.proof is Proof.ALONE:
            return tuple(f"{core[0].key} fits on {name}" for name in _hosts_for(problem, core[:1]))
        if certificate.proof is Proof.CAPACITY:
            return _capacity_faults(problem, certificate, core)
        if certificate.proof is Proof.PATTERNS:
            return _pattern_faults(problem, certificate, demands)
        return _exhausted_faults(problem, core)
    except TooLarge:
        return ("too many steps to look it over",)


def _hosts_for(problem: Problem, demands: Sequence[Demand]) -> list[str]:
    return [host.name for host in problem.hosts if _Packer(problem, host).fits(demands)]


def _least(problem: Problem, demand: Demand, measure: Measure) -> Fraction:
    """Returns the least that a demand takes of a measure."""
    if measure is Measure.CARDS:
        return Fraction(demand.count if demand.kind is Kind.WHOLE else 0)
    if measure is Measure.BYTES:
        return Fraction(demand.count * demand.peak_bytes if demand.kind is Kind.SHARE else 0)
    cards = [card for host in problem.hosts for card in host.cards]
    if measure is Measure.PARTS and demand.kind is Kind.WHOLE:
        return Fraction(demand.count)
    if measure is Measure.PARTS and demand.kind is Kind.SHARE:
        most = max((_shareable(problem, card) for card in cards), default=0)
        return Fraction(demand.count * demand.peak_bytes, most) if most else Fraction(0)
    if demand.kind is not Kind.SLICE:
        return Fraction(0)
    sizes = [
        Fraction(width, _slots(card) if measure is Measure.PARTS else 1)
        for host in problem.hosts
        for card in host.cards
        if not host.excluded and all(fulfils(rule, host, card) for rule in demand.rules if rule.hard)
        for _, slices, _, _ in _cut(host, card, _EMPTY, demand)
        for _, width, _ in slices
    ]
    return demand.count * min(sizes, default=Fraction(0))


def _slots(card: Card) -> int:
    return 8 if card.model is None else card.model.slots


def _shareable(problem: Problem, card: Card) -> int:
    return max(0, (card.free_bytes or 0) - problem.headroom_bytes)


def _room(problem: Problem, host: Host, measure: Measure) -> Fraction:
    """Returns the most that a host has of a measure, whatever is placed on it."""
    total = Fraction(0)
    for card in host.cards if not host.excluded else ():
        cut = Demand("", Kind.SLICE)
        cuttable = any(_cut(host, card, _EMPTY, cut))
        taken = {s for piece in card.slices if piece.busy for s in _span(card, piece.profile, piece.start)}
        places = [set(_span(card, name, start)) for name, start, _ in _possible(card)]
        cuts = len(set().union(*(place for place in places if not place & taken))) if cuttable else 0
        whole = _take(problem, host, card, _EMPTY, Demand("", Kind.WHOLE)) is not None
        share = _take(problem, host, card, _EMPTY, Demand("", Kind.SHARE)) is not None
        shared = _shareable(problem, card) if share else 0
        if measure is Measure.PARTS:
            most = max(_shareable(problem, c) for h in problem.hosts for c in h.cards)
            used = (Fraction(cuts, _slots(card)), Fraction(shared, most) if most else Fraction(0))
            total += max(Fraction(int(whole)), *used)
        else:
            total += {Measure.CARDS: int(whole), Measure.SLOTS: cuts, Measure.BYTES: shared}[measure]
    return total


def _span(card: Card, name: str, start: int) -> range:
    return range(start, start + _mark(card, name, start)[1])


def _capacity_faults(problem: Problem, certificate: Certificate, core: Sequence[Demand]) -> tuple[str, ...]:
    measure = certificate.measure
    if measure is None:
        return ("it names no measure",)
    scale = _PARTS if measure is Measure.PARTS else 1
    said = dict(certificate.room)
    faults = []
    if set(said) != {host.name for host in problem.hosts}:
        faults.append("it does not count every host")
    faults += [
        f"{host.name} has more {measure} than it says"
        for host in problem.hosts
        if _room(problem, host, measure) * scale > said.get(host.name, 0)
    ]
    if sum(_least(problem, demand, measure) for demand in core) * scale < certificate.needed:
        faults.append("the core needs less than it says")
    if certificate.needed <= sum(said.values()):
        faults.append("there is enough")
    return tuple(faults)


def _pattern_faults(
    problem: Problem, certificate: Certificate, demands: Mapping[str, Demand]
) -> tuple[str, ...]:
    groups = [[demands[key] for key in group] for group in certificate.groups]
    if sorted(key for group in certificate.groups for key in group) != sorted(certificate.core):
        return ("its groups are not its core",)
    said = dict(certificate.patterns)
    if set(said) != {host.name for host in problem.hosts}:
        return ("it does not count every host",)
    faults = []
    covered = {tuple(0 for _ in groups)}
    for host in problem.hosts:
        patterns = said[host.name]
        packer = _Packer(problem, host)
        missed: list[tuple[int, ...]] = []
        for mix in sorted(product(*(range(len(group) + 1) for group in groups)), key=sum):
            if any(_within(mix, pattern) for pattern in patterns) or any(_within(m, mix) for m in missed):
                continue
            missed.append(mix)
            if packer.fits([demand for group, n in zip(groups, mix, strict=True) for demand in group[:n]]):
                faults.append(f"{host.name} can also hold {mix}")
        steps = [pattern for pattern in patterns if any(pattern)]
        covered |= {
            tuple(min(len(g), a + b) for g, a, b in zip(groups, one, step, strict=True))
            for one in covered
            for step in steps
        }
    if tuple(len(group) for group in groups) in covered:
        faults.append("a choice of mixes covers the core")
    return tuple(faults)


def _within(mix: Sequence[int], pattern: Sequence[int]) -> bool:
    return all(a <= b for a, b in zip(mix, pattern, strict=True))


def _exhausted_faults(problem: Problem, core: Sequence[Demand]) -> tuple[str, ...]:
    packers = [_Packer(problem, host) for host in problem.hosts]

    def assign(number: int, given: tuple[tuple[Demand, ...], ...]) -> bool:
        if number == len(core):
            return True
        for index, packer in enumerate(packers):
            more = (*given[index], core[number])
            if packer.fits(more) and assign(number + 1, (*given[:index], more, *given[index + 1 :])):
                return True
        return False

    return ("the core fits",) if assign(0, tuple(() for _ in packers)) else ()


def answer_faults(problem: Problem, answer: Answer) -> tuple[str, ...]:
    """Returns what is wrong with the places that an answer gives; whether it is the best is not looked at."""
    faults = []
    demands = {demand.key: demand for demand in problem.demands}
    refused = {refusal.demand for refusal in answer.refusals}
    if set(answer.assignments) | refused != set(demands) or set(answer.assignments) & refused:
        faults.append("each demand is not exactly one of admitted and refused")
    hosts = {host.name: host for host in problem.hosts}
    for name, host in hosts.items():
        here = [key for key, placed in answer.assignments.items() if placed.host == name]
        faults += _host_faults(
            problem, host, [(demands[key], answer.assignments[key].devices) for key in here]
        )
        for card in host.cards:
            after = {(piece.profile, piece.start) for piece in answer.layouts.get(card.key, card.slices)}
            stay = {(piece.profile, piece.start) for piece in card.slices if piece.busy}
            if stay - after:
                faults.append(f"{card.key}: a running slice goes")
    return tuple(faults)


def _host_faults(
    problem: Problem, host: Host, placed: Sequence[tuple[Demand, Sequence[Device]]]
) -> list[str]:
    packer = _Packer(problem, host)
    on: dict[str, _On] = {card.key: _EMPTY for card in host.cards}
    cards = {card.key: card for card in host.cards}
    faults = []
    if not packer.fits([]) or sum(d.millicores for d, _ in placed) > (host.free_millicores or 0):
        faults.append(f"{host.name} has too little of itself")
    for demand, devices in placed:
        keys = [device.card for device in devices]
        different = len(set(keys)) == len(keys) or demand.kind is Kind.SLICE
        if len(keys) != demand.count or not different or set(keys) - set(cards):
            faults.append(f"{demand.key} has other devices than it asked for")
            continue
        if demand.peer and not packer.near(keys):
            faults.append(f"{demand.key} has no peer access between its devices")
        for device, key in zip(devices, keys, strict=True):
            after: _On | None
            if demand.kind is Kind.SLICE:
                mark = _mark(cards[key], device.profile or "", device.start or 0)
                ways = _cut(host, cards[key], on[key], demand)
                after = next((way for way in ways if mark in way[1] and mark not in on[key][1]), None)
            else:
                after = _take(problem, host, cards[key], on[key], demand)
            rules = all(fulfils(rule, host, cards[key]) for rule in demand.rules if rule.hard)
            if after is None or not rules:
                faults.append(f"{demand.key} cannot be on {key}")
            else:
                on[key] = after
    return faults
