"""What a node was made with is recorded before `__init__`, and comes back the same in a worker."""

import dataclasses
import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum, IntEnum
from fractions import Fraction
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple, TypeVar, Unpack

import pytest
from hypothesis import given
from hypothesis import strategies as st

import videoflow as vf
from videoflow.graph import Node, instantiate
from videoflow.graph.spec import CodeKind, NodeKind, NodeSpec

T = TypeVar("T")


class Colour(Enum):
    RED = (255, 0, 0)
    BLUE = (0, 0, 255)


class Level(IntEnum):
    LOW = 1
    HIGH = 2


@dataclass(frozen=True)
class Zone:
    corners: tuple[tuple[int, int], ...]
    name: str = "zone"


class Size(NamedTuple):
    width: int
    height: int


def again(node: Node) -> Node:
    """Makes a node again from JSON text, as a worker does."""
    text = json.dumps(node._videoflow_record.arguments, allow_nan=False)
    made = NodeSpec(
        name="again",
        kind=node._videoflow_kind,
        code=CodeKind.MODULE,
        module="",
        qualname="",
        arguments=json.loads(text),
    )
    return instantiate(made, type(node))


def holding(annotation: Any) -> Any:
    """Returns a class with one parameter of a type."""

    def initialise(self: Any, value: Any) -> None:
        self.value = value

    initialise.__annotations__ = {"value": annotation}
    return type("Holding", (vf.Processor,), {"__init__": initialise})


SURVIVE: list[tuple[Any, Any]] = [
    (int, 3),
    (float, 0.1),
    (float, 3),
    (bool, True),
    (str, "snö"),
    (None, None),
    (Path, Path("a/b.mp4")),
    (str | Path, "a.mp4"),
    (str | Path, Path("a.mp4")),
    (Path | None, None),
    (int | tuple[int, int], (3, 4)),
    (int | str, "3"),
    (bool | int, 1),
    (Colour, Colour.BLUE),
    (Level, Level.HIGH),
    (Colour | str, "RED"),
    (str | Colour, Colour.RED),
    (Literal["bgr", "rgb"], "rgb"),
    (Literal[1, 2] | None, 2),
    (tuple[int, int, int, int], (0, 200, 512, 200)),
    (tuple[float, ...], (0.5, 1.0)),
    (list[tuple[int, int]], [(1, 2), (3, 4)]),
    (list[str] | None, ["person"]),
    (Sequence[str], ("person", "car")),
    (Sequence[str], ["person", "car"]),
    (set[int], {3, 1, 2}),
    (frozenset[Colour], frozenset({Colour.RED})),
    (dict[str, float], {"a": 1.5}),
    (dict[int, str], {1: "a", 20: "b"}),
    (Mapping[Colour, tuple[int, int]], {Colour.RED: (1, 2)}),
    (Zone, Zone(((1, 2), (3, 4)))),
    (list[Zone], [Zone(()), Zone(((0, 0),), "b")]),
    (Size, Size(3, 4)),
    (Fraction, Fraction(1, 25)),
    (Annotated[int, "pixels"], 4),
    (Any, (1, ("a", None))),
    (Any, {"path": Path("x"), "parts": [1, 2.5, (3,)]}),
    (T, [1, "a"]),
]


@pytest.mark.parametrize(("annotation", "value"), SURVIVE, ids=map(str, range(len(SURVIVE))))
def test_a_value_comes_back_equal_and_of_its_type(annotation: Any, value: Any) -> None:
    made: Any = holding(annotation)(value)
    back: Any = again(made)
    assert made.value is value
    assert back.value == value
    assert type(back.value) is (float if annotation is float else type(value))


LOOSE_ZONE: Any = Zone
REFUSED: list[tuple[Any, Any, str]] = [
    (float, math.nan, "finite"),
    (float, math.inf, "finite"),
    (Any, len, "JSON"),
    (Callable[[], int], lambda: 1, "JSON"),
    (Any, object(), "JSON"),
    (Any, {1: "a"}, "wanted str"),
    (int, "3", "wanted int"),
    (int, 2.5, "wanted int"),
    (int, True, "wanted int"),
    (int, 2**70, "64 bits"),
    (str, 3, "wanted str"),
    (str, "\ud800", "UTF-8"),
    (list[int], (1, 2), "wanted list"),
    (tuple[int, int], (1, 2, 3), "2 long"),
    (list[int], [1, "a"], "[1]"),
    (Zone, LOOSE_ZONE(((1, 2.5),)), ".corners[0][1]"),
    (Literal["a", "b"], "c", "'a' or 'b'"),
    (Any, Colour.RED, "annotation"),
    (Any, Zone(()), "annotation"),
    (int | None, "x", "int or None"),
]


@pytest.mark.parametrize(("annotation", "value", "said"), REFUSED, ids=map(str, range(len(REFUSED))))
def test_what_would_not_come_back_is_refused_by_class_argument_and_type(
    annotation: Any, value: Any, said: str
) -> None:
    with pytest.raises(vf.ArgumentInvalid) as caught:
        holding(annotation)(value)
    text = caught.value.block()
    assert "Holding" in text
    assert "argument value" in text
    assert said in text


def test_an_open_file_is_refused_with_its_type(tmp_path: Path) -> None:
    with (tmp_path / "a.txt").open("w") as file, pytest.raises(vf.ArgumentInvalid, match="TextIOWrapper"):
        holding(Any)(file)


def test_a_value_that_does_not_compare_equal_is_refused() -> None:
    @dataclass(eq=False)
    class Loose:
        number: int

    with pytest.raises(vf.ArgumentInvalid, match="would not come back the same"):
        holding(Loose)(Loose(1))


def test_the_record_is_made_before_init_runs_and_does_not_follow_the_argument() -> None:
    class Greedy(vf.Processor):
        def __init__(self, parts: list[int]) -> None:
            self.seen = dict(self._videoflow_record.arguments)
            parts.append(99)

    node: Any = Greedy([1])
    assert node.seen == {"parts": [1]}
    assert node._videoflow_record.arguments == {"parts": [1]}


def test_a_refused_argument_leaves_init_uncalled() -> None:
    calls: list[int] = []

    class Careful(vf.Processor):
        def __init__(self, value: int) -> None:
            calls.append(value)

    make: Any = Careful
    with pytest.raises(vf.ArgumentInvalid):
        make("no")
    assert calls == []


@dataclass
class Crop(vf.Processor):
    """A node that is a dataclass."""

    box: tuple[int, int, int, int]
    margin: float = 0.0
    labels: list[str] = dataclasses.field(default_factory=list)

    def process(self, image: Any) -> Any:
        return image


def test_a_dataclass_is_a_node() -> None:
    make: Any = Crop  # it does not mention options, and takes them
    node: Any = make((1, 2, 3, 4), labels=["a"], name="crop")
    back: Any = again(node)
    assert (back.box, back.margin, back.labels) == ((1, 2, 3, 4), 0.0, ["a"])
    assert node == back


class Varied(vf.Processor):
    def __init__(self, first: int, /, *rest: int, last: str = "z", **options: Unpack[vf.NodeOptions]) -> None:
        super().__init__(**options)
        self.all = (first, rest, last)


def test_positional_variable_and_keyword_arguments_come_back() -> None:
    back: Any = again(Varied(1, 2, 3, last="y", retries=1))
    assert back.all == (1, (2, 3), "y")


@pytest.mark.parametrize(
    ("keywords", "said"),
    [({"replics": 2}, "did you mean 'replicas'"), ({"lst": "a"}, "did you mean 'last'"), ({}, "missing")],
)
def test_an_unknown_or_missing_argument_is_refused_with_the_nearest(keywords: Any, said: str) -> None:
    make: Any = Varied
    with pytest.raises(vf.ArgumentInvalid) as caught:
        make(*([1] if keywords else []), **keywords)
    assert said in caught.value.block()


def test_a_misspelt_option_is_refused_where_a_class_hands_anything_on() -> None:
    class Loose(vf.Processor):
        def __init__(self, **options: Any) -> None:
            super().__init__(**options)

    with pytest.raises(vf.ArgumentInvalid) as caught:
        Loose(replics=2)
    assert "did you mean 'replicas'" in caught.value.block()


def test_an_annotation_that_cannot_be_resolved_leaves_the_others_standing() -> None:
    class Half(vf.Processor):
        def __init__(self, colour: Any, path: Any) -> None:
            self.path = path

    Half.__init__.__annotations__ |= {"colour": "NoSuchType", "path": "Path"}
    node: Any = Half(3, Path("a"))
    back: Any = again(node)
    assert back.path == Path("a")


def test_a_parameter_named_like_an_option_is_refused() -> None:
    class Named(vf.Processor):
        def __init__(self, name: str) -> None: ...

    with pytest.raises(vf.ArgumentInvalid, match="'name'"):
        Named(name="a")


def test_arguments_that_no_longer_fit_the_class_are_refused() -> None:
    spec = NodeSpec(
        name="a",
        kind=NodeKind.PROCESSOR,
        code=CodeKind.MODULE,
        module="",
        qualname="",
        arguments={"colour": 1},
    )
    with pytest.raises(vf.ArgumentInvalid, match="no parameter 'colour'"):
        instantiate(spec, Crop)


WORDS = st.text(st.characters(codec="utf-8"))
NUMBERS = st.integers(-(2**63), 2**63 - 1) | st.floats(allow_nan=False, allow_infinity=False)
JSON = st.recursive(
    st.none() | st.booleans() | NUMBERS | WORDS,
    lambda inner: st.lists(inner) | st.dictionaries(WORDS, inner) | st.tuples(inner),
    max_leaves=12,
)


@given(JSON)
def test_whatever_is_accepted_without_annotation_comes_back_the_same(value: Any) -> None:
    try:
        made: Any = holding(Any)(value)
    except vf.ArgumentInvalid:
        assert "$" in json.dumps(value)  # only a dict that looks like one of our tags
        return
    back: Any = again(made)
    assert back.value == value
    assert repr(back.value) == repr(value)


@given(st.one_of(*(st.from_type(arm) for arm in (int, str, bool)), st.none(), st.tuples(st.integers())))
def test_a_union_comes_back_with_the_right_arm(value: Any) -> None:
    try:
        made: Any = holding(str | tuple[int, ...] | bool | int | None)(value)
    except vf.ArgumentInvalid:
        assert isinstance(value, str | int | tuple)  # beyond 64 bits, or not UTF-8
        return
    back: Any = again(made)
    assert back.value == value
    assert type(back.value) is type(value)
