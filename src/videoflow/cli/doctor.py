"""`videoflow doctor`: what this machine has of what a run needs, and how to get the rest."""

from typing import Annotated

import msgspec
import typer

from videoflow.cli._checks import Check, Finding, every_check
from videoflow.cli._console import columns, results
from videoflow.cli._table import Table

_MARKS = {
    Finding.GOOD: ("ok", "green"),
    Finding.ABSENT: ("absent", "yellow"),
    Finding.BAD: ("BAD", "bold red"),
}
_ENVIRONMENT_STATUS = 3


def register(app: typer.Typer) -> None:
    """Adds the command."""
    app.command("doctor")(doctor)


def doctor(json: Annotated[bool, typer.Option("--json", help="Print the findings as JSON.")] = False) -> None:
    """Look at this machine: is everything there that a run needs? Exit status 3 when something is bad."""
    checks = list(every_check())
    if json:
        print(msgspec.json.format(msgspec.json.encode(checks)).decode())
    else:
        _print(checks)
    if any(check.finding is Finding.BAD for check in checks):
        raise typer.Exit(_ENVIRONMENT_STATUS)


def _print(checks: list[Check]) -> None:
    made = Table(("", "", ""))
    for check in checks:
        absent = check.finding is Finding.ABSENT and check.remedy
        found = f"{check.found}: {check.remedy}" if absent else check.found
        notes = [f"        {check.remedy}"] if check.remedy and not absent else []
        made.add(_MARKS[check.finding], (check.subject, "bold"), found, notes=notes)
    console = results()
    for line in made.lines(columns(console)):
        console.print(line)
