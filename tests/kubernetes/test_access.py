"""Rights: as few as a strategy needs, valid for every server, and enough for everything that is done."""

import pytest

from tests.kubernetes.schemas import check
from tests.kubernetes.world import StoppedApi, World, managed_labels
from videoflow.backends.allocation import (
    FeasiblePlan,
    Feature,
    Infeasible,
    InventorySnapshot,
    Sharing,
    WorkloadRequest,
)
from videoflow.backends.outcomes import Known, Unknown, UnknownReason
from videoflow.deploy.allocation_kubernetes import (
    KubernetesAllocation,
    KubernetesSettings,
    Strategy,
    is_allowed,
    missing_rights,
    open_kubernetes,
    rbac_manifests,
    rights,
)
from videoflow.errors import AcceleratorFault, UnobservableState
from videoflow.testing.examiners.allocation import Call, Fate
from videoflow.testing.kubernetes import DirectApi, Ending, FakeCluster, FakeGpu, FakeGpuHost, Object

SETS = [
    frozenset({Strategy.WHOLE}),
    frozenset({Strategy.TIME_SLICING, Strategy.MPS}),
    frozenset({Strategy.STATIC_MIG}),
    frozenset({Strategy.WHOLE, Strategy.MANAGED_MIG}),
]
VERBS = {"POST": "create", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}


def settings(strategies: frozenset[Strategy]) -> KubernetesSettings:
    return KubernetesSettings(process="p", strategies=strategies)


def granted(manifests: tuple[Object, ...]) -> set[tuple[str, str, str]]:
    return {
        (verb, resource, manifest["metadata"].get("namespace", ""))
        for manifest in manifests
        for rule in manifest.get("rules", ())
        for resource in rule["resources"]
        for verb in rule["verbs"]
    }


@pytest.mark.parametrize("strategies", SETS, ids=lambda found: "+".join(sorted(found)))
def test_the_manifests_are_valid_and_grant_exactly_the_rights(strategies: frozenset[Strategy]) -> None:
    manifests = rbac_manifests(settings(strategies))
    for manifest in manifests:
        check(manifest)
    wanted = {(right.verb, right.kind.plural, right.namespace) for right in rights(settings(strategies))}
    assert granted(manifests) == wanted
    writes_nodes = any(plural == "nodes" and verb == "patch" for verb, plural, _ in wanted)
    assert writes_nodes is (Strategy.MANAGED_MIG in strategies)


def test_a_missing_right_is_named_with_what_it_is_for_and_silence_is_unknown() -> None:
    cluster = FakeCluster()
    api, asked = DirectApi(cluster), settings(SETS[3])
    assert is_allowed(missing_rights(api, asked))
    cluster.allows = lambda access: (access["resource"], access["verb"]) != ("nodes", "patch")
    found = missing_rights(api, asked)
    assert isinstance(found, Known)
    assert len(found.value) == 1
    assert "may not patch nodes" in found.value[0]
    assert "taint" in found.value[0]
    cluster.decide = lambda request: Ending.DENIED
    silent = missing_rights(api, asked)
    assert isinstance(silent, Unknown)
    assert silent.reason is UnknownReason.AUTH
    assert not is_allowed(silent)


def test_a_whole_life_needs_no_right_beyond_those_that_are_rendered() -> None:
    """Every request of a claim on geometry and one on seats, from inventory to release."""
    gpus = [FakeGpu(), FakeGpu()]
    product = "NVIDIA-H100-80GB-HBM3"
    world = World([FakeGpuHost("a", product, 81559, gpus, mig_strategy="mixed", labels=managed_labels())])
    asked: set[tuple[str, str]] = set()

    def note(call: Call) -> Fate:
        method, _, plural = call.operation.partition(" ")
        one = ("get" if call.target else "list") if method == "GET" else VERBS[method]
        asked.add((one, plural))
        return Fate.GO

    world.decide = note
    used = settings(SETS[3])
    backend = KubernetesAllocation(StoppedApi(world, "p"), used, environment={"mig-manager": "1"})
    requests = [
        WorkloadRequest("f", "r", "whole"),
        WorkloadRequest("f", "r", "part", sharing=Sharing.ISOLATED_MIG),
    ]
    found = backend.inventory("")
    assert isinstance(found, Known)
    plan = backend.plan(requests, found.value)
    assert isinstance(plan, FeasiblePlan), plan
    claim = backend.reserve(plan, "op", plan.snapshot_generation)
    backend.bindings(claim.claim_id, "part")
    backend.release(claim.claim_id, "end", claim.desired_generation)
    allowed = {(right.verb, right.kind.plural) for right in rights(used)}
    assert asked <= allowed
    # And none is rendered that nothing needs.
    assert allowed - asked == set()


def test_an_allocator_is_opened_with_rights_and_with_what_is_installed() -> None:
    gpus = [FakeGpu()]
    product = "NVIDIA-H100-80GB-HBM3"
    world = World([FakeGpuHost("a", product, 81559, gpus, mig_strategy="mixed", labels=managed_labels())])
    api, used = DirectApi(world.cluster), settings(SETS[3])
    found = open_kubernetes(api, used).plan(
        [WorkloadRequest("f", "r", "w/0", features=(Feature.DYNAMIC_MIG,))], value_of(used, api)
    )
    assert isinstance(found, FeasiblePlan), found
    # A manager that is switched off takes the feature away.
    world.cluster.edit(
        "clusterpolicies", "cluster-policy", lambda policy: policy["spec"]["migManager"].update(enabled=False)
    )
    gone = open_kubernetes(api, used).plan(
        [WorkloadRequest("f", "r", "w/0", features=(Feature.DYNAMIC_MIG,))], value_of(used, api)
    )
    assert isinstance(gone, Infeasible)
    # What no strategy in use needs is not asked for: the right to it is not rendered.
    world.cluster.decide = lambda request: (
        Ending.DENIED if "clusterpolicies" in request.path else Ending.ANSWERED
    )
    open_kubernetes(api, settings(SETS[0]))
    world.cluster.decide = None
    world.cluster.allows = lambda access: access["resource"] != "configmaps"
    with pytest.raises(AcceleratorFault, match="may not create configmaps in videoflow"):
        open_kubernetes(api, used)
    world.cluster.decide = lambda request: Ending.HANGS
    with pytest.raises(UnobservableState):
        open_kubernetes(api, used)


def value_of(used: KubernetesSettings, api: DirectApi) -> InventorySnapshot:
    found = KubernetesAllocation(api, used, environment={"mig-manager": "1"}).inventory("")
    assert isinstance(found, Known)
    return found.value
