"""Markers of `.control(...)`: what is refused, by name and with its remedy, and what the document says."""

from collections.abc import Callable
from typing import Any

import pytest

import videoflow as vf
from tests.graph.nodes import Double, Numbers, Sink, Split
from videoflow.graph.spec import ControlSpec, FlowSpec, PortRef


class Marked(vf.Consumer):
    """Takes markers."""

    def consume(self, *values: object) -> None:
        """Takes anything."""

    def on_control(self, marker: object, ctx: vf.Context) -> None:
        """Takes a marker."""


class Through(vf.Processor):
    """Takes markers, and passes its input on."""

    def process(self, value: object) -> object:
        """Passes it on."""
        return value

    def on_control(self, marker: object) -> None:
        """Takes a marker."""


class Greedy(Marked):
    """Wants two markers at once."""

    def on_control(self, marker: object, other: object) -> None:
        """Takes too many."""


def spec_of(sink: vf.Consumer) -> FlowSpec:
    return vf.Flow([sink]).compile()


def call(node: Any, method: str, given: object) -> None:
    """Calls a method as a careless author does, whom no type checker stops."""
    getattr(node, method)(given)


def test_markers_stand_apart_from_inputs_and_bring_their_nodes_along() -> None:
    numbers, other = Numbers(name="numbers"), Numbers(name="other")
    crops = Split(name="split")(other).port("crops")
    sink = Marked(name="sink")(numbers)
    assert sink.control(crops) is sink
    spec = spec_of(sink)
    assert spec.controls == (ControlSpec(child="sink", parents=(PortRef(node="split", port="crops"),)),)
    assert [edge.name for edge in spec.inputs("sink")] == ["numbers"]
    assert [node.name for node in spec.nodes][-1] == "sink"
    assert {node.name for node in spec.nodes} == {"numbers", "other", "split", "sink"}
    assert FlowSpec.from_json(spec.to_json()) == spec
    assert spec.node("sink").traits.controlled
    assert not spec.node("split").traits.controlled


def test_markers_of_several_are_merged_and_wired_before_or_after_the_inputs() -> None:
    first, second = Numbers(name="a"), Numbers(name="b")
    sink = Marked(name="sink").control(vf.merge(first, second))(first)
    (control,) = spec_of(sink).controls
    assert control.name == "a+b"


def test_a_picture_draws_markers_dotted() -> None:
    numbers = Numbers(name="numbers")
    sink = Marked(name="sink")(numbers).control(Double(name="double")(numbers))
    flow = vf.Flow([sink])
    (line,) = [line for line in flow.mermaid().splitlines() if "-.->" in line]
    assert "|markers|" in line
    assert "double (markers)" in flow._repr_html_()


def test_a_class_with_on_control_needs_no_markers() -> None:
    assert spec_of(Marked()(Numbers())).controls == ()


def circle() -> vf.Consumer:
    first = Through(name="first")(Numbers())
    second = Through(name="second")(first)
    first.control(second)
    return Sink("x")(second)


def fused() -> vf.Consumer:
    first = Through(name="first", fuse="one")(Numbers())
    return Marked(name="sink", fuse="one")(first).control(first)


REFUSED: dict[str, tuple[Callable[[], vf.Consumer], str, str]] = {
    "no on_control": (
        lambda: Sink("x", name="sink")(numbers := Numbers()).control(numbers),
        "the class Sink has no on_control",
        "on_control(self, marker)",
    ),
    "two markers at once": (
        lambda: Greedy()(numbers := Numbers()).control(numbers),
        "on_control takes one marker",
        "write on_control(self, marker)",
    ),
    "a port that is not there": (
        lambda: Marked()(numbers := Numbers(name="numbers")).control(numbers.port("nope")),
        "numbers has no port 'nope'",
        "",
    ),
    "a port twice": (
        lambda: Marked()(numbers := Numbers(name="n")).control(vf.merge(numbers, numbers)),
        "its markers n+n name a port twice",
        "name it once",
    ),
    "a cycle": (circle, "first takes markers of second", "wire each node to nodes made before it"),
    "one task": (fused, "its markers come from first, and both carry the label 'one'", "take the label off"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_a_flow_with_impossible_markers_is_refused_by_name(case: str) -> None:
    make, cause, remedy = REFUSED[case]
    with pytest.raises(vf.FlowInvalid) as caught:
        spec_of(make())
    found = [problem for problem in caught.value.problems if cause in problem.cause]
    assert found, caught.value
    assert remedy in found[0].remedy


def test_what_is_wrong_with_a_call_of_control_is_said_at_once() -> None:
    numbers = Numbers()
    with pytest.raises(vf.UsageError, match="given markers twice") as twice:
        Marked()(numbers).control(numbers).control(numbers)
    assert "vf.merge" in twice.value.remedy
    with pytest.raises(vf.UsageError, match="live edge") as live:
        Marked()(numbers).control(numbers.latest())
    assert "without .latest" in live.value.remedy
    with pytest.raises(vf.UsageError, match="takes no markers"):
        call(numbers, "control", numbers)
    with pytest.raises(vf.UsageError, match="cannot be a parent"):
        call(Marked()(numbers), "control", "numbers")
