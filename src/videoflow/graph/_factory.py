"""The parameters of a factory as options of a command line, and the texts given there as values.

Used by the command line, which knows how options are written and shown. It refuses a parameter that cannot be
an option, a text that is not of the annotated type, and an option that the factory does not have.
"""

import inspect
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from videoflow.errors import ArgumentInvalid, FlowError, FlowFileError, said_by
from videoflow.graph._arguments import resolved_annotations
from videoflow.graph._code import line_in
from videoflow.graph._flow import Flow
from videoflow.graph._options import nearest
from videoflow.graph._parse import Unparsable, parse
from videoflow.graph._types import Annotation, Value

_HEADING = re.compile(r"\s*(Args|Arguments|Parameters):\s*")
_ENTRY = re.compile(r"\*{0,2}(\w+)\s*(?:\([^)]*\))?:\s*(.*)")


@dataclass(frozen=True)
class FactoryParameter:
    """One parameter of a factory, as an option.

    Attributes:
        name: The parameter.
        option: `--like-this`.
        annotation: Its type; taken from the default where nothing is annotated.
        default: What applies when it is not given; None when it must be.
        required: It has no default.
        help: From the docstring, in one line.
    """

    name: str
    option: str
    annotation: Annotation
    default: Value
    required: bool
    help: str


def parameters(factory: Callable[..., Value], reserved: Collection[str] = ()) -> tuple[FactoryParameter, ...]:
    """Returns the parameters of a factory.

    Args:
        factory: A function that returns a flow.
        reserved: Options that the command line has itself, such as `--engine`.

    Raises:
        FlowFileError: A parameter that cannot be an option, or is named like a reserved one.
    """
    hints, helps = resolved_annotations(factory), _helps(inspect.getdoc(factory) or "")
    found = []
    for name, parameter in inspect.signature(factory).parameters.items():
        option = "--" + name.strip("_").replace("_", "-")
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD, parameter.POSITIONAL_ONLY):
            raise _unusable(factory, name, "it cannot be given by name", "make it an ordinary parameter")
        if option in reserved:
            raise _unusable(factory, name, f"{option} is an option of every run", "choose another name")
        required = parameter.default is parameter.empty
        default = None if required else parameter.default
        annotation = hints.get(name, str if default is None else type(default))
        found.append(FactoryParameter(name, option, annotation, default, required, helps.get(name, "")))
    return tuple(found)


def call_factory(factory: Callable[..., Value], texts: Mapping[str, Sequence[str]]) -> Flow:
    """Returns the flow that a factory builds from what was given on the command line.

    Args:
        factory: A function that returns a flow.
        texts: Parameter → the texts given for it, one for each time or word.

    Raises:
        ArgumentInvalid: An unknown, a missing or an unfitting argument.
        FlowFileError: The factory failed, or returned no flow; `where` says file and line.
    """
    known = {parameter.name: parameter for parameter in parameters(factory)}
    for name in texts:
        if name not in known:
            option = "--" + name.replace("_", "-")
            raise ArgumentInvalid(
                f"the flow has no option {option}",
                remedy=nearest(option, [parameter.option for parameter in known.values()]),
            )
    missing = [each.option for each in known.values() if each.required and each.name not in texts]
    if missing:
        raise ArgumentInvalid(
            f"the flow needs {', '.join(missing)}",
            cause="a parameter of the factory without default has to be given",
            remedy=f"add {missing[0]} VALUE",
        )
    values = {name: value_of(known[name], given) for name, given in texts.items()}
    return _called(factory, values)


def value_of(parameter: FactoryParameter, texts: Sequence[str]) -> Value:
    """Returns the value of one option.

    Raises:
        ArgumentInvalid: The texts are not of the annotated type.
    """
    try:
        return parse(texts, parameter.annotation, is_size=parameter.name.endswith("_bytes"))
    except Unparsable as error:
        raise ArgumentInvalid(
            f"option {parameter.option} cannot be {' '.join(map(repr, texts))}",
            cause=f"wanted {error}",
            remedy=f"write {parameter.option} {error.example}" if error.example else "",
        ) from None


def _called(factory: Callable[..., Value], values: Mapping[str, Value]) -> Flow:
    name = getattr(factory, "__name__", repr(factory))
    code = getattr(inspect.unwrap(factory), "__code__", None)
    file = code.co_filename if code is not None else ""
    try:
        flow = factory(**values)
    except FlowError as error:
        error.where = error.where or line_in(file, error.__traceback__)
        raise
    except (Exception, SystemExit) as error:
        raise FlowFileError(
            f"{name} failed",
            cause=said_by(error),
            where=line_in(file, error.__traceback__),
            remedy="mend that line",
        ) from error
    if not isinstance(flow, Flow):
        raise FlowFileError(
            f"{name} returned {type(flow).__name__}",
            where=f"{file}:{code.co_firstlineno}" if code is not None else "",
            remedy="return vf.Flow([...])",
        )
    return flow


def _unusable(factory: Callable[..., Value], name: str, cause: str, remedy: str) -> FlowFileError:
    code = getattr(inspect.unwrap(factory), "__code__", None)
    return FlowFileError(
        f"the parameter {name!r} of {getattr(factory, '__name__', factory)!s} cannot be an option",
        cause=cause,
        where=f"{Path(code.co_filename)}:{code.co_firstlineno}" if code is not None else "",
        remedy=remedy,
    )


def _helps(docstring: str) -> dict[str, str]:
    """Returns parameter → help from the `Args:` of a docstring."""
    lines = iter(docstring.splitlines())
    for line in lines:
        if _HEADING.fullmatch(line):
            break
    helps: dict[str, str] = {}
    current, depth = "", 0
    for line in lines:
        if not line.strip():
            continue
        indent = len(line) - len(line.lstrip())
        if indent == 0:
            break
        entry = _ENTRY.fullmatch(line.strip())
        if entry is not None and (not current or indent <= depth):
            current, depth = entry[1], indent
            helps[current] = entry[2].strip()
        elif current:
            helps[current] = f"{helps[current]} {line.strip()}".strip()
    return helps
