"""Fills cards with sharers one after the other, as full as can be; where that leads nowhere, nearly so.

Cards that are nearly full are where placing one demand at a time goes wrong: it leaves a little on each card
and too little on any. Here a card is given a whole set at once, the fullest first.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

# How often the fullest set may be passed over, sets that are looked at for one card, and cards in all.
MOST_PASSED_OVER = 4
MOST_STEPS = 300
MOST_CARDS = 400


class Room(NamedTuple):
    """One card: how much it holds, of how many, and of which sharers."""

    size_bytes: int
    most: int | None
    allowed: frozenset[int]


class _Spent(Exception):
    """Enough cards were looked at."""


def filled(rooms: Sequence[Room], sizes: Sequence[int]) -> list[int] | None:
    """Returns for each sharer the number of its card, where all were placed, or None."""
    order = sorted(range(len(sizes)), key=lambda number: -sizes[number])
    spare = sum(room.size_bytes for room in rooms) - sum(sizes)
    if spare < 0:
        return None
    filling = _Filling(rooms, sizes)
    try:
        for passed_over in range(MOST_PASSED_OVER):
            if filling.fill(0, tuple(order), spare, passed_over):
                return filling.placed
    except _Spent:
        pass
    return None


class _Filling:
    def __init__(self, rooms: Sequence[Room], sizes: Sequence[int]) -> None:
        self._rooms, self._sizes = rooms, sizes
        self.placed = [0] * len(sizes)
        self._cards = 0

    def fill(self, card: int, left: tuple[int, ...], spare: int, passed_over: int) -> bool:
        """Fills the cards from this one on; `spare` is what they may leave, `passed_over` what of choices."""
        if not left:
            return True
        if card == len(self._rooms):
            return False
        self._cards += 1
        if self._cards > MOST_CARDS:
            raise _Spent
        for rank, (waste, chosen) in enumerate(self._sets(self._rooms[card], left)[: passed_over + 1]):
            if waste > spare:
                break
            for number in chosen:
                self.placed[number] = card
            later = tuple(number for number in left if number not in chosen)
            if self.fill(card + 1, later, spare - waste, passed_over - rank):
                return True
        return False

    def _sets(self, room: Room, left: Sequence[int]) -> list[tuple[int, frozenset[int]]]:
        """Returns sets that fit on a card, each with the largest that does, and what each leaves."""
        here = [
            number for number in left if number in room.allowed and self._sizes[number] <= room.size_bytes
        ]
        if not here or room.most == 0:
            return [(room.size_bytes, frozenset())]
        found = list(
            self._further(room, here, (here[0],), (1, room.size_bytes - self._sizes[here[0]]), [MOST_STEPS])
        )
        found.sort(key=lambda pair: pair[0])
        return [(waste, frozenset(chosen)) for waste, chosen in found]

    def _further(
        self, room: Room, here: Sequence[int], chosen: tuple[int, ...], at: tuple[int, int], steps: list[int]
    ) -> Iterator[tuple[int, tuple[int, ...]]]:
        """Yields sets to which nothing that comes later in order can be added, and what each leaves free."""
        position, free = at
        last, grown = -1, False
        if room.most is None or len(chosen) < room.most:
            for further in range(position, len(here)):
                size = self._sizes[here[further]]
                if size > free or size == last:
                    continue
                if not steps[0]:
                    break
                steps[0] -= 1
                last, grown = size, True
                yield from self._further(
                    room, here, (*chosen, here[further]), (further + 1, free - size), steps
                )
        if not grown:
            yield free, chosen
