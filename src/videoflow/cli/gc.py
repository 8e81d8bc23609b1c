"""`videoflow gc`: cleans up what killed runs left, and removes old runs when asked."""

from datetime import datetime, timedelta
from typing import Annotated

import typer

from videoflow.cli._console import results, watched
from videoflow.cli._units import parse_duration, plural
from videoflow.cli._where import RunDir, started
from videoflow.engines.run_folder import RunFolder, RunState, bury_lost_run, list_runs, sweep_claims


def register(app: typer.Typer) -> None:
    """Adds the command."""
    app.command("gc")(gc)


def gc(
    run_dir: RunDir = None,
    older_than: Annotated[
        str,
        typer.Option(
            metavar="AGE", help='Also remove ended runs that are older, such as "7 d".', show_default=False
        ),
    ] = "",
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say what would be done.")] = False,
) -> None:
    """Clean up what killed runs left: mark runs without a supervisor as failed, drop stale claims."""
    age = timedelta(seconds=parse_duration(older_than)) if older_than else None
    console, done = results(), 0
    for folder in list_runs(run_dir):
        state = folder.state()
        if state is RunState.LOST:
            console.print(f"{'would mark' if dry_run else 'marked'} {folder.run_id} failed (supervisor lost)")
            done += 1
            if not dry_run:
                bury_lost_run(folder)
        if age is not None and state is not RunState.RUNNING and _older(folder, age):
            console.print(f"{'would remove' if dry_run else 'removed'} {folder.run_id}")
            done += 1
            if not dry_run:
                folder.remove()
        elif state is RunState.UNKNOWN:
            watched().print(
                f"left {folder.run_id} alone: its supervisor is on another host or in another container"
            )
    claims = sweep_claims(dry_run=dry_run)
    if claims:
        console.print(f"{'would drop' if dry_run else 'dropped'} {plural(claims, 'stale claim')} on outputs")
    if not done and not claims:
        watched().print("nothing to clean up")


def _older(folder: RunFolder, age: timedelta) -> bool:
    begun = started(folder)
    return begun is not None and datetime.now(begun.tzinfo) - begun > age
