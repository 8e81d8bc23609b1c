"""The controllers of the fake cluster, stepped by hand: the odd paths of the real ones are there."""

from collections.abc import Mapping
from typing import Any

import pytest

from tests.kubernetes.world import World, managed_labels, rules
from videoflow.testing.kubernetes import (
    Claims,
    ClaimTemplates,
    FakeCluster,
    FakeGpu,
    FakeGpuHost,
    Object,
    Scheduler,
)

H100 = "NVIDIA-H100-80GB-HBM3"
CONFIG, STATE = "nvidia.com/mig.config", "nvidia.com/mig.config.state"
SEVEN = [["1g.10gb"] * 7]


@pytest.fixture
def world() -> World:
    labels = managed_labels("all-disabled")
    host = FakeGpuHost("a", H100, 81559, [FakeGpu()], mig_strategy="mixed", labels=labels)
    made = World(
        [host], {"seven": rules(SEVEN), "seven-too": rules(SEVEN), "beyond": rules([["7g.80gb", "1g.10gb"]])}
    )
    made.held_back = True
    return made


def ask(world: World, entry: str | None) -> None:
    def write(node: Object) -> None:
        labels = node["metadata"]["labels"]
        if entry is None:
            labels.pop(CONFIG)
        else:
            labels[CONFIG] = entry

    world.cluster.edit("nodes", "a", write)


def state(world: World) -> tuple[str, dict[str, str]]:
    node = world.cluster.find("nodes", "a")
    assert node is not None
    gpus = {key: value for key, value in node["status"]["allocatable"].items() if value != "0"}
    return node["metadata"]["labels"].get(STATE, ""), gpus


def test_success_comes_before_the_slices_are_advertised(world: World) -> None:
    ask(world, "seven")
    seen = [state(world)[0]]
    while world.manager.step():
        seen.append(state(world)[0])
    assert seen == ["success", "pending", "success"]
    assert state(world)[1] == {"nvidia.com/gpu": "1"}
    assert world.plugin.step()
    assert state(world)[1] == {"nvidia.com/mig-1g.10gb": "7"}


def test_the_same_layout_under_another_name_is_never_pending_and_cuts_nothing(world: World) -> None:
    ask(world, "seven")
    while world.manager.step():
        pass
    ask(world, "seven-too")
    assert world.manager.step()
    assert state(world)[0] == "success"
    assert world.manager.applied("a") == 1


def test_pending_lasts_as_long_as_a_pod_has_the_card(world: World) -> None:
    assert world.pod("user", "a", "nvidia.com/gpu")
    ask(world, "seven")
    assert world.manager.step()
    assert not world.manager.step()
    assert state(world)[0] == "pending"
    world.end("user")
    assert world.manager.step()
    assert state(world)[0] == "success"


def test_that_the_label_goes_away_triggers_nothing(world: World) -> None:
    ask(world, "seven")
    while world.manager.step():
        pass
    ask(world, None)
    assert not world.manager.step()
    assert world.hosts[0].gpus[0].slices == ["1g.10gb"] * 7


@pytest.mark.parametrize("entry", ["beyond", "unheard-of"])
def test_what_cannot_be_made_fails(world: World, entry: str) -> None:
    ask(world, entry)
    assert world.manager.step()
    assert state(world)[0] == "failed"
    assert world.hosts[0].gpus[0].slices is None


def test_a_pod_is_bound_where_labels_taints_and_devices_let_it() -> None:
    cluster = FakeCluster()
    taint = {"key": "k", "value": "v", "effect": "NoSchedule"}
    for name, spec in (("a", {"taints": [taint]}), ("b", {})):
        cluster.add(
            {
                "kind": "Node",
                "metadata": {"name": name, "labels": {"name": name}},
                "spec": spec,
                "status": {"allocatable": {"nvidia.com/gpu": "1"}},
            }
        )
    scheduler = Scheduler(cluster)

    def bound(name: str, **spec: Any) -> str:
        container = {"name": "c", "image": "x", "resources": {"limits": {"nvidia.com/gpu": "1"}}}
        cluster.add({"kind": "Pod", "metadata": {"name": name}, "spec": {"containers": [container], **spec}})
        scheduler.step()
        return str((cluster.find("pods", name, "default") or {})["spec"].get("nodeName", ""))

    assert bound("picky", nodeSelector={"name": "a"}) == ""
    assert bound("first") == "b"
    assert bound("second") == ""
    assert bound("tolerant", tolerations=[{"key": "k", "value": "v"}]) == "a"


def device(name: str, product: str, root: str) -> Object:
    return {
        "name": name,
        "attributes": {
            "productName": {"string": product},
            "resource.kubernetes.io/pcieRoot": {"string": root},
        },
    }


@pytest.fixture
def dra() -> FakeCluster:
    cluster = FakeCluster()
    driver = "gpu.nvidia.com"
    devices = [device("gpu-0", "H100", "x"), device("gpu-1", "A100", "x"), device("gpu-2", "A100", "y")]
    pool = {"name": "a", "generation": 1, "resourceSliceCount": 1}
    cluster.add(
        {"kind": "Node", "metadata": {"name": "a"}, "spec": {}, "status": {}},
        {
            "kind": "ResourceSlice",
            "metadata": {"name": "s"},
            "spec": {"driver": driver, "nodeName": "a", "pool": pool, "devices": devices},
        },
        {"kind": "DeviceClass", "metadata": {"name": driver}, "spec": {}},
    )
    return cluster


def matches(expression: str, found: Mapping[str, Any]) -> bool:
    return bool(expression == found["attributes"]["productName"]["string"])


def wanted(count: int = 1, product: str = "", **more: Any) -> Object:
    selectors = [{"cel": {"expression": product}}] if product else []
    exactly = {"deviceClassName": "gpu.nvidia.com", "count": count, "selectors": selectors, **more}
    return {"devices": {"requests": [{"name": "gpus", "exactly": exactly}]}}


def results(cluster: FakeCluster, claim: str) -> list[str]:
    status = (cluster.find("resourceclaims", claim, "default") or {}).get("status", {})
    found = status.get("allocation", {}).get("devices", {}).get("results", [])
    return [one["device"] for one in found]


def run(cluster: FakeCluster, pod: str, **claim: str) -> None:
    spec = {"containers": [{"name": "c", "image": "x"}], "resourceClaims": [{"name": "gpus", **claim}]}
    cluster.add({"kind": "Pod", "metadata": {"name": pod}, "spec": spec})
    controllers = (ClaimTemplates(cluster), Scheduler(cluster, matches))
    while sum(controller.step() for controller in controllers):
        pass


def test_claims_of_a_template_are_one_for_each_pod_and_go_with_it(dra: FakeCluster) -> None:
    dra.add({"kind": "ResourceClaimTemplate", "metadata": {"name": "t"}, "spec": {"spec": wanted()}})
    for pod in ("p", "q"):
        run(dra, pod, resourceClaimTemplateName="t")
    assert sorted(results(dra, "p-gpus") + results(dra, "q-gpus")) == ["gpu-0", "gpu-1"]
    dra.store.delete(("pods", "default", "p"))
    assert ClaimTemplates(dra).step()
    # What is given out is let go of before it goes.
    assert results(dra, "p-gpus")
    assert Claims(dra).step()
    assert dra.find("resourceclaims", "p-gpus", "default") is None
    assert results(dra, "q-gpus") == ["gpu-1"]


def test_a_claim_gets_what_matches_together_or_stays_pending(dra: FakeCluster) -> None:
    near = {"matchAttribute": "resource.kubernetes.io/pcieRoot"}
    asks = {
        "a100": wanted(1, "A100"),
        "too-many": wanted(2, "H100"),
        "near": {"devices": {**wanted(2)["devices"], "constraints": [near]}},
    }
    for name, spec in asks.items():
        dra.add({"kind": "ResourceClaim", "metadata": {"name": name}, "spec": spec})
    run(dra, "near", resourceClaimName="near")
    assert results(dra, "near") == ["gpu-0", "gpu-1"]
    run(dra, "a100", resourceClaimName="a100")
    assert results(dra, "a100") == ["gpu-2"]
    run(dra, "too-many", resourceClaimName="too-many")
    assert results(dra, "too-many") == []


def test_a_list_of_choices_is_tried_in_its_order(dra: FakeCluster) -> None:
    second = {"name": "else", "deviceClassName": "gpu.nvidia.com", "count": 2}
    first = {**second, "name": "best", "selectors": [{"cel": {"expression": "H100"}}]}
    spec = {"devices": {"requests": [{"name": "gpus", "firstAvailable": [first, second]}]}}
    dra.add({"kind": "ResourceClaim", "metadata": {"name": "c"}, "spec": spec})
    run(dra, "p", resourceClaimName="c")
    found = dra.find("resourceclaims", "c", "default")
    assert found is not None
    assert {one["request"] for one in found["status"]["allocation"]["devices"]["results"]} == {"gpus/else"}
