"""What the allocation contract promises before any implementation: refusals by name, plain grants."""

import dataclasses
import inspect
import json
from typing import Any, get_type_hints

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from videoflow.backends import allocation
from videoflow.backends.allocation import (
    EXCLUSIVE_FEATURE_PAIRS,
    GATED_FEATURES,
    MATRIX_VERSION,
    AcceleratorAllocationBackend,
    DeliveredGrant,
    DeviceIdentity,
    Elasticity,
    Feature,
    Sharing,
    WorkloadRequest,
    allocation_rejections,
    device_key,
    memory_key,
)
from videoflow.backends.capabilities import AllocationCapabilities, Enforcement
from videoflow.errors import ContractBroken

EVERYTHING = AllocationCapabilities(
    adapter="all",
    authority="nobody",
    exclusive_device=True,
    isolated_mig=True,
    cooperative_sharing=True,
    memory_enforcement=Enforcement.HARDWARE,
    multi_device=True,
    topology_verification=True,
    elastic=True,
    admission_boundary="host",
    version_matrix=tuple((feature.value, "1.0") for feature in GATED_FEATURES),
)


def request(**more: Any) -> WorkloadRequest:
    return WorkloadRequest("flow", "run", "detect/0", **more)


CASES = [
    (request(), {"exclusive_device": False}, "a device of its own"),
    (request(sharing=Sharing.ISOLATED_MIG), {"isolated_mig": False}, "an isolated MIG slice"),
    (request(sharing=Sharing.COOPERATIVE), {"cooperative_sharing": False}, "cooperative sharing"),
    (
        request(sharing=Sharing.ACCOUNTING_ONLY),
        {"memory_enforcement": Enforcement.NONE},
        "memory accounting",
    ),
    (request(device_count=3), {"multi_device": False}, "3 devices"),
    (request(elasticity=Elasticity.ELASTIC), {"elastic": False}, "may change"),
    (request(features=(Feature.PEER_ACCESS,)), {"topology_verification": False}, "peer access"),
    (request(features=(Feature.MPS,)), {"version_matrix": (("dynamic-mig", "1.36"),)}, "dynamic-mig 1.36"),
]


@pytest.mark.parametrize(("asked", "lack", "named"), CASES, ids=[str(n) for n in range(len(CASES))])
def test_each_lack_is_one_reason_that_names_workload_need_and_authority(
    asked: WorkloadRequest, lack: dict[str, object], named: str
) -> None:
    assert allocation_rejections([asked], EVERYTHING) == []
    (reason,) = allocation_rejections([asked], msgspec.structs.replace(EVERYTHING, **lack))
    assert reason.startswith("detect/0 needs ")
    assert "all (authority nobody)" in reason
    assert named in reason


@pytest.mark.parametrize("pair", EXCLUSIVE_FEATURE_PAIRS, ids=["mig", "capacity"])
def test_features_that_exclude_each_other_are_refused_even_when_both_are_listed(
    pair: tuple[Feature, Feature],
) -> None:
    (reason,) = allocation_rejections([request(features=pair)], EVERYTHING)
    assert all(feature in reason for feature in pair)


def test_every_request_is_judged() -> None:
    nothing = msgspec.structs.replace(EVERYTHING, multi_device=False, elastic=False)
    asked = [request(device_count=2, elasticity=Elasticity.ELASTIC), request(device_count=4)]
    assert len(allocation_rejections(asked, nothing)) == 3


names = st.none() | st.text(max_size=5)
devices = st.builds(
    DeviceIdentity,
    node=st.text(max_size=5),
    ordinal=st.none() | st.integers(0, 7),
    uuid=names,
    mig_uuid=names,
    product=st.text(max_size=5),
    memory_bytes=st.none() | st.integers(0, 2**40),
    mig_profile=names,
)


@settings(max_examples=30)
@given(
    st.builds(
        DeliveredGrant,
        workload_id=st.text(max_size=5),
        devices=st.lists(devices, max_size=3).map(tuple),
        exclusive=st.booleans(),
        requested=st.integers(0, 8),
        policy=st.text(max_size=5),
        host=st.sampled_from(["observed", "unobserved"]),
    )
)
def test_a_grant_survives_json(grant: DeliveredGrant) -> None:
    assert DeliveredGrant.from_dict(json.loads(json.dumps(grant.to_dict()))) == grant


@pytest.mark.parametrize(
    ("prefix", "members"),
    [
        ("SHARING_", allocation.Sharing),
        ("CLAIM_", allocation.ClaimStatus),
        ("RELEASE_", allocation.ReleaseStatus),
        ("FEATURE_", allocation.Feature),
    ],
    ids=["sharing", "claim", "release", "feature"],
)
def test_each_member_has_its_constant(prefix: str, members: type[Sharing]) -> None:
    for member in members:
        assert getattr(allocation, prefix + member.name) is member


FIELDS = {
    "DeviceIdentity": "node ordinal uuid mig_uuid product memory_bytes mig_profile",
    "InventorySnapshot": "devices occupancy sharing owners completeness observed_at generation",
    "Constraint": "key operator values hard",
    "WorkloadRequest": "flow_id run_id workload_id device_count sharing minimum_usable_memory_bytes"
    " reserved_memory_bytes hard_memory_limit_bytes declared_peak_memory_bytes features constraints"
    " elasticity host_cpu host_memory provenance",
    "FeasiblePlan": "assignments geometry snapshot_generation plan_id notes",
    "Infeasible": "reasons",
    "ClaimObservation": "claim_id owner desired_generation observed_generation status grant evidence",
    "WorkloadBindings": "env pod_fragment container_fragment claim_manifests node_constraints",
    "ReleaseObservation": "claim_id status remaining reason",
    "DeliveredGrant": "workload_id devices exclusive requested policy host",
}


@pytest.mark.parametrize("name", FIELDS)
def test_the_fields_of_a_type_are_fixed_and_nobody_can_set_them(name: str) -> None:
    found = getattr(allocation, name)
    assert [field.name for field in dataclasses.fields(found)] == FIELDS[name].split()
    assert found.__dataclass_params__.frozen


OPERATIONS = {
    "capabilities": "environment",
    "inventory": "scope",
    "plan": "requests snapshot",
    "reserve": "plan operation_id expected_generation",
    "bindings": "claim_id workload_id",
    "observe": "claim_id",
    "reconcile": "claim_id desired expected_generation",
    "release": "claim_id operation_id expected_generation keep_workloads",
}


def test_the_operations_are_fixed_and_none_has_a_body_to_fall_back_on() -> None:
    assert AcceleratorAllocationBackend.__abstractmethods__ == frozenset(OPERATIONS)
    for name, arguments in OPERATIONS.items():
        operation = getattr(AcceleratorAllocationBackend, name)
        assert list(inspect.signature(operation).parameters)[1:] == arguments.split()
        assert "return" in get_type_hints(operation)


def test_a_gated_feature_names_the_matrix_that_lacks_it_and_what_that_has() -> None:
    matrix = ((MATRIX_VERSION, "2026-10"), ("dynamic-mig", "0.9"))
    found = msgspec.structs.replace(EVERYTHING, version_matrix=matrix)
    (reason,) = allocation_rejections([request(features=(Feature.CONSUMABLE_CAPACITY,))], found)
    assert "consumable-capacity" in reason
    assert "version matrix 2026-10, available: dynamic-mig 0.9" in reason
    assert allocation_rejections([request(features=(Feature.DYNAMIC_MIG,))], found) == []


WHOLE = DeviceIdentity("a", 0, "GPU-1", None, "NVIDIA A100", 1)


def test_the_key_of_a_device_is_its_narrowest_id_and_a_slice_is_never_taken_for_its_card() -> None:
    replace = dataclasses.replace
    keys = [
        device_key(replace(WHOLE, mig_uuid="MIG-1", mig_profile="1g.5gb")),
        device_key(WHOLE),
        device_key(replace(WHOLE, uuid=None)),
    ]
    assert keys == ["MIG-1", "GPU-1", "a#0"]
    assert memory_key(WHOLE) not in keys
    for nameless in (replace(WHOLE, uuid=None, ordinal=None), replace(WHOLE, mig_profile="1g.5gb")):
        with pytest.raises(ContractBroken, match="no id"):
            device_key(nameless)


@pytest.mark.parametrize(
    "wrong", [{"host": "guessed"}, {"devices": [{"node": "a"}]}, {"devices": None}, {"more": 1}]
)
def test_a_grant_that_says_what_no_grant_says_is_refused(wrong: dict[str, Any]) -> None:
    good = DeliveredGrant("detect/0", (WHOLE,), True, 1, "strict").to_dict()
    with pytest.raises(ContractBroken, match="cannot be read"):
        DeliveredGrant.from_dict(good | wrong)
