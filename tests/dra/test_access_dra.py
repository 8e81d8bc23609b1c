"""What is made in a cluster is valid for every server, and needs exactly the rights that are rendered."""

from collections.abc import Callable
from typing import Any

import pytest

from tests.dra.slices import gpu, partitions, shared
from tests.dra.test_live import SETTINGS, allocator, ask, piece, reserved
from tests.dra.world import DraWorld
from tests.kubernetes.schemas import check
from videoflow.backends.allocation import ClaimStatus, Feature
from videoflow.backends.outcomes import Known
from videoflow.deploy.allocation_dra import open_dra, probed_facts, rbac_manifests, rights
from videoflow.errors import AcceleratorFault, UnobservableState
from videoflow.testing.examiners.allocation import Call, Fate
from videoflow.testing.kubernetes import DirectApi, Ending


def test_what_is_made_is_valid_for_every_server() -> None:
    world = DraWorld({"a": [*partitions(0, "GPU-0"), gpu(1, "GPU-1")]})
    backend = allocator(world, {"kubernetes": "1.36", "driver": "0.5.0", "driver-gates": "DynamicMIG"})
    claim = reserved(backend, ask("w/0", **piece(39.0)), ask("w/1"))
    assert claim.status is ClaimStatus.READY, claim
    for kind, plural, version in (
        ("ResourceClaim", "resourceclaims", "resource.k8s.io/v1"),
        ("Pod", "pods", "v1"),
    ):
        for made in world.cluster.every(plural):
            metadata = {k: v for k, v in made["metadata"].items() if k in ("name", "namespace", "labels")}
            metadata["ownerReferences"] = made["metadata"]["ownerReferences"]
            check({"apiVersion": version, "kind": kind, "metadata": metadata, "spec": made["spec"]})
    for manifest in rbac_manifests(SETTINGS):
        check(manifest)


def test_a_whole_life_needs_exactly_the_rights_that_are_rendered() -> None:
    world = DraWorld({"a": [gpu(0, "GPU-0")]})
    asked: set[tuple[str, str]] = set()
    verbs = {"POST": "create", "PUT": "update", "DELETE": "delete"}

    def note(call: Call) -> Fate:
        method, _, plural = call.operation.partition(" ")
        one = ("get" if call.target else "list") if method == "GET" else verbs[method]
        asked.add((one, plural))
        return Fate.GO

    world.decide = note
    backend = allocator(world)
    claim = reserved(backend, ask())
    backend.bindings(claim.claim_id, "w/0")
    backend.claims("")
    backend.release(claim.claim_id, "end", claim.desired_generation)
    assert asked == {(right.verb, right.kind.plural) for right in rights(SETTINGS)}


def test_an_allocator_is_opened_with_rights_and_with_what_is_seen() -> None:
    world = DraWorld({"a": [*partitions(0, "GPU-0"), shared(gpu(1, "GPU-1"))], "b": []})
    api = DirectApi(world.cluster)
    for name, version in (("a", "v1.37.2"), ("b", "v1.36.0")):
        world.cluster.edit("nodes", name, _kubelet(version))
    found = probed_facts(api, SETTINGS)
    assert isinstance(found, Known)
    assert found.value["kubernetes"] == "1.36"
    assert found.value["driver-gates"] == "DynamicMIG,ConsumableShares"
    features = dict(open_dra(api, SETTINGS).capabilities(found.value).version_matrix)
    assert {Feature.DYNAMIC_MIG, Feature.CONSUMABLE_CAPACITY} <= set(features)
    assert Feature.MPS not in features
    world.cluster.allows = lambda access: (access["resource"], access["verb"]) != ("pods", "create")
    with pytest.raises(AcceleratorFault, match="may not create pods in ours: needed for holders"):
        open_dra(api, SETTINGS)
    world.cluster.decide = lambda request: Ending.DENIED
    with pytest.raises(UnobservableState):
        open_dra(api, SETTINGS)


def _kubelet(version: str) -> Callable[[dict[str, Any]], None]:
    def write(node: dict[str, Any]) -> None:
        node["status"] = {"nodeInfo": {"kubeletVersion": version}}

    return write
