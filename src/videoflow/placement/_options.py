"""Where a demand can go in a state, without those places that only repeat another by symmetry."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from videoflow.placement._board import CUT, FREE, SHARED, WHOLE, Board, Need, Seat, Spot, State, serves
from videoflow.placement._geometry import footprint, legal_starts
from videoflow.placement._problem import Kind
from videoflow.placement._rules import agree

# Combinations of cards that are looked at for one demand on one host; beyond it nothing is proven.
MOST_OPTIONS = 3000


class Unit(NamedTuple):
    """One device on one card: the slice that it takes, and the state of the card then."""

    card: int
    start: int
    width: int
    new: bool
    profile: str
    wasted: int
    state: State


class Option(NamedTuple):
    """A place for a demand; `order` compares places of equal demands."""

    order: tuple[int, tuple[int, ...], tuple[tuple[int, int, bool, str], ...]]
    host: int
    units: tuple[Unit, ...]
    seat: Seat
    wasted: int
    locality: int


def units(board: Board, need: Need, index: int, state: State) -> Iterator[Unit]:
    """Yields how one device of a demand can be on one card."""
    spot, demand = board.spots[index], need.demand
    if demand.kind is Kind.SLICE:
        if state.mode in (FREE, CUT):
            yield from _slices(board, need, index, state)
        return
    everything = (1 << len(spot.idle)) - 1
    if demand.kind is Kind.WHOLE:
        if state.mode == FREE:
            yield Unit(index, 0, 0, False, "", 0, state._replace(mode=WHOLE, destroyed=everything))
        return
    used = state.used_bytes + demand.peak_bytes
    room = spot.card.sharers_left is None or state.sharers < spot.card.sharers_left
    if state.mode in (FREE, SHARED) and used <= spot.capacity_bytes and room:
        after = state._replace(mode=SHARED, destroyed=everything, used_bytes=used, sharers=state.sharers + 1)
        yield Unit(index, 0, 0, False, "", 0, after)


def _slices(board: Board, need: Need, index: int, state: State) -> Iterator[Unit]:
    spot, demand = board.spots[index], need.demand
    suited = need.makes[index]
    least = min((profile.width for profile in suited), default=None)
    standing = set()
    for bit, idle in enumerate(spot.idle):
        if state.destroyed >> bit & 1 or idle.mask & state.occupied:
            continue
        standing.add((idle.profile, idle.start))
        if serves(idle, demand) and not (idle.media and state.media):
            after = state._replace(
                mode=CUT, occupied=state.occupied | idle.mask, media=int(state.media or idle.media)
            )
            wasted = 0 if least is None else max(0, idle.width - least)
            yield Unit(index, idle.start, idle.width, False, idle.profile, wasted, after)
    if not spot.card.managed:
        return
    for profile in suited:
        if profile.media and state.media:
            continue
        for start in legal_starts(profile, state.occupied):
            if (profile.name, start) in standing:
                continue
            mask = footprint(profile.width, start)
            after = State(
                CUT,
                state.occupied | mask,
                _destroyed(spot, state, mask, profile.media),
                state.created + 1,
                int(state.media or profile.media),
                0,
                0,
            )
            wasted = profile.width - (least or 0)
            yield Unit(index, start, profile.width, True, profile.name, wasted, after)


def _destroyed(spot: Spot, state: State, mask: int, media: bool) -> int:
    """Idle slices that a new one replaces: those in its place, and a second one with media extensions."""
    gone = state.destroyed
    for bit, idle in enumerate(spot.idle):
        if not idle.mask & state.occupied and (idle.mask & mask or (media and idle.media)):
            gone |= 1 << bit
    return gone


def options(
    board: Board, need: Need, states: tuple[Seat, ...], after: Option | None
) -> Iterator[Option | None]:
    """Yields places for a demand; None at the end where there were too many to look at.

    Args:
        board: The problem.
        need: The demand.
        states: What has been placed.
        after: Where the last equal demand was put; only places that are not before it are yielded.
    """
    fresh_classes = set()
    complete = True
    for number, seat in enumerate(states):
        if seat == board.start[number]:
            look = board.host_class[number]
            if look in fresh_classes:
                continue
            fresh_classes.add(look)
        if not _host_has_room(board, need, number, seat):
            continue
        count = 0
        for chosen in _combinations(board, need, number, seat):
            option = _option(board, need, number, seat, chosen)
            if option is None or (after is not None and option.order < after.order):
                continue
            count += 1
            if count > MOST_OPTIONS:
                complete = False
                break
            yield option
    if not complete:
        yield None


def on_card(board: Board, need: Need, index: int, states: Sequence[Seat]) -> Option | None:
    """Returns the first place of a demand for one device on a certain card, or None."""
    number = board.spots[index].host
    seat = states[number]
    if not _host_has_room(board, need, number, seat):
        return None
    found = units(board, need, index, seat.cards[index - board.first[number]])
    return next((_option(board, need, number, seat, (unit,)) for unit in found), None)


def fits_on(board: Board, need: Need, number: int, seat: Seat) -> bool:
    """Returns whether a demand has any place on one host."""
    return _host_has_room(board, need, number, seat) and any(_combinations(board, need, number, seat))


def _host_has_room(board: Board, need: Need, number: int, seat: Seat) -> bool:
    host, demand = board.problem.hosts[number], need.demand
    cpu = not demand.millicores or (host.free_millicores or 0) >= seat.millicores + demand.millicores
    used = seat.memory_bytes + demand.host_memory_bytes
    return cpu and (not demand.host_memory_bytes or (host.free_memory_bytes or 0) >= used)


def _combinations(board: Board, need: Need, number: int, seat: Seat) -> Iterator[tuple[Unit, ...]]:
    """Yields units for all devices of a demand, on cards in rising order."""
    first = board.first[number]
    several = need.demand.kind is Kind.SLICE
    peers = need.demand.peer
    bound = bool(need.demand.alike or need.demand.apart)

    def further(chosen: tuple[Unit, ...], cards: tuple[State, ...]) -> Iterator[tuple[Unit, ...]]:
        if len(chosen) == need.demand.count:
            yield chosen
            return
        least = 0 if not chosen else chosen[-1].card - first + (0 if several else 1)
        skipped = set()
        for offset in range(least, len(cards)):
            index = first + offset
            look = board.card_class[index]
            fresh = cards[offset] == board.spots[index].start
            if fresh and look in skipped:
                continue
            if fresh:
                skipped.add(look)
            if index not in need.spots:
                continue
            if peers and not all(one.card != index and board.distance(one.card, index)[1] for one in chosen):
                continue
            if bound and not _agree(board, need, number, (*(one.card for one in chosen), index)):
                continue
            for unit in units(board, need, index, cards[offset]):
                same = chosen and chosen[-1].card == index
                if same and (unit.start, unit.new) < (chosen[-1].start, chosen[-1].new):
                    continue
                yield from further((*chosen, unit), (*cards[:offset], unit.state, *cards[offset + 1 :]))

    yield from further((), seat.cards)


def _agree(board: Board, need: Need, number: int, cards: Sequence[int]) -> bool:
    return agree(need.demand, board.problem.hosts[number], [board.spots[index].card for index in cards])


def _option(board: Board, need: Need, number: int, seat: Seat, chosen: tuple[Unit, ...]) -> Option | None:
    cards = list(seat.cards)
    for unit in chosen:
        cards[unit.card - board.first[number]] = unit.state
    on = [unit.card for unit in chosen]
    far = 0
    for position, one in enumerate(on):
        for other in on[position + 1 :]:
            if one != other and board.links[number]:
                far = max(far, board.distance(one, other)[0])
    demand = need.demand
    after = Seat(
        tuple(cards), seat.millicores + demand.millicores, seat.memory_bytes + demand.host_memory_bytes
    )
    marks = tuple((unit.start, unit.width, unit.new, unit.profile) for unit in chosen)
    unmet = sum(need.unmet[card] for card in set(on))
    wasted = sum(unit.wasted for unit in chosen)
    return Option((number, tuple(on), marks), number, chosen, after, wasted, far + unmet)
