"""What a node was made with: recorded as JSON before `__init__`, and given back in the worker.

Used by the metaclass of nodes and by `instantiate`. It refuses an argument that would not come back the same
from JSON: NaN, a function, an open file, a value of another type than the annotated one.
"""

import inspect
from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any, get_type_hints

from videoflow.errors import ArgumentInvalid
from videoflow.graph._annotations import FINITE, Mismatch, shown
from videoflow.graph._codec import decode, encode
from videoflow.graph._options import OPTION_TYPES, nearest
from videoflow.graph._types import Annotation, Json, Value

_SIGNATURE = "_videoflow_signature"


class _Signature:
    """The parameters of a class without `self` and options, and what is annotated."""

    def __init__(self, cls: type) -> None:
        function = getattr(cls, "_videoflow_parameters_of", None) or inspect.getattr_static(cls, "__init__")
        hints = resolved_annotations(function)
        kept: list[inspect.Parameter] = []
        self.takes_more = False
        parameters = list(inspect.signature(function).parameters.values())
        for parameter in parameters[1:]:
            if parameter.kind is parameter.VAR_KEYWORD and _is_options(parameter, hints):
                continue
            if parameter.name in OPTION_TYPES:
                raise ArgumentInvalid(
                    f"{cls.__qualname__}: a parameter of __init__ cannot be named {parameter.name!r}",
                    cause=f"{parameter.name} is an option of every node and is taken out before __init__",
                    remedy="choose another name, or accept options with **options: Unpack[vf.NodeOptions]",
                )
            self.takes_more |= parameter.kind is parameter.VAR_KEYWORD
            kept.append(parameter)
        self.signature = inspect.Signature(kept)
        self.hints = {parameter.name: hints.get(parameter.name, Any) for parameter in kept}
        self.names = [parameter.name for parameter in kept]


def capture(cls: type, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> dict[str, Any]:
    """Returns what `__init__` is about to receive, as JSON data by parameter; defaults are left out.

    Raises:
        ArgumentInvalid: An argument is unknown, missing, of another type, or has no JSON form.
    """
    form = _form(cls)
    _refuse_unknown(cls, form, kwargs)
    try:
        bound = form.signature.bind(*args, **kwargs)
    except TypeError as error:
        raise ArgumentInvalid(
            f"{cls.__qualname__} cannot be made",
            cause=str(error),
            remedy=f"it is {cls.__qualname__}{form.signature}, then the options",
        ) from None
    data = {}
    for name, value in bound.arguments.items():
        wanted = _whole(form.signature.parameters[name], form.hints[name])
        data[name] = _recorded(cls, name, value, wanted)
    return data


def restore(cls: type, data: Mapping[str, Any]) -> tuple[list[Any], dict[str, Any]]:
    """Returns the positional and the keyword arguments that were captured.

    Raises:
        ArgumentInvalid: The data does not fit the class, which must have changed since.
    """
    form = _form(cls)
    positional: list[Any] = []
    keywords: dict[str, Any] = {}
    skipped = False
    for name in data:
        if name not in form.signature.parameters:
            raise ArgumentInvalid(
                f"{cls.__qualname__} has no parameter {name!r}", remedy=nearest(name, form.names)
            )
    for name, parameter in form.signature.parameters.items():
        if name not in data:
            skipped = True
            continue
        part = data[name]
        try:
            value = decode(part, _whole(parameter, form.hints[name]))
        except Mismatch as mismatch:
            raise _invalid(cls, name, mismatch) from None
        if parameter.kind is parameter.VAR_POSITIONAL:
            positional += value
        elif parameter.kind is parameter.VAR_KEYWORD:
            keywords |= value
        elif parameter.kind is parameter.KEYWORD_ONLY or skipped:
            keywords[name] = value
        else:
            positional.append(value)
    return positional, keywords


def resolved_annotations(function: Value) -> dict[str, Any]:
    """Returns the annotations of a function; one that cannot be resolved leaves the others standing."""
    try:
        return get_type_hints(function, include_extras=True)
    except (NameError, TypeError, AttributeError):
        pass
    found: dict[str, Any] = {}
    names = getattr(inspect.unwrap(function), "__globals__", {})
    for name, annotation in getattr(function, "__annotations__", {}).items():
        probe: Value = SimpleNamespace(__annotations__={name: annotation})
        try:
            found |= get_type_hints(probe, names, include_extras=True)
        except (NameError, TypeError, AttributeError):
            found[name] = Any
    return found


def _form(cls: type) -> _Signature:
    form = cls.__dict__.get(_SIGNATURE)
    if form is None:
        form = _Signature(cls)
        setattr(cls, _SIGNATURE, form)
    return form


def _is_options(parameter: inspect.Parameter, hints: Mapping[str, Any]) -> bool:
    annotation = hints.get(parameter.name, parameter.annotation)
    return "NodeOptions" in f"{annotation} {parameter.annotation}"


def _refuse_unknown(cls: type, form: _Signature, kwargs: Mapping[str, Any]) -> None:
    if form.takes_more:
        return
    known = [*form.names, *OPTION_TYPES]
    for name in kwargs:
        if name not in known:
            raise ArgumentInvalid(
                f"{cls.__qualname__} has no argument and no option {name!r}", remedy=nearest(name, known)
            )


def _whole(parameter: inspect.Parameter, hint: Annotation) -> Annotation:
    if parameter.kind is parameter.VAR_POSITIONAL:
        return tuple[hint, ...]
    if parameter.kind is parameter.VAR_KEYWORD:
        return dict[str, hint]
    return hint


def _recorded(cls: type, name: str, value: Value, wanted: Annotation) -> Json:
    try:
        data = encode(value, wanted)
        again = decode(data, wanted)
    except Mismatch as mismatch:
        raise _invalid(cls, name, mismatch) from None
    if again != value:
        raise ArgumentInvalid(
            f"{cls.__qualname__}: argument {name} would not come back the same from JSON",
            cause=f"{shown(value)} becomes {shown(again)}",
            remedy=f"annotate {name} with the type that it has, and let that type compare by value",
        )
    return data


def _invalid(cls: type, name: str, mismatch: Mismatch) -> ArgumentInvalid:
    remedy = (
        f"annotate {name} with what it is, or pass what it is annotated with; "
        "open files and make functions in open()"
    )
    if mismatch.wanted == FINITE:
        remedy = f"pass a finite number; annotate {name} with float | None, where None can say what is meant"
    return ArgumentInvalid(
        f"{cls.__qualname__}: argument {name}{mismatch.where} cannot be {mismatch.found}",
        cause=f"wanted {mismatch.wanted}",
        remedy=remedy,
    )
