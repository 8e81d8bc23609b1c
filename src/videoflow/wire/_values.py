"""Values as bytes: MessagePack with five extensions, and references to payloads for large arrays.

Used by workers and by whoever reads records. It refuses bytes that it did not make, and never runs code in
them.
"""

import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Final

import msgspec
import numpy as np
from numpy.typing import NDArray

from videoflow.backends.payload import PayloadBytes, PayloadRef, View
from videoflow.errors import ValueRefused
from videoflow.wire._arrays import (
    AnyArray,
    StoredObject,
    dtype_named,
    dtype_text,
    flat_bytes,
    stored_object,
    view_of,
)
from videoflow.wire._types import RecordType, Value, record_named, record_type

INLINE_BYTES: Final = 16384
"""Arrays of so many bytes and more become payloads."""

_RECORD, _ARRAY, _VIEW, _TUPLE, _FRACTION = range(1, 6)
_EXTENSIONS = frozenset((b"\xc7", b"\xc8", b"\xc9"))  # MessagePack: ext 8, 16, 32
_PLAIN = frozenset((type(None), bool, int, float, str, bytes))
_encoder = msgspec.msgpack.Encoder()
_decode = msgspec.msgpack.Decoder().decode
_records: dict[type, RecordType | None] = {}

StoreArray = Callable[[NDArray[np.uint8], int], PayloadRef]
Load = Callable[[PayloadRef], PayloadBytes]


class EncodedValue(msgspec.Struct, frozen=True):
    """A value ready for envelopes.

    Attributes:
        body: Everything but the large arrays.
        payloads: The objects that the body refers to, by index, each once.
        size_bytes: Body and whole payloads together.
    """

    body: bytes
    payloads: tuple[PayloadRef, ...]
    size_bytes: int


def encode_value(
    value: Value,
    store_array: StoreArray | None = None,
    inline_bytes: int = INLINE_BYTES,
    *,
    forward: bool = True,
) -> EncodedValue:
    """Returns a frozen value as bytes; equal values give equal bytes, references apart.

    Args:
        value: What `freeze` returned.
        store_array: Called with the bytes of each array to be stored, (N,) uint8, read-only, in C order,
            and with its index in the value; returns where they are. Arrays that lie in a payload already
            are sent as views of it, without a call. None: every array is part of the body.
        inline_bytes: Smaller arrays are part of the body.
        forward: False: arrays that lie in a payload already are stored again, for stores that forward no
            references.

    Raises:
        ValueRefused: The value was not frozen. What `store_array` raises passes through.
    """
    found = encode_small(value, math.inf if store_array is None else inline_bytes)
    if found is not None:
        return found
    packer = _Packer(store_array, inline_bytes, forward=forward)
    body = _encoder.encode(packer.pack(value))
    payloads = tuple(packer.payloads)
    return EncodedValue(body, payloads, len(body) + sum(ref.size_bytes for ref in payloads))


def encode_small(value: Value, inline_bytes: float = INLINE_BYTES) -> EncodedValue | None:
    """Returns a plain value, or an array of less than so many bytes, as `encode_value` does; else None."""
    kind = type(value)
    if kind in _PLAIN:
        body = _encoder.encode(value)
    elif kind is np.ndarray and value.nbytes < inline_bytes:
        body = _encoder.encode(_inline(value))
    else:
        return None
    return EncodedValue(body, (), len(body))


class _Packer:
    def __init__(self, store_array: StoreArray | None, inline_bytes: int, *, forward: bool) -> None:
        self.forward = forward
        self.store_array = store_array
        self.inline_bytes = inline_bytes
        self.payloads: dict[PayloadRef, int] = {}
        self.views: dict[int, View] = {}

    def pack(self, value: Value) -> Value:
        kind = type(value)
        if kind in _PLAIN:
            return value
        if kind is list:
            return [item if type(item) in _PLAIN else self.pack(item) for item in value]
        if kind is dict:
            return {key: item if type(item) in _PLAIN else self.pack(item) for key, item in value.items()}
        if kind is np.ndarray:
            return self._array(value)
        if kind is tuple:
            return _extension(_TUPLE, [self.pack(item) for item in value])
        if kind is Fraction:
            return _extension(_FRACTION, [value.numerator, value.denominator])
        record = _record_of(kind)
        fields = {name: self.pack(getattr(value, name)) for name in record.fields}
        return _extension(_RECORD, [record.name, fields])

    def _array(self, array: AnyArray) -> msgspec.msgpack.Ext:
        if self.store_array is None or array.nbytes < self.inline_bytes:
            return _inline(array)
        view = self.views.get(id(array))
        if view is None:
            stored = stored_object(array) if self.forward else None
            view = view_of(array, stored) if stored is not None else None
            if view is None:
                view = self._stored(array, self.store_array)
            self.views[id(array)] = view
        index = self.payloads.setdefault(view.ref, len(self.payloads))
        return _extension(_VIEW, [index, view.offset_bytes, list(view.shape), list(view.strides), view.dtype])

    def _stored(self, array: AnyArray, store_array: StoreArray) -> View:
        contiguous = np.ascontiguousarray(array).reshape(array.shape)
        data = flat_bytes(contiguous)
        data.flags.writeable = False
        ref = store_array(data, len(self.payloads))
        return View(ref, 0, array.shape, contiguous.strides, dtype_text(array.dtype))


def _inline(array: AnyArray) -> msgspec.msgpack.Ext:
    return _extension(_ARRAY, [dtype_text(array.dtype), array.shape, array.tobytes()])


def _extension(code: int, content: Value) -> msgspec.msgpack.Ext:
    return msgspec.msgpack.Ext(code, _encoder.encode(content))


def _record_of(kind: type) -> RecordType:
    if kind not in _records:
        _records[kind] = record_type(kind)
    record = _records[kind]
    if record is None:
        raise ValueRefused(
            f"a value of type {kind.__module__}.{kind.__qualname__} cannot be encoded",
            cause="it was not frozen",
            remedy="pass what wire.freeze returns",
        )
    return record


def decode_value(body: bytes, payloads: Sequence[PayloadRef] = (), load: Load | None = None) -> Value:
    """Returns the value, with read-only arrays that are views of their payloads.

    Args:
        body: What `encode_value` made.
        payloads: The references beside it.
        load: Reads one payload; called at most once for each that the body uses. What it returns is
            closed when the last array over it has been collected, by whichever thread does that, so its
            `close` must not wait for anything the collecting thread may hold.

    Raises:
        ValueRefused: The bytes are damaged, or a class is not in this process. What `load` raises passes
            through.
    """
    try:
        if not payloads:
            return _decode_whole(body)
        if body[:1] in _EXTENSIONS:  # an array or a record: its head needs no hook
            top = _decode(body)
            return _Unpacker(payloads, load).extension(top.code, top.data)
        return _Unpacker(payloads, load).unpack(body)
    except (msgspec.MsgspecError, ValueError, TypeError, IndexError, ZeroDivisionError) as error:
        raise ValueRefused("a value cannot be decoded", cause=f"{type(error).__name__}: {error}") from error


class _Unpacker:
    def __init__(self, payloads: Sequence[PayloadRef], load: Load | None) -> None:
        self.payloads = payloads
        self.load = load
        self.roots: dict[int, AnyArray] = {}

    def unpack(self, data: bytes | memoryview) -> Value:
        return msgspec.msgpack.decode(data, ext_hook=self.extension)

    def extension(self, code: int, data: memoryview) -> Value:
        if code == _ARRAY:
            dtype, shape, memory = _decode(data)
            return np.ndarray(shape, dtype_named(dtype), memory)
        content = self.unpack(data)
        if code == _RECORD:
            name, fields = content
            record = record_named(name)
            if tuple(fields) != record.fields:
                raise ValueRefused(
                    f"a value of class {name} cannot be decoded",
                    cause=f"it was sent with the fields {', '.join(fields)}, and the class now has"
                    f" {', '.join(record.fields)}",
                )
            return record.build(fields)
        if code == _VIEW:
            index, offset, shape, strides, dtype = content
            return np.ndarray(tuple(shape), dtype_named(dtype), self._root(index), offset, tuple(strides))
        if code == _TUPLE:
            return tuple(content)
        if code == _FRACTION:
            return Fraction(*content)
        raise ValueRefused(f"a value cannot be decoded: there is no extension {code}")

    def _root(self, index: int) -> AnyArray:
        root = self.roots.get(index)
        if root is None:
            if self.load is None:
                raise ValueRefused("a value cannot be decoded: it refers to payloads, and there is no store")
            ref = self.payloads[index]
            root = self.roots[index] = np.asarray(StoredObject(ref, self.load(ref)))
        return root


_decode_whole = msgspec.msgpack.Decoder(ext_hook=_Unpacker((), None).extension).decode
