"""`videoflow dead-letters`: the inputs that a run put aside, listed and shown in full."""

from pathlib import Path
from typing import Annotated

import msgspec
import typer

from videoflow.backends.runtime import DeadLetter
from videoflow.cli._console import columns, results, watched
from videoflow.cli._letters import find_letter, letters_of, members_of
from videoflow.cli._members import describe, save_frames
from videoflow.cli._table import Table
from videoflow.cli._where import RunDir
from videoflow.cli.run_local import run_flow
from videoflow.engines.replay import replay_flow
from videoflow.engines.run_folder import RunFolder, find_run, runs_folder
from videoflow.graph.report import DeadLetterReport
from videoflow.graph.running import RunOptions


def register(app: typer.Typer) -> None:
    """Adds the three commands."""
    group = typer.Typer(help="Look at the inputs that a run put aside.")
    group.callback(invoke_without_command=True)(show_group)
    group.command("list")(list_letters)
    group.command("show")(show_letter)
    group.command("replay")(replay_letters)
    app.add_typer(group, name="dead-letters")


def show_group(context: typer.Context) -> None:
    """Look at the inputs that a run put aside."""
    if context.invoked_subcommand is None:
        print(context.get_help())


def list_letters(
    run: Annotated[str, typer.Argument(metavar="RUN", help="Run id, part of one, or `last`.")] = "last",
    run_dir: RunDir = None,
    json: Annotated[bool, typer.Option("--json", help="Print the dead letters as JSON.")] = False,
) -> None:
    """List the dead letters of a run."""
    folder = find_run(run, run_dir)
    letters = letters_of(folder)
    if json:
        print(msgspec.json.format(msgspec.json.encode([_row(letter) for letter in letters])).decode())
        return
    if not letters:
        watched().print(f"run {folder.run_id} has no dead letters")
        return
    made = Table(("label", "node", "time", "attempts", "error"), numbers=("time", "attempts"))
    for letter in letters:
        made.add((letter.label, "cyan"), letter.node, _time(letter), str(letter.attempts), letter.error)
    console = results()
    for line in made.without_zeros("time").lines(columns(console)):
        console.print(line)
    watched().print(f"show one with `videoflow dead-letters show {letters[0].label}`", style="dim")


def show_letter(
    letter: Annotated[str, typer.Argument(metavar="[RUN/]LABEL", help="Such as 318-7f3a, or last/318-7f3a.")],
    run_dir: RunDir = None,
    save: Annotated[
        Path | None,
        typer.Option(
            metavar="FOLDER", help="Save the frames of the input as PNG in this folder.", show_default=False
        ),
    ] = None,
) -> None:
    """Show one dead letter in full: input, error, attempts, trace."""
    folder, found = find_letter(letter, run_dir)
    _print(folder, found)
    members = members_of(folder, found)
    console = results()
    console.print("\ninput", style="bold")
    for name, member in members.items():
        for line in describe(name, member):
            console.print(f"  {line}")
    for name, size in found.omitted.items():
        console.print(f"  {name}: left out, its {size} bytes did not fit the budget of dead letters")
    if found.trace:
        console.print("\ntrace", style="bold")
        for line in found.trace.rstrip().splitlines():
            console.print(f"  {line}", style="dim")
    if save is not None:
        for path in save_frames(members, found.label, save):
            watched().print(f"saved {path}")


def replay_letters(
    run: Annotated[str, typer.Argument(metavar="RUN", help="Run id, part of one, or `last`.")],
    letters: Annotated[
        list[str] | None, typer.Argument(metavar="LETTER", help="Such as 318-7f3a; all, where none is named.")
    ] = None,
    run_dir: RunDir = None,
    into: Annotated[
        Path | None,
        typer.Option(
            metavar="FOLDER", help="Write relative paths of the nodes in this folder.", show_default=False
        ),
    ] = None,
    engine: Annotated[str, typer.Option(metavar="NAME", help="local (processes) or threads.")] = "local",
) -> int:
    """Run the node that failed, and what is below it, on the inputs that it put aside."""
    flow = replay_flow(run, letters or (), runs_folder=run_dir, into=into)
    return run_flow(flow, engine, RunOptions(runs_folder=runs_folder(run_dir)))


def _print(folder: RunFolder, letter: DeadLetter) -> None:
    console = results()
    node, epoch, ordinal = letter.origin
    hops = "".join(f", {hop_node}.{port} {k + 1} of {n}" for hop_node, port, k, n in letter.path)
    rows = {
        "dead letter": letter.label,
        "run": folder.run_id,
        "node": letter.node if letter.node == letter.task else f"{letter.node} (task {letter.task})",
        "derives from": f"item {ordinal} of {node}{f', source epoch {epoch}' if epoch else ''}{hops}",
        "source": letter.source,
        "time": _time(letter),
        "attempts": str(letter.attempts),
        "error": letter.error,
        "where": letter.where,
        "input id": letter.input_id,
    }
    made = Table(("", ""))
    for label, text in rows.items():
        if text:
            made.add((label, "bold"), text)
    for line in made.lines(columns(console)):
        console.print(line)


def _time(letter: DeadLetter) -> str:
    return "" if letter.event_time is None else f"{letter.event_time:.3f} s"


def _row(letter: DeadLetter) -> DeadLetterReport:
    return DeadLetterReport(
        label=letter.label,
        node=letter.node,
        error=letter.error,
        attempts=letter.attempts,
        origin="/".join(map(str, letter.origin)),
        event_time=letter.event_time,
        source=letter.source,
        where=letter.where,
    )
