"""The search: greedy dives, then branch and bound with symmetry and memo, within a budget."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

from videoflow.placement._board import FREE, SHARED, Board, Need, Seat
from videoflow.placement._bounds import NOTHING, Aim, Bounds, Gathered
from videoflow.placement._filling import Room, filled
from videoflow.placement._options import Option, on_card, options
from videoflow.placement._problem import Kind
from videoflow.placement._weights import Weighing, fewest_refused

# Beyond so many demands only the dives run.
MOST_DEMANDS = 200
# How many more than the bound says the dives refuse by size.
MOST_DROPPED = 4
# Remembered states; beyond it no further one is.
MOST_REMEMBERED = 100_000

Rank = Callable[[Board, Option, tuple[Seat, ...]], tuple[int, ...]]


class Found(NamedTuple):
    """What a search came to.

    Attributes:
        chosen: For each need, in the order of `needs`, where it went, or None.
        aim: What that is worth; None where nothing was found.
        bound: What nothing can beat.
        proven: No better one exists.
        nodes: How many nodes were looked at.
        weighing: What tells that so many are refused, where sums do not.
    """

    needs: Sequence[Need]
    chosen: tuple[Option | None, ...]
    states: tuple[Seat, ...]
    aim: Aim | None
    bound: Aim
    proven: bool
    nodes: int
    weighing: Weighing | None = None


class Search:
    """One search over some of the demands of a board.

    Args:
        board: The problem.
        needs: Which demands, in the order in which they are placed.
        budget: How many nodes may be looked at.
        every: All must be admitted, and the first answer in which they are will do.
    """

    def __init__(self, board: Board, needs: Sequence[Need], budget: int, every: bool = False) -> None:
        self._board, self._needs, self._every = board, needs, every
        self._bounds = Bounds(board, needs)
        self._budget = budget
        self._nodes = 0
        self._weighing: Weighing | None = None
        self._complete = True
        self._memo: dict[object, Gathered] = {}
        self._best: tuple[Option | None, ...] = ()
        self._best_states = board.start
        self._aim: Aim | None = None
        self._path: list[Option | None] = []

    def run(self) -> Found:
        """Searches, and returns the best that was found."""
        bound = self._bounds.lower(0, self._board.start, NOTHING)
        impossible = self._every and bound.refused > 0
        if not impossible:
            bound = self._dives(bound)
            impossible = self._every and bound.refused > 0
        proven = impossible or self._done(bound)
        if not proven and len(self._needs) <= MOST_DEMANDS:
            self._descend(0, self._board.start, NOTHING)
            proven = self._complete
        elif not proven:
            self._complete = False
        if not proven and not self._every:
            self._admit_more()
        return Found(
            self._needs,
            self._best,
            self._best_states,
            self._aim,
            bound if not proven or self._aim is None else self._aim,
            proven,
            self._nodes,
            self._weighing,
        )

    def _dives(self, bound: Aim) -> Aim:
        """Places one demand after the other, then one card's sharers after the other's; returns the bound."""
        for rank in (_tight, _plain):
            self._dive(rank)
            if self._done(bound):
                return bound
        if not self._every:
            self._dive_without_the_largest(bound)
        if self._aim is not None and self._aim.refused <= bound.refused:
            return bound
        if not any(need.demand.kind is Kind.SHARE for need in self._needs):
            return bound
        least, weighing = fewest_refused(self._board, self._needs)
        least += self._bounds.hopeless
        if least > bound.refused:
            self._weighing = weighing
            self._bounds.raise_floor(least)
            bound = self._bounds.lower(0, self._board.start, NOTHING)
        self._fill_without_the_largest(bound)
        return bound

    def _done(self, bound: Aim) -> bool:
        return self._aim is not None and (self._every or self._aim <= bound)

    def _offer(self, chosen: Sequence[Option | None], states: tuple[Seat, ...], so_far: Gathered) -> None:
        aim = self._bounds.lower(len(self._needs), states, so_far)
        if (not self._every or not aim.refused) and (self._aim is None or aim < self._aim):
            self._aim, self._best, self._best_states = aim, tuple(chosen), states

    def _dive_without_the_largest(self, bound: Aim) -> None:
        """Refuses as many of the largest as the bound says, then a few more: few large ones are fewer."""
        by_size = sorted(range(len(self._needs)), key=lambda number: -self._needs[number].parts)
        for dropped in range(bound.refused, min(bound.refused + MOST_DROPPED, len(self._needs)) + 1):
            if self._aim is None or self._aim.refused <= dropped:
                return
            self._dive(_tight, frozenset(by_size[:dropped]))

    def _dive(self, rank: Rank, dropped: frozenset[int] = frozenset()) -> None:
        states, so_far = self._board.start, NOTHING
        chosen: list[Option | None] = []
        for number, need in enumerate(self._needs):
            if number in dropped:
                chosen.append(None)
                states, so_far = _after(states, so_far, None)
                continue
            best = self._first(need, states, rank)
            chosen.append(best)
            states, so_far = _after(states, so_far, best)
        self._offer(chosen, states, so_far)

    def _fill_without_the_largest(self, bound: Aim) -> None:
        """Places sharers card by card, as many of the largest refused as the bound says, or some more."""
        single = [n for n, need in enumerate(self._needs) if need.demand.kind is Kind.SHARE and need.spots]
        single = [n for n in single if self._needs[n].demand.count == 1]
        single.sort(key=lambda number: -self._needs[number].demand.peak_bytes)
        least = bound.refused - self._bounds.hopeless
        most = 0 if self._every else min(least + MOST_DROPPED, len(single))
        for dropped in range(least, most + 1):
            if self._aim is not None and self._aim.refused <= dropped + self._bounds.hopeless:
                return
            self._fill(single[dropped:], frozenset(single))

    def _fill(self, sharers: Sequence[int], single: frozenset[int]) -> None:
        states, so_far = self._board.start, NOTHING
        chosen: list[Option | None] = [None] * len(self._needs)
        for number, need in enumerate(self._needs):
            if number not in single:
                chosen[number] = self._first(need, states, _tight)
                states, so_far = _after(states, so_far, chosen[number])
        cards, rooms = self._rooms(states, sharers)
        placed = filled(rooms, [self._needs[number].demand.peak_bytes for number in sharers])
        if placed is None:
            return
        where = dict(zip(sharers, placed, strict=True))
        for number in sorted(single):
            if number in where:
                chosen[number] = on_card(self._board, self._needs[number], cards[where[number]], states)
            states, so_far = _after(states, so_far, chosen[number])
        self._offer(chosen, states, so_far)

    def _rooms(self, states: Sequence[Seat], sharers: Sequence[int]) -> tuple[list[int], list[Room]]:
        """Returns the cards that can still be shared, those of hosts in use first, and their room."""
        cards, rooms = [], []
        order = sorted(
            range(len(states)), key=lambda n: (not self._board.open[n] and not _begun(states[n]), n)
        )
        for host in order:
            for offset, state in enumerate(states[host].cards):
                index = self._board.first[host] + offset
                spot = self._board.spots[index]
                if spot.share and state.mode in (FREE, SHARED):
                    most = spot.card.sharers_left
                    allowed = (n for n, number in enumerate(sharers) if index in self._needs[number].spots)
                    cards.append(index)
                    rooms.append(
                        Room(
                            spot.capacity_bytes - state.used_bytes,
                            None if most is None else most - state.sharers,
                            frozenset(allowed),
                        )
                    )
        return cards, rooms

    def _admit_more(self) -> None:
        """Admits what an answer refuses though there is a place for it."""
        chosen, states = list(self._best), self._best_states
        so_far = NOTHING
        for number, need in enumerate(self._needs):
            option = chosen[number] or self._first(need, states, _tight)
            if option is not None and chosen[number] is None:
                states = (*states[: option.host], option.seat, *states[option.host + 1 :])
            chosen[number] = option
            _, so_far = _after(states, so_far, option)
        self._offer(chosen, states, so_far)

    def _first(self, need: Need, states: tuple[Seat, ...], rank: Rank) -> Option | None:
        found = [option for option in options(self._board, need, states, None) if option is not None]
        return min(found, key=lambda option: rank(self._board, option, states), default=None)

    def _descend(self, number: int, states: tuple[Seat, ...], so_far: Gathered) -> None:
        if self._stop():
            return
        self._nodes += 1
        lower = self._bounds.lower(number, states, so_far)
        if self._aim is not None and lower >= self._aim:
            return
        if self._every and lower.refused:
            return
        if number == len(self._needs):
            self._offer(self._path, states, so_far)
            return
        need, last, equal = self._needs[number], None, False
        if number and self._needs[number - 1].group == need.group:
            last, equal = self._path[-1], True
        key = (number, equal, last and last.order, states if equal else self._canonical(states))
        seen = self._memo.get(key)
        if seen is not None and seen <= so_far:
            return
        if seen is not None or len(self._memo) < MOST_REMEMBERED:
            self._memo[key] = so_far
        self._branch(number, states, so_far, (equal, last))

    def _branch(
        self,
        number: int,
        states: tuple[Seat, ...],
        so_far: Gathered,
        before: tuple[bool, Option | None],
    ) -> None:
        equal, last = before
        found: list[Option] = []
        # Of equal demands the refused ones come last.
        if not equal or last is not None:
            for option in options(self._board, self._needs[number], states, last):
                if option is None:
                    self._complete = False
                else:
                    found.append(option)
        found.sort(key=lambda option: _tight(self._board, option, states))
        for choice in (*found, None):
            self._path.append(choice)
            self._descend(number + 1, *_after(states, so_far, choice))
            self._path.pop()
            if self._stop():
                return

    def _stop(self) -> bool:
        if self._every and self._aim is not None:
            return True
        if self._nodes >= self._budget:
            self._complete = False
            return True
        return False

    def _canonical(self, states: tuple[Seat, ...]) -> object:
        """Returns the same for states that differ only in which of equal cards and hosts is which."""
        hosts = []
        for number, seat in enumerate(states):
            first = self._board.first[number]
            looks = self._board.card_class[first : first + len(seat.cards)]
            cards = tuple(sorted(zip(looks, seat.cards, strict=True)))
            hosts.append((self._board.host_class[number], cards, seat.millicores, seat.memory_bytes))
        return tuple(sorted(hosts))


def _after(
    states: tuple[Seat, ...], so_far: Gathered, choice: Option | None
) -> tuple[tuple[Seat, ...], Gathered]:
    if choice is None:
        return states, so_far._replace(refused=so_far.refused + 1)
    host = choice.host
    gathered = Gathered(so_far.refused, so_far.wasted + choice.wasted, so_far.locality + choice.locality)
    return (*states[:host], choice.seat, *states[host + 1 :]), gathered


def _begun(seat: Seat) -> bool:
    return any(state.mode != FREE for state in seat.cards)


def _plain(board: Board, option: Option, states: tuple[Seat, ...]) -> tuple[int, ...]:
    """Ranks an option by what it adds to the aim."""
    before = board.worth(option.host, states[option.host])
    after = board.worth(option.host, option.seat)
    return (
        after.opened - before.opened,
        after.stranded - before.stranded + option.wasted,
        option.locality,
        after.churn - before.churn,
    )


def _tight(board: Board, option: Option, states: tuple[Seat, ...]) -> tuple[int, ...]:
    """Ranks an option by what it adds to the aim, and then by how little it leaves of its cards."""
    fresh = left = 0
    seat, first = states[option.host], board.first[option.host]
    for unit in option.units:
        spot = board.spots[unit.card]
        fresh += seat.cards[unit.card - first].mode == FREE
        left += spot.capacity_bytes - unit.state.used_bytes + (spot.card.memory_bytes or 0)
        left += int(spot.card.managed)
    return (*_plain(board, option, states), fresh, left)
