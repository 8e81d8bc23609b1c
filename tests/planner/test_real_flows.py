"""Plans of compiled flows: the examples, over both engines."""

from pathlib import Path

import pytest

import videoflow as vf
from tests.planner.building import MIB, local_facts, threads_facts
from videoflow.graph import load_flow_file
from videoflow.graph.spec import FlowSpec
from videoflow.planner import plan_flow
from videoflow.planner.plan import CommitOrder, InputMode, Plan, Transport

EXAMPLES = sorted((Path(__file__).parents[2] / "examples").glob("*/flow.py"))


def spec_of(path: Path) -> FlowSpec:
    flow = load_flow_file(path).build_flow()
    assert isinstance(flow, vf.Flow)
    return flow.compile()


def people() -> Plan:
    [path] = [path for path in EXAMPLES if path.parent.name.endswith("people-counting")]
    return plan_flow(spec_of(path), local_facts(budget=500 * MIB))


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.parent.name)
def test_every_example_fits_half_a_gigabyte_on_both_engines(path: Path) -> None:
    spec = spec_of(path)
    threads = plan_flow(spec, threads_facts(budget=500 * MIB))
    local = plan_flow(spec, local_facts(budget=500 * MIB))
    assert [task.nodes for task in threads.tasks] == [task.nodes for task in local.tasks]
    assert {edge.transport for edge in threads.edges} <= {Transport.MEMORY, Transport.FUSED}
    assert {edge.transport for edge in local.edges} <= {Transport.SHM, Transport.FUSED}
    assert [task.inputs for task in threads.tasks] == [task.inputs for task in local.tasks]
    apart = plan_flow(spec, threads_facts(budget=500 * MIB, fuse=False))
    assert len(apart.tasks) == len(spec.nodes)


def test_people_counting_is_cut_as_its_author_wrote_it() -> None:
    plan = people()
    assert [(task.name, task.replicas, task.mode) for task in plan.tasks] == [
        ("camera", 1, InputMode.SOURCE),
        ("detect", 2, InputMode.COMPETING),
        ("track", 1, InputMode.ORDERED),
        ("draw", 1, InputMode.JOIN),
        ("video", 1, InputMode.ORDERED),
        ("log", 1, InputMode.ORDERED),
    ]
    assert plan.task("track").nodes == ("track", "count")
    assert plan.task("detect").order is CommitOrder.STATELESS
    assert plan.task("video").order is CommitOrder.OUTBOX
    assert plan.outside_identity == ()


def test_people_counting_holds_what_two_detectors_may_put_out_of_turn() -> None:
    plan = people()
    spread = plan.task("detect").inputs[0].subscriptions[0].spread
    assert spread is not None
    assert plan.task("track").inputs[0].subscriptions[0].hold_items == 1 + spread
    assert [entry.subscriptions[0].hold_items for entry in plan.task("draw").inputs] == [1, 1, 1]
    video = plan.task("video")
    assert video.inputs[0].subscriptions[0].hold_items == 1 + video.checkpoint_items
