"""What the hosts of a cluster give: shares, prepared slices, geometry by odd paths, and what a pod gets."""

import json
from collections.abc import Mapping, Sequence

import pytest

from tests.kubernetes.schemas import check
from tests.kubernetes.world import StoppedApi, World, managed_labels, rules
from videoflow.backends.allocation import (
    EVIDENCE_CONFLICT,
    ClaimObservation,
    ClaimStatus,
    FeasiblePlan,
    Feature,
    Infeasible,
    InventorySnapshot,
    PlanOutcome,
    ReleaseStatus,
    Sharing,
    WorkloadRequest,
)
from videoflow.backends.outcomes import Known
from videoflow.deploy.allocation_kubernetes import (
    CLAIM,
    FENCE,
    OWNER,
    TAINT,
    KubernetesAllocation,
    KubernetesSettings,
    Strategy,
    probed_facts,
)
from videoflow.testing.kubernetes import Ending, FakeGpu, FakeGpuHost, Object

H100 = "NVIDIA-H100-80GB-HBM3"
GIB = 1 << 30
FACTS = {"mig-manager": "0.12", "mps": "0.17"}


def backend(world: World, *strategies: Strategy, facts: Mapping[str, str] = FACTS) -> KubernetesAllocation:
    settings = KubernetesSettings(process="p", strategies=frozenset(strategies))
    return KubernetesAllocation(StoppedApi(world, "p"), settings, environment=facts)


def shared(sharing: str, cards: int = 1) -> World:
    return World([FakeGpuHost("a", H100, 81920, [FakeGpu() for _ in range(cards)], sharing, 4)])


def managed(cards: int = 2, entry: str = "") -> World:
    labels = managed_labels(entry)
    return World(
        [
            FakeGpuHost(
                "a", H100, 81559, [FakeGpu() for _ in range(cards)], mig_strategy="mixed", labels=labels
            )
        ]
    )


def share(name: str, gib: float, **more: object) -> WorkloadRequest:
    peak = int(gib * GIB)
    found = WorkloadRequest("f", "r", name, sharing=Sharing.COOPERATIVE, declared_peak_memory_bytes=peak)
    return WorkloadRequest(**{**found.__dict__, **more})


def piece(name: str, gib: float) -> WorkloadRequest:
    least = int(gib * GIB)
    return WorkloadRequest("f", "r", name, sharing=Sharing.ISOLATED_MIG, minimum_usable_memory_bytes=least)


def seen(allocator: KubernetesAllocation) -> InventorySnapshot:
    found = allocator.inventory("")
    assert isinstance(found, Known)
    return found.value


def plan(allocator: KubernetesAllocation, *requests: WorkloadRequest) -> PlanOutcome:
    return allocator.plan(requests, seen(allocator))


def reserved(allocator: KubernetesAllocation, operation: str, *requests: WorkloadRequest) -> ClaimObservation:
    found = plan(allocator, *requests)
    assert isinstance(found, FeasiblePlan), found
    return allocator.reserve(found, operation, found.snapshot_generation)


def observed(allocator: KubernetesAllocation, claim: ClaimObservation) -> ClaimObservation:
    found = allocator.observe(claim.claim_id)
    assert isinstance(found, Known)
    return found.value


def node(world: World) -> Object:
    found = world.cluster.find("nodes", "a")
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("sharing", "strategy"), [("time-slicing", Strategy.TIME_SLICING), ("mps", Strategy.MPS)], ids=str
)
def test_a_share_is_one_of_as_many_as_the_plugin_makes_and_has_its_part_of_the_memory(
    sharing: str, strategy: Strategy
) -> None:
    allocator = backend(shared(sharing), strategy)
    assert isinstance(plan(allocator, share("big", 20.5)), Infeasible)
    claims = [reserved(allocator, f"op-{n}", share(f"w/{n}", 20.0)) for n in range(4)]
    assert [claim.status for claim in claims] == [ClaimStatus.READY] * 4
    assert not any(claim.grant is None or claim.grant.exclusive for claim in claims)
    assert isinstance(plan(allocator, share("one-more", 1.0)), Infeasible)
    allocator.release(claims[0].claim_id, "end", "1")
    assert isinstance(plan(allocator, share("one-more", 1.0)), FeasiblePlan)


def test_two_who_take_the_last_share_are_one_and_a_conflict() -> None:
    world = shared("mps")
    first, second = backend(world, Strategy.MPS), backend(world, Strategy.MPS)
    for number in range(3):
        reserved(first, f"op-{number}", share(f"w/{number}", 20.0))
    plans = [plan(one, share("last", 20.0)) for one in (first, second)]
    claims: list[ClaimObservation] = []
    for one, found in zip((first, second), plans, strict=True):
        assert isinstance(found, FeasiblePlan)
        claims.append(one.reserve(found, f"last-{len(claims)}", found.snapshot_generation))
    assert [claim.status for claim in claims] == [ClaimStatus.READY, ClaimStatus.FAILED]
    assert claims[1].evidence[0] == EVIDENCE_CONFLICT


def test_a_foreign_pod_takes_a_share_and_whole_cards_are_never_certain_there() -> None:
    world = shared("time-slicing")
    allocator = backend(world, Strategy.TIME_SLICING, Strategy.WHOLE)
    for number in range(3):
        assert world.pod(f"theirs-{number}", "a", "nvidia.com/gpu")
    refused = plan(allocator, WorkloadRequest("f", "r", "whole"))
    assert isinstance(refused, Infeasible)
    reserved(allocator, "op", share("w/0", 20.0))
    assert isinstance(plan(allocator, share("w/1", 20.0)), Infeasible)


def test_a_hard_limit_is_told_to_mps_and_refused_where_nobody_keeps_it() -> None:
    limited = share("w/0", 10.0, hard_memory_limit_bytes=12 * GIB)
    claim = reserved(allocator := backend(shared("mps"), Strategy.MPS), "op", limited)
    env = allocator.bindings(claim.claim_id, "w/0").env
    assert env["CUDA_MPS_PINNED_DEVICE_MEM_LIMIT"] == "0=12288M"
    refused = plan(backend(shared("time-slicing"), Strategy.TIME_SLICING), limited)
    assert isinstance(refused, Infeasible)
    assert "hard_memory_limit_bytes" in "\n".join(refused.reasons)


def test_gates_follow_the_facts_and_the_strategies() -> None:
    world = shared("mps")
    for strategies, facts, gates in (
        ((Strategy.MPS,), FACTS, {Feature.MPS}),
        ((Strategy.MPS,), {}, set()),
        ((Strategy.WHOLE,), FACTS, set()),
        ((Strategy.MANAGED_MIG,), FACTS, {Feature.DYNAMIC_MIG}),
    ):
        found = backend(world, *strategies).capabilities(facts).version_matrix
        assert {name for name, _ in found} - {"matrix"} == gates


def test_a_layout_that_was_there_already_goes_straight_to_success_and_is_ready() -> None:
    """As after a crash of a process that had asked for the same under another name."""
    world = managed()
    allocator = backend(world, Strategy.MANAGED_MIG)
    found = plan(allocator, piece("w/0", 39.0))
    assert isinstance(found, FeasiblePlan)
    claim = allocator.reserve(found, "op", found.snapshot_generation)
    assert claim.status is ClaimStatus.READY
    cuts = world.manager.applied("a")
    taken_over = allocator.reconcile(claim.claim_id, [piece("w/0", 39.0)], claim.desired_generation)
    assert taken_over.status is ClaimStatus.READY
    assert world.manager.applied("a") == cuts


def test_success_of_before_and_success_before_advertising_are_not_ready() -> None:
    world = managed(entry="all-disabled")
    allocator = backend(world, Strategy.MANAGED_MIG)
    world.held_back = True
    claim = reserved(allocator, "op", piece("w/0", 39.0))
    assert claim.status is ClaimStatus.ALLOCATED
    assert "nvidia.com/mig.config.state" not in node(world)["metadata"]["labels"]
    world.proceed()
    assert node(world)["metadata"]["labels"]["nvidia.com/mig.config.state"] == "success"
    assert observed(allocator, claim).status is ClaimStatus.PREPARED
    world.proceed()
    ready = observed(allocator, claim)
    assert (ready.status, ready.observed_generation) == (ClaimStatus.READY, ready.desired_generation)


def test_what_stays_pending_is_never_ready_and_is_given_back_when_it_can_be() -> None:
    """A tolerant pod that came behind the last look holds a card, and the manager waits for ever."""
    world = managed(cards=1)
    allocator = backend(world, Strategy.MANAGED_MIG)
    world.held_back = True
    claim = reserved(allocator, "op", piece("w/0", 39.0))
    assert world.pod("theirs", "a", "nvidia.com/gpu", tolerant=True)
    world.held_back = False
    world.settle()
    assert node(world)["metadata"]["labels"]["nvidia.com/mig.config.state"] == "pending"
    assert observed(allocator, claim).status is ClaimStatus.ALLOCATED
    done = allocator.release(claim.claim_id, "end", claim.desired_generation)
    world.end("theirs")
    if done.status is not ReleaseStatus.RELEASED:
        done = allocator.release(claim.claim_id, "end", claim.desired_generation)
    assert done.status is ReleaseStatus.RELEASED
    assert world.cards() == {"a#0": ()}


def test_the_taint_keeps_others_out_and_goes_with_the_claim() -> None:
    world = managed(entry="all-disabled")
    before = node(world)
    allocator = backend(world, Strategy.MANAGED_MIG)
    claim = reserved(allocator, "op", piece("w/0", 39.0))
    assert [taint["key"] for taint in node(world)["spec"]["taints"]] == [TAINT]
    assert node(world)["metadata"]["annotations"][OWNER].startswith(claim.claim_id)
    assert not world.pod("theirs", "a", "nvidia.com/gpu")
    assert allocator.release(claim.claim_id, "end", "1").status is ReleaseStatus.RELEASED
    after = node(world)
    assert after["spec"].get("taints", []) == []
    assert after["metadata"]["labels"] == before["metadata"]["labels"]
    assert set(after["metadata"]["annotations"]) == {FENCE}
    assert world.pod("theirs", "a", "nvidia.com/gpu")


def test_the_configuration_keeps_what_is_not_ours() -> None:
    world = managed()

    def text() -> str:
        found = world.cluster.find("configmaps", "mig-config", "gpu-operator")
        assert found is not None
        return str(found["data"]["config.yaml"])

    before = text()
    allocator = backend(world, Strategy.MANAGED_MIG)
    claim = reserved(allocator, "op", piece("w/0", 39.0))
    during = text()
    assert "# Kept by hand." in during
    ours = set(during.splitlines()) - set(before.splitlines())
    assert len(ours) == 1
    assert ours.pop().lstrip().startswith("vf-")
    allocator.release(claim.claim_id, "end", "1")
    assert text() == before


def test_a_layout_that_somebody_else_asks_for_is_not_overwritten() -> None:
    world = managed()
    allocator = backend(world, Strategy.MANAGED_MIG)
    claim = reserved(allocator, "op", piece("w/0", 39.0))

    def take(found: Object) -> None:
        found["metadata"]["labels"]["nvidia.com/mig.config"] = "by-hand"

    world.cluster.edit("nodes", "a", take)
    world.settle()
    assert observed(allocator, claim).status is not ClaimStatus.READY
    done = allocator.release(claim.claim_id, "end", claim.desired_generation)
    assert done.status is ReleaseStatus.PENDING_RECOVERY
    assert done.remaining
    assert node(world)["metadata"]["labels"]["nvidia.com/mig.config"] == "by-hand"


def test_a_removed_record_is_not_taken_for_a_released_claim() -> None:
    world = managed()
    allocator = backend(world, Strategy.WHOLE)
    claim = reserved(allocator, "op", WorkloadRequest("f", "r", "w/0"))
    world.cluster.store.delete(("configmaps", "videoflow", claim.claim_id))
    done = allocator.release(claim.claim_id, "end", "1")
    assert done.status is ReleaseStatus.PENDING_RECOVERY
    assert done.remaining == ("a#0",)


def test_slices_of_which_nobody_knows_the_card_are_counted_and_never_cut() -> None:
    gpus = [FakeGpu(["1g.10gb"] * 7), FakeGpu()]
    world = World([FakeGpuHost("a", H100, 81559, gpus, mig_strategy="mixed", labels=managed_labels("gone"))])
    allocator = backend(world, Strategy.WHOLE, Strategy.STATIC_MIG, Strategy.MANAGED_MIG)
    assert reserved(allocator, "one", *(piece(f"w/{n}", 9.0) for n in range(7))).status is ClaimStatus.READY
    refused = plan(allocator, piece("more", 9.0))
    assert isinstance(refused, Infeasible)
    assert "not what they are cut into" in "\n".join(refused.reasons)
    assert reserved(allocator, "two", WorkloadRequest("f", "r", "whole")).status is ClaimStatus.READY


def test_a_seat_stays_taken_when_it_gets_another_name() -> None:
    """The applied layout is removed from the configuration: nobody can tell any more what is where."""
    gpus = [FakeGpu(["3g.40gb", "3g.40gb"])]
    host = FakeGpuHost("a", H100, 81559, gpus, mig_strategy="mixed", labels=managed_labels("mine"))
    world = World([host], {"mine": rules([["3g.40gb", "3g.40gb"]])})
    allocator = backend(world, Strategy.STATIC_MIG)
    reserved(allocator, "op", piece("w/0", 39.0))
    world.cluster.edit(
        "configmaps",
        "mig-config",
        lambda found: found["data"].update({"config.yaml": "mig-configs: {}"}),
        "gpu-operator",
    )
    assert isinstance(plan(allocator, piece("w/1", 39.0), piece("w/2", 39.0)), Infeasible)
    assert reserved(allocator, "op-2", piece("w/1", 39.0)).status is ClaimStatus.READY
    assert isinstance(plan(allocator, piece("w/2", 39.0)), Infeasible)


def test_an_entry_for_each_card_tells_which_slices_are_where() -> None:
    layouts: Sequence[Sequence[str] | None] = [["3g.40gb", "3g.40gb"], None]
    gpus = [FakeGpu(sorted(found) if found else None) for found in layouts]
    host = FakeGpuHost("a", H100, 81559, gpus, mig_strategy="mixed", labels=managed_labels("mine"))
    allocator = backend(World([host], {"mine": rules(layouts)}), Strategy.STATIC_MIG)
    names = {device.mig_uuid for device in seen(allocator).devices if device.mig_profile}
    assert names == {"a/0/3g.40gb/0", "a/0/3g.40gb/1"}


def test_a_pod_with_its_bindings_is_valid_and_lands_on_what_was_granted() -> None:
    world = managed()
    allocator = backend(world, Strategy.WHOLE, Strategy.MANAGED_MIG)
    claim = reserved(allocator, "op", piece("w/0", 39.0), WorkloadRequest("f", "r", "w/1"))
    asked = {}
    for workload in ("w/0", "w/1"):
        found = allocator.bindings(claim.claim_id, workload)
        pod: Object = {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": "p", "namespace": "x", **found.pod_fragment["metadata"]},
            "spec": {
                **found.pod_fragment["spec"],
                "containers": [{"name": "main", "image": "x", **found.container_fragment}],
            },
        }
        check(pod)
        assert pod["metadata"]["labels"][CLAIM] == claim.claim_id
        asked[workload] = found.container_fragment["resources"]["limits"]
        grant = json.loads(found.env["VIDEOFLOW_GRANT"])
        assert [device["node"] for device in grant["devices"]] == ["a"]
    assert asked == {"w/0": {"nvidia.com/mig-3g.40gb": "1"}, "w/1": {"nvidia.com/gpu": "1"}}


def test_records_and_ledgers_are_valid_config_maps() -> None:
    world = managed()
    allocator = backend(world, Strategy.WHOLE)
    reserved(allocator, "op", WorkloadRequest("f", "r", "w/0"))
    found = [one for one in world.cluster.every("configmaps") if one["metadata"]["namespace"] == "videoflow"]
    assert len(found) == 2
    for one in found:
        one["metadata"].pop("managedFields", None)
        check(one)


def test_facts_are_those_of_what_is_installed_and_unknown_where_nobody_answers() -> None:
    world = managed()
    api = StoppedApi(world, "p")
    settings = KubernetesSettings(process="p", strategies=frozenset({Strategy.MANAGED_MIG, Strategy.MPS}))

    def facts() -> Mapping[str, str] | None:
        found = probed_facts(api, settings)
        return found.value if isinstance(found, Known) else None

    assert facts() == {"mig-manager": "unknown version"}

    def install(policy: Object) -> None:
        policy["spec"]["migManager"] |= {"version": "v0.12.1"}
        policy["spec"]["devicePlugin"] = {"version": "v0.17.4"}

    world.cluster.edit("clusterpolicies", "cluster-policy", install)
    world.cluster.edit(
        "nodes", "a", lambda node: node["metadata"]["labels"].update({"nvidia.com/mps.capable": "true"})
    )
    assert facts() == {"mig-manager": "v0.12.1", "mps": "v0.17.4"}
    world.cluster.edit(
        "clusterpolicies",
        "cluster-policy",
        lambda policy: policy["spec"]["migManager"].update({"enabled": False}),
    )
    assert facts() == {"mps": "v0.17.4"}
    world.cluster.decide = lambda request: Ending.DENIED
    assert facts() is None
