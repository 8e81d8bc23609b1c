"""What no other allocator has: pools, policies, evidence in three steps, a scheduler that takes its time."""

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import pytest

from tests.dra.slices import A100, gpu, mig, partitions, resource_slice, shared
from tests.dra.world import DraWorld
from tests.kubernetes.world import StoppedApi
from videoflow.backends.allocation import (
    EVIDENCE_ABORTED,
    EVIDENCE_CONFLICT,
    EVIDENCE_LOST,
    ClaimObservation,
    ClaimStatus,
    Completeness,
    Constraint,
    FeasiblePlan,
    Infeasible,
    InventorySnapshot,
    ReleaseStatus,
    Sharing,
    WorkloadRequest,
)
from videoflow.backends.outcomes import Known
from videoflow.deploy.allocation_dra import (
    GROUP,
    DraAllocation,
    DraSettings,
)
from videoflow.errors import ArgumentInvalid, ContractBroken
from videoflow.testing.examiners.allocation import Call, Fate

GIB = 1 << 30
GATES = {"kubernetes": "1.36", "driver": "0.5.0", "driver-gates": "DynamicMIG,ConsumableShares"}
SETTINGS = DraSettings(process="p", namespace="ours", holder_image="pause")
T = TypeVar("T")


def allocator(world: DraWorld, facts: Mapping[str, str] | None = None, name: str = "p") -> DraAllocation:
    settings = DraSettings(process=name, namespace="ours", holder_image="pause")
    return DraAllocation(StoppedApi(world, name), settings, environment=facts or GATES)


def ask(name: str = "w/0", **more: Any) -> WorkloadRequest:
    return WorkloadRequest("flow", "run", name, **more)


def share(name: str, gib: float) -> WorkloadRequest:
    size = int(gib * GIB)
    return ask(name, sharing=Sharing.COOPERATIVE, declared_peak_memory_bytes=size)


def seen(backend: DraAllocation) -> InventorySnapshot:
    found = backend.inventory("")
    assert isinstance(found, Known), found
    return found.value


def planned(backend: DraAllocation, *requests: WorkloadRequest) -> FeasiblePlan:
    plan = backend.plan(requests, seen(backend))
    assert isinstance(plan, FeasiblePlan), plan
    return plan


def reserved(backend: DraAllocation, *requests: WorkloadRequest, operation: str = "op") -> ClaimObservation:
    plan = planned(backend, *requests)
    return backend.reserve(plan, operation, plan.snapshot_generation)


def refused(backend: DraAllocation, *requests: WorkloadRequest) -> str:
    plan = backend.plan(requests, seen(backend))
    assert isinstance(plan, Infeasible), plan
    return "\n".join(plan.reasons)


def observed(backend: DraAllocation, claim: ClaimObservation) -> ClaimObservation:
    found = backend.observe(claim.claim_id)
    assert isinstance(found, Known), found
    return found.value


# What is published ------------------------------------------------------------------------------


def test_without_an_image_for_what_holds_claims_nothing_is_opened() -> None:
    with pytest.raises(ArgumentInvalid, match="image") as refused:
        DraAllocation(StoppedApi(DraWorld({}), "p"), DraSettings(process="p", namespace="ours"))
    assert "holder_image" in refused.value.remedy


def test_only_the_newest_generation_of_a_pool_counts_and_only_if_it_is_whole() -> None:
    world = DraWorld({"a": [gpu(0, "GPU-0")]})
    backend = allocator(world)
    again = resource_slice("a", [gpu(1, "GPU-1")], name="new-1", generation=2, resourceSliceCount=2)
    world.cluster.add(again)
    half = seen(backend)
    assert half.completeness is Completeness.PARTIAL
    assert not half.occupancy
    assert "1 of 2 slices of generation 2" in refused(backend, ask())
    world.cluster.add(
        resource_slice("a", [gpu(2, "GPU-2")], name="new-2", generation=2, resourceSliceCount=2)
    )
    whole = seen(backend)
    assert whole.completeness is Completeness.COMPLETE
    assert [device.uuid for device in whole.devices] == ["GPU-1", "GPU-2"]


def test_a_host_whose_devices_a_plugin_gives_out_is_off_limits() -> None:
    world = DraWorld({"a": [gpu(0, "GPU-0")]})
    backend = allocator(world)
    claim = reserved(backend, ask())

    def advertise(node: dict[str, Any]) -> None:
        node["status"] = {"allocatable": {"nvidia.com/gpu": "1"}}

    world.cluster.edit("nodes", "a", advertise)
    assert "a device plugin gives out nvidia.com/gpu" in refused(backend, ask("other"))
    lost = observed(backend, claim)
    assert (lost.status, lost.evidence[0]) == (ClaimStatus.FAILED, EVIDENCE_LOST)
    assert backend.release(claim.claim_id, "end", "1").status is ReleaseStatus.RELEASED


def test_constraints_on_a_card_hold_for_slices_that_were_cut_by_hand() -> None:
    world = DraWorld(
        {
            "a": [mig(0, "GPU-0", "2g.10gb", 0, A100, uuid="MIG-0")],
            "b": [mig(0, "GPU-1", "1g.10gb", 0, uuid="MIG-1")],
        }
    )
    backend = allocator(world, {"kubernetes": "1.36"})
    for architecture, uuid in (("Hopper", "MIG-1"), ("Ampere", "MIG-0")):
        rule = Constraint("architecture", "In", (architecture,))
        claim = reserved(backend, ask(architecture, **piece(9.0), constraints=(rule,)), operation=uuid)
        assert claim.status is ClaimStatus.READY, claim
        assert claim.grant is not None
        assert [device.mig_uuid for device in claim.grant.devices] == [uuid]
    refused(backend, ask(**piece(9.0)))


def test_a_declared_group_shares_one_claim_and_nobody_else_has_its_card() -> None:
    world = DraWorld({"a": [gpu(0, "GPU-0", A100)]})
    backend = allocator(world, GATES | {"driver-gates": "TimeSlicingSettings"})

    def reader(name: str, gib: float) -> WorkloadRequest:
        rule = Constraint(GROUP, "In", ("readers",))
        size = int(gib * GIB)
        return ask(name, sharing=Sharing.COOPERATIVE, declared_peak_memory_bytes=size, constraints=(rule,))

    refused(backend, reader("w/0", 25.0), reader("w/1", 25.0))
    claim = reserved(backend, reader("w/0", 12.0), reader("w/1", 12.0))
    assert claim.status is ClaimStatus.READY, claim
    assert claim.grant is not None
    assert not claim.grant.exclusive
    named = {
        manifest["metadata"]["name"]
        for workload in ("w/0", "w/1")
        for manifest in backend.bindings(claim.claim_id, workload).claim_manifests
    }
    (made,) = world.cluster.every("resourceclaims")
    assert named == {made["metadata"]["name"]}
    (config,) = made["spec"]["devices"]["config"]
    assert config["requests"] == [one["name"] for one in made["spec"]["devices"]["requests"]]
    assert len(world.cluster.every("pods")) == 1
    refused(backend, ask("w/2"))
    assert backend.release(claim.claim_id, "end", claim.desired_generation).status is ReleaseStatus.RELEASED
    assert world.given() == []


# Consumable capacity ------------------------------------------------------------------------------


def test_what_sharers_take_never_exceeds_what_is_published() -> None:
    world = DraWorld({"a": [shared(gpu(0, "GPU-0", A100))]})
    backend = allocator(world)
    assert "no whole device is certain" in refused(backend, ask())
    refused(backend, share("w/0", 40.5))
    for number in range(3):
        claim = reserved(backend, share(f"w/{number}", 12.0), operation=f"op-{number}")
        assert claim.status is ClaimStatus.READY, claim
        assert claim.grant is not None
        assert not claim.grant.exclusive
    assert seen(backend).occupancy["GPU-0"] == 3
    assert seen(backend).occupancy["GPU-0:bytes"] == 36 * GIB
    refused(backend, share("w/3", 12.0))
    assert reserved(backend, share("w/3", 4.0), operation="op-3").status is ClaimStatus.READY


def test_one_sharer_never_takes_more_than_the_policy_gives_one() -> None:
    backend = allocator(DraWorld({"a": [shared(gpu(0, "GPU-0", A100), most="16Gi")]}))
    refused(backend, share("w/0", 16.5))
    assert reserved(backend, share("w/0", 16.0)).status is ClaimStatus.READY


def test_sharers_who_come_at_once_are_judged_by_the_scheduler() -> None:
    """Both planned on the same snapshot; the second was planned before the first was given anything."""
    world = DraWorld({"a": [shared(gpu(0, "GPU-0", A100))]})
    first, second = allocator(world, name="a"), allocator(world, name="b")
    plans = [planned(first, share("w/0", 25.0)), planned(second, share("w/1", 25.0))]
    late = Latecomer(world, lambda: second.reserve(plans[1], "op-b", plans[1].snapshot_generation))
    claim = first.reserve(plans[0], "op-a", plans[0].snapshot_generation)
    assert late.claim is not None
    assert late.claim.status is ClaimStatus.READY
    assert claim.status is ClaimStatus.FAILED
    assert claim.evidence[0] in (EVIDENCE_ABORTED, EVIDENCE_CONFLICT)
    assert [owner for _, _, owner in world.given()] == [late.claim.claim_id]


class Latecomer:
    """Reserves just before the first claim of somebody else is made."""

    def __init__(self, world: DraWorld, reserve: Callable[[], ClaimObservation]) -> None:
        self.claim: ClaimObservation | None = None
        self._reserve = reserve
        self._world = world
        world.decide = self._decide

    def _decide(self, call: Call) -> Fate:
        if call.writes and "resourceclaims" in call.operation and self.claim is None:
            self._world.decide = None
            self.claim = self._reserve()
        return Fate.GO


# Slices that the driver makes -----------------------------------------------------------------------


def test_a_card_cut_by_hand_is_never_taken_over_by_the_driver() -> None:
    """Handing a host over is an act of its administrator: drain it, remove the slices, restart the driver."""
    world = DraWorld({"a": [mig(0, "GPU-0", "1g.10gb", 0, uuid="MIG-0")], "b": partitions(0, "GPU-b")})
    backend = allocator(world)
    piece = {"sharing": Sharing.ISOLATED_MIG, "minimum_usable_memory_bytes": 39 * GIB}
    plan = planned(backend, ask("w/0", **piece), ask("w/1", **piece))
    assert set(plan.geometry) == {"b"}
    refused(backend, *(ask(f"w/{n}", **piece) for n in range(3)))
    forged = planned(backend, ask(sharing=Sharing.ISOLATED_MIG, minimum_usable_memory_bytes=9 * GIB))
    held = {"a": tuple(entry.replace("GPU-b", "GPU-0") for entry in plan.geometry["b"])}
    claim = backend.reserve(
        FeasiblePlan(forged.assignments, held, forged.snapshot_generation, "forged"),
        "op",
        forged.snapshot_generation,
    )
    assert (claim.status, claim.evidence[0]) == (ClaimStatus.FAILED, EVIDENCE_CONFLICT)
    assert world.audit == []


def test_what_runs_stays_where_it_is_when_its_card_is_cut_again() -> None:
    world = DraWorld({"a": partitions(0, "GPU-0")})
    backend = allocator(world)
    first = reserved(backend, ask("w/0", **piece(19.0)), operation="one")
    before = world.layout("a", "GPU-0")
    second = reserved(backend, ask("w/1", **piece(39.0)), operation="two")
    assert {first.status, second.status} == {ClaimStatus.READY}
    assert set(before) < set(world.layout("a", "GPU-0"))
    refused(backend, ask("w/2"))


def piece(gib: float) -> dict[str, Any]:
    return {"sharing": Sharing.ISOLATED_MIG, "minimum_usable_memory_bytes": int(gib * GIB)}


# Evidence -----------------------------------------------------------------------------------------


def test_allocated_prepared_and_ready_are_three_states_of_whole_cards_too() -> None:
    world = DraWorld({"a": [gpu(0, "GPU-0")]})
    backend = allocator(world)
    world.held_back = True
    claim = reserved(backend, ask())
    for status in (ClaimStatus.ALLOCATED, ClaimStatus.PREPARED, ClaimStatus.READY):
        assert observed(backend, claim).status is status
        if status is not ClaimStatus.READY:
            with pytest.raises(ContractBroken):
                backend.bindings(claim.claim_id, "w/0")
        world.proceed()
    backend.bindings(claim.claim_id, "w/0")


@pytest.mark.parametrize(("ready", "status"), [("False", ClaimStatus.ALLOCATED), ("True", ClaimStatus.READY)])
def test_what_the_driver_says_of_a_device_counts_more_than_that_a_pod_starts(
    ready: str, status: ClaimStatus
) -> None:
    world = DraWorld({"a": [gpu(0, "GPU-0")]})
    backend = allocator(world)
    claim = reserved(backend, ask())
    (made,) = world.cluster.every("resourceclaims")

    def report(found: dict[str, Any]) -> None:
        conditions = [{"type": "Ready", "status": ready}]
        found["status"]["devices"] = [
            {"driver": "gpu.nvidia.com", "device": "gpu-0", "conditions": conditions}
        ]

    world.cluster.edit("resourceclaims", made["metadata"]["name"], report, "ours")
    assert observed(backend, claim).status is status


def test_a_pod_of_somebody_else_is_no_evidence() -> None:
    world = DraWorld({"a": [gpu(0, "GPU-0")]})
    backend = allocator(world)
    claim = reserved(backend, ask())
    (holder,) = world.cluster.every("pods")

    def disown(found: dict[str, Any]) -> None:
        found["metadata"]["ownerReferences"][0]["uid"] = "of an earlier claim"

    # The garbage collector is slow today.
    world.cluster.edit("pods", holder["metadata"]["name"], disown, "ours")
    assert observed(backend, claim).status is ClaimStatus.ALLOCATED


def test_a_scheduler_may_take_its_time() -> None:
    world = DraWorld({"a": [gpu(0, "GPU-0")]})
    backend = allocator(world)
    plan = planned(backend, ask())
    world.slow = True
    claim = backend.reserve(plan, "op", plan.snapshot_generation)
    assert (claim.status, claim.grant) == (ClaimStatus.PENDING, None)
    assert observed(backend, claim).status is ClaimStatus.PENDING
    world.slow = False
    world.settle()
    carried = backend.reconcile(claim.claim_id, [ask()], claim.desired_generation)
    assert carried.status is ClaimStatus.READY, carried


def test_where_the_scheduler_finds_no_place_all_is_given_back() -> None:
    world = DraWorld({"a": [gpu(0, "GPU-0")]})
    backend = allocator(world)
    plan = planned(backend, ask())

    def taint(node: dict[str, Any]) -> None:
        node["spec"]["taints"] = [{"key": "down", "effect": "NoExecute"}]

    world.cluster.edit("nodes", "a", taint)
    claim = backend.reserve(plan, "op", plan.snapshot_generation)
    assert (claim.status, claim.evidence[0]) == (ClaimStatus.FAILED, EVIDENCE_ABORTED)
    assert "no place" in claim.evidence[1]
    assert world.given() == []
    assert world.cluster.every("pods") == []


def test_an_evicted_holder_is_made_anew_where_its_device_is_still_to_be_had() -> None:
    world = DraWorld({"a": [gpu(0, "GPU-0")]})
    backend = allocator(world)
    claim = reserved(backend, ask())

    def evict() -> None:
        (holder,) = world.cluster.every("pods")
        world.end(holder["metadata"]["name"], "ours")
        assert observed(backend, claim).evidence[0] == EVIDENCE_LOST

    evict()
    again = backend.reconcile(claim.claim_id, [ask()], claim.desired_generation)
    assert again.status is ClaimStatus.READY, again
    evict()
    other = reserved(allocator(world, name="q"), ask(), operation="other")
    assert other.status is ClaimStatus.READY
    again = backend.reconcile(claim.claim_id, [ask()], claim.desired_generation)
    assert (again.status, again.evidence[0]) == (ClaimStatus.FAILED, EVIDENCE_CONFLICT)
    assert [owner for _, _, owner in world.given()] == [other.claim_id]


def test_a_claim_that_a_workload_uses_is_not_taken_from_it() -> None:
    world = DraWorld({"a": [gpu(0, "GPU-0")]})
    backend = allocator(world)
    claim = reserved(backend, ask())
    bound = backend.bindings(claim.claim_id, "w/0")
    spec = {**bound.pod_fragment["spec"], "containers": [{"name": "c", **bound.container_fragment}]}
    assert world.run("worker", "ours", spec)
    done = backend.release(claim.claim_id, "end", claim.desired_generation)
    assert (done.status, done.remaining) == (ReleaseStatus.PENDING_RECOVERY, ("pods ours/worker",))
    assert observed(backend, claim).status is ClaimStatus.READY
    world.end("worker", "ours")
    assert backend.release(claim.claim_id, "end", claim.desired_generation).status is ReleaseStatus.RELEASED
