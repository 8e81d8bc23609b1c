"""What a graph compiles to."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

import videoflow as vf
from tests.graph.nodes import Double, Last, Numbers, Pair, Sink, Split, Total, halve
from videoflow.graph import Flow
from videoflow.graph.spec import (
    SPEC_SCHEMA,
    BatchSpec,
    CodeKind,
    EdgeSpec,
    FlowSpec,
    LatestSpec,
    NodeKind,
    PortRef,
    ResourcesSpec,
)


def diamond() -> Flow:
    camera = Numbers(5, name="camera")
    left = Double()(camera)
    right = Total()(camera)
    both = Pair(missing="none")(left, right)
    return vf.Flow([Sink(name="end")(both)], name="diamond")


def test_nodes_stand_in_topological_order_with_their_names_kinds_and_arguments() -> None:
    spec = diamond().compile()
    assert [node.name for node in spec.nodes] == ["camera", "double", "total", "pair", "end"]
    assert [node.kind for node in spec.nodes] == [
        NodeKind.PRODUCER,
        NodeKind.PROCESSOR,
        NodeKind.PROCESSOR,
        NodeKind.PROCESSOR,
        NodeKind.CONSUMER,
    ]
    assert (spec.flow_id, spec.folder, spec.schema) == ("diamond", str(Path.cwd()), SPEC_SCHEMA)
    camera = spec.node("camera")
    assert camera.arguments == {"count": 5}
    assert (camera.code, camera.module, camera.qualname) == (CodeKind.MODULE, "tests.graph.nodes", "Numbers")


def test_edges_stand_by_child_and_position() -> None:
    spec = diamond().compile()
    assert spec.inputs("pair") == (
        EdgeSpec(child="pair", input=0, parents=(PortRef(node="double"),)),
        EdgeSpec(child="pair", input=1, parents=(PortRef(node="total"),)),
    )
    assert {edge.child for edge in spec.readers("camera", "out")} == {"double", "total"}


def test_live_and_merged_edges_say_so() -> None:
    first, second = Numbers(name="a"), Numbers(name="b")
    live = Double()(vf.merge(first, second).latest(key="source", max_age_seconds=1, capacity=3))
    (edge,) = vf.Flow([Sink()(live)]).compile().inputs("double")
    assert edge.parents == (PortRef(node="a"), PortRef(node="b"))
    assert edge.latest == LatestSpec(key="source", max_age_seconds=1, capacity=3)
    assert edge.name == "a+b"


def test_names_default_to_the_class_and_are_numbered_when_taken() -> None:
    camera = Numbers()
    chain = Double()(Double()(Double(name="double_2")(camera)))
    spec = vf.Flow([Sink()(chain), Sink(name="sink")(camera)]).compile()
    names = [node.name for node in spec.nodes]
    assert names == ["numbers", "double_2", "double", "double_3", "sink_2", "sink"]


def test_the_flow_is_named_after_its_file_unless_it_is_named() -> None:
    assert vf.Flow([Sink()(Numbers())]).name == "test_compile"
    assert vf.Flow([Sink()(Numbers())], name="mine").compile().flow_id == "mine"


def test_order_and_state_are_resolved() -> None:
    make: Any = Double
    camera = Numbers()
    free, held, strict = make(name="free")(camera), Total()(camera), make(name="strict", ordered=True)(camera)
    spec = vf.Flow([Sink()(free), Sink(name="held")(held), Sink(name="s")(strict)]).compile()
    ordered = {node.name: node.options.ordered for node in spec.nodes}
    assert ordered == {
        "numbers": True,
        "free": False,
        "sink": True,
        "total": True,
        "held": True,
        "strict": True,
        "s": True,
    }
    assert {node.name for node in spec.nodes if node.traits.stateful} == {"total"}


def test_a_class_may_say_what_its_order_is() -> None:
    class Steady(Double):
        ordered = True

    spec = vf.Flow([Sink()(Steady()(Numbers()))]).compile()
    assert spec.node("steady").options.ordered


def test_options_are_resolved_into_plain_data() -> None:
    class Doubles(Double):
        def process_batch(self, inputs: Sequence[int]) -> list[int]:
            return [2 * number for number in inputs]

    make: Any = Doubles
    node = make(
        replicas=2,
        batch=vf.Batch(8, 0.02, "shape"),
        fuse=False,
        resources=vf.Resources(cpus=2, memory_bytes=1000),
        on_error={"ValueError": "poison"},
        retries=1,
        timeout_seconds=4,
        lookahead=3,
    )(Numbers())
    options = vf.Flow([Sink()(node)]).compile().node("doubles").options
    assert options.batch == BatchSpec(max_items=8, max_wait_seconds=0.02, group_by="shape")
    assert (options.replicas, options.fuse, options.retries) == (2, False, 1)
    assert (options.lookahead, options.timeout_seconds, options.on_error) == (3, 4, {"ValueError": "poison"})
    assert options.resources == ResourcesSpec(cpus=2.0, memory_bytes=1000)
    assert (options.missing, options.missing_chosen) == ("skip", False)


def test_the_scope_is_the_fan_out_ports_above() -> None:
    split = Split()(Numbers())
    crops = Double()(split.crops)
    spec = vf.Flow([Sink()(crops), Sink(name="whole")(split)]).compile()
    assert {node.name: node.scope for node in spec.nodes} == {
        "numbers": (),
        "split": (),
        "double": ("split.crops",),
        "sink": ("split.crops",),
        "whole": (),
    }


def test_a_node_that_reaches_no_sink_is_no_part_of_the_flow() -> None:
    camera = Numbers()
    Double()(camera)
    assert [node.name for node in vf.Flow([Sink()(camera)]).compile().nodes] == ["numbers", "sink"]


def test_a_factory_can_be_called_twice_and_compiles_to_the_same() -> None:
    def build() -> Flow:
        return vf.Flow([Sink()(halve(Numbers()))], name="twice")

    assert build().compile() == build().compile()
    flow = build()
    assert flow.compile() == flow.compile()


def test_a_join_below_a_flush_may_take_it_alone() -> None:
    camera = Numbers()
    joined = Pair(missing="none")(Last()(camera), camera)
    assert vf.Flow([Sink()(joined)]).compile().node("last").traits.flushes


def test_a_join_of_two_branches_below_one_flush_needs_nothing() -> None:
    last = Last()(Numbers())
    assert vf.Flow([Sink()(Pair()(Double()(last), last))]).compile().inputs("pair")


def test_a_long_chain_is_no_problem() -> None:
    node: vf.Producer | vf.Processor = Numbers()
    for _ in range(2000):
        node = Double()(node)
    assert len(vf.Flow([Sink()(node)]).compile().nodes) == 2002


@st.composite
def flows(draw: st.DrawFn) -> Flow:
    """Graphs over one source with any wiring that is legal."""
    live: list[Any] = [Numbers(draw(st.integers(0, 9)), name="camera")]
    make: list[Any] = [Double, Total, Pair, halve]
    for number in range(draw(st.integers(0, 7))):
        kind = draw(st.sampled_from(make))
        parents = [draw(st.sampled_from(live)) for _ in range(2 if kind is Pair else 1)]
        options: dict[str, Any] = {"name": f"n{number}"} if draw(st.booleans()) else {}
        if kind is Double:
            options["replicas"] = draw(st.integers(1, 4))
            if draw(st.booleans()):
                parents[0] = parents[0].latest(capacity=draw(st.integers(1, 3)), max_age_seconds=0.5)
        if kind is halve:
            options["by"] = draw(st.integers(-9, 9))
        if kind is Pair:
            options["missing"] = draw(st.sampled_from(("skip", "none")))
        live.append(kind(**options)(*parents))
    return vf.Flow([Sink(draw(st.text()), name=f"s{n}")(node) for n, node in enumerate(live)], name="random")


@given(flows())
def test_a_document_comes_back_the_same(flow: Flow) -> None:
    spec = flow.compile()
    assert FlowSpec.from_json(spec.to_json()) == spec
    position = {node.name: number for number, node in enumerate(spec.nodes)}
    for edge in spec.edges:
        assert all(position[parent.node] < position[edge.child] for parent in edge.parents)


def test_a_document_of_another_schema_or_kind_is_refused() -> None:
    spec = msgspec.structs.replace(diamond().compile(), schema=SPEC_SCHEMA + 1)
    with pytest.raises(vf.FlowFileError, match="schema"):
        FlowSpec.from_json(spec.to_json())
    with pytest.raises(vf.FlowFileError, match="not a flow spec"):
        FlowSpec.from_json(b'{"nodes": 3}')


def test_relative_paths_belong_to_the_folder_where_the_flow_was_built(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    flow = diamond()
    monkeypatch.chdir(os.sep)
    assert flow.compile().folder == str(tmp_path)
