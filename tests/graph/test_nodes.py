"""Making and wiring nodes: options, ports, edges, functions."""

import inspect
from typing import Any, get_type_hints

import pytest

import videoflow as vf
from tests.graph.nodes import Double, Numbers, Pair, Sink, Split, halve
from videoflow.graph import Latest, Merged, Port
from videoflow.graph._options import OPTION_TYPES


def test_options_are_taken_out_before_init_and_need_not_be_mentioned() -> None:
    make: Any = Double
    node = make(name="twice", replicas=2)
    assert node._videoflow_record.options == {"name": "twice", "replicas": 2}
    assert node._videoflow_record.arguments == {}


def test_options_that_a_class_gives_itself_yield_to_the_callers() -> None:
    class Slow(vf.Processor):
        def __init__(self, **options: Any) -> None:
            super().__init__(retries=0, timeout_seconds=5.0)

        def process(self, value: Any) -> Any:
            return value

    assert Slow(retries=2)._videoflow_record.options == {"retries": 2, "timeout_seconds": 5.0}


@pytest.mark.parametrize(
    ("option", "value", "said"),
    [
        ("replicas", "2", "int"),
        ("replicas", True, "int"),
        ("ordered", 1, "bool or None"),
        ("missing", "skipp", "'skip' or 'none'"),
        ("batch", 8, "Batch"),
        ("fuse", True, "False"),
        ("resources", {"cpus": 2}, "Resources"),
        ("on_error", {"ValueError": "ignore"}, "'poison' or 'transient' or 'fatal'"),
        ("timeout_seconds", "1", "float"),
        ("name", 3, "str"),
    ],
)
def test_an_option_of_the_wrong_type_is_refused_at_once(option: str, value: Any, said: str) -> None:
    make: Any = Double
    with pytest.raises(vf.ArgumentInvalid) as caught:
        make(**{option: value})
    assert f"Double: option {option} cannot be {value!r}" in caught.value.block()
    assert said in caught.value.cause


def test_the_options_are_those_that_the_page_names() -> None:
    assert set(OPTION_TYPES) == set(get_type_hints(vf.NodeOptions))
    assert set(OPTION_TYPES) >= {
        "name",
        "replicas",
        "partition_by",
        "ordered",
        "join",
        "missing",
        "batch",
        "fuse",
        "resources",
        "on_error",
        "retries",
        "timeout_seconds",
        "lookahead",
        "deterministic",
        "image",
    }


def test_a_node_is_wired_once_and_returns_itself() -> None:
    camera, node = Numbers(), Double()
    assert node(camera) is node
    with pytest.raises(vf.UsageError, match="wired twice"):
        node(camera)


@pytest.mark.parametrize("parent", [3, Double, None, "camera"])
def test_a_parent_is_a_node_a_port_or_an_edge(parent: Any) -> None:
    with pytest.raises(vf.UsageError, match="cannot be a parent"):
        Double()(parent)


def test_a_consumer_is_no_parent_and_a_producer_has_none() -> None:
    camera: Any = Numbers()
    sink: Any = Sink()(camera)
    with pytest.raises(vf.UsageError, match="cannot be a parent") as caught:
        Double()(sink)
    assert "no outputs" in caught.value.cause
    with pytest.raises(vf.UsageError, match="takes no parents"):
        camera(Numbers())
    with pytest.raises(vf.UsageError, match="without parents"):
        Double()()


def test_ports_are_reached_by_name_and_as_attributes() -> None:
    node = Split()(Numbers())
    by_name, by_attribute = node.port("crops"), node.crops
    assert isinstance(by_attribute, Port)
    assert (by_name.node, by_name.name) == (by_attribute.node, by_attribute.name) == (node, "crops")
    with pytest.raises(AttributeError, match="did you mean 'crops'"):
        _ = node.crop


def test_a_live_edge_carries_what_it_was_given() -> None:
    camera = Numbers()
    live = camera.latest(key="source", max_age_seconds=0.5, capacity=2)
    assert isinstance(live, Latest)
    assert (live.key, live.max_age_seconds, live.capacity) == ("source", 0.5, 2)
    merged = vf.merge(camera, Numbers()).latest(capacity=3)
    assert merged.of.ports[0].node is camera
    assert merged.capacity == 3


def test_merges_are_flat_and_hold_no_live_edges() -> None:
    first, second, third = Numbers(), Numbers(), Split()
    merged = vf.merge(vf.merge(first, second), third.port("crops"))
    assert isinstance(merged, Merged)
    assert [(port.node, port.name) for port in merged.ports] == [
        (first, "out"),
        (second, "out"),
        (third, "crops"),
    ]
    live: Any = first.latest()
    with pytest.raises(vf.UsageError) as caught:
        vf.merge(live, second)
    assert ".latest(...)" in caught.value.remedy
    with pytest.raises(vf.UsageError):
        vf.merge()


def test_a_function_makes_nodes_and_stays_a_function() -> None:
    camera = Numbers()
    wired = halve(camera, by=4, name="quarter")
    later = halve(by=3)
    assert wired is not later
    assert wired._videoflow_record.options == {"name": "quarter"}
    assert wired._videoflow_record.arguments == {"by": 4}
    assert [each.ports[0].node for each in wired._videoflow_record.inputs or ()] == [camera]
    assert later(camera)._videoflow_record.inputs is not None
    assert (halve.function(8), halve.function(9, by=3)) == (4.0, 3.0)
    assert (halve.__name__, halve.__doc__, halve.__module__) == ("halve", "Divides.", "tests.graph.nodes")
    assert inspect.isclass(halve)


def test_a_decorator_takes_options_and_ports_and_the_call_overrides_them() -> None:
    @vf.processor(retries=1, replicas=2, ports=("out", "odd"), many={"odd": 3})
    def sort(number: int) -> Any:
        return number if number % 2 == 0 else vf.Out(number, port="odd")

    node = sort(Numbers(), retries=5)
    assert node._videoflow_record.options == {"retries": 5, "replicas": 2}
    assert (node.ports, node.many) == (("out", "odd"), {"odd": 3})


def test_functions_whose_parameters_cannot_be_told_apart_are_refused() -> None:
    with pytest.raises(vf.UsageError, match="values"):

        @vf.processor
        def loose(number: int, **values: int) -> int:
            return number

    with pytest.raises(vf.UsageError, match="name"):

        @vf.consumer
        def named(number: int, *, name: str) -> None: ...

    wrong: Any = vf.consumer(name="a")
    with pytest.raises(vf.UsageError, match="is not a function"):
        wrong(3)
    decorate: Any = vf.consumer
    odd = decorate(colour=3)
    with pytest.raises(vf.UsageError, match="no option 'colour'"):
        odd(len)


def test_an_argument_of_a_function_is_checked_like_one_of_a_class() -> None:
    with pytest.raises(vf.ArgumentInvalid, match="halve: argument by"):
        halve(Numbers(), by="two")


def test_two_inputs_keep_their_order() -> None:
    first, second = Numbers(), Double()
    node = Pair()(second, first)
    assert [each.ports[0].node for each in node._videoflow_record.inputs or ()] == [second, first]


def test_a_node_without_its_method_says_which_and_what_to_do() -> None:
    class Bare(vf.Processor):
        pass

    with pytest.raises(vf.UsageError, match="Bare has no process") as refused:
        Bare().process(1)
    assert "write the method process" in refused.value.remedy
