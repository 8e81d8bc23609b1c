"""A problem compiled into numbers: what each card can take, its state, and what a state is worth.

A state is a tuple of hosts, each a `Seat`; all of it can be hashed, so that the search can remember it.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from videoflow.placement._catalogue import CardModel, Profile
from videoflow.placement._geometry import footprint, narrowest, stranded_slots
from videoflow.placement._problem import UNKNOWN_DISTANCE, Card, Demand, Host, Kind, Problem
from videoflow.placement._rules import agree, fulfils, uncheckable

FREE, WHOLE, CUT, SHARED = range(4)
KINDS_OF_SHARING: Mapping[str, frozenset[Kind]] = {
    "physical": frozenset(Kind),
    "mig": frozenset({Kind.SLICE}),
    "time-sliced": frozenset({Kind.SHARE}),
    "mps": frozenset({Kind.SHARE}),
    "unknown": frozenset(),
}
# The parts into which one card is divided where cards that are used in several ways are counted together.
PARTS = 1 << 20


class State(NamedTuple):
    """What is placed on a card: slots taken, idle slices destroyed (bits), slices made, bytes shared."""

    mode: int
    occupied: int
    destroyed: int
    created: int
    media: int
    used_bytes: int
    sharers: int


class Seat(NamedTuple):
    """A host: the states of its cards, and what was taken of the host itself."""

    cards: tuple[State, ...]
    millicores: int
    memory_bytes: int


class Worth(NamedTuple):
    """What a host costs in a state, and what it could still take."""

    opened: int
    stranded: int
    churn: int
    wholes: int
    slots: int
    free_bytes: int
    parts: int
    idle: int


class Idle(NamedTuple):
    """An existing slice that nobody uses."""

    start: int
    width: int
    mask: int
    usable_bytes: int
    profile: str
    media: bool


@dataclass(frozen=True)
class Spot:
    """One card: what it may be used for."""

    host: int
    card: Card
    idle: tuple[Idle, ...]
    start: State
    whole: bool
    cut: bool
    share: bool
    capacity_bytes: int


@dataclass(frozen=True)
class Need:
    """One demand: on which cards it may be, and what it is at least in each measure."""

    number: int
    demand: Demand
    spots: frozenset[int]
    unmet: Mapping[int, int]
    makes: Mapping[int, tuple[Profile, ...]]
    width: int
    parts: int
    group: object


def _idle(card: Card) -> tuple[Idle, ...]:
    found = []
    for piece in card.slices:
        profile = card.model.profile(piece.profile) if card.model is not None else None
        usable = piece.usable_bytes if piece.usable_bytes is not None else profile and profile.usable_bytes
        width = 1 if profile is None else profile.width
        if not piece.busy:
            media = profile is not None and profile.media
            mask = footprint(width, piece.start)
            found.append(Idle(piece.start, width, mask, usable or 0, piece.profile, media))
    return tuple(found)


def _spot(number: int, host: Host, card: Card, headroom: int) -> Spot:
    kinds = frozenset[Kind]() if host.excluded else KINDS_OF_SHARING[host.sharing]
    idle = _idle(card)
    occupied = media = 0
    for piece in card.slices:
        profile = card.model.profile(piece.profile) if card.model is not None else None
        if piece.busy:
            occupied |= footprint(1 if profile is None else profile.width, piece.start)
            media |= profile is not None and profile.media
    uncut = not occupied and (card.managed or not (card.slices or card.partitioned))
    free = None if card.free_bytes is None else card.free_bytes - headroom
    return Spot(
        host=number,
        card=card,
        idle=idle,
        start=State(FREE, occupied, 0, 0, int(media), 0, 0),
        whole=Kind.WHOLE in kinds and uncut and not card.users and not card.locked,
        cut=Kind.SLICE in kinds and not card.users and not card.locked,
        share=Kind.SHARE in kinds and uncut and not card.locked and free is not None,
        capacity_bytes=max(0, free or 0),
    )


class Board:
    """The problem, compiled."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self.spots: list[Spot] = []
        self.first: list[int] = []
        for number, host in enumerate(problem.hosts):
            self.first.append(len(self.spots))
            self.spots += [_spot(number, host, card, problem.headroom_bytes) for card in host.cards]
        self.start = tuple(
            Seat(tuple(s.start for s in self.spots if s.host == number), 0, 0)
            for number in range(len(problem.hosts))
        )
        self.largest_share = max((spot.capacity_bytes for spot in self.spots), default=0)
        self.open = [any(_used(card) for card in host.cards) for host in problem.hosts]
        self._classes: dict[object, int] = {}
        self._worths: dict[tuple[int, Seat], Worth] = {}
        self._stranded: dict[tuple[str, int], int] = {}
        self._asked = {rule.key for demand in problem.demands for rule in demand.rules}
        self._asked |= {key for demand in problem.demands for key in (*demand.alike, *demand.apart)}
        self.links = [
            {frozenset((link.first, link.second)): (link.distance, link.peer) for link in host.links}
            for host in problem.hosts
        ]
        self.card_class = [self._class(self._class_of_card(spot)) for spot in self.spots]
        self.host_class = [self._class(self._class_of_host(number)) for number in range(len(problem.hosts))]
        self.needs = sorted(
            (self._need(number, demand) for number, demand in enumerate(problem.demands)), key=_largest_first
        )

    def distance(self, first: int, second: int) -> tuple[int, bool]:
        """Returns how far two cards of one host are from each other, and whether peer access was verified."""
        one, other = self.spots[first], self.spots[second]
        pair = frozenset((one.card.key, other.card.key))
        return self.links[one.host].get(pair, (UNKNOWN_DISTANCE, False))

    def stranded(self, spot: Spot, occupied: int) -> int:
        """Returns how many slots of a card no slice could ever cover; what nobody may cut strands nothing."""
        if spot.card.model is None or not spot.card.managed:
            return 0
        key = (spot.card.model.name, occupied)
        if key not in self._stranded:
            self._stranded[key] = stranded_slots(spot.card.model, occupied)
        return self._stranded[key]

    def worth(self, number: int, seat: Seat) -> Worth:
        """Returns what a host costs in a state, and what it could still take."""
        key = (number, seat)
        found = self._worths.get(key)
        if found is None:
            found = self._worths[key] = self._worth(number, seat)
        return found

    def _worth(self, number: int, seat: Seat) -> Worth:
        opened = int(not self.open[number] and seat != self.start[number])
        total = Worth(opened, 0, 0, 0, 0, 0, 0, 0)
        for offset, state in enumerate(seat.cards):
            one = self._card_worth(self.spots[self.first[number] + offset], state)
            total = Worth(*(a + b for a, b in zip(total, one, strict=True)))
        return total

    def _card_worth(self, spot: Spot, state: State) -> Worth:
        slots = 8 if spot.card.model is None else spot.card.model.slots
        destroyed = state.destroyed.bit_count()
        kept = [
            idle
            for bit, idle in enumerate(spot.idle)
            if not (state.destroyed >> bit & 1 or idle.mask & state.occupied)
        ]
        stranded = self.stranded(spot, state.occupied) if state.mode in (FREE, CUT) else 0
        free_slots = 0
        if spot.cut and state.mode in (FREE, CUT):
            covered = sum(idle.width for idle in kept)
            if spot.card.managed and spot.card.model is not None:
                covered = slots - state.occupied.bit_count() - self.stranded(spot, state.occupied)
            free_slots = max(0, covered)
        free_bytes = 0
        if spot.share and state.mode in (FREE, SHARED) and spot.card.sharers_left != state.sharers:
            free_bytes = spot.capacity_bytes - state.used_bytes
        whole = int(spot.whole and state.mode == FREE)
        parts = max(
            whole * PARTS,
            -(-free_slots * PARTS // slots),
            -(-free_bytes * PARTS // self.largest_share) if self.largest_share else 0,
        )
        churn = state.created + destroyed
        return Worth(0, stranded, churn, whole, free_slots, free_bytes, parts, len(kept))

    def _class(self, looks: object) -> int:
        return self._classes.setdefault(looks, len(self._classes))

    def _class_of_card(self, spot: Spot) -> object:
        """Cards of one class can take each other's place, as long as nothing is on them."""
        host = self.problem.hosts[spot.host]
        kinds = {(link.distance, link.peer) for link in host.links}
        pairs = len(host.cards) * (len(host.cards) - 1) // 2
        if host.links and (len(kinds) > 1 or len(self.links[spot.host]) < pairs):
            return spot.card.key
        return self._looks(spot.card)

    def _looks(self, card: Card) -> object:
        facts = tuple(sorted((k, v) for k, v in card.facts.items() if k in self._asked))
        pieces = tuple((piece.profile, piece.start, piece.busy, piece.usable_bytes) for piece in card.slices)
        model = None if card.model is None else (card.model.name, card.model.profiles)
        uses = (card.managed, card.partitioned, card.users, card.locked, card.sharers_left)
        return (card.memory_bytes, model, pieces, uses, card.free_bytes, facts)

    def _class_of_host(self, number: int) -> object:
        host = self.problem.hosts[number]
        facts = tuple(sorted((k, v) for k, v in host.facts.items() if k in self._asked))
        place = {card.key: offset for offset, card in enumerate(host.cards)}
        links = tuple(
            sorted((*sorted((place[ln.first], place[ln.second])), ln.distance, ln.peer) for ln in host.links)
        )
        looks = tuple(self._looks(card) for card in host.cards)
        return (
            host.sharing,
            host.excluded,
            looks,
            links,
            host.free_millicores,
            host.free_memory_bytes,
            facts,
        )

    def _need(self, number: int, demand: Demand) -> Need:
        spots, unmet, makes = set[int](), {}, {}
        # Slices have no peer access to each other, whatever is known of their cards.
        alone = demand.kind is Kind.SLICE and demand.peer and demand.count > 1
        checkable = uncheckable(self.problem, demand) is None and not alone
        for index, spot in enumerate(self.spots):
            host = self.problem.hosts[spot.host]
            missed = [rule for rule in demand.rules if not fulfils(rule, host, spot.card)]
            suits = not any(rule.hard for rule in missed) and agree(demand, host, [spot.card])
            if checkable and suits and self._can(spot, demand):
                spots.add(index)
                unmet[index] = len(missed)
                makes[index] = suited(spot.card.model, demand)
        widths = [self._width(self.spots[index], demand) for index in spots]
        width = min((w for w, _ in widths), default=0) if demand.kind is Kind.SLICE else 0
        parts = min((p for _, p in widths), default=0)
        fields = {k: v for k, v in vars(demand).items() if k != "key"}
        group = tuple(sorted((k, v) for k, v in fields.items() if k != "rules")), demand.rules
        return Need(number, demand, frozenset(spots), unmet, makes, width, parts * demand.count, group)

    def _can(self, spot: Spot, demand: Demand) -> bool:
        enough = not demand.memory_bytes or (spot.card.memory_bytes or 0) >= demand.memory_bytes
        if demand.kind is Kind.WHOLE:
            return spot.whole and enough
        if demand.kind is Kind.SHARE:
            return spot.share and enough and demand.peak_bytes <= spot.capacity_bytes
        return spot.cut and self._width(spot, demand)[0] > 0

    def _width(self, spot: Spot, demand: Demand) -> tuple[int, int]:
        """Returns the fewest slots that one device of a demand takes on a card, 0 for none, and its parts."""
        if demand.kind is Kind.WHOLE:
            return 0, PARTS
        if demand.kind is Kind.SHARE:
            return 0, demand.peak_bytes * PARTS // self.largest_share if self.largest_share else 0
        model = spot.card.model
        widths = [idle.width for idle in spot.idle if serves(idle, demand)]
        if spot.card.managed and model is not None:
            widths += [profile.width for profile in suited(model, demand)]
        slots = 8 if model is None else model.slots
        least = min(widths, default=0)
        return least, least * PARTS // slots


def suited(model: CardModel | None, demand: Demand) -> tuple[Profile, ...]:
    """Returns the profiles that would be made for a demand: those it names, else the narrowest."""
    if model is None or demand.kind is not Kind.SLICE:
        return ()
    if demand.profiles:
        named = [model.profile(name) for name in dict.fromkeys(demand.profiles)]
        return tuple(p for p in named if p is not None and p.usable_bytes >= demand.memory_bytes)
    least = narrowest(model, demand.memory_bytes)
    return () if least is None else (least,)


def serves(idle: Idle, demand: Demand) -> bool:
    """Returns whether an existing slice is what a demand asks for."""
    named = not demand.profiles or idle.profile in demand.profiles
    wanted = not idle.media or idle.profile in demand.profiles
    return named and wanted and idle.usable_bytes >= demand.memory_bytes


def _used(card: Card) -> bool:
    return bool(card.users or card.locked or any(piece.busy for piece in card.slices))


def _largest_first(need: Need) -> tuple[int, int, int, str]:
    order = {Kind.WHOLE: 0, Kind.SLICE: 1, Kind.SHARE: 2}[need.demand.kind]
    size = need.demand.count * max(1, need.width, need.demand.peak_bytes)
    return order, -size, len(need.spots), repr(need.group)
