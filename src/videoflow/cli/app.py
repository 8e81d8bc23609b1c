"""The command `videoflow`: imports only the command that was asked for, and ends with its exit status.

Used by the console script and by `python -m videoflow`. Exit status: 0 complete, 1 incomplete, 2 the user's
mistake, 3 the machine's, 4 failed, 5 stalled, 130 interrupted.
"""

import importlib
import sys
from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, version
from typing import Annotated

import typer

from videoflow.cli._boundary import Boundary
from videoflow.cli._nearest import nearest
from videoflow.cli._streams import lenient_streams
from videoflow.errors import UsageError

COMMANDS = {
    "run-local": ("run_local", "Run a flow on this machine."),
    "explain": ("explain", "Show how a flow would run, and why."),
    "simulate": ("simulate", "Run a flow thousands of times while everything breaks."),
    "init": ("init", "Write a flow to start from."),
    "nodes": ("nodes", "List the nodes of the library."),
    "runs": ("runs", "List the runs of this machine."),
    "stop": ("stop", "Ask a run to stop; a second time ends it without draining."),
    "gpus": ("gpus", "Show the GPUs of this machine, and who uses them."),
    "dead-letters": ("dead_letters", "Look at the inputs that a run put aside."),
    "gc": ("gc", "Clean up what killed runs left."),
    "doctor": ("doctor", "Look at this machine: is everything there that a run needs?"),
}
"""Name of each command → its module in this package, and its line in the list."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs a command line.

    Args:
        arguments: Without the program's name; None for those of the process.

    Returns:
        The exit status.
    """
    given = list(sys.argv[1:] if arguments is None else arguments) or ["--help"]
    with lenient_streams(), Boundary(debug="--debug" in given) as boundary:
        status = build(given)(args=given, prog_name="videoflow", standalone_mode=False)
        boundary.status = status if isinstance(status, int) else 0
        if sys.stdout is not None:  # as in a process that was started without
            sys.stdout.flush()
    return boundary.status


def build(arguments: Sequence[str]) -> typer.Typer:
    """Returns the application; only the command that `arguments` name is more than a line of help in it."""
    app = typer.Typer(
        help="Graphs of video nodes in plain Python, with an honest account of every frame.",
        add_completion=False,
        pretty_exceptions_enable=False,
        rich_markup_mode=None,
    )
    app.callback(invoke_without_command=True)(_options)
    chosen = next((argument for argument in arguments if not argument.startswith("-")), "")
    if chosen and chosen not in COMMANDS:
        raise UsageError(
            f"there is no command {chosen!r}",
            cause=f"known are {', '.join(COMMANDS)}",
            remedy=nearest(chosen, COMMANDS) or "see `videoflow --help`",
        )
    for name, (module, line) in COMMANDS.items():
        if name == chosen:
            importlib.import_module(f"videoflow.cli.{module}").register(app)
        else:
            app.command(name, help=line)(_elsewhere)
    return app


def _options(
    shown: Annotated[bool, typer.Option("--version", help="Show the version.", is_eager=True)] = False,
) -> None:
    if shown:
        try:
            print(f"videoflow {version('videoflow')}")
        except PackageNotFoundError:
            print("videoflow (not installed)")
        raise typer.Exit


def _elsewhere() -> None:
    """Stands for a command that was not asked for."""
