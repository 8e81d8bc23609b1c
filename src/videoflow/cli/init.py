"""`videoflow init`: writes a flow to start from; what is there already is left alone."""

from pathlib import Path
from typing import Annotated

import typer

from videoflow.cli._console import watched
from videoflow.cli._starting_flow import STARTING_FLOW
from videoflow.errors import OutputUnwritable, UsageError

_NAME = "flow.py"


def register(app: typer.Typer) -> None:
    """Adds the command."""
    app.command("init")(init)


def init(
    folder: Annotated[
        Path, typer.Argument(metavar="FOLDER", help="Where to write it; made when absent.")
    ] = Path(),
) -> None:
    """Write a flow to start from, flow.py; an existing file is never overwritten."""
    path = folder / _NAME
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with path.open("x", encoding="utf-8") as file:
            file.write(STARTING_FLOW)
    except FileExistsError as error:
        raise UsageError(
            f"{path} exists",
            cause="nothing is ever overwritten",
            effect="nothing was written",
            remedy="name another folder: videoflow init FOLDER",
        ) from error
    except OSError as error:
        raise OutputUnwritable(
            f"{path} cannot be written",
            cause=error.strerror or str(error),
            remedy="name a folder that can be written: videoflow init FOLDER",
        ) from error
    console = watched()
    console.print(f"wrote {path}")
    console.print(f"try   videoflow explain {path}", style="dim")
    console.print(f"      videoflow run-local {path}", style="dim")
