"""Looks over certificates: each is recounted from the problem alone."""

from collections.abc import Mapping, Sequence
from fractions import Fraction
from itertools import product

from videoflow.placement._answer import Answer, Certificate, Label, Measure, Proof
from videoflow.placement._problem import Card, Demand, Host, Kind, Problem
from videoflow.placement._rules import uncheckable
from videoflow.placement.check._answers import placed_on, used
from videoflow.placement.check._packing import (
    EMPTY,
    MOST_STEPS,
    Packer,
    TooLarge,
    cut,
    mark,
    possible,
    suits,
    take,
)

_PARTS = 1 << 20


def certificate_faults(
    problem: Problem, certificate: Certificate, answer: Answer | None = None
) -> tuple[str, ...]:
    """Returns what is wrong with a certificate; empty: its demands do not fit together, for its reason.

    Args:
        problem: What was to be placed.
        certificate: Of a refusal or of a bound.
        answer: The answer that it belongs to; one that says that the others stand in the way needs it.
    """
    demands = {demand.key: demand for demand in problem.demands}
    core = [demands[key] for key in certificate.core if key in demands]
    if not core or len(core) != len(certificate.core) or len(set(certificate.core)) != len(core):
        return ("the core names no demand, an unknown one, or one twice",)
    summed = certificate.proof in (Proof.CAPACITY, Proof.WEIGHTS)
    if not 1 <= certificate.fewest <= (len(core) if summed else 1):
        return ("so many of the core cannot be told to be refused",)
    try:
        return _faults(problem, certificate, core, answer)
    except TooLarge:
        return ("too many steps to look it over",)


def bound_faults(problem: Problem, answer: Answer) -> tuple[str, ...]:
    """Returns what is wrong with how an answer shows that so many demands are refused whatever is done."""
    faults = list[str]()
    named = [key for proof in answer.proofs for key in proof.core]
    if len(named) != len(set(named)):
        faults.append("a demand is counted twice")
    for proof in answer.proofs:
        faults += certificate_faults(problem, proof)
    shown = sum(proof.fewest for proof in answer.proofs)
    if answer.label is Label.UNPROVEN and shown < answer.bound.refused:
        faults.append(f"it shows that {shown} are refused, and says {answer.bound.refused}")
    if shown > len(answer.refusals):
        faults.append("it refuses fewer than it shows")
    return tuple(faults)


def _faults(
    problem: Problem, certificate: Certificate, core: Sequence[Demand], answer: Answer | None
) -> tuple[str, ...]:
    if certificate.proof is Proof.ALONE:
        return tuple(f"{core[0].key} fits on {name}" for name in _hosts_for(problem, core[:1]))
    if certificate.proof is Proof.CAPACITY:
        return _capacity_faults(problem, certificate, core)
    if certificate.proof is Proof.WEIGHTS:
        return _weight_faults(problem, certificate, core)
    if certificate.proof is Proof.PATTERNS:
        return _pattern_faults(problem, certificate, {demand.key: demand for demand in core})
    if certificate.proof is Proof.STANDING:
        return _standing_faults(problem, core, answer)
    return _exhausted_faults(problem, core)


def _standing_faults(problem: Problem, core: Sequence[Demand], answer: Answer | None) -> tuple[str, ...]:
    if answer is None or len(core) != 1 or core[0].key in answer.assignments:
        return ("it is of no demand that an answer at hand refuses",)
    faults = []
    for host in problem.hosts:
        on, wrong = used(problem, host, answer)
        cards = [on[card.key] for card in host.cards]
        others = placed_on(problem, host, answer)
        if wrong or Packer(problem, host).fits_beside(cards, others, core[0]):
            faults.append(f"{core[0].key} fits on {host.name} as it is")
    return tuple(faults)


def _hosts_for(problem: Problem, demands: Sequence[Demand]) -> list[str]:
    return [host.name for host in problem.hosts if Packer(problem, host).fits(demands)]


def _least(problem: Problem, demand: Demand, measure: Measure) -> Fraction:
    """Returns the least that a demand takes of a measure."""
    if measure is Measure.CARDS:
        return Fraction(demand.count if demand.kind is Kind.WHOLE else 0)
    if measure is Measure.BYTES:
        return Fraction(demand.count * demand.peak_bytes if demand.kind is Kind.SHARE else 0)
    cards = [card for host in problem.hosts for card in host.cards]
    if measure is Measure.PARTS and demand.kind is Kind.WHOLE:
        return Fraction(demand.count)
    if measure is Measure.PARTS and demand.kind is Kind.SHARE:
        most = max((_shareable(problem, card) for card in cards), default=0)
        return Fraction(demand.count * demand.peak_bytes, most) if most else Fraction(0)
    if demand.kind is not Kind.SLICE:
        return Fraction(0)
    sizes = [
        Fraction(width, _slots(card) if measure is Measure.PARTS else 1)
        for host in problem.hosts
        for card in host.cards
        if not host.excluded and suits(demand, host, card)
        for _, slices, _, _ in cut(host, card, EMPTY, demand)
        for _, width, _ in slices
    ]
    return demand.count * min(sizes, default=Fraction(0))


def _slots(card: Card) -> int:
    return 8 if card.model is None else card.model.slots


def _shareable(problem: Problem, card: Card) -> int:
    return max(0, (card.free_bytes or 0) - problem.headroom_bytes)


def _room(problem: Problem, host: Host, measure: Measure) -> Fraction:
    """Returns the most that a host has of a measure, whatever is placed on it."""
    total = Fraction(0)
    for card in host.cards if not host.excluded else ():
        some = Demand("", Kind.SLICE)
        cuttable = any(cut(host, card, EMPTY, some))
        taken = {s for piece in card.slices if piece.busy for s in _span(card, piece.profile, piece.start)}
        places = [set(_span(card, name, start)) for name, start, _ in possible(card)]
        cuts = len(set().union(*(place for place in places if not place & taken))) if cuttable else 0
        whole = take(problem, host, card, EMPTY, Demand("", Kind.WHOLE)) is not None
        share = take(problem, host, card, EMPTY, Demand("", Kind.SHARE)) is not None
        shared = _shareable(problem, card) if share else 0
        if measure is Measure.PARTS:
            most = max(_shareable(problem, c) for h in problem.hosts for c in h.cards)
            used = (Fraction(cuts, _slots(card)), Fraction(shared, most) if most else Fraction(0))
            total += max(Fraction(int(whole)), *used)
        else:
            total += {Measure.CARDS: int(whole), Measure.SLOTS: cuts, Measure.BYTES: shared}[measure]
    return total


def _span(card: Card, name: str, start: int) -> range:
    return range(start, start + mark(card, name, start)[1])


def _capacity_faults(problem: Problem, certificate: Certificate, core: Sequence[Demand]) -> tuple[str, ...]:
    measure = certificate.measure
    if measure is None:
        return ("it names no measure",)
    scale = _PARTS if measure is Measure.PARTS else 1
    said = dict(certificate.room)
    faults = []
    if set(said) != {host.name for host in problem.hosts}:
        faults.append("it does not count every host")
    faults += [
        f"{host.name} has more {measure} than it says"
        for host in problem.hosts
        if _room(problem, host, measure) * scale > said.get(host.name, 0)
    ]
    if (
        _lightest([_least(problem, demand, measure) for demand in core], certificate) * scale
        < certificate.needed
    ):
        faults.append("the core needs less than it says")
    if certificate.needed <= sum(said.values()):
        faults.append("there is enough")
    return tuple(faults)


def _lightest(sizes: Sequence[Fraction], certificate: Certificate) -> Fraction:
    """Returns what is needed where the largest are refused, one fewer than the certificate tells."""
    return sum(sorted(sizes)[: len(sizes) - certificate.fewest + 1], Fraction(0))


def _weight_faults(problem: Problem, certificate: Certificate, core: Sequence[Demand]) -> tuple[str, ...]:
    weights, said = dict(certificate.weights), dict(certificate.room)
    if set(weights) != set(certificate.core) or min(weights.values()) < 0:
        return ("it does not weigh its core",)
    if any(weights[demand.key] for demand in core if demand.kind is Kind.SLICE):
        return ("it weighs slices",)
    if set(said) != {host.name for host in problem.hosts}:
        return ("it does not count every host",)
    known: dict[object, int] = {}
    faults = []
    for host in problem.hosts:
        most = 0
        for card in host.cards if not host.excluded else ():
            here = [demand for demand in core if _alone_on(problem, host, card, demand)]
            key = (card.free_bytes, card.sharers_left, tuple(demand.key for demand in here))
            if key not in known:
                known[key] = _heaviest(problem, card, here, weights)
            most += known[key]
        if most > said[host.name]:
            faults.append(f"{host.name} can hold more than it says")
    each = [Fraction(demand.count * weights[demand.key]) for demand in core]
    if _lightest(each, certificate) < certificate.needed:
        faults.append("the core weighs less than it says")
    if certificate.needed <= sum(said.values()):
        faults.append("there is enough")
    return tuple(faults)


def _alone_on(problem: Problem, host: Host, card: Card, demand: Demand) -> bool:
    if uncheckable(problem, demand) or not suits(demand, host, card):
        return False
    return take(problem, host, card, EMPTY, demand) is not None


def _heaviest(problem: Problem, card: Card, here: Sequence[Demand], weights: Mapping[str, int]) -> int:
    """Returns the most weight on a card: one that has it whole, or sharers; each demand once."""
    whole = max((weights[d.key] for d in here if d.kind is Kind.WHOLE), default=0)
    sharers = [d for d in here if d.kind is Kind.SHARE]
    capacity = _shareable(problem, card)
    least = {0: 0}
    steps = 0
    for demand in sharers:
        for weight, size in list(least.items()):
            steps += 1
            grown, taken = weight + weights[demand.key], size + demand.peak_bytes
            if taken <= capacity and taken < least.get(grown, capacity + 1):
                least[grown] = taken
        if steps > MOST_STEPS:
            raise TooLarge
    heavy = sorted((weights[d.key] for d in sharers), reverse=True)
    return max(whole, min(max(least), sum(heavy[: card.sharers_left])))


def _pattern_faults(
    problem: Problem, certificate: Certificate, demands: Mapping[str, Demand]
) -> tuple[str, ...]:
    groups = [[demands[key] for key in group] for group in certificate.groups]
    if sorted(key for group in certificate.groups for key in group) != sorted(certificate.core):
        return ("its groups are not its core",)
    said = dict(certificate.patterns)
    if set(said) != {host.name for host in problem.hosts}:
        return ("it does not count every host",)
    faults = []
    covered = {tuple(0 for _ in groups)}
    for host in problem.hosts:
        patterns = said[host.name]
        packer = Packer(problem, host)
        missed: list[tuple[int, ...]] = []
        for mix in sorted(product(*(range(len(group) + 1) for group in groups)), key=sum):
            if any(_within(mix, pattern) for pattern in patterns) or any(_within(m, mix) for m in missed):
                continue
            missed.append(mix)
            if packer.fits([demand for group, n in zip(groups, mix, strict=True) for demand in group[:n]]):
                faults.append(f"{host.name} can also hold {mix}")
        steps = [pattern for pattern in patterns if any(pattern)]
        covered |= {
            tuple(min(len(g), a + b) for g, a, b in zip(groups, one, step, strict=True))
            for one in covered
            for step in steps
        }
    if tuple(len(group) for group in groups) in covered:
        faults.append("a choice of mixes covers the core")
    return tuple(faults)


def _within(mix: Sequence[int], pattern: Sequence[int]) -> bool:
    return all(a <= b for a, b in zip(mix, pattern, strict=True))


def _exhausted_faults(problem: Problem, core: Sequence[Demand]) -> tuple[str, ...]:
    packers = [Packer(problem, host) for host in problem.hosts]

    def assign(number: int, given: tuple[tuple[Demand, ...], ...]) -> bool:
        if number == len(core):
            return True
        for index, packer in enumerate(packers):
            more = (*given[index], core[number])
            if packer.fits(more) and assign(number + 1, (*given[:index], more, *given[index + 1 :])):
                return True
        return False

    return ("the core fits",) if assign(0, tuple(() for _ in packers)) else ()
