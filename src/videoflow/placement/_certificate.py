"""Proofs that demands do not fit together, as small as they can be found."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import product

from videoflow.placement._answer import Certificate, Measure, Proof
from videoflow.placement._board import Board, Need
from videoflow.placement._bounds import sizes
from videoflow.placement._search import Search

# Mixes of one pattern certificate; where there are more the search itself is the proof.
MOST_MIXES = 256
MEASURES = (Measure.CARDS, Measure.SLOTS, Measure.BYTES, Measure.PARTS)


def certificate(board: Board, admitted: Sequence[Need], refused: Need, budget: int) -> Certificate | None:
    """Returns why a demand does not fit beside those admitted, or None where that could not be proven."""
    if _impossible(board, [refused], budget):
        return Certificate(Proof.ALONE, (refused.demand.key,))
    together = [need for need in board.needs if need is refused or need in admitted]
    found = _capacity(board, together, refused)
    if found is not None:
        return found
    core = _core(board, together, refused, budget)
    if core is None:
        return None
    return _capacity(board, core, refused) or _patterns(board, core, budget) or _exhausted(core)


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
            names = [host.name for host in board.problem.hosts]
            keys = tuple(need.demand.key for need in core)
            return Certificate(Proof.CAPACITY, keys, measure, needed, tuple(zip(names, room, strict=True)))
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
