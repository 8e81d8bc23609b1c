"""Arrays at the border: making them immutable, naming their dtype, seeing where their memory lies.

Used by the codec and by `freeze`. It refuses arrays of Python objects, and dtypes that name no fixed bytes.
"""

import functools
import json
import weakref
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from videoflow.backends.payload import PayloadBytes, PayloadRef, View
from videoflow.errors import ValueRefused
from videoflow.wire._types import Value

AnyArray = np.ndarray[Any, Any]

_COPY_OUT_RATIO = 64  # a view pins its whole object: one smaller than a 64th of it gets an object of its own


class StoredObject:
    """The memory of a payload under arrays: NumPy keeps it as the last `base` of every view.

    It holds the pin, and closes it when the last array over the payload has been collected.
    """

    __slots__ = ("__array_interface__", "_memory", "_pin", "_ref", "_written", "address")

    def __init__(self, ref: PayloadRef | None, pin: "PayloadBytes | Unsealed") -> None:
        self._memory = np.frombuffer(pin.data, np.uint8)
        self._pin = pin
        self._ref = ref
        self._written: weakref.ref[AnyArray] | None = None
        self.address = address_of(self._memory)
        self.__array_interface__ = {
            "shape": (len(self._memory),),
            "typestr": "|u1",
            "data": (self.address, isinstance(pin, PayloadBytes)),
            "version": 3,
        }

    def __del__(self) -> None:
        if hasattr(self, "_memory"):
            del self._memory
            self._pin.close()

    @property
    def ref(self) -> PayloadRef:
        """The payload; one that is being written is sealed when somebody asks for it."""
        if self._ref is None:
            assert not isinstance(self._pin, PayloadBytes)
            self._ref = self._pin.seal()
        return self._ref

    def written_by(self, array: AnyArray) -> None:
        """Remembers the array through which a payload is written."""
        self._written = weakref.ref(array)

    def finish(self) -> None:
        """Lets nobody write to that array any more: what lies in the payload is handed over."""
        array = None if self._written is None else self._written()
        if array is not None:
            array.flags.writeable = False


class Unsealed(Protocol):
    """The memory of a payload that is being written."""

    @property
    def data(self) -> memoryview:
        """It, writable."""
        ...

    def seal(self) -> PayloadRef:
        """Makes it a payload."""
        ...

    def close(self) -> None:
        """No array lies in it any more; called by whichever thread collects the last, so it must not wait."""
        ...


def array_in(memory: Unsealed, shape: tuple[int, ...], dtype: np.dtype[Any]) -> AnyArray:
    """Returns an array, writable, that lies in a payload; the payload is sealed when it is sent."""
    stored = StoredObject(None, memory)
    array: AnyArray = np.ndarray(shape, dtype, np.asarray(stored))
    stored.written_by(array)
    return array


def address_of(array: AnyArray) -> int:
    """Returns the address of the first element."""
    address: int = array.__array_interface__["data"][0]
    return address


def stored_object(array: AnyArray) -> StoredObject | None:
    """Returns the payload that an array lies in, or None."""
    owner = _owner_of(array)
    return owner if isinstance(owner, StoredObject) else None


def freeze_array(array: AnyArray) -> AnyArray:
    """Returns the array, read-only; copied unless nobody else can write to it.

    What owns its memory is made read-only in place, and so is the owner below a read-only view of all of
    it (a `Frame` holds such views). A view of a payload stays one, and who made the payload writes to it no
    more. Anything else is copied, C-contiguous.

    Raises:
        ValueRefused: It holds Python objects, or is of a subclass with a meaning of its own.
    """
    flags = array.flags
    if type(array) is np.ndarray and flags.owndata and flags.c_contiguous and not array.dtype.hasobject:
        if flags.writeable:
            flags.writeable = False
        return array  # the usual case: a new array, whole
    if type(array) not in _ARRAY_TYPES:
        raise ValueRefused(
            f"an array of class {type(array).__name__} is carried by no edge",
            remedy="emit numpy.asarray(value), and what it leaves out as a value beside it",
        )
    if array.dtype.hasobject:
        raise ValueRefused(
            f"an array of dtype {array.dtype} is carried by no edge",
            cause="its elements are Python objects",
            remedy="emit a list, or an array of numbers or strings",
        )
    owner = _owner_of(array)
    if isinstance(owner, StoredObject):
        owner.finish()
        return _read_only(array)
    if array.flags.c_contiguous:
        if type(owner) is bytes:
            return array
        if type(owner) is np.ndarray and owner.flags.owndata and _alone(array, owner):
            owner.flags.writeable = False
            return _read_only(array)
    return _read_only(np.array(array, order="C", copy=True))


_ARRAY_TYPES = (np.ndarray, np.memmap)


def _owner_of(array: AnyArray) -> Value:
    """Returns what the memory of an array belongs to: an array, or what lies below the last one."""
    while (base := array.base) is not None:
        if not isinstance(base, np.ndarray):
            return base
        array = base
    return array


def _alone(array: AnyArray, owner: AnyArray) -> bool:
    return array is owner or (not array.flags.writeable and array.nbytes == owner.nbytes)


def _read_only(array: AnyArray) -> AnyArray:
    if array.flags.writeable:
        array.flags.writeable = False
    return array


def view_of(array: AnyArray, stored: StoredObject) -> View | None:
    """Returns the array as a view of its payload, or None when it should get an object of its own."""
    if array.nbytes * _COPY_OUT_RATIO < stored.ref.size_bytes:
        return None
    offset = address_of(array) - stored.address
    return View(stored.ref, offset, array.shape, array.strides, dtype_text(array.dtype))


def flat_bytes(array: AnyArray) -> NDArray[np.uint8]:
    """Returns the bytes of an array in C order, (nbytes,) uint8; copied only if it is not contiguous."""
    return np.ascontiguousarray(array).reshape(-1).view(np.uint8)


@functools.lru_cache(maxsize=256)
def dtype_text(dtype: np.dtype[Any]) -> str:
    """Returns a dtype as a NumPy type string, or as JSON where it has fields."""
    return dtype.str if dtype.names is None else json.dumps(np.lib.format.dtype_to_descr(dtype))


@functools.lru_cache(maxsize=256)
def dtype_named(text: str) -> np.dtype[Any]:
    """Returns the dtype that `dtype_text` wrote.

    Raises:
        ValueRefused: It is no such text, or has Python objects as elements.
    """
    try:
        dtype = np.dtype(_described(json.loads(text)) if text.startswith("[") else text)
    except (TypeError, ValueError, SyntaxError) as error:
        raise ValueRefused(f"an array cannot be decoded: dtype {text!r}") from error
    if dtype.hasobject:
        raise ValueRefused(f"an array cannot be decoded: dtype {text!r}")
    return dtype


def _described(fields: Value) -> Value:
    described = []
    for name, kind, *shape in fields:
        inner = _described(kind) if isinstance(kind, list) else kind
        described.append((tuple(name) if isinstance(name, list) else name, inner, *map(tuple, shape)))
    return np.lib.format.descr_to_dtype(described)
