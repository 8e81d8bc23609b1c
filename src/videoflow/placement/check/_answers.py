"""Looks over the places that an answer gives."""

from collections.abc import Sequence

from videoflow.placement._answer import Answer, Device
from videoflow.placement._problem import Demand, Host, Kind, Problem
from videoflow.placement._rules import agree, uncheckable
from videoflow.placement.check._packing import EMPTY, On, Packer, cut, mark, suits, take


def answer_faults(problem: Problem, answer: Answer) -> tuple[str, ...]:
    """Returns what is wrong with the places that an answer gives; whether it is the best is not looked at."""
    faults = []
    demands = {demand.key for demand in problem.demands}
    refused = {refusal.demand for refusal in answer.refusals}
    if set(answer.assignments) | refused != demands or set(answer.assignments) & refused:
        faults.append("each demand is not exactly one of admitted and refused")
    for host in problem.hosts:
        faults += used(problem, host, answer)[1]
        for card in host.cards:
            after = {(piece.profile, piece.start) for piece in answer.layouts.get(card.key, card.slices)}
            stay = {(piece.profile, piece.start) for piece in card.slices if piece.busy}
            if stay - after:
                faults.append(f"{card.key}: a running slice goes")
    return tuple(faults)


def used(problem: Problem, host: Host, answer: Answer) -> tuple[dict[str, On], list[str]]:
    """Returns how the cards of a host are used, and what of that they cannot be used for."""
    on: dict[str, On] = {card.key: EMPTY for card in host.cards}
    faults = []
    here = placed_on(problem, host, answer)
    if sum(d.millicores for d in here) > (host.free_millicores or 0):
        faults.append(f"{host.name} has too little CPU")
    if sum(d.host_memory_bytes for d in here) > (host.free_memory_bytes or 0):
        faults.append(f"{host.name} has too little memory")
    for demand in here:
        faults += _place(problem, host, (demand, answer.assignments[demand.key].devices), on)
    return on, faults


def placed_on(problem: Problem, host: Host, answer: Answer) -> list[Demand]:
    """Returns the demands that an answer places on a host."""
    assigned = answer.assignments
    return [d for d in problem.demands if d.key in assigned and assigned[d.key].host == host.name]


def _place(
    problem: Problem, host: Host, placed: tuple[Demand, Sequence[Device]], on: dict[str, On]
) -> list[str]:
    demand, devices = placed
    cards = {card.key: card for card in host.cards}
    keys = [device.card for device in devices]
    different = len(set(keys)) == len(keys) or demand.kind is Kind.SLICE
    if len(keys) != demand.count or not different or set(keys) - set(cards):
        return [f"{demand.key} has other devices than it asked for"]
    if demand.peer and not Packer(problem, host).near(keys):
        return [f"{demand.key} has no peer access between its devices"]
    if not agree(demand, host, [cards[key] for key in keys]):
        return [f"{demand.key} has devices that are not alike, or not apart, as it asks"]
    if host.excluded or uncheckable(problem, demand):
        return [f"{demand.key} cannot be on {host.name}"]
    faults = []
    for device, key in zip(devices, keys, strict=True):
        after: On | None
        if demand.kind is Kind.SLICE:
            here = mark(cards[key], device.profile or "", device.start or 0)
            ways = cut(host, cards[key], on[key], demand)
            after = next((way for way in ways if here in way[1] and here not in on[key][1]), None)
        else:
            after = take(problem, host, cards[key], on[key], demand)
        if after is None or not suits(demand, host, cards[key]):
            faults.append(f"{demand.key} cannot be on {key}")
        else:
            on[key] = after
    return faults
