"""A process dies at each barrier of the allocator; a fresh one, knowing only the cluster, gives all back."""

from collections.abc import Iterator

import pytest

from tests.kubernetes.world import StoppedApi, World, managed_labels
from videoflow import faults
from videoflow.backends.allocation import FeasiblePlan, ReleaseStatus, Sharing, WorkloadRequest
from videoflow.backends.outcomes import Known
from videoflow.deploy.allocation_kubernetes import (
    BARRIERS,
    OWNER,
    TAINT,
    KubernetesAllocation,
    KubernetesSettings,
    Strategy,
)
from videoflow.testing.kubernetes import FakeGpu, FakeGpuHost

REQUESTS = (
    WorkloadRequest("f", "r", "part", sharing=Sharing.ISOLATED_MIG, minimum_usable_memory_bytes=39 << 30),
    WorkloadRequest("f", "r", "whole"),
)


@pytest.fixture(autouse=True)
def _disarmed() -> Iterator[None]:
    yield
    faults.disarm()


def process(world: World, name: str) -> KubernetesAllocation:
    strategies = frozenset({Strategy.WHOLE, Strategy.MANAGED_MIG})
    settings = KubernetesSettings(process=name, strategies=strategies)
    return KubernetesAllocation(StoppedApi(world, name), settings, environment={"mig-manager": "1"})


def live(backend: KubernetesAllocation) -> None:
    """One whole life of a claim on two hosts."""
    found = backend.inventory("")
    assert isinstance(found, Known)
    plan = backend.plan(REQUESTS, found.value)
    assert isinstance(plan, FeasiblePlan), plan
    claim = backend.reserve(plan, "op", plan.snapshot_generation)
    backend.release(claim.claim_id, "end", claim.desired_generation)


def config(world: World) -> str:
    found = world.cluster.find("configmaps", "mig-config", "gpu-operator")
    assert found is not None
    return str(found["data"]["config.yaml"])


def furnished() -> World:
    labels = managed_labels("all-disabled")
    product = "NVIDIA-H100-80GB-HBM3"
    return World(
        [
            FakeGpuHost(name, product, 81559, [FakeGpu()], mig_strategy="mixed", labels=dict(labels))
            for name in ("a", "b")
        ]
    )


def test_a_life_passes_every_barrier() -> None:
    reached: list[str] = []
    faults.arm(observer=reached.append)
    live(process(furnished(), "p"))
    assert set(reached) == set(BARRIERS)


@pytest.mark.parametrize("barrier", BARRIERS)
def test_whoever_comes_after_a_death_at_a_barrier_leaves_everything_as_it_was(barrier: str) -> None:
    world = furnished()
    before = config(world), world.cards()
    faults.arm([faults.Fault(barrier, faults.FaultAction.RAISE)])
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
    assert (config(world), world.cards()) == before
    for node in world.cluster.every("nodes"):
        assert OWNER not in (node["metadata"].get("annotations") or {})
        assert TAINT not in [taint["key"] for taint in node["spec"].get("taints") or []]
        assert node["metadata"]["labels"]["nvidia.com/mig.config"] == "all-disabled"
    assert not [
        one for one in world.cluster.every("configmaps") if one["metadata"]["name"].startswith("claim-")
    ]
