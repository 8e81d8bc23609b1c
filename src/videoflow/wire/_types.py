"""Which classes may cross an edge, and under what name: dataclasses and Structs, by `module:qualname`.

Only those two kinds are ever made from bytes, field by field and without running `__init__` or
`__post_init__` of a dataclass, so that a value comes out as it went in, in every engine. Used by the codec.
It refuses a class that cannot be found again by its name in another process.
"""

import dataclasses
import functools
import importlib
import sys
from collections.abc import Mapping
from typing import Any

import msgspec

from videoflow.errors import ValueRefused

Value = Any
"""What an edge carries; `freeze` says exactly what that is."""

FLOW_MODULE = "__videoflow_flow__"
"""What the module of a flow file or notebook is called on the wire, whatever its process calls it."""

_ALIASES = (FLOW_MODULE, "__main__")


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class RecordType:
    """How one class is taken apart and put together again.

    Attributes:
        name: `module:qualname`.
        cls: The class.
        fields: Names of its fields, in order.
        mutable: Whether an instance can be changed, so that each receiver needs its own.
        struct: Whether it is a `msgspec.Struct`.
    """

    name: str
    cls: type
    fields: tuple[str, ...]
    mutable: bool
    struct: bool

    def build(self, values: Mapping[str, Value]) -> Value:
        """Returns an instance with these field values."""
        if not self.struct:
            made: Value = object.__new__(self.cls)
            for name, value in values.items():
                object.__setattr__(made, name, value)
            return made
        made = self.cls(**values)
        if hasattr(self.cls, "__post_init__"):
            for name, value in values.items():
                msgspec.structs.force_setattr(made, name, value)
        return made


def record_type(cls: type) -> RecordType | None:
    """Returns how a class is carried, or None for a class that is neither dataclass nor Struct.

    Raises:
        ValueRefused: It is one of the two and cannot be found by its name, or has another layout.
    """
    if issubclass(cls, msgspec.Struct):
        fields, struct, mutable = cls.__struct_fields__, True, not cls.__struct_config__.frozen
    elif dataclasses.is_dataclass(cls):
        fields, struct = tuple(field.name for field in dataclasses.fields(cls)), False
        described: Value = cls  # no stub knows the parameters
        mutable = not described.__dataclass_params__.frozen
        _require_plain_layout(cls)
    else:
        return None
    if _find(cls.__module__, cls.__qualname__) is not cls:
        raise ValueRefused(
            f"a value of class {cls.__qualname__} cannot be sent",
            cause=f"{cls.__module__}:{cls.__qualname__} does not name this class",
            remedy="define the class at the top of an importable module or of the flow file",
        )
    module = FLOW_MODULE if cls.__module__ in _ALIASES else cls.__module__
    return RecordType(f"{module}:{cls.__qualname__}", cls, fields, mutable, struct)


def record_named(name: str) -> RecordType:
    """Returns the record type with this name, importing its module if needed.

    Raises:
        ValueRefused: There is none in this process, or it is neither dataclass nor Struct.
    """
    return _flow_record(name) if name.startswith(f"{FLOW_MODULE}:") else _imported_record(name)


def _flow_record(name: str) -> RecordType:
    """Looks again each time: a notebook may have defined its class anew."""
    qualname = name.partition(":")[2]
    for module in _ALIASES:
        cls = _find(module, qualname)
        if isinstance(cls, type):
            return _required(name, cls)
    raise _unfound(name)


@functools.lru_cache(maxsize=1024)
def _imported_record(name: str) -> RecordType:
    module, _, qualname = name.partition(":")
    try:
        importlib.import_module(module)
    except ImportError as error:
        raise _unfound(name) from error
    cls = _find(module, qualname)
    if not isinstance(cls, type):
        raise _unfound(name)
    return _required(name, cls)


def _required(name: str, cls: type) -> RecordType:
    found = record_type(cls)
    if found is None:
        raise ValueRefused(
            f"a value of class {name} cannot be decoded", cause="it is neither a dataclass nor a Struct"
        )
    return found


def _find(module: str, qualname: str) -> object:
    found: object = sys.modules.get(module)
    for part in qualname.split("."):
        found = getattr(found, part, None)
    return found


def _unfound(name: str) -> ValueRefused:
    return ValueRefused(
        f"a value of class {name} cannot be decoded",
        cause="the class is not in this process",
        remedy="make its module importable where the worker runs",
    )


def _require_plain_layout(cls: type) -> None:
    try:
        object.__new__(cls)
    except TypeError as error:
        raise ValueRefused(
            f"a value of class {cls.__qualname__} cannot be sent",
            cause=str(error),
            remedy="use a dataclass that inherits from no built-in type and has no abstract method",
        ) from error
