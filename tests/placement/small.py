"""Small random problems of every kind, and what must be true of the answer to each."""

import math
import random
from dataclasses import replace

from tests.placement.brute import Brute, Usable
from videoflow.placement import (
    Card,
    CardModel,
    Demand,
    Host,
    Kind,
    Label,
    Link,
    Operator,
    Problem,
    Rule,
    Slice,
    load_catalogue,
    solve,
)
from videoflow.placement.check import answer_faults, bound_faults, certificate_faults

GIB = 1 << 30
# Ways to place everything, beyond which a problem loses its last demand: brute force tries them all.
MOST_WAYS = 40_000
MODELS = ("A30", "A100-40", "H100-80")
RULES = (
    Rule("zone", Operator.IN, ("a",)),
    Rule("zone", Operator.NOT_IN, ("a",), hard=False),
    Rule("class", Operator.GE, ("8",)),
    Rule("color", Operator.IN, ("red",)),
)


def model(name: str) -> CardModel:
    """A card of the catalogue."""
    return next(card for card in load_catalogue().cards if card.name == name)


def usable() -> Usable:
    """What each profile gives, as the catalogue says; the vendor's table judges that elsewhere."""
    return {name: {p.name: p.usable_bytes for p in model(name).profiles} for name in MODELS}


def problem(seed: int) -> Problem:
    """A problem of at most three hosts, four cards and four demands."""
    draw = random.Random(seed)
    hosts: list[Host] = []
    left = draw.randint(1, 4)
    for number in range(draw.randint(1, 3)):
        count = min(left, draw.randint(1, 3))
        left -= count
        cards = tuple(_card(draw, f"h{number}/{index}") for index in range(count))
        if draw.random() < 0.4:
            cards = tuple(_twin(cards[0], card.key) for card in cards)
        hosts.append(_host(draw, f"h{number}", cards))
    if len(hosts) > 1 and draw.random() < 0.3:
        hosts[1] = _twin_host(hosts[0], hosts[1].name)
    sets = random.Random(f"sets of {seed}")
    demands = [_in_sets(sets, _demand(draw, f"d{index}")) for index in range(draw.randint(1, 4))]
    if len(demands) > 1 and draw.random() < 0.5:
        demands[1] = _same(demands[0], demands[1].key)
    asked = Problem(tuple(hosts), tuple(demands), headroom_bytes=draw.choice((0, GIB)))
    while len(asked.demands) > 1 and math.prod(1 + _ways(asked, d) for d in asked.demands) > MOST_WAYS:
        asked = replace(asked, demands=asked.demands[:-1])
    return asked


def _ways(asked: Problem, demand: Demand) -> int:
    """About how many places brute force tries for a demand where nothing else is placed."""
    ways = 0
    for host in asked.hosts:
        places = len(host.cards)
        if demand.kind is Kind.SLICE:
            places = sum(_places(card, demand) for card in host.cards)
        ways += math.comb(places, demand.count)
    return ways


def _places(card: Card, demand: Demand) -> int:
    if card.model is None or not card.managed:
        return len(card.slices)
    fits = [p for p in card.model.profiles if p.usable_bytes >= demand.memory_bytes and not p.media]
    return sum(len(p.starts) for p in fits if not demand.profiles or p.name in demand.profiles)


def _same(demand: Demand, key: str) -> Demand:
    return Demand(**{**vars(demand), "key": key})


def _twin(card: Card, key: str) -> Card:
    return Card(**{**vars(card), "key": key})


def _twin_host(host: Host, name: str) -> Host:
    keys = {card.key: f"{name}/{index}" for index, card in enumerate(host.cards)}
    cards = tuple(_twin(card, keys[card.key]) for card in host.cards)
    links = tuple(Link(keys[link.first], keys[link.second], link.distance, link.peer) for link in host.links)
    return Host(**{**vars(host), "name": name, "cards": cards, "links": links})


def _card(draw: random.Random, key: str) -> Card:
    name = draw.choice((*MODELS, ""))
    found = model(name) if name else None
    memory = (found and found.memory_bytes) or draw.choice((16 * GIB, None))
    slices: list[Slice] = []
    if found is not None and draw.random() < 0.4:
        taken = set[int]()
        for profile in draw.sample([p for p in found.profiles if not p.media], 3):
            start = draw.choice(profile.starts)
            here = set(range(start, start + profile.width))
            if not here & taken:
                taken |= here
                slices.append(Slice(profile.name, start, draw.random() < 0.4, f"MIG-{key}-{start}"))
    busy = not slices and draw.random() < 0.15
    return Card(
        key,
        memory,
        found,
        managed=found is not None and draw.random() < 0.7,
        partitioned=found is not None and draw.random() < 0.2,
        slices=tuple(slices),
        users=int(busy),
        locked=busy and draw.random() < 0.5,
        free_bytes=draw.choice((memory, 6 * GIB, 9 * GIB, None)),
        sharers_left=draw.choice((None, None, 1, 2)),
        facts={"class": draw.choice(("7", "8", "9"))} if draw.random() < 0.6 else {},
    )


def _host(draw: random.Random, name: str, cards: tuple[Card, ...]) -> Host:
    links: list[Link] = []
    if draw.random() < 0.6:
        uniform = draw.random() < 0.3
        for first, one in enumerate(cards):
            for other in cards[first + 1 :]:
                if draw.random() < 0.9:
                    distance = 3 if uniform else draw.choice((0, 1, 5))
                    links.append(Link(one.key, other.key, distance, uniform or draw.random() < 0.6))
    return Host(
        name,
        cards,
        sharing=draw.choice(("physical",) * 5 + ("mig", "time-sliced", "mps", "unknown")),
        links=tuple(links),
        free_millicores=draw.choice((None, 1000, 3000)),
        free_memory_bytes=draw.choice((None, 4 * GIB)),
        excluded="" if draw.random() < 0.9 else "owned by another",
        facts={"zone": draw.choice(("a", "b"))} if draw.random() < 0.7 else {},
    )


def _demand(draw: random.Random, key: str) -> Demand:
    kind = draw.choice((Kind.WHOLE, Kind.SLICE, Kind.SLICE, Kind.SHARE))
    count = draw.choice((1, 1, 1, 2)) if kind is Kind.SLICE else draw.choice((1, 1, 2, 3))
    named = kind is Kind.SLICE and draw.random() < 0.2
    return Demand(
        key,
        kind,
        count,
        memory_bytes=draw.choice((0, 4, 5, 9, 10, 19, 24, 39)) * GIB,
        peak_bytes=draw.choice((1, 3, 5, 8, 20)) * GIB if kind is Kind.SHARE else 0,
        profiles=tuple(draw.choice((("3g.20gb", "2g.12gb"), ("1g.10gb",), ("4g.40gb",)))) if named else (),
        peer=draw.random() < 0.15,
        rules=(draw.choice(RULES),) if draw.random() < 0.25 else (),
        millicores=draw.choice((0, 0, 0, 600)),
        host_memory_bytes=draw.choice((0, 0, 0, 3 * GIB)),
    )


def _in_sets(draw: random.Random, demand: Demand) -> Demand:
    """Sometimes a demand whose devices have to agree, or to differ."""
    keys = (draw.choice(("class", "class", "zone")),)
    return draw.choice((demand, demand, demand, replace(demand, alike=keys), replace(demand, apart=keys)))


def disagreement(seed: int) -> str:
    """What is wrong with the answer to one random problem; empty: nothing."""
    asked = problem(seed)
    answer = solve(asked, budget=1_000_000, relax=False)
    if answer.label is not Label.OPTIMAL:
        return f"{seed}: {answer.label} without a bound on its nodes"
    best = Brute(asked, usable()).aim()
    if tuple(answer.aim) != best:
        return f"{seed}: the solver reaches {tuple(answer.aim)}, brute force {best}"
    faults = answer_faults(asked, answer) + bound_faults(asked, answer)
    for refusal in answer.refusals:
        if not refusal.proven:
            return f"{seed}: nothing proves that {refusal.demand} is refused"
        faults += certificate_faults(asked, refusal.certificate)
    return f"{seed}: {faults}" if faults else ""
