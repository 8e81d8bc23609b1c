"""What the allocation contract promises before any implementation: refusals by name, plain grants."""

import json
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from videoflow.backends import allocation
from videoflow.backends.allocation import (
    EXCLUSIVE_FEATURE_PAIRS,
    GATED_FEATURES,
    DeliveredGrant,
    DeviceIdentity,
    Elasticity,
    Feature,
    Sharing,
    WorkloadRequest,
    allocation_rejections,
)
from videoflow.backends.capabilities import AllocationCapabilities, Enforcement

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
