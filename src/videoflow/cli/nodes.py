"""`videoflow nodes`: the nodes of the library, with parameters and ports; no heavy library is loaded."""

import inspect
import types
from collections.abc import Callable
from typing import Annotated, Any, Union, get_args, get_origin, get_type_hints

import msgspec
import typer

from videoflow import nodes as library
from videoflow.cli._console import columns, results, watched
from videoflow.cli._nearest import nearest
from videoflow.cli._table import Table
from videoflow.errors import UsageError
from videoflow.graph import Consumer, Context, Node, Out, Processor, Producer
from videoflow.graph.spec import NodeKind

Annotation = Any
"""A type, as a method of a node is annotated."""

_BASES = (Node, Producer, Processor, Consumer)
_LATER = "(not built yet)"  # so says the first line of a node that is only named
_TITLES = {NodeKind.PRODUCER: "Sources", NodeKind.PROCESSOR: "Processors", NodeKind.CONSUMER: "Sinks"}


class NodeEntry(msgspec.Struct, frozen=True):
    """One node of the library, as `--json` shows it; `many` are the ports that may emit several items."""

    name: str
    kind: NodeKind
    line: str
    parameters: list[str]
    ports: list[str]
    many: list[str]
    reads: list[str]
    makes: str


def register(app: typer.Typer) -> None:
    """Adds the command."""
    app.command("nodes")(nodes)


def nodes(
    name: Annotated[
        str, typer.Argument(metavar="NAME", help="Show this node in full.", show_default=False)
    ] = "",
    json: Annotated[bool, typer.Option("--json", help="Print the nodes as JSON.")] = False,
) -> None:
    """List the nodes of the library, or show one in full."""
    found = {
        each: cls
        for each in sorted(library.__all__)
        if inspect.isclass(cls := getattr(library, each)) and issubclass(cls, Node)
    }
    if name:
        if name not in found:
            raise UsageError(
                f"the library has no node {name!r}",
                cause=f"known are {', '.join(found)}",
                remedy=nearest(name, found) or "see `videoflow nodes`",
            )
        found = {name: found[name]}
    entries = [_entry(each, cls) for each, cls in found.items()]
    if json:
        print(msgspec.json.format(msgspec.json.encode(entries)).decode())
    elif name:
        _print_one(entries[0], found[name])
    else:
        _print(entries)


def _entry(name: str, cls: type[Node]) -> NodeEntry:
    kind = (
        NodeKind.PRODUCER
        if issubclass(cls, Producer)
        else (NodeKind.CONSUMER if issubclass(cls, Consumer) else NodeKind.PROCESSOR)
    )
    return NodeEntry(
        name=name,
        kind=kind,
        line=(inspect.getdoc(cls) or "").partition("\n")[0],
        parameters=_parameters(cls),
        ports=list(cls.ports),
        many=list(cls.many),
        reads=_reads(cls),
        makes=_makes(cls),
    )


def _method(cls: type[Node]) -> Callable[..., object] | None:
    """Returns what is called for each input, or None for a source and for a node that is only named."""
    name = "consume" if issubclass(cls, Consumer) else "process"
    return next((vars(each)[name] for each in cls.__mro__ if name in vars(each) and each not in _BASES), None)


def _reads(cls: type[Node]) -> list[str]:
    """Returns the types of the inputs, in order, in words."""
    method = _method(cls)
    if method is None:
        return []
    hints = get_type_hints(method)
    read: list[str] = []
    for parameter in list(inspect.signature(method).parameters.values())[1:]:
        wanted = hints.get(parameter.name, Any)
        if wanted is Context:
            continue
        several = "any number of " if parameter.kind is parameter.VAR_POSITIONAL else ""
        read.append(f"{several}values" if several and wanted is Any else several + _type(wanted))
    return read


def _makes(cls: type[Node]) -> str:
    """Returns the type of what the first port gives, or "" for a sink and where the class does not say it."""
    method = _method(cls)
    made = get_type_hints(method).get("return") if method is not None else None
    return "" if made in (None, type(None)) else _type(made)


def _type(annotation: Annotation) -> str:
    """Returns a type in the words of a list: alternatives by bars, `Out` and None left out."""
    if annotation is Any:
        return "any value"
    origin: Annotation = get_origin(annotation)
    if origin not in (None, Union, types.UnionType):
        annotation = get_args(annotation)[0]  # an iterator of outputs
    arms = get_args(annotation) or (annotation,)
    return " | ".join(arm.__name__ for arm in arms if arm not in (Out, type(None)))


def _parameters(cls: type[Node]) -> list[str]:
    """Returns the parameters as a reader would write them; options that every node takes are left out."""
    shown: list[str] = []
    starred = False
    for parameter in list(inspect.signature(cls.__init__).parameters.values())[1:]:
        if parameter.kind is parameter.VAR_KEYWORD:
            continue
        if parameter.kind is parameter.KEYWORD_ONLY and not starred:
            starred = True
            shown.append("*")
        if parameter.kind is parameter.VAR_POSITIONAL:
            starred = True
            shown.append(f"*{parameter.name}")
        elif parameter.default is parameter.empty:
            shown.append(parameter.name)
        else:
            shown.append(f"{parameter.name}={parameter.default!r}")
    return shown


def _print(entries: list[NodeEntry]) -> None:
    console = results()
    width = columns(console)
    for kind, title in _TITLES.items():
        made = Table(("", ""))
        for entry in sorted(entries, key=_is_later):
            if entry.kind is kind:
                more = [port for port in entry.ports if port != "out"]
                ports = [f"ports: {', '.join(entry.ports)}"] if more else []
                flows = [_flows(entry)] if entry.reads else []
                made.add(
                    (entry.name, "dim" if _is_later(entry) else "cyan"),
                    entry.line,
                    notes=[f"({', '.join(entry.parameters)})", *flows, *ports],
                )
        if made.rows:
            console.print(title, style="bold underline")
            for line in made.lines(width):
                console.print(line)
            console.print()
    watched().print(
        "Every node also takes the options of vf.NodeOptions, such as name= and replicas=."
        " Show one in full with `videoflow nodes NAME`.",
        style="dim",
    )


def _flows(entry: NodeEntry) -> str:
    return f"reads {', '.join(entry.reads)}" + (f"; makes {entry.makes}" if entry.makes else "")


def _is_later(entry: NodeEntry) -> bool:
    return _LATER in entry.line


def _print_one(entry: NodeEntry, cls: type[Node]) -> None:
    console = results()
    console.print(f"{entry.name}({', '.join(entry.parameters)})", style="bold")
    if entry.reads:
        console.print(_flows(entry), style="dim")
    if entry.ports:
        listed = [
            f"{port} (up to {cls.many[port]} an input)" if port in cls.many else port for port in entry.ports
        ]
        console.print(f"ports: {', '.join(listed)}", style="dim")
    console.print(f"\n{inspect.getdoc(cls) or ''}")
