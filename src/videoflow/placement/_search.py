"""The search: greedy dives, then branch and bound with symmetry and memo, within a budget."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

from videoflow.placement._board import FREE, Board, Need, Seat
from videoflow.placement._bounds import NOTHING, Aim, Bounds, Gathered
from videoflow.placement._options import Option, options

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
    """

    needs: Sequence[Need]
    chosen: tuple[Option | None, ...]
    states: tuple[Seat, ...]
    aim: Aim | None
    bound: Aim
    proven: bool
    nodes: int


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
            for rank in (_tight, _plain):
                self._dive(rank)
                if self._done(bound):
                    break
            if not self._every:
                self._dive_without_the_largest(bound)
        proven = impossible or self._done(bound)
        if not proven and len(self._needs) <= MOST_DEMANDS:
            self._descend(0, self._board.start, NOTHING)
            proven = self._complete
        elif not proven:
            self._complete = False
        return Found(
            self._needs,
            self._best,
            self._best_states,
            self._aim,
            bound if not proven or self._aim is None else self._aim,
            proven,
            self._nodes,
        )

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
            found = [o for o in options(self._board, need, states, None) if o is not None]
            best = min(found, key=lambda option: rank(self._board, option, states), default=None)
            chosen.append(best)
            states, so_far = _after(states, so_far, best)
        self._offer(chosen, states, so_far)

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
