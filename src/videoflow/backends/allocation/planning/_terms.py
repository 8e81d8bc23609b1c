"""Requests in words of the solver, and its answers in those of a plan; pure."""

import hashlib
from collections.abc import Iterable, Mapping
from typing import Final

from videoflow.backends.allocation import (
    Constraint,
    HostSharing,
    LayoutEntry,
    Provenance,
    Sharing,
    WorkloadRequest,
)
from videoflow.placement import Answer, Kind, Operator, Problem, Rule

# How a layout says that a card is not cut.
WHOLE_CARD: Final = "whole"
KIND_OF: Final[Mapping[Sharing, Kind]] = {
    Sharing.EXCLUSIVE: Kind.WHOLE,
    Sharing.ISOLATED_MIG: Kind.SLICE,
    Sharing.COOPERATIVE: Kind.SHARE,
    Sharing.ACCOUNTING_ONLY: Kind.SHARE,
}
OPERATORS: Final = frozenset(str(operator) for operator in Operator)


def rule_of(constraint: Constraint) -> Rule:
    """Returns a constraint whose operator the solver knows, as its rule."""
    return Rule(constraint.key, Operator(constraint.operator), constraint.values, constraint.hard)


def defaults_of(request: WorkloadRequest) -> list[str]:
    """Returns a note for each figure of a request that nobody gave."""
    return [
        f"{request.workload_id}: {name} {getattr(request, name)} is a {provenance}"
        for name, provenance in sorted(request.provenance.items())
        if provenance is not Provenance.EXPLICIT
    ]


def uncertain_hosts(problem: Problem) -> list[str]:
    """Returns why each host gives nothing, or no whole device."""
    found = [f"{host.name}: {host.excluded}" for host in problem.hosts if host.excluded]
    return found + [
        f"{host.name}: its devices are {host.sharing}, and no whole device is certain there"
        for host in problem.hosts
        if host.sharing not in (HostSharing.PHYSICAL, HostSharing.UNKNOWN) and not host.excluded
    ]


def geometry_of(answer: Answer, cards: Mapping[str, Iterable[str]]) -> dict[str, tuple[str, ...]]:
    """Returns host → the layout of each card that is to be cut anew.

    Args:
        answer: With the layouts.
        cards: Host → the keys of its cards.
    """
    found: dict[str, tuple[str, ...]] = {}
    for host, keys in cards.items():
        entries = tuple(
            str(LayoutEntry(key, *placed))
            for key in keys
            if key in answer.layouts
            for placed in [(piece.profile, piece.start) for piece in answer.layouts[key]] or [(WHOLE_CARD, 0)]
        )
        if entries:
            found[host] = entries
    return found


def plan_name(*told: object) -> str:
    """Returns the id of a plan: the same for the same inventory, requests and devices."""
    return f"plan-{hashlib.sha256(repr(told).encode()).hexdigest()[:20]}"
