"""What the allocator of one host decides beyond the laws of its contract: masks, sharers, links, holders."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from tests.deploy.readings import GIB, HOST, Machine, asks, cut, gpu, used
from videoflow.adapters.nvml import IDLE_BYTES, DeviceReading
from videoflow.backends.allocation import (
    EVIDENCE_LOST,
    ClaimObservation,
    ClaimStatus,
    FeasiblePlan,
    Feature,
    Infeasible,
    InventorySnapshot,
    Sharing,
    WorkloadRequest,
    device_key,
)
from videoflow.backends.outcomes import Known, Unknown
from videoflow.deploy.allocation_local import LocalAllocation, Policy, capabilities_of
from videoflow.placement import Link

STRANGER = 1


@pytest.fixture
def machine(tmp_path: Path) -> Iterator[Machine]:
    made = Machine(tmp_path, gpu(0), gpu(1))
    yield made
    made.close()


def seen(allocator: LocalAllocation) -> InventorySnapshot:
    """What is there now."""
    found = allocator.inventory("")
    assert isinstance(found, Known), found
    return found.value


def keys(allocator: LocalAllocation, *requests: WorkloadRequest) -> dict[str, list[str]]:
    """Workload → the devices that a plan made now gives to it."""
    plan = allocator.plan(requests, seen(allocator))
    assert isinstance(plan, FeasiblePlan), plan
    return {name: [device_key(device) for device in devices] for name, devices in plan.assignments.items()}


def why_not(allocator: LocalAllocation, *requests: WorkloadRequest) -> str:
    """The reasons of a plan that cannot be made now."""
    plan = allocator.plan(requests, seen(allocator))
    assert isinstance(plan, Infeasible), plan
    return "\n".join(plan.reasons)


def claimed(allocator: LocalAllocation, *requests: WorkloadRequest, operation: str) -> ClaimObservation:
    plan = allocator.plan(requests, seen(allocator))
    assert isinstance(plan, FeasiblePlan), plan
    claim = allocator.reserve(plan, operation, plan.snapshot_generation)
    assert claim.status is ClaimStatus.READY, claim
    return claim


def test_a_mig_slice_is_used_only_where_the_mask_names_it(machine: Machine) -> None:
    machine.devices = cut(gpu(0), ("1g.10gb", 9 * GIB), ("2g.20gb", 19 * GIB))
    piece = asks("w/0", Sharing.ISOLATED_MIG)
    assert "MIG mode is on" in why_not(machine.allocator(), piece)
    assert keys(machine.allocator(mask="MIG-0-1"), piece) == {"w/0": ["MIG-0-1"]}
    assert "refused" in why_not(machine.allocator(mask="MIG-0-1"), piece, asks("w/1", Sharing.ISOLATED_MIG))
    both = machine.allocator(mask="MIG-0-0,MIG-0-1")
    assert keys(both, replace(piece, minimum_usable_memory_bytes=10 * GIB)) == {"w/0": ["MIG-0-1"]}
    assert "one MIG slice to a process" in why_not(both, replace(piece, device_count=2))
    assert "mig" in why_not(both, asks("w/0"))


def test_nothing_beyond_the_inherited_mask_is_given_or_counted(machine: Machine) -> None:
    masked = machine.allocator(mask="GPU-1")
    assert keys(masked, asks("w/0")) == {"w/0": ["GPU-1"]}
    assert "needs 2 devices" in why_not(masked, asks("w/0", device_count=2))
    machine.devices[0] = replace(machine.devices[0], users=None, problems=("GPU-0: lost",))
    assert keys(masked, asks("w/0")) == {"w/0": ["GPU-1"]}
    assert "partial" in why_not(machine.allocator(), asks("w/0"))
    assert "names no device" in why_not(machine.allocator(mask="GPU-7,GPU-1"), asks("w/0"))


def test_ordinals_of_gpus_that_differ_are_unknown_until_the_order_is_said(machine: Machine) -> None:
    machine.devices[1] = gpu(1, product="A100")
    unsure = machine.allocator(mask="0").inventory("")
    assert isinstance(unsure, Unknown)
    assert "CUDA_DEVICE_ORDER" in unsure.detail
    assert keys(machine.allocator(mask="0", order="PCI_BUS_ID"), asks("w/0")) == {"w/0": ["GPU-0"]}
    machine.devices[1] = gpu(1)
    assert keys(machine.allocator(mask="1"), asks("w/0")) == {"w/0": ["GPU-1"]}


@pytest.mark.parametrize(
    "busy",
    [used(gpu(0), 3 * GIB, STRANGER), replace(gpu(0), used_bytes=IDLE_BYTES + 1)],
    ids=["by a process", "by nobody whom the driver names"],
)
def test_what_others_use_is_nobodys_own(machine: Machine, busy: DeviceReading) -> None:
    machine.devices[0] = busy
    assert keys(machine.allocator(), asks("w/0")) == {"w/0": ["GPU-1"]}
    assert "GPU-0 is used by 1 process of others" in why_not(machine.allocator(), asks("w/0", device_count=2))


def test_sharers_are_admitted_by_their_peaks_less_headroom_and_foreign_use(machine: Machine) -> None:
    machine.devices = [used(gpu(0), 10 * GIB, STRANGER)]
    sharer = asks("w/0", Sharing.COOPERATIVE, declared_peak_memory_bytes=40 * GIB)
    claimed(machine.allocator(), sharer, operation="first")
    second = machine.allocator(1_000_002)
    fits = replace(sharer, workload_id="w/1", declared_peak_memory_bytes=29 * GIB)
    assert "room" in why_not(second, replace(fits, declared_peak_memory_bytes=29 * GIB + 1))
    assert keys(second, fits) == {"w/1": ["GPU-0"]}
    assert "room" in why_not(machine.allocator(headroom_bytes=2 * GIB), fits)
    assert "declares none" in why_not(second, replace(fits, declared_peak_memory_bytes=None))
    claimed(second, fits, operation="second")
    assert "refused" in why_not(second, replace(fits, workload_id="w/2", declared_peak_memory_bytes=1))


def test_the_shared_policy_wraps_around_says_so_and_is_never_exclusive(machine: Machine) -> None:
    allocator = machine.allocator(policy=Policy.SHARED)
    wanted = [asks(f"w/{n}", Sharing.ACCOUNTING_ONLY) for n in range(3)]
    assert sorted(key for found in keys(allocator, *wanted).values() for key in found) == [
        "GPU-0",
        "GPU-0",
        "GPU-1",
    ]
    claim = claimed(allocator, *wanted, operation="all")
    assert claim.grant is not None
    assert not claim.grant.exclusive
    plan = allocator.plan(wanted, seen(allocator))
    assert isinstance(plan, FeasiblePlan)
    assert any("no device is anybody's own" in note for note in plan.notes)
    assert any("is shared by" in note for note in plan.notes)
    assert "a device of its own" in why_not(allocator, asks("w/9"))
    assert not capabilities_of(Policy.SHARED).exclusive_device


def test_of_several_devices_those_with_the_best_worst_link_are_taken(tmp_path: Path) -> None:
    near = (Link("GPU-1", "GPU-3", 1, peer=True), Link("GPU-0", "GPU-1", 30), Link("GPU-2", "GPU-3", 30))
    machine = Machine(tmp_path, *map(gpu, range(4)), links=near)
    pair = asks("w/0", device_count=2)
    assert sorted(keys(machine.allocator(), pair)["w/0"]) == ["GPU-1", "GPU-3"]
    peers = replace(pair, features=(Feature.PEER_ACCESS,))
    assert sorted(keys(machine.allocator(), peers)["w/0"]) == ["GPU-1", "GPU-3"]
    machine.links = near[1:]
    assert "peer" in why_not(machine.allocator(), peers)
    machine.close()


def test_what_a_dead_holder_held_comes_back_and_an_unseen_one_keeps_it(machine: Machine) -> None:
    first, second = machine.allocator(1_000_001), machine.allocator(1_000_002)
    claim = claimed(first, asks("w/0", device_count=2), operation="first")
    assert "w/0 of run run" in why_not(second, asks("w/1"))
    machine.dead.add(1_000_001)
    lost = second.observe(claim.claim_id)
    assert isinstance(lost, Known)
    assert (lost.value.status, lost.value.evidence[0]) == (ClaimStatus.FAILED, EVIDENCE_LOST)
    claimed(second, asks("w/1", device_count=2), operation="second")
    found = second.claims("")
    assert isinstance(found, Known)
    assert [one.status for one in found.value] == [ClaimStatus.READY]


def test_two_users_have_ledgers_apart_and_see_each_other_as_processes(
    machine: Machine, tmp_path: Path
) -> None:
    claimed(machine.allocator(), asks("w/0"), operation="mine")
    (tmp_path / "theirs").mkdir()
    other = Machine(tmp_path / "theirs", *machine.devices)
    assert keys(other.allocator(), asks("w/0")) == {"w/0": ["GPU-0"]}
    other.devices[0] = used(gpu(0), GIB, STRANGER)
    assert keys(other.allocator(), asks("w/0")) == {"w/0": ["GPU-1"]}
    other.close()


def test_the_host_and_every_reason_are_named(machine: Machine) -> None:
    said = why_not(machine.allocator(), asks("w/0", minimum_usable_memory_bytes=81 * GIB))
    assert f"{HOST}: memory: needs 81.00 GiB, free 80.00 GiB" in said
    said = why_not(machine.allocator(), asks("w/0", hard_memory_limit_bytes=GIB))
    assert "nobody here stops it" in said
