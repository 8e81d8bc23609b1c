"""The parameters of a factory are options; what is given as text becomes values of the annotated types."""

from collections.abc import Sequence
from enum import Enum
from pathlib import Path
from typing import Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

import videoflow as vf
from tests.graph.nodes import Numbers, Sink
from videoflow.graph import call_factory, parameters, parse_bytes
from videoflow.graph._parse import Unparsable, parse


class Way(Enum):
    UP = "up"
    DOWN_LEFT = "down-left"


def build_flow(
    source: str,
    out: Path = Path("people.mp4"),
    line: tuple[int, int, int, int] = (0, 200, 512, 200),
    count: int = 3,
    loud: bool = False,
    untyped: Any = 1.5,
) -> vf.Flow:
    """Count people who cross a line.

    It has two paragraphs.

    Args:
        source: Video file or stream address.
        out: Annotated video to write,
            over two lines.
        line (tuple): x1, y1, x2, y2 in pixels: of the upright frame.
        count: How many.

    Returns:
        source: this is no parameter.
    """
    return vf.Flow([Sink(repr((source, out, line, loud, untyped)))(Numbers(count))], name="built")


def test_every_parameter_is_described() -> None:
    found = {each.name: each for each in parameters(build_flow)}
    assert list(found) == ["source", "out", "line", "count", "loud", "untyped"]
    assert (found["source"].required, found["source"].option) == (True, "--source")
    assert (found["line"].default, found["line"].annotation) == (
        (0, 200, 512, 200),
        tuple[int, int, int, int],
    )
    assert {name: each.help for name, each in found.items()} == {
        "source": "Video file or stream address.",
        "out": "Annotated video to write, over two lines.",
        "line": "x1, y1, x2, y2 in pixels: of the upright frame.",
        "count": "How many.",
        "loud": "",
        "untyped": "",
    }


def test_a_parameter_without_annotation_has_the_type_of_its_default() -> None:
    build = eval("lambda first, second=3, third=None, min_size=(1, 2): None")
    found = {each.name: (each.annotation, each.option) for each in parameters(build)}
    assert found == {
        "first": (str, "--first"),
        "second": (int, "--second"),
        "third": (str, "--third"),
        "min_size": (tuple, "--min-size"),
    }


def test_a_factory_is_called_with_what_was_given() -> None:
    texts = {"source": ["a.mp4"], "line": ["1,2,3,4"], "count": ["7"], "loud": ["true"], "untyped": ["2"]}
    spec = call_factory(build_flow, texts).compile()
    assert spec.node("numbers").arguments == {"count": 7}
    assert spec.node("sink").arguments == {
        "label": repr(("a.mp4", Path("people.mp4"), (1, 2, 3, 4), True, "2"))
    }


@pytest.mark.parametrize(
    ("texts", "said"),
    [
        ({}, "the flow needs --source"),
        ({"source": ["a"], "conut": ["3"]}, "did you mean '--count'"),
        ({"source": ["a"], "count": ["three"]}, "option --count cannot be 'three'"),
        ({"source": ["a"], "count": ["3", "4"]}, "int, once"),
        ({"source": ["a"], "line": ["1,2,3"]}, "4 values with commas between them, not 3"),
        ({"source": ["a"], "line": ["1,2,3,x"]}, "--line 10,20,30,40"),
        ({"source": ["a"], "loud": ["maybe"]}, "true or false"),
    ],
)
def test_a_wrong_option_is_named_with_its_value_and_the_wanted_type(texts: Any, said: str) -> None:
    with pytest.raises(vf.ArgumentInvalid) as caught:
        call_factory(build_flow, texts)
    assert said in caught.value.block()
    assert caught.value.exit_status == 2


PARSED: list[tuple[Any, list[str], Any]] = [
    (str, ["a,b"], "a,b"),
    (int, ["-3"], -3),
    (float, ["1e-3"], 0.001),
    (bool, ["No"], False),
    (Path, ["a b/c"], Path("a b/c")),
    (Way, ["up"], Way.UP),
    (Way, ["Down-Left"], Way.DOWN_LEFT),
    (Way, ["down_left"], Way.DOWN_LEFT),
    (Literal["bgr", "rgb"], ["rgb"], "rgb"),
    (Literal[1, 2], ["2"], 2),
    (int | None, ["4"], 4),
    (int | None, ["none"], None),
    (str | None, ["none"], None),
    (str | int, ["4"], 4),
    (str | int, ["four"], "four"),
    (Path | float, ["0.5"], Path("0.5")),
    (tuple[int, int, int, int], ["0,200, 512,200"], (0, 200, 512, 200)),
    (tuple[float, str], ["0.5,a"], (0.5, "a")),
    (tuple[int, ...], ["1,2,3"], (1, 2, 3)),
    (tuple[int, ...], [""], ()),
    (tuple[int, int] | None, ["1,2"], (1, 2)),
    (list[str], ["person,car", "dog"], ["person", "car", "dog"]),
    (list[int], ["1", "2"], [1, 2]),
    (Sequence[float], ["1,2.5"], [1.0, 2.5]),
    (set[Way], ["up,up"], {Way.UP}),
    (list[tuple[int, int]], ["10,10", "90,10", "90,90"], [(10, 10), (90, 10), (90, 90)]),
    (list[tuple[int, int]], ["10,10 90,10 90,90"], [(10, 10), (90, 10), (90, 90)]),
    (list[tuple[int, int]] | None, ["1,2"], [(1, 2)]),
    (dict[str, int], ['{"a": 1}'], {"a": 1}),
    (list, ["a,b"], ["a", "b"]),
    (tuple, ["a,b"], ("a", "b")),
]


@pytest.mark.parametrize(("wanted", "texts", "value"), PARSED, ids=map(str, range(len(PARSED))))
def test_texts_become_values_of_the_annotated_type(wanted: Any, texts: list[str], value: Any) -> None:
    parsed = parse(texts, wanted)
    assert parsed == value
    assert type(parsed) is type(value)


@pytest.mark.parametrize(
    ("wanted", "texts", "said"),
    [
        (int, ["1.5"], "a whole number"),
        (float, ["x"], "a number"),
        (Way, ["left"], "one of up, down-left"),
        (Literal["bgr", "rgb"], ["gray"], "one of bgr, rgb"),
        (int | None, ["x"], "int or None"),
        (list[int], ["1,x"], "a whole number"),
        (list[tuple[int, int]], ["1,2,3"], "2 values"),
        (dict[str, int], ["{"], "JSON"),
        (dict[str, int], ['{"a": "b"}'], "JSON"),
        (str, [], "once"),
    ],
)
def test_texts_that_are_of_another_type_are_refused(wanted: Any, texts: list[str], said: str) -> None:
    with pytest.raises(Unparsable, match=said):
        parse(texts, wanted)


@given(st.lists(st.tuples(st.integers(), st.integers()), min_size=1))
def test_a_zone_is_read_back_as_it_is_written(zone: list[tuple[int, int]]) -> None:
    assert parse([f"{x},{y}" for x, y in zone], list[tuple[int, int]]) == zone


def test_sizes_carry_units() -> None:
    def build(limit_bytes: int = 1) -> vf.Flow:
        return vf.Flow([Sink()(Numbers(limit_bytes))])

    spec = call_factory(build, {"limit_bytes": ["2 GiB"]}).compile()
    assert spec.node("numbers").arguments == {"count": 2**31}
    assert [parse_bytes(text) for text in ("10", "1.5 MB", "3kib", "1_000 B")] == [10, 1_500_000, 3072, 1000]
    for wrong in ("", "GiB", "2 XB", "-", "nan", "inf GiB", "-5"):
        with pytest.raises(Unparsable):
            parse_bytes(wrong)


def test_a_parameter_that_cannot_be_an_option_is_refused() -> None:
    def loose(*names: str) -> None: ...

    def positional(name: str, /) -> None: ...

    def taken(engine: str = "x") -> None: ...

    for factory in (loose, positional):
        with pytest.raises(vf.FlowFileError, match="cannot be an option"):
            parameters(factory)
    with pytest.raises(vf.FlowFileError, match="'engine'"):
        parameters(taken, {"--engine"})
    assert parameters(taken)


def test_a_factory_that_fails_is_named_with_its_line() -> None:
    def build() -> vf.Flow:
        return vf.Flow([Sink()(Numbers(1 // 0))])

    with pytest.raises(vf.FlowFileError, match="build failed") as caught:
        call_factory(build, {})
    line = build.__code__.co_firstlineno + 1
    assert caught.value.where == f"{__file__}:{line}"
    assert isinstance(caught.value.__cause__, ZeroDivisionError)


def test_an_error_of_ours_in_a_factory_keeps_its_class_and_gains_its_line() -> None:
    count: Any = "3"

    def build() -> vf.Flow:
        return vf.Flow([Sink()(Numbers(count))])

    with pytest.raises(vf.ArgumentInvalid) as caught:
        call_factory(build, {})
    assert caught.value.where == f"{__file__}:{build.__code__.co_firstlineno + 1}"


def test_a_factory_that_returns_no_flow_is_refused() -> None:
    def build() -> Any:
        return [Sink()(Numbers())]

    with pytest.raises(vf.FlowFileError, match="build returned list"):
        call_factory(build, {})


def test_a_factory_that_ends_the_program_is_a_failed_one() -> None:
    def leaves() -> vf.Flow:
        raise SystemExit(0)

    with pytest.raises(vf.FlowFileError, match="leaves failed: SystemExit: 0"):
        call_factory(leaves, {})
