"""What is planned can be had: a scheduler that chooses places itself never refuses what the solver found."""

import random

import pytest

from tests.dra.slices import A100, H100, Device, gpu, partitions
from tests.dra.test_live import allocator, ask, piece, seen
from tests.dra.world import DraWorld
from videoflow.backends.allocation import ClaimStatus, FeasiblePlan, WorkloadRequest

FACTS = {"kubernetes": "1.36", "driver": "0.5.0", "driver-gates": "DynamicMIG"}
ROUNDS = 4


def cards(chance: random.Random, host: str) -> list[Device]:
    dynamic, count = chance.random() < 0.5, chance.randint(1, 2)
    uuids = [f"GPU-{host}{number}" for number in range(count)]
    if not dynamic:
        return [gpu(n, uuid, chance.choice([A100, H100])) for n, uuid in enumerate(uuids)]
    return [one for n, uuid in enumerate(uuids) for one in partitions(n, uuid, chance.choice([A100, H100]))]


def asks(chance: random.Random, round_: int) -> list[WorkloadRequest]:
    return [
        ask(f"w/{round_}/{n}", **piece(chance.choice([4.0, 9.0, 19.0, 38.0])))
        if chance.random() < 0.7
        else ask(f"w/{round_}/{n}", device_count=chance.randint(1, 2))
        for n in range(chance.randint(1, 2))
    ]


def had(seed: int) -> int:
    """Reserves one plan after another in a world until little fits; returns how many were to be had."""
    chance = random.Random(seed)
    world = DraWorld({host: cards(chance, host) for host in ("a", "b")[: chance.randint(1, 2)]})
    backend, ready = allocator(world, FACTS), 0
    for round_ in range(ROUNDS):
        snapshot = seen(backend)
        plan = backend.plan(asks(chance, round_), snapshot)
        if isinstance(plan, FeasiblePlan):
            claim = backend.reserve(plan, f"op-{round_}", snapshot.generation)
            assert claim.status is ClaimStatus.READY, (seed, claim)
            ready += 1
    return ready


def test_a_plan_is_given_as_it_was_planned() -> None:
    assert sum(had(seed) for seed in range(12)) >= 12


@pytest.mark.nightly
@pytest.mark.timeout(3600)
def test_many_plans_are_given_as_they_were_planned() -> None:
    assert sum(had(seed) for seed in range(100, 2100)) >= 2000
