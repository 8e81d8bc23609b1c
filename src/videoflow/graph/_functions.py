"""Nodes of plain functions: `@vf.producer`, `@vf.processor`, `@vf.consumer`.

Used by notebooks and small flows. The decorated function is a class of nodes: `gray(camera)` makes a node and
wires it, `gray(name="g")(camera)` does the same in two steps; the function itself is `gray.function`. What
stands before `*` are the inputs, what stands after it are arguments. They refuse a function whose parameters
cannot be told apart so.
"""

import functools
import inspect
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ClassVar, Unpack, cast, overload

from videoflow.errors import UsageError
from videoflow.graph._node import Consumer, Node, NodeMeta, Processor, Producer
from videoflow.graph._options import OPTION_TYPES, NodeOptions, take_options
from videoflow.graph._types import Value

if TYPE_CHECKING:
    from videoflow.graph._wiring import Source

_Function = Callable[..., Any]


if TYPE_CHECKING:

    class FunctionProducer(Producer):
        """A producer of a decorated function."""

        function: ClassVar[_Function]

        def __init__(self, **arguments: Any) -> None: ...

    class FunctionProcessor(Processor):
        """A processor of a decorated function."""

        function: ClassVar[_Function]

        def __init__(self, *parents: Source, **arguments: Any) -> None: ...

    class FunctionConsumer(Consumer):
        """A consumer of a decorated function."""

        function: ClassVar[_Function]

        def __init__(self, *parents: Source, **arguments: Any) -> None: ...

else:

    class FunctionProducer(Producer):
        """A producer of a decorated function."""

    class FunctionProcessor(Processor):
        """A processor of a decorated function."""

    class FunctionConsumer(Consumer):
        """A consumer of a decorated function."""


@overload
def producer(function: _Function, /) -> type[FunctionProducer]: ...
@overload
def producer(**options: Unpack[NodeOptions]) -> Callable[[_Function], type[FunctionProducer]]: ...
def producer(function: _Function | None = None, /, **options: Any) -> Any:
    """Makes a producer of a generator function that takes `resume` and yields `Item`s.

    A function without `resume` starts from its beginning, and what was committed before is left out.
    """
    return _decorate(FunctionProducer, "produce", function, options)


@overload
def processor(function: _Function, /) -> type[FunctionProcessor]: ...
@overload
def processor(
    *, ports: tuple[str, ...] = ..., many: dict[str, int] = ..., **options: Unpack[NodeOptions]
) -> Callable[[_Function], type[FunctionProcessor]]: ...
def processor(function: _Function | None = None, /, **options: Any) -> Any:
    """Makes a processor of a function of its inputs, which returns or yields as `Processor.process` does."""
    return _decorate(FunctionProcessor, "process", function, options)


@overload
def consumer(function: _Function, /) -> type[FunctionConsumer]: ...
@overload
def consumer(**options: Unpack[NodeOptions]) -> Callable[[_Function], type[FunctionConsumer]]: ...
def consumer(function: _Function | None = None, /, **options: Any) -> Any:
    """Makes a consumer of a function of its inputs."""
    return _decorate(FunctionConsumer, "consume", function, options)


def _decorate(base: type[Node], method: str, function: _Function | None, options: dict[str, Any]) -> Value:
    if function is None:
        return functools.partial(_make, base, method, options=options)
    return _make(base, method, function, options=options)


def _make(base: type[Node], method: str, function: _Function, *, options: dict[str, Any]) -> type[Node]:
    name = getattr(function, "__qualname__", repr(function))
    if not inspect.isroutine(function):
        raise UsageError(
            f"{name} is not a function", remedy="decorate a function, or derive from a node class"
        )
    declared: dict[str, Any] = {key: options[key] for key in ("ports", "many") if key in options}
    given, unknown = take_options(name, {key: options[key] for key in options if key not in declared})
    if unknown:
        raise UsageError(f"{name} has no option {next(iter(unknown))!r}")
    namespace: dict[str, Any] = {
        **declared,
        "__doc__": inspect.getdoc(function) or f"The function {name} as a node.",
        "__module__": function.__module__,
        "__qualname__": name,
        "__init__": _initialiser(method),
        "_videoflow_parameters_of": staticmethod(_parameters_of(name, function)),
        "function": staticmethod(function),
        "decorated_options": given,
        method: staticmethod(function),
    }
    return cast("type[Node]", NodeMeta(function.__name__, (base,), namespace))


def _initialiser(method: str) -> Callable[..., None]:
    def initialise(self: Node, **arguments: Any) -> None:
        if arguments:
            bound = functools.partial(getattr(type(self), method), **arguments)
            object.__setattr__(self, method, bound)

    return initialise


def _parameters_of(name: str, function: _Function) -> Callable[..., None]:
    """Returns a function whose signature is that of the node's `__init__`."""
    signature = inspect.signature(function)
    kept = []
    for parameter in signature.parameters.values():
        if parameter.kind is parameter.VAR_KEYWORD:
            raise UsageError(f"{name} takes **{parameter.name}", remedy="name the arguments after *")
        if parameter.kind is parameter.KEYWORD_ONLY and parameter.name != "ctx":
            if parameter.name in OPTION_TYPES:
                raise UsageError(
                    f"{name}: an argument cannot be named {parameter.name!r}",
                    cause="that is an option of every node",
                    remedy="choose another name",
                )
            kept.append(parameter)

    def carrier(self: Node) -> None:
        """Only its signature and annotations are read."""

    first = inspect.Parameter("self", inspect.Parameter.POSITIONAL_OR_KEYWORD)
    described: Any = carrier
    described.__signature__ = inspect.Signature([first, *kept])
    described.__annotations__ = dict(getattr(function, "__annotations__", {}))
    described.__wrapped__ = function
    return carrier
