"""The allocator with the client that it has in a cluster, over HTTP: the same life, and the same caution."""

import functools
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeVar

import pytest

from tests.kubernetes.world import World, managed_labels
from videoflow.adapters.kubernetes import ClientSettings, LightkubeApi, Refused
from videoflow.backends.allocation import (
    ClaimObservation,
    ClaimStatus,
    Completeness,
    FeasiblePlan,
    ReleaseStatus,
    Sharing,
    WorkloadRequest,
)
from videoflow.backends.outcomes import Known, Unknown
from videoflow.deploy.allocation_kubernetes import (
    KubernetesAllocation,
    KubernetesSettings,
    Strategy,
    is_allowed,
    missing_rights,
)
from videoflow.testing.kubernetes import Ending, FakeApiServer, FakeGpu, FakeGpuHost, Request

T = TypeVar("T")
SETTINGS = KubernetesSettings(process="p", strategies=frozenset({Strategy.WHOLE, Strategy.MANAGED_MIG}))
REQUESTS = (
    WorkloadRequest("f", "r", "part", sharing=Sharing.ISOLATED_MIG, minimum_usable_memory_bytes=39 << 30),
    WorkloadRequest("f", "r", "whole"),
)


class SettlingApi(LightkubeApi):
    """lightkube, with controllers that come to rest between its requests."""

    def __init__(self, settings: ClientSettings, world: World) -> None:
        super().__init__(settings)
        self._world = world

    def _ask(self, request: Callable[[], T]) -> T | Refused:
        done = super()._ask(request)
        self._world.settle()
        return done


@pytest.fixture
def world() -> World:
    gpus = [FakeGpu(), FakeGpu()]
    labels = managed_labels("all-disabled")
    return World(
        [FakeGpuHost("a", "NVIDIA-H100-80GB-HBM3", 81559, gpus, mig_strategy="mixed", labels=labels)]
    )


@pytest.fixture
def api(world: World, tmp_path: Path) -> Iterator[SettlingApi]:
    with FakeApiServer(world.cluster) as server:
        path = tmp_path / "kubeconfig"
        path.write_text(server.kubeconfig())
        api = SettlingApi(ClientSettings(kubeconfig=str(path), timeout_seconds=5), world)
        yield api
        api.close()


def allocator(api: LightkubeApi) -> KubernetesAllocation:
    return KubernetesAllocation(api, SETTINGS, environment={"mig-manager": "0.12"})


def reserved(backend: KubernetesAllocation) -> ClaimObservation:
    found = backend.inventory("")
    assert isinstance(found, Known)
    plan = backend.plan(REQUESTS, found.value)
    assert isinstance(plan, FeasiblePlan), plan
    return backend.reserve(plan, "op", plan.snapshot_generation)


def test_a_claim_lives_and_leaves_everything_as_it_was(world: World, api: SettlingApi) -> None:
    assert is_allowed(missing_rights(api, SETTINGS))
    backend = allocator(api)
    claim = reserved(backend)
    assert claim.status is ClaimStatus.READY, claim
    assert sorted(world.cards().values()) == [(), (("3g.40gb", 0),)]
    listed = allocator(api).claims("")
    assert isinstance(listed, Known)
    assert [one.claim_id for one in listed.value] == [claim.claim_id]
    assert backend.release(claim.claim_id, "end", claim.desired_generation).status is ReleaseStatus.RELEASED
    assert set(world.cards().values()) == {()}


@pytest.mark.parametrize("ending", [Ending.LOST, Ending.UNHEARD, Ending.BROKEN_AFTER, Ending.BUSY], ids=str)
def test_every_second_write_without_an_answer_changes_nothing_of_that(
    world: World, api: SettlingApi, ending: Ending
) -> None:
    writes = 0

    def decide(request: Request) -> Ending:
        nonlocal writes
        writes += request.writes
        return ending if request.writes and writes % 2 else Ending.ANSWERED

    world.cluster.decide = decide
    backend = allocator(api)
    claim = reserved(backend)
    assert claim.status is ClaimStatus.READY, claim
    assert backend.release(claim.claim_id, "end", claim.desired_generation).status is ReleaseStatus.RELEASED
    assert set(world.cards().values()) == {()}
    assert not [
        one for one in world.cluster.every("configmaps") if one["metadata"]["name"].startswith("claim-")
    ]


def test_what_is_cut_short_is_unknown_or_partial(world: World, api: SettlingApi) -> None:
    backend = allocator(api)
    for path, partial in (("/nodes", False), ("/pods", True), ("/resourceslices", True)):
        world.cluster.decide = functools.partial(cut, path)
        found = backend.inventory("")
        if partial:
            assert isinstance(found, Known)
            assert found.value.completeness is Completeness.PARTIAL
        else:
            assert isinstance(found, Unknown)


def cut(path: str, request: Request) -> Ending:
    return Ending.TRUNCATED if request.path.endswith(path) else Ending.ANSWERED
