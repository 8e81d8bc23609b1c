"""Proofs that demands do not fit together, as small as they can be found."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import product

from videoflow.placement._answer import Certificate, Measure, Proof
from videoflow.placement._board import Board, Need
from videoflow.placement._bounds import sizes
from videoflow.placement._options import fits_on
from videoflow.placement._search import Search
from videoflow.placement._weights import Weighing, dropped_by, fewest_refused

# Mixes of one pattern certificate; where there are more the search itself is the proof.
MOST_MIXES = 256
MEASURES = (Measure.CARDS, Measure.SLOTS, Measure.BYTES, Measure.PARTS)


def certificate(
    board: Board,
    admitted: Sequence[Need],
    refused: Need,
    about: tuple[int, bool],
    known: Weighing | None = None,
) -> Certificate:
    """Returns why a demand does not fit beside those admitted.

    Args:
        board: The problem.
        admitted: Those that are.
        refused: One that is not.
        about: Nodes of each search, and whether as many are admitted as can be: else none is begun.
        known: A weighing that tells how many of all are refused.
    """
    budget, proven = about
    if _nowhere(board, refused):
        return Certificate(Proof.ALONE, (refused.demand.key,))
    together = [need for need in board.needs if need is refused or need in admitted]
    found = _capacity(board, together, refused) or _weights(board, together, refused, known)
    if found is None and proven:
        core = _core(board, together, refused, budget)
        if core is not None:
            found = _capacity(board, core, refused) or _patterns(board, core, budget) or _exhausted(core)
    return found or Certificate(Proof.STANDING, (refused.demand.key,))


def bound_proofs(board: Board, weighing: Weighing | None) -> tuple[Certificate, ...]:
    """Returns why at least so many demands are refused as sums and weights tell, part by part."""
    nowhere = [need for need in board.needs if _nowhere(board, need)]
    hopeless = tuple(Certificate(Proof.ALONE, (need.demand.key,)) for need in nowhere)
    needs = [need for need in board.needs if need not in nowhere]
    sums = [_sum(board, needs, position) for position in range(len(MEASURES))]
    ways = [
        [found for found in sums[:3] if found is not None],
        [found for found in sums[3:] if found is not None],
    ]
    if weighing is not None:
        weights = dict(zip((need.number for need in board.needs), weighing.weights, strict=True))
        there = Weighing(tuple(weights[need.number] for need in needs), weighing.room)
        ways.append([_weighed(board, needs, there, dropped_by(needs, there))])
    best = max(ways, key=lambda way: sum(found.fewest for found in way))
    return (*hopeless, *best)


def _sum(board: Board, needs: Sequence[Need], position: int) -> Certificate | None:
    """Returns how many demands must go by one measure, or None where none must."""
    room = [board.worth(number, seat)[3 + position] for number, seat in enumerate(board.start)]
    core = [need for need in needs if sizes(need)[position]]
    large = sorted((sizes(need)[position] for need in core), reverse=True)
    fewest, needed = 0, sum(large)
    while needed - sum(large[:fewest]) > sum(room):
        fewest += 1
    if not fewest:
        return None
    keys = tuple(need.demand.key for need in core)
    rest = needed - sum(large[: fewest - 1])
    return Certificate(Proof.CAPACITY, keys, MEASURES[position], rest, _by_host(board, room), fewest=fewest)


def _by_host(board: Board, room: Sequence[int]) -> tuple[tuple[str, int], ...]:
    return tuple(zip((host.name for host in board.problem.hosts), room, strict=True))


def _weighed(board: Board, core: Sequence[Need], weighing: Weighing, fewest: int = 1) -> Certificate:
    each = tuple(zip((need.demand.key for need in core), weighing.weights, strict=True))
    light = sorted(need.demand.count * weight for need, weight in zip(core, weighing.weights, strict=True))
    needed = sum(light[: len(light) - fewest + 1])
    room = _by_host(board, weighing.room)
    keys = tuple(need.demand.key for need in core)
    return Certificate(Proof.WEIGHTS, keys, needed=needed, room=room, weights=each, fewest=fewest)


def _weights(
    board: Board, needs: Sequence[Need], refused: Need, known: Weighing | None
) -> Certificate | None:
    """Returns that weights do not allow a demand beside others, with no more of the others than it takes."""
    if known is not None:
        weights = dict(zip((need.number for need in board.needs), known.weights, strict=True))
        here = Weighing(tuple(weights[need.number] for need in needs), known.room)
        found = _heavier(board, needs, refused, here)
        if found is not None:
            return found
    _, weighing = fewest_refused(board, needs)
    return None if weighing is None else _heavier(board, needs, refused, weighing)


def _heavier(board: Board, needs: Sequence[Need], refused: Need, weighing: Weighing) -> Certificate | None:
    weights = dict(zip((need.number for need in needs), weighing.weights, strict=True))
    heavy = sorted((n for n in needs if n is not refused), key=lambda n: -n.demand.count * weights[n.number])
    core, needed = [refused], refused.demand.count * weights[refused.number]
    for need in heavy:
        if needed > sum(weighing.room) or not weights[need.number]:
            break
        core.append(need)
        needed += need.demand.count * weights[need.number]
    if needed <= sum(weighing.room):
        return None
    return _weighed(board, core, Weighing(tuple(weights[need.number] for need in core), weighing.room))


def _nowhere(board: Board, need: Need) -> bool:
    """Returns whether a demand fits on no host as it was found."""
    return not any(fits_on(board, need, number, seat) for number, seat in enumerate(board.start))


def _impossible(board: Board, needs: Sequence[Need], budget: int) -> bool:
    found = Search(board, needs, budget, every=True).run()
    return found.aim is None and found.proven


def _exhausted(core: Sequence[Need]) -> Certificate:
    return Certificate(Proof.EXHAUSTED, tuple(need.demand.key for need in core))


def _capacity(board: Board, needs: Sequence[Need], refused: Need) -> Certificate | None:
    worths = [board.worth(number, seat) for number, seat in enumerate(board.start)]
    for position, measure in enumerate(MEASURES):
        room = [worth[3 + position] for worth in worths]
        sized = [(sizes(need)[position], need) for need in needs if need is not refused]
        core, needed = [refused], sizes(refused)[position]
        for size, need in sorted(sized, key=lambda pair: -pair[0]):
            if needed > sum(room) or not size:
                break
            core.append(need)
            needed += size
        if needed > sum(room):
            keys = tuple(need.demand.key for need in core)
            return Certificate(Proof.CAPACITY, keys, measure, needed, _by_host(board, room))
    return None


def _core(board: Board, needs: Sequence[Need], refused: Need, budget: int) -> list[Need] | None:
    """Returns demands that do not fit and of which each is needed for that; None: nothing is proven."""
    if not _impossible(board, needs, budget):
        return None
    core = list(needs)
    for need in needs:
        fewer = [other for other in core if other is not need]
        if need is not refused and _impossible(board, fewer, budget):
            core = fewer
    return core


def _patterns(board: Board, core: Sequence[Need], budget: int) -> Certificate | None:
    groups: list[list[Need]] = []
    for need in core:
        if groups and groups[-1][0].group == need.group:
            groups[-1].append(need)
        else:
            groups.append([need])
    count = 1
    for group in groups:
        count *= len(group) + 1
    if count > MOST_MIXES:
        return None
    known: dict[int, tuple[tuple[int, ...], ...]] = {}
    patterns = []
    for number, host in enumerate(board.problem.hosts):
        look = board.host_class[number]
        if look not in known:
            found = _host_patterns(board, number, groups, budget)
            if found is None:
                return None
            known[look] = found
        patterns.append((host.name, known[look]))
    keys = tuple(tuple(need.demand.key for need in group) for group in groups)
    return Certificate(
        Proof.PATTERNS, tuple(need.demand.key for need in core), groups=keys, patterns=tuple(patterns)
    )


def _host_patterns(
    board: Board, number: int, groups: Sequence[Sequence[Need]], budget: int
) -> tuple[tuple[int, ...], ...] | None:
    """Returns the largest mixes of groups that fit on one host, or None where that could not be proven."""
    here = {index for index, spot in enumerate(board.spots) if spot.host == number}
    local = [[replace(need, spots=need.spots & here) for need in group] for group in groups]
    mixes = sorted(product(*(range(len(group) + 1) for group in groups)), key=sum, reverse=True)
    largest: list[tuple[int, ...]] = []
    for mix in mixes:
        if any(all(a <= b for a, b in zip(mix, found, strict=True)) for found in largest):
            continue
        needs = [need for group, taken in zip(local, mix, strict=True) for need in group[:taken]]
        found = Search(board, needs, budget, every=True).run()
        if found.aim is not None:
            largest.append(mix)
        elif not found.proven:
            return None
    return tuple(largest)
