"""`videoflow nodes`: the nodes of the library, with parameters and ports; no heavy library is loaded."""

import inspect
from typing import Annotated

import msgspec
import typer

from videoflow import nodes as library
from videoflow.cli._console import columns, results, watched
from videoflow.cli._nearest import nearest
from videoflow.cli._table import Table
from videoflow.errors import UsageError
from videoflow.graph import Consumer, Node, Producer
from videoflow.graph.spec import NodeKind

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


def register(app: typer.Typer) -> None:
    """Adds the command."""
    app.command("nodes")(nodes)


def nodes(
    name: Annotated[str, typer.Argument(help="Show this node in full.", show_default=False)] = "",
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
    )


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
                made.add(
                    (entry.name, "dim" if _is_later(entry) else "cyan"),
                    entry.line,
                    notes=[f"({', '.join(entry.parameters)})", *ports],
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


def _is_later(entry: NodeEntry) -> bool:
    return _LATER in entry.line


def _print_one(entry: NodeEntry, cls: type[Node]) -> None:
    console = results()
    console.print(f"{entry.name}({', '.join(entry.parameters)})", style="bold")
    if entry.ports:
        listed = [
            f"{port} (up to {cls.many[port]} an input)" if port in cls.many else port for port in entry.ports
        ]
        console.print(f"ports: {', '.join(listed)}", style="dim")
    console.print(f"\n{inspect.getdoc(cls) or ''}")
