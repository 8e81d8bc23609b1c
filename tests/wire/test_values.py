"""Values as bytes: what goes in comes out, the same bytes twice, and payloads live as long as arrays."""

import gc
import sys
import types
from contextlib import suppress
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from numpy.typing import NDArray

from tests.wire.records import Box, Doubled, Outer, Point, Sorted, Tally
from videoflow.backends.payload import PayloadBytes, PayloadRef
from videoflow.errors import ValueRefused
from videoflow.media import Detections, Frame
from videoflow.wire import decode_value, encode_value, freeze


class Shelf:
    """A payload store of the least kind, which counts what is pinned."""

    def __init__(self) -> None:
        self.objects: dict[str, bytes] = {}
        self.loads = 0
        self.pinned = 0

    def store(self, array: NDArray[np.uint8], index: int) -> PayloadRef:
        assert not array.flags.writeable
        key = f"{len(self.objects)}"
        self.objects[key] = array.tobytes()
        return PayloadRef("shelf", key, array.nbytes, content_id=f"p/{index}")

    def load(self, ref: PayloadRef) -> PayloadBytes:
        self.loads += 1
        self.pinned += 1
        return _Pin(self, self.objects[ref.key])


class _Pin(PayloadBytes):
    def __init__(self, shelf: Shelf, data: bytes) -> None:
        self.shelf = shelf
        self.data = memoryview(data)
        self.digest_verified = False

    def close(self) -> None:
        self.data.release()
        self.shelf.pinned -= 1


def same(left: Any, right: Any) -> bool:
    if type(left) is not type(right):
        return False
    if isinstance(left, np.ndarray):
        return bool(left.dtype == right.dtype) and (left.shape, left.tobytes()) == (
            right.shape,
            right.tobytes(),
        )
    if isinstance(left, list | tuple):
        return len(left) == len(right) and all(map(same, left, right))
    if isinstance(left, dict):
        return list(left) == list(right) and all(same(left[key], right[key]) for key in left)
    if isinstance(left, Box):
        return same(vars(left), vars(right))
    return bool(left == right) or left != left


arrays = hnp.arrays(
    st.one_of(hnp.scalar_dtypes(), hnp.array_dtypes(hnp.integer_dtypes(), max_size=3)),
    hnp.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=4),
)
leaves = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**63), 2**64 - 1),
    st.floats(),
    st.text(),
    st.binary(),
    st.fractions(-(2**20), 2**20, max_denominator=2**20),
    arrays,
)
values = st.recursive(
    leaves,
    lambda inner: st.one_of(
        st.lists(inner, max_size=4),
        st.tuples(inner, inner),
        st.dictionaries(st.text(), inner, max_size=4),
        st.builds(Box, st.tuples(*[st.integers(-9, 9)] * 4), st.text(), inner),
    ),
    max_leaves=8,
)


@given(values, st.sampled_from([0, 1, 40, 16384]))
def test_what_is_frozen_comes_out_as_it_went_in(value: Any, inline_bytes: int) -> None:
    frozen = freeze(value)
    shelf = Shelf()
    encoded = encode_value(frozen, shelf.store, inline_bytes)
    decoded = decode_value(encoded.body, encoded.payloads, shelf.load)
    assert same(decoded, frozen)
    again = Shelf()
    assert encode_value(freeze(value), again.store, inline_bytes) == encoded
    assert again.objects == shelf.objects
    assert encoded.size_bytes == len(encoded.body) + sum(map(len, shelf.objects.values()))


@given(values)
def test_freezing_twice_is_freezing_once(value: Any) -> None:
    once = freeze(value)
    assert encode_value(freeze(once)).body == encode_value(once).body


@given(values)
def test_without_a_store_everything_is_in_the_body(value: Any) -> None:
    frozen = freeze(value)
    encoded = encode_value(frozen)
    assert encoded.payloads == ()
    assert same(decode_value(encoded.body), frozen)


@given(st.binary(max_size=60))
def test_damaged_bytes_are_refused_and_nothing_else(data: bytes) -> None:
    with suppress(ValueRefused):
        decode_value(data)


@given(values, st.data())
def test_a_changed_byte_is_a_value_or_a_refusal(value: Any, data: st.DataObject) -> None:
    body = bytearray(encode_value(freeze(value)).body)
    at = data.draw(st.integers(0, len(body) - 1))
    body[at] ^= data.draw(st.integers(1, 255))
    with suppress(ValueRefused):
        decode_value(bytes(body))


@pytest.mark.parametrize(
    "record",
    [Tally({"a": 1}), Doubled(3), Point(1.0, 2.0, ("a",)), Sorted([3, 1]), Outer.Inner(1), Box((1, 2, 3, 4))],
)
def test_records_come_out_field_by_field_without_their_constructors(record: Any) -> None:
    decoded = decode_value(encode_value(freeze(record)).body)
    assert type(decoded) is type(record)
    assert decoded == record


def frame(height: int = 90, width: int = 120) -> Frame:
    image = np.arange(height * width * 3, dtype=np.uint32).astype(np.uint8).reshape(height, width, 3)
    return Frame(image=image, pts=3003, time_base=Fraction(1001, 30000), index=3, source="s")


def test_a_frame_goes_through_a_store_and_its_pin_ends_with_its_last_array() -> None:
    shelf = Shelf()
    sent = freeze(frame())
    encoded = encode_value([sent, sent], shelf.store)
    assert len(encoded.payloads) == 1
    first, second = decode_value(encoded.body, encoded.payloads, shelf.load)
    assert first == sent
    assert not first.image.flags.writeable
    assert shelf.loads == 1
    assert shelf.pinned == 1
    crop = second.image[10:20, 5:9]
    del first, second
    gc.collect()
    assert shelf.pinned == 1
    assert crop.shape == (10, 4, 3)
    del crop
    gc.collect()
    assert shelf.pinned == 0


def test_what_came_from_a_store_is_passed_on_by_reference_whole_cropped_or_mirrored() -> None:
    shelf = Shelf()
    encoded = encode_value(freeze(frame()), shelf.store)
    received = decode_value(encoded.body, encoded.payloads, shelf.load)
    mirrored = received.image[::-1, :, ::-1]
    value = freeze([received, received.crop(10, 20, 110, 80), mirrored])
    forwarded = encode_value(value, shelf.store)
    assert forwarded.payloads == encoded.payloads
    assert len(shelf.objects) == 1
    whole, crop, flipped = decode_value(forwarded.body, forwarded.payloads, shelf.load)
    assert whole == received
    assert np.array_equal(crop.image, received.image[20:80, 10:110])
    assert np.array_equal(flipped, mirrored)
    assert crop.image.strides == received.image.strides


def test_a_small_part_of_a_large_payload_is_copied_out() -> None:
    shelf = Shelf()
    large = np.zeros((2048, 2048), np.uint8)
    encoded = encode_value(freeze(large), shelf.store)
    received = decode_value(encoded.body, encoded.payloads, shelf.load)
    part = encode_value(freeze(received[:128, :256]), shelf.store)
    assert part.payloads[0].size_bytes == 128 * 256


def test_arrays_below_the_limit_stay_in_the_body() -> None:
    shelf = Shelf()
    small, large = np.zeros(16383, np.uint8), np.zeros(16384, np.uint8)
    encoded = encode_value(freeze([small, large, large.copy()]), shelf.store)
    assert [ref.content_id for ref in encoded.payloads] == ["p/0", "p/1"]


def test_a_view_beyond_its_payload_is_refused() -> None:
    shelf = Shelf()
    encoded = encode_value(freeze(np.zeros(20000, np.uint8)), shelf.store)
    shelf.objects["0"] = bytes(100)
    with pytest.raises(ValueRefused):
        decode_value(encoded.body, encoded.payloads, shelf.load)


def test_detections_keep_their_types() -> None:
    found = Detections.from_arrays([[1, 2, 3, 4]], class_names=["person"], data={"speed": np.ones(1)})
    decoded = decode_value(encode_value(freeze(found)).body)
    assert decoded == found
    assert type(decoded.class_names) is tuple


def made_in(module: str) -> type[Any]:
    """Returns a class `Made` as the flow file defines it, when its module is called so."""

    @dataclass
    class Made:
        number: int

    Made.__qualname__ = "Made"
    Made.__module__ = module
    return Made


def test_the_flow_files_module_has_one_name_in_every_process(monkeypatch: pytest.MonkeyPatch) -> None:
    in_worker, in_script = made_in("__videoflow_flow__"), made_in("__main__")
    flow = types.ModuleType("__videoflow_flow__")
    vars(flow)["Made"] = in_worker
    monkeypatch.setitem(sys.modules, "__videoflow_flow__", flow)
    body = encode_value(freeze(in_worker(3))).body
    assert type(decode_value(body)) is in_worker

    monkeypatch.delitem(sys.modules, "__videoflow_flow__")
    with pytest.raises(ValueRefused, match="not in this process"):
        decode_value(body)
    monkeypatch.setattr(sys.modules["__main__"], "Made", in_script, raising=False)
    assert type(decode_value(body)) is in_script
    assert encode_value(freeze(in_script(3))).body == body


@pytest.mark.parametrize(
    "name",
    ["tests.wire.records:Plain", "os:system", "builtins:dict", "nowhere:Nothing", "os:", "os", ""],
)
def test_only_dataclasses_and_structs_are_made_from_bytes(name: str) -> None:
    record = msgspec.msgpack.encode([name, {}])
    with pytest.raises(ValueRefused):
        decode_value(msgspec.msgpack.encode(msgspec.msgpack.Ext(1, record)))


def test_a_class_whose_fields_changed_is_refused() -> None:
    body = encode_value(freeze(Outer.Inner(1))).body.replace(b"\xa6number", b"\xa6nombre")
    with pytest.raises(ValueRefused, match="nombre"):
        decode_value(body)


def test_a_value_that_was_not_frozen_is_refused() -> None:
    with pytest.raises(ValueRefused, match="not frozen"):
        encode_value([{1}])
