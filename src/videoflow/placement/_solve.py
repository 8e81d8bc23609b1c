"""The one solver: whole cards, slices and shares, all hosts, all demands together."""

from collections.abc import Sequence

from videoflow.errors import ContractBroken
from videoflow.placement._answer import Answer, Assignment, Device, Label, Refusal, Relaxation
from videoflow.placement._board import KINDS_OF_SHARING, Board, Need
from videoflow.placement._certificate import bound_proofs, certificate
from videoflow.placement._geometry import footprint
from videoflow.placement._options import Option
from videoflow.placement._problem import Host, Kind, Problem, Slice
from videoflow.placement._relax import relaxations
from videoflow.placement._rules import uncheckable
from videoflow.placement._search import Found, Search
from videoflow.placement._weights import Weighing

DEFAULT_BUDGET = 500
# Refused demands for which relaxations are looked for.
MOST_RELAXED = 8


def solve(problem: Problem, budget: int = DEFAULT_BUDGET, relax: bool = True) -> Answer:
    """Places as many demands as can be, and of all such answers one with the best aim.

    Pure: the same problem and budget give an equal answer.

    Args:
        problem: Demands and hosts.
        budget: Nodes that each search may look at.
        relax: Whether refusals say what would fit, which takes several searches more for each.

    Raises:
        ContractBroken: Two hosts, cards or demands have one name, a demand asks for nothing, a slice is
            where the model of its card has none, a link is between no two cards of its host, or a host's
            sharing is no word that is known.
    """
    _checked(problem)
    board = Board(problem)
    found = Search(board, board.needs, budget).run()
    aim = found.aim
    assert aim is not None, "a search that may refuse finds at least the empty answer"
    admitted = [need for need, option in zip(found.needs, found.chosen, strict=True) if option is not None]
    proven = found.proven or aim.refused == found.bound.refused
    refused = [need for need, option in zip(found.needs, found.chosen, strict=True) if option is None]
    label = Label.OPTIMAL if found.proven else Label.FEASIBLE if proven else Label.UNPROVEN
    return Answer(
        label=label,
        assignments=_assignments(board, found),
        refusals=tuple(
            _refusal(board, need, admitted, (budget, proven, relax and n < MOST_RELAXED), found.weighing)
            for n, need in enumerate(refused)
        ),
        layouts=_layouts(board, found),
        aim=aim,
        bound=found.bound,
        nodes=found.nodes,
        proofs=bound_proofs(board, found.weighing),
    )


def _refusal(
    board: Board,
    need: Need,
    admitted: Sequence[Need],
    about: tuple[int, bool, bool],
    weighing: Weighing | None,
) -> Refusal:
    budget, proven, relax = about
    rule = uncheckable(board.problem, need.demand)
    proof = certificate(board, admitted, need, (budget, proven), weighing)
    eased: tuple[Relaxation, ...] = ()
    if relax:
        beside = {other.demand.key: other.demand for other in admitted}
        eased = relaxations(board.problem, beside, need.demand, budget)
    return Refusal(need.demand.key, proof, eased, "" if rule is None else rule.key)


def _assignments(board: Board, found: Found) -> dict[str, Assignment]:
    placed = {}
    for need, option in zip(found.needs, found.chosen, strict=True):
        if option is not None:
            name = board.problem.hosts[option.host].name
            placed[need.demand.key] = Assignment(name, _devices(board, need, option))
    return {demand.key: placed[demand.key] for demand in board.problem.demands if demand.key in placed}


def _devices(board: Board, need: Need, option: Option) -> tuple[Device, ...]:
    devices = []
    for unit in option.units:
        card = board.spots[unit.card].card
        if need.demand.kind is not Kind.SLICE:
            devices.append(Device(card.key))
            continue
        standing = [
            piece for piece in card.slices if (piece.profile, piece.start) == (unit.profile, unit.start)
        ]
        key = "" if unit.new else standing[0].key
        devices.append(Device(card.key, unit.profile, unit.start, key))
    return tuple(devices)


def _layouts(board: Board, found: Found) -> dict[str, tuple[Slice, ...]]:
    """Returns the slices of each card whose layout changes: what is busy or stays, then what is made."""
    made: dict[int, list[Slice]] = {}
    for option in found.chosen:
        for unit in option.units if option is not None else ():
            if unit.new:
                made.setdefault(unit.card, []).append(Slice(unit.profile, unit.start))
    layouts = {}
    for number, seat in enumerate(found.states):
        for offset, state in enumerate(seat.cards):
            index = board.first[number] + offset
            spot = board.spots[index]
            gone = {
                (idle.profile, idle.start) for bit, idle in enumerate(spot.idle) if state.destroyed >> bit & 1
            }
            kept = [p for p in spot.card.slices if p.busy or (p.profile, p.start) not in gone]
            if gone or index in made:
                layouts[spot.card.key] = tuple(sorted((*kept, *made.get(index, ())), key=lambda p: p.start))
    return layouts


def _checked(problem: Problem) -> None:
    names = [host.name for host in problem.hosts]
    cards = [card for host in problem.hosts for card in host.cards]
    for what, keys in (
        ("host", names),
        ("card", [card.key for card in cards]),
        ("demand", [demand.key for demand in problem.demands]),
    ):
        twice = {key for key in keys if keys.count(key) > 1}
        if twice:
            raise ContractBroken(f"one name for two: {what} {sorted(twice)[0]}")
    for demand in problem.demands:
        if demand.count < 1 or min(demand.memory_bytes, demand.peak_bytes) < 0:
            raise ContractBroken(f"demand {demand.key} asks for nothing, or for less")
    for host in problem.hosts:
        _checked_host(host)


def _checked_host(host: Host) -> None:
    if host.sharing not in KINDS_OF_SHARING:
        raise ContractBroken(f"host {host.name}: nobody shares cards by {host.sharing!r}")
    here = {card.key for card in host.cards}
    for link in host.links:
        if not {link.first, link.second} <= here or link.first == link.second:
            raise ContractBroken(f"host {host.name} has no two cards {link.first} and {link.second}")
    for card in host.cards:
        occupied = 0
        for piece in card.slices:
            profile = None if card.model is None else card.model.profile(piece.profile)
            mask = footprint(1 if profile is None else profile.width, piece.start)
            if occupied & mask or (profile is not None and piece.start not in profile.starts):
                raise ContractBroken(f"card {card.key} cannot have {piece.profile} at {piece.start}")
            if card.model is not None and profile is None:
                raise ContractBroken(f"card {card.key} knows no profile {piece.profile}")
            occupied |= mask
