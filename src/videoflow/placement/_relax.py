"""The smallest single changes with which a refused demand would be admitted."""

from collections.abc import Iterator, Mapping
from dataclasses import replace

from videoflow.placement._answer import Relaxation
from videoflow.placement._board import Board
from videoflow.placement._problem import Demand, Kind, Problem
from videoflow.placement._search import Search

# How near to the highest peak that fits a relaxation comes, and the nodes of each of its searches.
FINENESS_BYTES = 64 << 20
PEAK_BUDGET = 200


def relaxations(
    problem: Problem, admitted: Mapping[str, Demand], refused: Demand, budget: int
) -> tuple[Relaxation, ...]:
    """Returns changes of one field each, with which a demand fits beside those that are admitted."""
    found: dict[str, Relaxation] = {}
    for field, changed in _changes(problem, refused):
        if field not in found and _fits(problem, admitted, changed, budget):
            found[field] = Relaxation(field, _said(refused, field), _said(changed, field))
    if refused.peak_bytes > FINENESS_BYTES and (
        lower := _peak(problem, admitted, refused, min(budget, PEAK_BUDGET))
    ):
        found["peak_bytes"] = Relaxation("peak_bytes", str(refused.peak_bytes), str(lower.peak_bytes))
    return tuple(found.values())


def _fits(problem: Problem, admitted: Mapping[str, Demand], changed: Demand, budget: int) -> bool:
    demands = tuple(
        changed if demand.key == changed.key else demand
        for demand in problem.demands
        if demand.key in admitted or demand.key == changed.key
    )
    board = Board(replace(problem, demands=demands))
    return Search(board, board.needs, budget, every=True).run().aim is not None


def _changes(problem: Problem, demand: Demand) -> Iterator[tuple[str, Demand]]:
    """Yields changed demands, for each field from the smallest change to the greatest."""
    sizes = _memories(problem, demand)
    for size in sorted((size for size in sizes if size < demand.memory_bytes), reverse=True):
        yield "memory_bytes", replace(demand, memory_bytes=size)
    for count in range(demand.count - 1, 0, -1):
        yield "count", replace(demand, count=count)
    for rule in demand.rules:
        if rule.hard:
            yield f"rule {rule.key}", replace(demand, rules=tuple(r for r in demand.rules if r != rule))
    for key in demand.alike:
        yield f"alike {key}", replace(demand, alike=tuple(one for one in demand.alike if one != key))
    for key in demand.apart:
        yield f"apart {key}", replace(demand, apart=tuple(one for one in demand.apart if one != key))
    if demand.peer:
        yield "peer", replace(demand, peer=False)
    if demand.profiles:
        yield "profiles", replace(demand, profiles=())


def _memories(problem: Problem, demand: Demand) -> set[int]:
    cards = [card for host in problem.hosts for card in host.cards]
    if demand.kind is not Kind.SLICE:
        return {card.memory_bytes for card in cards if card.memory_bytes is not None}
    models = {card.model for card in cards if card.model is not None}
    made = {profile.usable_bytes for model in models for profile in model.profiles}
    return made | {piece.usable_bytes or 0 for card in cards for piece in card.slices} - {0}


def _peak(problem: Problem, admitted: Mapping[str, Demand], demand: Demand, budget: int) -> Demand | None:
    """Returns the demand with the highest peak that fits, to within `FINENESS_BYTES`, or None."""
    low, high = 0, demand.peak_bytes
    if not _fits(problem, admitted, replace(demand, peak_bytes=FINENESS_BYTES), budget):
        return None
    while high - low > FINENESS_BYTES:
        middle = (low + high) // 2
        if _fits(problem, admitted, replace(demand, peak_bytes=middle), budget):
            low = middle
        else:
            high = middle
    return replace(demand, peak_bytes=low)


def _said(demand: Demand, field: str) -> str:
    if field.startswith("rule "):
        key = field.removeprefix("rule ")
        return next((f"{r.operator} {','.join(r.values)}" for r in demand.rules if r.key == key), "none")
    kind, _, key = field.partition(" ")
    if key:
        return "asked" if key in getattr(demand, kind) else "any"
    value = getattr(demand, field)
    return ",".join(value) or "any" if isinstance(value, tuple) else str(value)
