"""A process dies at each barrier; a fresh one, knowing only the cluster, gives everything back."""

from collections.abc import Iterator

import pytest

from tests.dra.slices import gpu, partitions
from tests.dra.world import DraWorld
from tests.kubernetes.world import StoppedApi
from videoflow import faults
from videoflow.backends.allocation import FeasiblePlan, ReleaseStatus, Sharing, WorkloadRequest
from videoflow.backends.outcomes import Known
from videoflow.deploy.allocation_dra import BARRIERS, DraAllocation, DraSettings

FACTS = {"kubernetes": "1.36", "driver": "0.5.0", "driver-gates": "DynamicMIG"}
REQUESTS = (
    WorkloadRequest("f", "r", "part", sharing=Sharing.ISOLATED_MIG, minimum_usable_memory_bytes=39 << 30),
    WorkloadRequest("f", "r", "whole"),
)


@pytest.fixture(autouse=True)
def _disarmed() -> Iterator[None]:
    yield
    faults.disarm()


def process(world: DraWorld, name: str) -> DraAllocation:
    return DraAllocation(
        StoppedApi(world, name), DraSettings(process=name, holder_image="pause"), environment=FACTS
    )


def live(backend: DraAllocation) -> None:
    """One whole life of a claim on two hosts."""
    found = backend.inventory("")
    assert isinstance(found, Known)
    plan = backend.plan(REQUESTS, found.value)
    assert isinstance(plan, FeasiblePlan), plan
    claim = backend.reserve(plan, "op", plan.snapshot_generation)
    backend.release(claim.claim_id, "end", claim.desired_generation)


def furnished() -> DraWorld:
    return DraWorld({"a": partitions(0, "GPU-a"), "b": [gpu(0, "GPU-b")]})


def test_a_life_passes_every_barrier() -> None:
    reached: list[str] = []
    faults.arm(observer=reached.append)
    live(process(furnished(), "p"))
    assert set(reached) == set(BARRIERS)


@pytest.mark.parametrize("barrier", BARRIERS)
@pytest.mark.parametrize("hit", [1, 2])
def test_whoever_comes_after_a_death_at_a_barrier_leaves_everything_as_it_was(barrier: str, hit: int) -> None:
    world = furnished()
    faults.arm([faults.Fault(barrier, faults.FaultAction.RAISE, hit=1 if barrier == "dra.looked" else hit)])
    with pytest.raises(faults.InjectedFault):
        live(process(world, "first"))
    faults.disarm()
    heir = process(world, "second")
    listed = heir.claims("")
    assert isinstance(listed, Known)
    assert len(listed.value) == 1
    for claim in listed.value:
        done = heir.release(claim.claim_id, "end", claim.desired_generation)
        assert done.status is ReleaseStatus.RELEASED, done
    for plural in ("resourceclaims", "pods", "configmaps"):
        assert world.cluster.every(plural) == []
