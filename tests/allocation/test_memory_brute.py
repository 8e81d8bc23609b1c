"""Plans of the reference against brute force over fixtures and the vendor's table, in small random worlds."""

import random
from collections.abc import Iterator, Sequence
from itertools import combinations, product

import pytest

from tests.allocation.memory_subject import TABLE, MemorySubject
from tests.allocation.mig_table import PRODUCTS
from tests.placement.vendor import GIB, shapes, usable
from videoflow.backends.allocation import ClaimStatus, FeasiblePlan, Infeasible, Sharing, WorkloadRequest
from videoflow.backends.outcomes import Known
from videoflow.testing.examiners.allocation import FixtureCard, FixtureHost

BYTES = {"NVIDIA H100 80GB HBM3": 81559 << 20, "NVIDIA A100-SXM4-40GB": 40960 << 20}
HEADROOM = GIB
Used = dict[str, tuple[str, ...]]
Ask = tuple[str, int, float]


def worlds(chance: random.Random) -> tuple[list[FixtureHost], list[str], list[Ask]]:
    hosts, cards = [], list[str]()
    for name in ("a", "b")[: chance.randint(1, 2)]:
        fixtures = tuple(
            FixtureCard(f"GPU-{name}{n}", made, BYTES[made])
            for n, made in enumerate(chance.choices(sorted(BYTES), k=chance.randint(1, 2)))
        )
        cards += [card.uuid for card in fixtures]
        sharing = chance.choice(["physical"] * 4 + ["mps", "unknown"])
        hosts.append(FixtureHost(name, fixtures, sharing, managed=chance.random() < 0.7))
    busy = [card for card in cards if chance.random() < 0.2]
    asks: list[Ask] = []
    for _ in range(chance.randint(1, 3)):
        kind = chance.choice(["whole", "piece", "piece", "share"])
        size = chance.choice([4.0, 9.0, 19.0, 38.0]) if kind == "piece" else chance.choice([10.0, 25.0, 39.5])
        asks.append((kind, 1 if kind == "share" else chance.randint(1, 3 if kind == "piece" else 2), size))
    return hosts, busy, asks


def request(number: int, ask: Ask) -> WorkloadRequest:
    kind, count, gib = ask
    size = int(gib * GIB)
    sharing = {"whole": Sharing.EXCLUSIVE, "piece": Sharing.ISOLATED_MIG, "share": Sharing.COOPERATIVE}[kind]
    return WorkloadRequest(
        "flow",
        "run",
        f"w/{number}",
        device_count=count,
        sharing=sharing,
        minimum_usable_memory_bytes=size if kind == "piece" else None,
        declared_peak_memory_bytes=size if kind == "share" else None,
    )


def cuttable(made: str, profiles: Sequence[str]) -> bool:
    starts = [shapes(PRODUCTS[made])[profile][1] for profile in profiles]
    return any(
        not TABLE.illegal(made, tuple(zip(profiles, chosen, strict=True))) for chosen in product(*starts)
    )


def fits(hosts: Sequence[FixtureHost], asks: Sequence[Ask], used: Used) -> bool:
    if not asks:
        return True
    return any(fits(hosts, asks[1:], after) for host in hosts for after in ways(host, asks[0], used))


def ways(host: FixtureHost, ask: Ask, used: Used) -> Iterator[Used]:
    kind, count, gib = ask
    if host.sharing == "unknown" or (host.sharing == "mps" and kind != "share"):
        return
    cards = {card.uuid: card.product for card in host.cards}
    if kind == "whole":
        for chosen in combinations([uuid for uuid in cards if uuid not in used], count):
            yield {**used, **dict.fromkeys(chosen, ("whole",))}
    elif kind == "share":
        yield from shares(cards, gib, used)
    elif not count:
        yield used
    elif host.managed:
        for uuid, made in cards.items():
            before = used.get(uuid, ("cut",))
            for profile, size in usable(PRODUCTS[made]).items():
                if before[0] == "cut" and size >= gib and cuttable(made, [*before[1:], profile]):
                    yield from ways(host, (kind, count - 1, gib), {**used, uuid: (*before, profile)})


def shares(cards: dict[str, str], gib: float, used: Used) -> Iterator[Used]:
    for uuid, made in cards.items():
        before = used.get(uuid, ("share",))
        if before[0] == "share":
            peaks = sum(float(size) for size in before[1:]) + gib
            if peaks * GIB + HEADROOM <= BYTES[made]:
                yield {**used, uuid: (*before, str(gib))}


@pytest.mark.parametrize("part", range(4))
def test_a_plan_is_there_exactly_where_brute_force_finds_one_and_it_can_be_had(part: int) -> None:
    feasible = 0
    for seed in range(part * 20, part * 20 + 20):
        hosts, busy, asks = worlds(random.Random(seed))
        subject = MemorySubject()
        subject.furnish(hosts)
        assert all(subject.arrive(uuid) for uuid in busy)
        backend = subject.backend()
        snapshot = backend.inventory("")
        assert isinstance(snapshot, Known)
        plan = backend.plan([request(n, ask) for n, ask in enumerate(asks)], snapshot.value)
        expected = fits(hosts, asks, dict.fromkeys(busy, ("busy",)))
        assert isinstance(plan, FeasiblePlan if expected else Infeasible), (seed, asks, plan)
        if isinstance(plan, FeasiblePlan):
            feasible += 1
            claim = backend.reserve(plan, "op", snapshot.value.generation)
            assert claim.status is ClaimStatus.READY, (seed, claim)
            products = {card.uuid: card.product for host in hosts for card in host.cards}
            assert all(subject.legal(products[uuid], made) for uuid, made in subject.layouts().items())
    assert 0 < feasible < 20
