"""The allocator with the client that it has in a cluster, over HTTP: the same life, and the same caution."""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TypeVar

import pytest

from tests.dra.slices import gpu, partitions
from tests.dra.test_live import GATES, SETTINGS, ask, piece, reserved
from tests.dra.world import DraWorld
from videoflow.adapters.kubernetes import ClientSettings, LightkubeApi, Refused
from videoflow.backends.allocation import ClaimStatus, ReleaseStatus, WorkloadRequest
from videoflow.backends.outcomes import Known, UnknownReason
from videoflow.deploy.allocation_dra import DraAllocation
from videoflow.testing.kubernetes import Ending, FakeApiServer, Request

T = TypeVar("T")


class SettlingApi(LightkubeApi):
    """lightkube, with controllers that come to rest between its requests."""

    def __init__(self, settings: ClientSettings, world: DraWorld) -> None:
        super().__init__(settings)
        self._world = world

    def _ask(self, request: Callable[[], T]) -> T | Refused:
        done = super()._ask(request)
        self._world.settle()
        return done


@pytest.fixture
def world() -> DraWorld:
    return DraWorld({"a": partitions(0, "GPU-0"), "b": [gpu(0, "GPU-b")]})


@pytest.fixture
def api(world: DraWorld, tmp_path: Path) -> Iterator[SettlingApi]:
    with FakeApiServer(world.cluster) as server:
        path = tmp_path / "kubeconfig"
        path.write_text(server.kubeconfig())
        api = SettlingApi(ClientSettings(kubeconfig=str(path), timeout_seconds=5), world)
        yield api
        api.close()


REQUESTS: Sequence[WorkloadRequest] = (ask("part", **piece(39.0)), ask("whole"))


@pytest.mark.parametrize("ending", [Ending.ANSWERED, Ending.LOST, Ending.UNHEARD, Ending.BUSY], ids=str)
def test_a_claim_lives_with_the_client_that_it_has_in_a_cluster(
    world: DraWorld, api: SettlingApi, ending: Ending
) -> None:
    """Every second write gets no answer."""
    writes = [0]

    def decide(request: Request) -> Ending:
        writes[0] += request.writes
        return ending if request.writes and writes[0] % 2 else Ending.ANSWERED

    world.cluster.decide = decide
    backend = DraAllocation(api, SETTINGS, environment=GATES | {"driver-gates": "DynamicMIG"})
    claim = reserved(backend, *REQUESTS)
    assert claim.status is ClaimStatus.READY, claim
    assert backend.release(claim.claim_id, "end", claim.desired_generation).status is ReleaseStatus.RELEASED
    assert world.given() == []
    assert world.cluster.every("configmaps") == []


def test_a_list_of_slices_that_is_cut_short_is_unknown(world: DraWorld, api: SettlingApi) -> None:
    backend = DraAllocation(api, SETTINGS, environment=GATES)
    world.cluster.decide = lambda request: (
        Ending.TRUNCATED if request.path.endswith("/resourceslices") else Ending.ANSWERED
    )
    found = backend.inventory("")
    assert not isinstance(found, Known)
    assert found.reason is UnknownReason.MALFORMED
