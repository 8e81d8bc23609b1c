"""What the methods of a node look like: which of them take a context, and how many inputs.

Used by whoever calls user code, and by the compiler. It refuses nothing.
"""

import functools
import inspect
import types
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any
from weakref import WeakKeyDictionary

from videoflow.graph._arguments import resolved_annotations
from videoflow.graph._context import Context

Method = Callable[..., Any]


@dataclass(frozen=True, slots=True)
class Shape:
    """The parameters of a method, as far as its caller must know them.

    Attributes:
        context: Name of the parameter that takes the context, or None.
        least: So many inputs it needs.
        most: So many it takes at most, or None for any number.
    """

    context: str | None
    least: int
    most: int | None


_shapes: "WeakKeyDictionary[types.FunctionType, Shape]" = WeakKeyDictionary()


def shape_of(method: Method) -> Shape:
    """Returns the shape of a bound method, or of a function; of a method it is looked at once."""
    function = getattr(method, "__func__", None)
    if not isinstance(function, types.FunctionType):
        return _shape_of(method)
    found = _shapes.get(function)
    if found is None:
        found = _shapes[function] = _shape_of(method)
    return found


def _shape_of(method: Method) -> Shape:
    context, least, most = None, 0, 0
    hints = resolved_annotations(_plain(method))
    unbounded = False
    for name, parameter in inspect.signature(method).parameters.items():
        if name == "ctx" or hints.get(name) is Context:
            context = name
        elif parameter.kind is parameter.VAR_POSITIONAL:
            unbounded = True
        elif parameter.kind in (parameter.POSITIONAL_ONLY, parameter.POSITIONAL_OR_KEYWORD):
            most += 1
            least += parameter.default is parameter.empty
    return Shape(context, least, None if unbounded else most)


def is_asynchronous(method: Method) -> bool:
    """Whether a method is `async def`, generators included."""
    plain = _plain(method)
    return inspect.iscoroutinefunction(plain) or inspect.isasyncgenfunction(plain)


def _plain(method: Method) -> Method:
    while isinstance(method, functools.partial):
        method = method.func
    plain: Method = inspect.unwrap(getattr(method, "__func__", method))
    return plain
