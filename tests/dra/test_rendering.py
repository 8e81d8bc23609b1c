"""Claims of every kind of request: valid for every server, and chosen by their selectors as meant."""

import json
from collections.abc import Iterator, Mapping

import pytest
from kubernetes_validate import ValidationError

from tests.dra.kinds import ALL_ON, GIB, GROUPED, KINDS, OLD, PIECE, SHARE, SHARES, ask, rule
from tests.dra.slices import A100, DRIVER, H100, Device, device_classes, gpu, mig, resource_slice, shared
from tests.kubernetes.schemas import VERSIONS, check
from videoflow.backends.allocation import (
    Feature,
    Infeasible,
    Provenance,
    WorkloadRequest,
)
from videoflow.deploy.allocation_dra import (
    DISTINCT,
    PCIE_ROOT,
    SAME,
    DraSettings,
    Rendering,
    gate_matrix,
    render,
)
from videoflow.testing.kubernetes import FakeCluster, Scheduler
from videoflow.testing.kubernetes.expressions import Expressions


def rendered(request: WorkloadRequest, environment: Mapping[str, str]) -> Rendering:
    found = render([request], DraSettings(), environment)
    assert isinstance(found, Rendering), found
    return found


def expressions_in(value: object) -> Iterator[str]:
    if isinstance(value, dict):
        if "expression" in value:
            yield value["expression"]
        for inner in value.values():
            yield from expressions_in(inner)
    elif isinstance(value, list | tuple):
        for inner in value:
            yield from expressions_in(inner)


@pytest.mark.parametrize("kind", KINDS)
def test_a_claim_is_valid_for_every_server_and_its_selectors_are_conditions(kind: str) -> None:
    request, environment = KINDS[kind]
    found = rendered(request, environment)
    (manifest,) = found.manifests()
    bound = found.bindings["w/0"]
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "p", **bound.pod_fragment["metadata"]},
        "spec": {**bound.pod_fragment["spec"], "containers": [{"name": "c", **bound.container_fragment}]},
    }
    check(manifest)
    check(pod)
    judge = Expressions(consumable="allowMultipleAllocations" in json.dumps(manifest))
    whole, part = gpu(0, "GPU-1"), mig(0, "GPU-1", "1g.10gb", 0, uuid="MIG-1")
    bare: Device = {"name": "bare", "attributes": {}, "capacity": {}}
    for expression in expressions_in(manifest):
        for device in (whole, part, shared(whole), bare):
            # Guarded: whatever a device publishes, the answer is yes or no.
            assert judge.matches(expression, {**device, "driver": DRIVER}) in (True, False)


def test_the_versions_are_those_of_the_schemas() -> None:
    assert gate_matrix().versions == VERSIONS
    (manifest,) = rendered(*KINDS["one whole card"]).manifests()
    wrong = json.loads(json.dumps(manifest).replace("deviceClassName", "deviceClass"))
    with pytest.raises(ValidationError):
        check(wrong)


def allocated(request: WorkloadRequest, environment: Mapping[str, str], devices: list[Device]) -> list[str]:
    """What a scheduler gives the pod of a request on one host: names of devices; none: it waits."""
    found, cluster = rendered(request, environment), FakeCluster()
    (manifest,) = found.manifests()
    spec = manifest["spec"].get("spec", manifest["spec"])
    cluster.add(
        *device_classes(),
        {"kind": "Node", "metadata": {"name": "a"}, "spec": {}},
        resource_slice("a", devices),
        {"kind": "ResourceClaim", "metadata": {"name": "c", "namespace": "vf"}, "spec": spec},
        {
            "kind": "Pod",
            "metadata": {"name": "p", "namespace": "vf"},
            "spec": {"containers": [], "resourceClaims": [{"name": "x", "resourceClaimName": "c"}]},
        },
    )
    consumable = environment["kubernetes"] in ("1.36", "1.37")
    Scheduler(cluster, Expressions(consumable=consumable).matches).step()
    claim = cluster.find("resourceclaims", "c", "vf")
    results = (claim or {}).get("status", {}).get("allocation", {}).get("devices", {}).get("results", [])
    return [result["device"] for result in results]


CARDS = [gpu(0, "GPU-0", A100), gpu(1, "GPU-1", root="pci0000:80"), gpu(2, "GPU-2", root="pci0000:80")]
SLICES = [
    mig(3, "GPU-3", "7g.80gb", 0, uuid="MIG-7"),
    mig(4, "GPU-4", "1g.10gb", 0, uuid="MIG-1"),
    mig(4, "GPU-4", "2g.20gb", 2, uuid="MIG-2"),
]
NAMES = {"MIG-7": "gpu-3-mig-7g80gb-0-0", "MIG-1": "gpu-4-mig-1g10gb-19-0", "MIG-2": "gpu-4-mig-2g20gb-14-2"}


@pytest.mark.parametrize(
    ("request_", "expected"),
    [
        (ask(), ["gpu-0"]),
        (ask(minimum_usable_memory_bytes=41 * GIB), ["gpu-1"]),
        (ask(constraints=(rule("product", "In", H100),)), ["gpu-1"]),
        (ask(constraints=(rule("product", "NotIn", A100),)), ["gpu-1"]),
        (ask(constraints=(rule("cuda_compute_capability", "Gt", "8.9"),)), ["gpu-1"]),
        (ask(constraints=(rule("memory_bytes", "Lt", str(41 * GIB)),)), ["gpu-0"]),
        (ask(constraints=(rule("product", "In", H100, hard=False),)), ["gpu-1"]),
        (ask(constraints=(rule("product", "In", "NVIDIA T4", hard=False),)), ["gpu-0"]),
        (ask(device_count=2, constraints=(rule(PCIE_ROOT, SAME),)), ["gpu-1", "gpu-2"]),
        (ask(device_count=3, constraints=(rule(PCIE_ROOT, SAME),)), []),
        (ask(device_count=3), ["gpu-0", "gpu-1", "gpu-2"]),
        # A label is no size: 9.75 GiB are not ten, and the narrowest slice that has ten is taken.
        (ask(**PIECE, minimum_usable_memory_bytes=10 * GIB), [NAMES["MIG-2"]]),
        (ask(**PIECE, minimum_usable_memory_bytes=9 * GIB), [NAMES["MIG-1"]]),
        (ask(**PIECE, minimum_usable_memory_bytes=40 * GIB), [NAMES["MIG-7"]]),
        (ask(**PIECE, constraints=(rule("profile", "In", "2g.20gb"),)), [NAMES["MIG-2"]]),
        (ask(**PIECE, constraints=(rule("profile", "In", "3g.40gb"),)), []),
    ],
)
def test_the_scheduler_chooses_as_meant(request_: WorkloadRequest, expected: list[str]) -> None:
    assert allocated(request_, OLD, CARDS + SLICES) == expected


def test_a_card_of_its_own_is_never_one_that_is_given_out_several_times() -> None:
    assert allocated(ask(), ALL_ON, [shared(CARDS[0]), CARDS[1]]) == ["gpu-1"]
    assert allocated(ask(**SHARE), ALL_ON, [CARDS[0], shared(CARDS[1])]) == ["gpu-1"]
    assert allocated(ask(device_count=2, constraints=(rule(PCIE_ROOT, DISTINCT),)), ALL_ON, CARDS) == [
        "gpu-0",
        "gpu-1",
    ]


def test_each_replica_has_its_template_and_a_declared_group_one_claim() -> None:
    own = render([ask(f"w/{n}") for n in range(3)], DraSettings(), OLD)
    assert isinstance(own, Rendering)
    assert [one["kind"] for one in own.manifests()] == ["ResourceClaimTemplate"] * 3
    group = render([ask(f"w/{n}", **SHARE, constraints=GROUPED) for n in range(3)], DraSettings(), SHARES)
    assert isinstance(group, Rendering)
    (claim,) = group.manifests()
    assert claim["kind"] == "ResourceClaim"
    entries = [bound.pod_fragment["spec"]["resourceClaims"][0] for bound in group.bindings.values()]
    assert {entry["resourceClaimName"] for entry in entries} == {claim["metadata"]["name"]}
    (config,) = claim["spec"]["devices"]["config"]
    assert config["opaque"]["parameters"]["sharing"]["strategy"] == "TimeSlicing"


@pytest.mark.parametrize(
    ("request_", "environment", "named"),
    [
        (ask(**SHARE), OLD, "cooperative sharing"),
        (ask(**SHARE), SHARES, "ConsumableShares"),
        (
            ask(**SHARE, constraints=GROUPED),
            ALL_ON | {"driver-gates": "ConsumableShares"},
            "TimeSlicingSettings",
        ),
        (ask(features=(Feature.DYNAMIC_MIG,)), OLD | {"driver-gates": "DynamicMIG"}, "dynamic-mig"),
        (ask(features=(Feature.CONSUMABLE_CAPACITY,)), SHARES, "consumable-capacity"),
        (ask(features=(Feature.MPS, Feature.DYNAMIC_MIG)), SHARES, "mps and dynamic-mig"),
        (ask(features=(Feature.PEER_ACCESS,)), ALL_ON, "peer access"),
        (ask(constraints=(rule("moon.phase", "In", "full"),)), OLD, "moon.phase"),
        (ask(constraints=(rule("product", "Resembles", H100),)), OLD, "Resembles"),
        (ask(device_count=2, constraints=(rule(PCIE_ROOT, DISTINCT),)), OLD, "DRAConsumableCapacity"),
        (ask(hard_memory_limit_bytes=GIB), ALL_ON, "hard_memory_limit_bytes"),
        (ask(constraints=GROUPED), SHARES, "readers"),
        (ask(device_count=0), OLD, "0 devices"),
    ],
)
def test_what_is_not_there_is_refused_by_name(
    request_: WorkloadRequest, environment: Mapping[str, str], named: str
) -> None:
    found = render([request_], DraSettings(), environment)
    assert isinstance(found, Infeasible)
    assert any(named in reason and "w/0" in reason for reason in found.reasons), found.reasons


def test_what_cannot_be_told_and_what_nobody_gave_is_noted() -> None:
    soft = ask(
        constraints=(rule("moon.phase", "In", "full", hard=False), rule(PCIE_ROOT, SAME, hard=False)),
        provenance={"device_count": Provenance.DEFAULT},
    )
    notes = "\n".join(rendered(soft, OLD).notes)
    assert "moon.phase" in notes
    assert PCIE_ROOT in notes
    assert "device_count 1 is a default" in notes
