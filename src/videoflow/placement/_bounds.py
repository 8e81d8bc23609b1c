"""What no completion of a partial placement can beat, component by component of the aim.

The bounds relax the problem into sums: cards for whole cards, slots for slices, bytes for sharers, and
parts of cards for all together. A demand counts with its least size. Where demands must be refused, the
largest are taken to be those: a completion that refuses more is worse in the first component anyway. How many
are refused in all may be known from elsewhere, as a floor.
"""

from collections.abc import Sequence
from typing import NamedTuple

from videoflow.placement._board import Board, Need, Seat, Worth
from videoflow.placement._problem import Kind


class Aim(NamedTuple):
    """What is to be small, the first component above all others.

    Attributes:
        refused: Demands that were not admitted.
        opened: Hosts that were idle and are so no longer.
        stranded: Memory slots that no slice can cover any more, and those that a slice has beyond the
            narrowest that would do.
        locality: Over all demands, the distance of its worst link and its unmet preferences.
        churn: Slices made and destroyed.
    """

    refused: int
    opened: int
    stranded: int
    locality: int
    churn: int


class Gathered(NamedTuple):
    """What the placements so far cost beyond what the states show."""

    refused: int
    wasted: int
    locality: int


NOTHING = Gathered(0, 0, 0)


def sizes(need: Need) -> tuple[int, int, int, int]:
    """Returns the least that a demand takes: whole cards, slots, bytes, parts of cards."""
    demand = need.demand
    return (
        demand.count if demand.kind is Kind.WHOLE else 0,
        demand.count * need.width,
        demand.count * demand.peak_bytes if demand.kind is Kind.SHARE else 0,
        need.parts,
    )


class Bounds:
    """Bounds on what is still to come, for each number of demands that are settled."""

    def __init__(self, board: Board, needs: Sequence[Need]) -> None:
        self._board = board
        self._floor = 0
        self._hopeless = [0] * (len(needs) + 1)
        self._least = [0] * (len(needs) + 1)
        self._slices = [0] * (len(needs) + 1)
        self._sums = [(0, 0, 0, 0)] * (len(needs) + 1)
        self._largest: list[tuple[list[int], ...]] = [([], [], [], [])] * (len(needs) + 1)
        self._fewest = [[0] * (len(needs) + 1)]
        for number in range(len(needs) - 1, -1, -1):
            need, later = needs[number], number + 1
            hopeless = not need.spots
            size = (0, 0, 0, 0) if hopeless else sizes(need)
            self._hopeless[number] = self._hopeless[later] + hopeless
            self._least[number] = self._least[later] + (0 if hopeless else self._nearest(need))
            units = need.demand.count if need.demand.kind is Kind.SLICE and not hopeless else 0
            self._slices[number] = self._slices[later] + units
            a, b = self._sums[later], size
            self._sums[number] = (a[0] + b[0], a[1] + b[1], a[2] + b[2], a[3] + b[3])
            self._largest[number] = tuple(
                sorted((*those, this), reverse=True) if this else those
                for those, this in zip(self._largest[later], size, strict=True)
            )

    @property
    def hopeless(self) -> int:
        """How many demands have no card that could be theirs."""
        return self._hopeless[0]

    def raise_floor(self, refused: int) -> None:
        """Takes into account that so many demands, with those that are hopeless, are refused in the end."""
        self._floor = max(self._floor, refused)

    def lower(self, number: int, states: Sequence[Seat], so_far: Gathered) -> Aim:
        """Returns a bound on the aim of every completion, when the demands before `number` are settled."""
        worths = [self._board.worth(host, seat) for host, seat in enumerate(states)]
        total = [sum(column) for column in zip(*worths, strict=True)]
        refused, opened = self._refused_and_opened(number, worths, so_far.refused)
        locality = so_far.locality + (0 if refused > self._hopeless[number] else self._least[number])
        churn = total[2]
        if refused == self._hopeless[number]:
            churn += max(0, self._slices[number] - total[7])
        return Aim(so_far.refused + refused, total[0] + opened, so_far.wasted + total[1], locality, churn)

    def _refused_and_opened(self, number: int, worths: Sequence[Worth], before: int) -> tuple[int, int]:
        rooms = [[worth[3 + measure] for worth in worths] for measure in range(4)]
        sums, largest = self._sums[number], self._largest[number]
        dropped = [_drop(sums[k], sum(rooms[k]), largest[k]) for k in range(4)]
        apart = sum(dropped[:3])
        refused = max(apart, dropped[3], self._floor - before - self._hopeless[number])
        opened = 0
        for measure in range(4):
            if sums[measure]:
                # Where no more than `refused` go, so many of this measure may be among them.
                gone = refused - (apart - dropped[measure] if measure < 3 else 0)
                asked = sums[measure] - sum(largest[measure][:gone])
                opened = max(opened, self._hosts(asked, rooms[measure], worths))
        return refused + self._hopeless[number], opened

    def _hosts(self, asked: int, room: list[int], worths: Sequence[Worth]) -> int:
        """Returns how many more hosts must be opened for so much."""
        open_now = [self._board.open[host] or worth.opened for host, worth in enumerate(worths)]
        left = asked - sum(free for free, is_open in zip(room, open_now, strict=True) if is_open)
        count = 0
        for free in sorted(
            (f for f, is_open in zip(room, open_now, strict=True) if not is_open), reverse=True
        ):
            if left <= 0:
                break
            left -= free
            count += 1
        return count

    def _nearest(self, need: Need) -> int:
        """Returns what a demand costs in locality at the very least."""
        unmet = min(need.unmet.values(), default=0)
        if need.demand.count < 2 or need.demand.kind is Kind.SLICE:
            return unmet
        best: int | None = None
        for host in {self._board.spots[index].host for index in need.spots}:
            cards = [index for index in need.spots if self._board.spots[index].host == host]
            if len(cards) < need.demand.count:
                continue
            if not self._board.links[host]:
                return unmet
            reach = sorted(self._reach(cards, one, need.demand.count - 1) for one in cards)
            far = reach[need.demand.count - 1]
            best = far if best is None else min(best, far)
        return unmet + (best or 0)

    def _reach(self, cards: Sequence[int], one: int, others: int) -> int:
        distances = sorted(self._board.distance(one, other)[0] for other in cards if other != one)
        return distances[others - 1]


def _drop(asked: int, room: int, largest: Sequence[int]) -> int:
    """Returns how many demands must go until the rest could fit."""
    dropped = 0
    while asked > room:
        asked -= largest[dropped]
        dropped += 1
    return dropped
