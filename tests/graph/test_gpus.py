"""What nodes may ask of accelerators, how it is refused, and what it becomes for the allocator."""

from dataclasses import replace
from typing import Any

import pytest

import videoflow as vf
from tests.engines.gpu_flows import Numbers, Seer
from tests.planner.building import local_facts
from videoflow.backends.allocation import Constraint, Provenance, Sharing, WorkloadRequest
from videoflow.deploy.allocation_local import Policy, capabilities_of
from videoflow.graph import parse_condition
from videoflow.graph.spec import FlowSpec
from videoflow.nodes import Collect
from videoflow.planner import accelerator_requests, plan_flow

GIB = 1 << 30


def flow(*resources: vf.Resources, **options: Any) -> vf.Flow:
    """A chain of nodes that ask for these."""
    last: vf.Node = Numbers(1, name="numbers")
    for number, asked in enumerate(resources):
        last = Seer(name=f"seer-{number}", resources=asked, **options)(last)
    return vf.Flow([Collect(name="out")(last)], name="gpus")


@pytest.mark.parametrize(
    ("resources", "said"),
    [
        (vf.Resources(gpu_memory_bytes=GIB), "asks for none"),
        (vf.Resources(gpu=vf.Gpu()), "asks for none"),
        (vf.Resources(gpus=1, gpu_memory_bytes=0), "gpu_memory_bytes is 0"),
        (vf.Resources(gpus=1, gpu=vf.Gpu(peak_memory_bytes=-1)), "peak_memory_bytes is -1"),
        (vf.Resources(gpus=1, gpu=vf.Gpu(sharing="alone")), "gpu.sharing is 'alone'"),
        (vf.Resources(gpus=1, gpu=vf.Gpu(sharing="cooperative")), "does not say how much"),
        (vf.Resources(gpus=1, gpu=vf.Gpu(features=("nvlink",))), "'nvlink'"),
        (vf.Resources(gpus=1, gpu=vf.Gpu(constraints=("memory_bytes>=40 GiB",))), "'memory_bytes>=40 GiB'"),
    ],
)
def test_what_makes_no_sense_is_refused_by_the_node(resources: vf.Resources, said: str) -> None:
    with pytest.raises(vf.FlowInvalid) as refused:
        flow(resources).compile()
    assert [problem.node for problem in refused.value.problems] == ["seer-0"]
    assert said in str(refused.value)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("product=NVIDIA L4, NVIDIA L40S", ("product", "In", ("NVIDIA L4", "NVIDIA L40S"), True)),
        ("product != Tesla T4", ("product", "NotIn", ("Tesla T4",), True)),
        ("prefer compute_capability>=90", ("compute_capability", "Ge", ("90",), False)),
        ("memory_bytes<100", ("memory_bytes", "Lt", ("100",), True)),
        ("mig_profile", ("mig_profile", "Exists", (), True)),
        ("prefer !mig_profile", ("mig_profile", "DoesNotExist", (), False)),
        ("", None),
        ("product=", None),
        ("product=a,", None),
        ("!product=a", None),
        ("Product=a", None),
        ("memory_bytes>much", None),
    ],
)
def test_a_condition_is_read_as_it_is_written_or_not_at_all(text: str, found: object) -> None:
    assert parse_condition(text) == found


def test_a_spec_keeps_what_was_asked() -> None:
    gpu = vf.Gpu("cooperative", 2 * GIB, ("peer-access",), ("product=NVIDIA L4",))
    spec = flow(vf.Resources(gpus=2, gpu=gpu)).compile()
    assert FlowSpec.from_json(spec.to_json()) == spec
    asked = spec.node("seer-0").options.resources.gpu
    assert asked is not None
    assert (asked.sharing, asked.peak_memory_bytes) == ("cooperative", 2 * GIB)


def requests(made: vf.Flow, unsaid: Sharing = Sharing.EXCLUSIVE) -> tuple[WorkloadRequest, ...]:
    """What the allocator is asked for."""
    facts = replace(local_facts(), allocation=capabilities_of(Policy.STRICT))
    return accelerator_requests(plan_flow(made.compile(), facts), "run", unsaid)


def test_each_replica_asks_with_its_own_name_and_defaults_are_marked() -> None:
    first, second = requests(flow(vf.Resources(gpus=2, gpu_memory_bytes=GIB), replicas=2, ordered=False))
    assert (first.workload_id, second.workload_id) == ("seer-0/0", "seer-0/1")
    assert (first.run_id, first.device_count, first.minimum_usable_memory_bytes) == ("run", 2, GIB)
    assert (first.sharing, first.provenance["sharing"]) == (Sharing.EXCLUSIVE, Provenance.DEFAULT)
    assert requests(flow(vf.Resources(gpus=1)), Sharing.ACCOUNTING_ONLY)[0].sharing is Sharing.ACCOUNTING_ONLY


def test_nodes_of_one_task_ask_together_and_must_agree() -> None:
    def sharer(gib: int) -> vf.Resources:
        gpu = vf.Gpu("cooperative", gib * GIB, constraints=("prefer compute_capability>=90",))
        return vf.Resources(gpus=1, gpu_memory_bytes=gib * GIB, gpu=gpu)

    (together,) = requests(flow(sharer(2), vf.Resources(), sharer(3), fuse="one"))
    assert (together.device_count, together.declared_peak_memory_bytes) == (1, 5 * GIB)
    assert together.minimum_usable_memory_bytes == 5 * GIB
    assert together.constraints == (Constraint("compute_capability", "Ge", ("90",), hard=False),)
    alone = vf.Resources(gpus=1, gpu=vf.Gpu("exclusive"))
    with pytest.raises(vf.FlowInvalid, match="one task"):
        requests(flow(sharer(1), alone, fuse="one"))


def test_what_an_engine_has_no_allocator_for_is_refused_by_name() -> None:
    with pytest.raises(vf.IncompatibleProfile, match="an allocator of accelerators"):
        plan_flow(flow(vf.Resources(gpus=1)).compile(), local_facts())
    gated = vf.Resources(gpus=1, gpu=vf.Gpu(features=("mps",)))
    with pytest.raises(vf.IncompatibleProfile, match="the gated feature mps"):
        requests(flow(gated))
