"""From `FILE[:FACTORY]` and the words after it to a flow: what `run-local` and `explain` share.

It refuses a factory whose parameter is named like an option of these commands, and an option that neither
the command nor the factory has.
"""

import types
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Annotated, Any, Literal, Union, get_args, get_origin

import typer

from videoflow.cli._console import columns, results
from videoflow.cli._flow_options import Takes, split_words
from videoflow.cli._nearest import meant
from videoflow.cli._table import Table
from videoflow.errors import FlowFileError, UsageError
from videoflow.graph import (
    FactoryParameter,
    Flow,
    call_factory,
    find_factory,
    load_flow_file,
    parameters,
    parse_requirements,
)

Annotation = Any
"""A type, as the parameter of a factory is annotated."""
Value = Any
"""What a parameter of a factory may have as its default."""

RESERVED = frozenset(
    {
        "--allow-dead-letters",
        "--allow-incomplete",
        "--debug",
        "--drain-seconds",
        "--engine",
        "--help",
        "--json",
        "--memory-bytes",
        "--mermaid",
        "--messaging",
        "--quiet",
        "--report",
        "--require",
        "--resume",
        "--run-dir",
        "--stall-seconds",
    }
)
"""Options of `run-local` and `explain`, which no parameter of a factory may be named like.

Frozen by a test: a new name here would break flows that have it. Options that come later begin with
`--run-`, and therefore no parameter may.
"""
LATER_PREFIX = "--run-"
_PROFILE = "--profile"

WORDS = {"allow_extra_args": True, "ignore_unknown_options": True}
"""Settings of a command that leaves the words it does not know to the flow."""

Target = Annotated[
    str,
    typer.Argument(metavar="FILE[:FACTORY]", help="The flow file, then its own options.", show_default=False),
]
Memory = Annotated[
    str,
    typer.Option(
        metavar="SIZE",
        help='Memory for items in flight, such as "2 GiB"; by default up to a quarter of what is free.',
        show_default=False,
    ),
]
Require = Annotated[
    list[str] | None,
    typer.Option(
        metavar="NAME[=VALUE]",
        help="What the engine must guarantee, such as isolated, or detect:tolerated_failures=1 for one "
        "channel; adds to what the flow requires. May be repeated.",
        show_default=False,
    ),
]
GpuPolicy = Annotated[
    str,
    typer.Option(
        metavar="NAME",
        help="strict: each task has the GPUs that it asks for, or nothing starts. shared: they wrap around "
        "over what there is, and none is exclusive.",
    ),
]
Fuse = Annotated[
    bool,
    typer.Option(
        "--run-fuse/--no-run-fuse",
        help="Let nodes run in one process, by their labels and by what they cost in profiled runs; "
        "or each in its own.",
    ),
]
Debug = Annotated[bool, typer.Option("--debug", help="Show the trace of errors.")]
Help = Annotated[bool, typer.Option("--help", help="Show the options, those of the flow included.")]


def gpu_policy(text: str) -> Literal["strict", "shared"]:
    """Returns how GPUs are to be given.

    Raises:
        UsageError: It is neither strict nor shared.
    """
    if text in ("strict", "shared"):
        return "strict" if text == "strict" else "shared"
    raise UsageError(f"--run-gpu-policy is {text!r}", remedy="say strict or shared")


@dataclass(frozen=True)
class FlowFile:
    """A loaded flow file: its factory, and what that takes."""

    factory: Callable[..., Any]
    parameters: tuple[FactoryParameter, ...]

    def build(self, words: Sequence[str]) -> Flow:
        """Returns the flow that the factory makes of the words after the file.

        Raises:
            ArgumentInvalid: An unknown, a missing or an unfitting option.
            FlowFileError: The factory failed.
        """
        takes = {each.option: _takes(each.annotation) for each in self.parameters}
        names = {each.option: each.name for each in self.parameters}
        given = split_words(words, takes, RESERVED)
        with _names_that_were_meant():
            return call_factory(self.factory, {names[option]: texts for option, texts in given.items()})

    def help(self) -> Table:
        """Returns the options of the flow, with type, default and help."""
        made = Table(("", "", ""))
        for each in self.parameters:
            default = "required" if each.required else f"default: {_shown(each.default)}"
            negated = f", --no-{each.option[2:]}" if _takes(each.annotation) is Takes.NONE else ""
            made.add(
                (f"  {each.option}{negated}", "cyan"),
                _type(each.annotation) if not negated else "",
                " ".join(part for part in (each.help, f"[{default}]") if part),
            )
        return made


def load(target: str) -> FlowFile:
    """Loads `FILE[:FACTORY]`.

    Raises:
        UsageError: No file is named, or words of the flow stand before it.
        FlowFileError: The file cannot be read or run, has no factory, or one with a reserved parameter.
    """
    if not target:
        raise UsageError(
            "no flow file is named",
            remedy="write videoflow run-local FILE, or make one with `videoflow init`",
        )
    if target.startswith("-"):
        raise UsageError(
            f"{target} stands before the flow file", remedy="put the options of a flow after its file"
        )
    path, _, name = target.rpartition(":")
    if not path or not name.isidentifier() or Path(target).exists():
        path, name = target, ""
    with _names_that_were_meant():
        module = load_flow_file(path)
    factory = find_factory(module, name or None)
    found = parameters(factory, RESERVED)
    for each in found:
        if each.option.startswith(LATER_PREFIX):
            raise FlowFileError(
                f"the parameter {each.name!r} of {factory.__name__} cannot be an option",
                cause=f"options that begin with {LATER_PREFIX} are kept for later options of every run",
                remedy="choose another name",
            )
    return FlowFile(factory, found)


@contextmanager
def _names_that_were_meant() -> Iterator[None]:
    """Adds the nearest name to the remedy where a misspelt one made a flow file fail."""
    try:
        yield
    except FlowFileError as error:
        found = meant(error.__cause__)
        if found:
            error.remedy = found
        raise


def profile_first(target: str, words: Sequence[str]) -> tuple[str, list[str], bool]:
    """Takes `--profile` from before a flow file, where it cannot be the flow's.

    Returns:
        The flow file, the words after it, and whether it was there.
    """
    return (words[0], list(words[1:]), True) if target == _PROFILE and words else (target, list(words), False)


def profile_asked(file: FlowFile, words: Sequence[str]) -> tuple[list[str], bool]:
    """Takes `--profile` out of the words after a flow file; one that the flow itself has is left to it.

    Returns:
        The other words, and whether it was there.
    """
    if _PROFILE not in words or any(each.option == _PROFILE for each in file.parameters):
        return list(words), False
    return [word for word in words if word != _PROFILE], True


def required_too(flow: Flow, texts: Sequence[str] | None) -> Flow:
    """Adds what a command line requires to what a flow does, and returns the flow.

    Raises:
        ArgumentInvalid: A text that is no requirement.
    """
    flow.requirements = flow.requirements.strengthened(parse_requirements(texts or ()))
    return flow


def show_help(context: typer.Context, target: str) -> None:
    """Prints the help of a command, and the options of the flow when one is named."""
    print(context.get_help())
    if not target:
        print("\nName a flow file to see its options too.")
        return
    flow_file = load(target)
    console = results()
    if flow_file.parameters:
        console.print(f"\nOptions of {target}:")
        for line in flow_file.help().lines(columns(console)):
            console.print(line)
    else:
        console.print(f"\n{target} has no options of its own.")


def _takes(annotation: Annotation) -> Takes:
    arms = _arms(annotation)
    if arms == [bool]:
        return Takes.NONE
    kinds = [_origin(arm) for arm in arms]
    several = [kind for kind in kinds if isinstance(kind, type) and issubclass(kind, Collection)]
    return Takes.MANY if any(kind not in (str, bytes, dict) for kind in several) else Takes.ONE


def _arms(annotation: Annotation) -> list[Annotation]:
    """Returns the members of a union but None; for anything else, itself."""
    if _origin(annotation) in (Union, types.UnionType):
        return [arm for arm in get_args(annotation) if arm is not type(None)]
    return [annotation]


def _origin(annotation: Annotation) -> Annotation:
    """Returns `list` for `list[int]`, and a type without brackets itself."""
    found: Annotation = get_origin(annotation)
    return annotation if found is None else found


def _type(annotation: Annotation) -> str:
    """Returns a type in the words of a command line: choices themselves, and names without modules."""
    words = []
    for arm in _arms(annotation):
        if _origin(arm) is Literal:
            words += [str(choice) for choice in get_args(arm)]
        elif isinstance(arm, type) and issubclass(arm, Enum):
            words += [str(member.value) for member in arm]
        else:
            words.append(arm.__name__ if isinstance(arm, type) and not get_args(arm) else str(arm))
    return "|".join(words).replace("typing.", "")


def _shown(default: Value) -> str:
    if isinstance(default, bool):
        return "yes" if default else "no"
    if isinstance(default, Enum):
        return str(default.value)
    if isinstance(default, tuple | list):
        return ",".join(map(_shown, default)) or "none"
    return "none" if default is None else str(default) or '""'
