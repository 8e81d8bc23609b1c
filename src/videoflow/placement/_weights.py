"""A sharper bound for cards that are shared or given whole: demands have weights, and cards a limit.

Sums of bytes cannot see that three sharers of 40 GiB need three cards of 78. Weights can: each of these is
worth 1 and no card holds more than 1. Weights come from two families of functions of a size; how much of them
a card holds is not taken from the function but found by filling the card as well as it can be.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from videoflow.placement._board import Board, Need, Spot
from videoflow.placement._problem import Kind

# The finest division of a card, and the most parts of the coarse ones.
FINE = 240
COARSEST, MOST_PARTS = 1, 12
# Of the weighings that promise most, so many are worked out.
MOST_TRIED = 8


class Weighing(NamedTuple):
    """Weights of demands, for each of their devices, and what the cards of each host hold at most."""

    weights: tuple[int, ...]
    room: tuple[int, ...]


def fewest_refused(board: Board, needs: Sequence[Need]) -> tuple[int, Weighing | None]:
    """Returns how many demands must be refused, as far as weights tell, and by which weighing."""
    best: tuple[int, Weighing | None] = (0, None)
    for weights in _promising(board, needs):
        found = Weighing(weights, _room(board, needs, weights))
        dropped = dropped_by(needs, found)
        if dropped > best[0]:
            best = dropped, found
    return best


def dropped_by(needs: Sequence[Need], weighing: Weighing) -> int:
    """Returns how many demands, the heaviest first, must go until the rest is within the room."""
    heavy = sorted(
        (need.demand.count * weight for need, weight in zip(needs, weighing.weights, strict=True)),
        reverse=True,
    )
    total, dropped, room = sum(heavy), 0, sum(weighing.room)
    while total > room:
        total -= heavy[dropped]
        dropped += 1
    return dropped


def _promising(board: Board, needs: Sequence[Need]) -> list[tuple[int, ...]]:
    """Returns the weighings under which most is asked for what the functions say that the cards hold."""
    ranked = []
    for capacity in sorted({spot.capacity_bytes for spot in board.spots if spot.share} - {0}):
        there = sum(min(1.0, spot.capacity_bytes / capacity) for spot in board.spots if spot.share)
        for full, weights in _weighings(needs, capacity):
            asked = sum(need.demand.count * weight for need, weight in zip(needs, weights, strict=True))
            ranked.append((asked / (full * there), weights))
    ranked.sort(key=lambda pair: -pair[0])
    return [weights for _, weights in ranked[:MOST_TRIED]]


def _weighings(needs: Sequence[Need], capacity: int) -> Iterator[tuple[int, tuple[int, ...]]]:
    """Yields what a full card is worth, and the weights of one device of each demand."""
    shares = [need.demand.peak_bytes for need in needs if need.demand.kind is Kind.SHARE and need.spots]
    for parts in range(COARSEST, MOST_PARTS):
        yield (
            parts,
            tuple(_weight(need, parts, -(-(parts + 1) * _size(need) // capacity) - 1) for need in needs),
        )
    for least in {min(size, capacity - size) for size in shares if size < capacity} | {0}:
        yield FINE, tuple(_weight(need, FINE, _stretched(_size(need), capacity, least)) for need in needs)


def _stretched(size: int, capacity: int, least: int) -> int:
    """What leaves less than `least` of a card takes all of it, and what is smaller than that nothing."""
    if size > capacity - least:
        return FINE
    return size * FINE // capacity if size >= least else 0


def _size(need: Need) -> int:
    return need.demand.peak_bytes if need.demand.kind is Kind.SHARE else 0


def _weight(need: Need, full: int, weight: int) -> int:
    # What can be nowhere is counted elsewhere; slices are bounded by their slots.
    if not need.spots or need.demand.kind is Kind.SLICE:
        return 0
    return full if need.demand.kind is Kind.WHOLE else max(0, min(full, weight))


def _room(board: Board, needs: Sequence[Need], weights: Sequence[int]) -> tuple[int, ...]:
    """Returns for each host how much weight all its cards hold."""
    known: dict[object, int] = {}
    room = [0] * len(board.problem.hosts)
    for index, spot in enumerate(board.spots):
        here = tuple(number for number, need in enumerate(needs) if index in need.spots and weights[number])
        key = (here, spot.whole, spot.share, spot.capacity_bytes, spot.card.sharers_left)
        if key not in known:
            known[key] = _heaviest(spot, [(needs[number], weights[number]) for number in here])
        room[spot.host] += known[key]
    return tuple(room)


def _heaviest(spot: Spot, here: Sequence[tuple[Need, int]]) -> int:
    whole = max((weight for need, weight in here if need.demand.kind is Kind.WHOLE), default=0)
    # Devices of one demand are on different cards, so that a card has each demand once.
    sized = [(need.demand.peak_bytes, weight) for need, weight in here if need.demand.kind is Kind.SHARE]
    return max(whole, fullest(sized, spot.capacity_bytes, spot.card.sharers_left))


def fullest(sized: Sequence[tuple[int, int]], capacity: int, most: int | None) -> int:
    """Returns the most weight of things of some size and weight that fit together.

    Args:
        sized: Size and weight of each.
        capacity: The most that their sizes may sum up to.
        most: How many may be taken; None: any number.
    """
    if most is not None and most < len(sized):
        heavy = sorted((weight for size, weight in sized if size <= capacity), reverse=True)
        return min(sum(heavy[:most]), fullest(sized, capacity, None))
    least = [0]
    for size, weight in sized:
        if size <= capacity and weight:
            least = _with_one_more(least, size, weight, capacity)
    return len(least) - 1


def _with_one_more(least: list[int], size: int, weight: int, capacity: int) -> list[int]:
    """Returns for each weight the least size that gives it, where one more thing may be taken."""
    never = capacity + 1
    after = least + [never] * weight
    for reached, taken in enumerate(least, weight):
        if taken + size < after[reached]:
            after[reached] = taken + size
    while after[-1] > capacity:
        after.pop()
    return after
