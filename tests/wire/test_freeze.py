"""What an edge carries, what it refuses, and what becomes immutable."""

import enum
from collections import Counter, namedtuple
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from tests.wire.records import Box, Doubled, Loose, Outer, Plain, Point, Shouting, Sorted, Tally
from videoflow.errors import ValueRefused
from videoflow.media import Detections, Frame
from videoflow.wire import freeze

Pair = namedtuple("Pair", "a b")  # noqa: PYI024  (a plain one, as users make them)


class Colour(enum.StrEnum):
    RED = "red"


@pytest.mark.parametrize(
    "value", [None, True, 0, -(2**63), 2**64 - 1, 1.5, float("inf"), "", "straße", b"\x00", Fraction(1, 3)]
)
def test_plain_values_pass_as_they_are(value: object) -> None:
    assert freeze(value) is value


def test_containers_become_new_lists_and_dicts() -> None:
    inner = [1, 2]
    value = {"a": (1, (2,)), "b": inner, "c": Counter("aa")}
    frozen = freeze(value)
    assert frozen == {"a": [1, [2]], "b": [1, 2], "c": {"a": 2}}
    assert type(frozen["c"]) is dict
    inner.append(3)
    assert frozen["b"] == [1, 2]


@pytest.mark.parametrize(
    ("scalar", "plain"),
    [
        (np.float32(0.5), 0.5),
        (np.float64(0.1), 0.1),
        (np.uint64(2**64 - 1), 2**64 - 1),
        (np.bool_(True), True),
        (np.str_("b"), "b"),
        (np.bytes_(b"a"), b"a"),
    ],
)
def test_numpy_scalars_become_pythons(scalar: object, plain: object) -> None:
    frozen = freeze([scalar])[0]
    assert type(frozen) is type(plain)
    assert frozen == plain
    assert freeze({np.str_("k"): 1}) == {"k": 1}


@pytest.mark.parametrize(
    ("value", "path", "kind"),
    [
        ({"boxes": [1, {2}]}, "value['boxes'][1]", "set"),
        (Box((1, 2, 3, 4), extra=[Box((0, 0, 0, 0), extra=1j)]), "value.extra[0].extra", "complex"),
        ({1: "a"}, "value", "key of type int"),
        ([2**64], "value[0]", "beyond 64 bits"),
        ([-(2**63) - 1], "value[0]", "beyond 64 bits"),
        ("\ud800", "value", "not Unicode"),
        ([Colour.RED], "value[0]", "Colour"),
        (Pair(1, 2), "value", "Pair"),
        (bytearray(b"a"), "value", "bytearray"),
        (Plain(), "value", "Plain"),
        (Plain, "value", "type"),
        (np.array([object()]), "value", "dtype object"),
        ([np.datetime64("2020-01-01")], "value[0]", "datetime64"),
        (np.longdouble(1), "value", "longdouble"),
        (np.ma.MaskedArray([1], [True]), "value", "MaskedArray"),
        (Fraction(2**70, 3), "value", "beyond 64 bits"),
        (Shouting(), "value", "inherits from no built-in type"),
    ],
)
def test_what_no_edge_carries_is_refused_by_path_and_type(value: object, path: str, kind: str) -> None:
    with pytest.raises(ValueRefused) as caught:
        freeze(value)
    assert str(caught.value).startswith(f"{path}: ")
    assert kind in f"{caught.value} {caught.value.remedy}"
    assert caught.value.where == path


def test_what_contains_itself_is_refused() -> None:
    value: list[Any] = []
    value.append(value)
    with pytest.raises(ValueRefused, match="deeper than 64"):
        freeze(value)


def test_one_list_in_many_places_is_refused_before_it_fills_the_memory(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("videoflow.wire._freeze._MAXIMUM_CONTAINERS", 2000)
    value: list[object] = []
    for _ in range(40):
        value = [value, value]
    with pytest.raises(ValueRefused, match="more than 2000 lists"):
        freeze(value)
    assert freeze([[number] for number in range(1000)])


def test_a_class_that_has_no_importable_name_is_refused() -> None:
    @dataclass
    class Local:
        number: int = 1

    with pytest.raises(ValueRefused, match="importable"):
        freeze(Local())


def test_records_keep_their_tuples_and_frozen_ones_their_identity() -> None:
    box = Box((1, 2, 3, 4))
    assert freeze(box) is box
    assert freeze(Point(1.0, 2.0, ("a",))).tags == ("a",)
    assert freeze(Outer.Inner(3)) == Outer.Inner(3)
    corners: Any = (np.int64(1), 2, 3, 4)
    assert [type(n) for n in freeze(Box(corners)).corners] == [int] * 4
    changed = freeze(Box((1, 2, 3, 4), extra=[np.int8(1)]))
    assert changed == Box((1, 2, 3, 4), extra=[1])
    assert type(changed.extra[0]) is int


def test_mutable_records_are_copied_and_no_constructor_runs_twice() -> None:
    loose = Loose(1)
    assert freeze(loose) == loose
    assert freeze(loose) is not loose
    tally = Tally({"a": 2})
    assert tally.mean == 2.0
    frozen = freeze(tally)
    tally.counts["b"] = 1
    assert frozen.counts == {"a": 2}
    assert frozen.total == 2
    assert frozen.mean == 2.0
    assert freeze(Doubled(2)).number == 4
    assert freeze(Sorted([2, 1])).numbers == [1, 2, 0]


def test_an_attribute_that_is_no_field_is_refused() -> None:
    loose = Loose(1)
    vars(loose)["more"] = 2
    with pytest.raises(ValueRefused, match="attribute more"):
        freeze(loose)


def test_a_field_that_was_never_set_is_refused() -> None:
    tally = Tally({})
    del tally.total
    with pytest.raises(ValueRefused, match="field total"):
        freeze(tally)


def test_an_array_that_owns_its_memory_is_frozen_in_place() -> None:
    array = np.arange(6.0)
    assert freeze(array) is array
    with pytest.raises(ValueError, match="read-only"):
        array[0] = 1


@pytest.mark.parametrize(
    "make", [lambda a: a[:], lambda a: a[2:], lambda a: a[::-1]], ids=["all", "part", "mirrored"]
)
def test_a_view_is_copied_so_that_its_owner_can_go_on(make: Any) -> None:
    owner = np.arange(6.0)
    before = make(owner).copy()
    frozen = freeze(make(owner))
    owner[:] = -1
    assert np.array_equal(frozen, before)
    assert not frozen.flags.writeable


def test_memory_of_other_objects_is_copied() -> None:
    memory = bytearray(b"abcd")
    frozen = freeze(np.frombuffer(memory, np.uint8))
    memory[0] = 0
    assert frozen.tobytes() == b"abcd"


def test_the_image_of_a_frame_is_not_copied() -> None:
    image = np.zeros((4, 6, 3), np.uint8)
    frame = Frame(image=image, pts=1, time_base=Fraction(1, 25), index=1, source="s")
    frozen = freeze(frame)
    assert np.shares_memory(frozen.image, image)
    assert not image.flags.writeable
    assert frozen == frame


def test_arrays_come_out_in_c_order() -> None:
    frozen = freeze(np.asfortranarray(np.arange(6.0).reshape(2, 3)))
    assert frozen.flags.c_contiguous
    assert np.array_equal(frozen, np.arange(6.0).reshape(2, 3))


def test_detections_stay_detections() -> None:
    found = Detections.from_arrays([[1, 2, 3, 4]], class_names=["person"], image_size=(4, 4))
    frozen = freeze(found)
    assert frozen == found
    assert type(frozen.class_names) is tuple
