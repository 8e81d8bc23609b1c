"""`videoflow gc`: cleans up what killed runs left, and removes old runs when asked."""

from datetime import datetime, timedelta
from typing import Annotated

import typer

from videoflow.cli._console import results, show_block, watched
from videoflow.cli._units import parse_duration, plural
from videoflow.cli._where import RunDir, started
from videoflow.engines.run_folder import RunFolder, RunState, bury_lost_run, list_runs, sweep_claims
from videoflow.errors import EnvironmentFault, OutputUnwritable


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
    failed: list[EnvironmentFault] = []
    for folder in list_runs(run_dir):
        try:
            done += _clean(folder, age, dry_run=dry_run)
        except EnvironmentFault as error:  # one run must not keep the others from being cleaned up
            failed.append(error)
    claims = sweep_claims(dry_run=dry_run)
    if claims:
        console.print(f"{'would drop' if dry_run else 'dropped'} {plural(claims, 'stale claim')} on outputs")
    for other in failed[1:]:
        show_block(watched(), other.block())
    if failed:
        raise failed[0]
    if not done and not claims:
        watched().print("nothing to clean up")


def _clean(folder: RunFolder, age: timedelta | None, *, dry_run: bool) -> int:
    """Cleans up after one run; returns how many things were done, or would be.

    Raises:
        EnvironmentFault: Its folder cannot be read or changed.
    """
    console, done, state = results(), 0, folder.state()
    if state is RunState.LOST:
        if not dry_run:
            bury_lost_run(folder)
        console.print(f"{'would mark' if dry_run else 'marked'} {folder.run_id} failed (supervisor lost)")
        done += 1
    if age is not None and state is not RunState.RUNNING and _older(folder, age):
        if not dry_run:
            _remove(folder)
        console.print(f"{'would remove' if dry_run else 'removed'} {folder.run_id}")
        done += 1
    elif state is RunState.UNKNOWN:
        watched().print(
            f"left {folder.run_id} alone: its supervisor is on another host or in another container"
        )
    return done


def _remove(folder: RunFolder) -> None:
    folder.remove()
    if folder.path.exists():
        raise OutputUnwritable(
            f"run {folder.run_id} cannot be removed",
            cause="something in its folder is protected",
            where=str(folder.path),
            remedy="run `videoflow gc` as the user who started the run",
        )


def _older(folder: RunFolder, age: timedelta) -> bool:
    begun = started(folder)
    return begun is not None and datetime.now(begun.tzinfo) - begun > age
