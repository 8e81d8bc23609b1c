"""`videoflow runs`: what ran on this machine, newest first."""

from datetime import datetime
from pathlib import Path
from typing import Annotated

import msgspec
import typer

from videoflow.cli._console import columns, home_short, results, watched
from videoflow.cli._table import Table
from videoflow.cli._units import plural, show_seconds
from videoflow.cli._where import RunDir, started
from videoflow.engines.run_folder import RunFolder, RunState, list_runs, runs_folder

_STYLES = {
    "complete": "green",
    "incomplete": "yellow",
    "failed": "red",
    "stalled": "red",
    "lost": "red",
    "running": "cyan",
}


class RunRow(msgspec.Struct, frozen=True):
    """One run, as `--json` shows it."""

    id: str
    flow: str
    engine: str
    state: str
    verdict: str | None
    started_at: str
    seconds: float | None
    folder: str


def register(app: typer.Typer) -> None:
    """Adds the command."""
    app.command("runs")(runs)


def runs(
    run_dir: RunDir = None,
    limit: Annotated[int, typer.Option(help="Most runs shown; 0 for all.", min=0)] = 20,
    json: Annotated[bool, typer.Option("--json", help="Print the runs as JSON.")] = False,
) -> None:
    """List the runs of this machine, newest first."""
    found = list_runs(run_dir)
    shown = [_row(folder) for folder in (found[:limit] if limit else found)]
    if json:
        print(msgspec.json.format(msgspec.json.encode(shown)).decode())
        return
    if not shown:
        watched().print(f"no runs in {runs_folder(run_dir)}")
        return
    _print(shown, len(found))


def _row(folder: RunFolder) -> RunRow:
    state = folder.state()
    report, supervisor, begun = folder.report(), folder.supervisor(), started(folder)
    age = (datetime.now(begun.tzinfo) - begun).total_seconds() if begun else None
    return RunRow(
        id=folder.run_id,
        flow=report.flow_id if report else (supervisor.flow_id if supervisor else ""),
        engine=report.engine if report else (supervisor.engine if supervisor else ""),
        state=state.value,
        verdict=report.verdict.value if report else None,
        started_at=begun.isoformat(timespec="seconds") if begun else "",
        seconds=(report.seconds or None) if report else (age if state is RunState.RUNNING else None),
        folder=str(folder.path),
    )


def _print(rows: list[RunRow], total: int) -> None:
    made = Table(("run", "flow", "engine", "state", "started", "time"), numbers=("time",))
    for row in rows:
        state = row.verdict or row.state
        made.add(
            row.id,
            row.flow,
            row.engine,
            (state, _STYLES.get(state, "")),
            datetime.fromisoformat(row.started_at).strftime("%Y-%m-%d %H:%M") if row.started_at else "",
            "" if row.seconds is None else show_seconds(row.seconds),
        )
    console = results()
    for line in made.lines(columns(console)):
        console.print(line)
    if total > len(rows):
        watched().print(f"and {plural(total - len(rows), 'older run')} (--limit 0 for all)", style="dim")
    if any(row.state == RunState.LOST for row in rows):
        watched().print("lost: the supervisor is gone; `videoflow gc` cleans up", style="dim")
    folder = Path(rows[0].folder).parent
    watched().print(f"in {home_short(folder)}", style="dim")
