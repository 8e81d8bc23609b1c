"""`videoflow runs`: what ran on this machine, newest first, and the account of one run."""

from datetime import datetime
from pathlib import Path
from typing import Annotated

import msgspec
import typer

from videoflow.cli._console import columns, home_short, results, show_block, watched
from videoflow.cli._outcome import ending_blocks, more_dead_letters
from videoflow.cli._summary import summary_lines
from videoflow.cli._table import Table
from videoflow.cli._units import plural, show_seconds
from videoflow.cli._where import RunDir, started
from videoflow.engines.run_folder import RunFolder, RunState, find_run, list_runs, runs_folder
from videoflow.errors import UsageError
from videoflow.graph.report import RunReport

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
    run: Annotated[
        str,
        typer.Argument(
            metavar="RUN",
            help="Show the account of this run: its id, part of it, or `last`.",
            show_default=False,
        ),
    ] = "",
    run_dir: RunDir = None,
    limit: Annotated[int, typer.Option(metavar="N", help="Most runs shown; 0 for all.", min=0)] = 20,
    json: Annotated[bool, typer.Option("--json", help="Print the runs, or the report, as JSON.")] = False,
) -> None:
    """List the runs of this machine, newest first, or show how one ended."""
    if run:
        folder = find_run(run, run_dir)
        report = _report(folder)
        if json:
            print(report.to_json().decode())
        else:
            _print_account(folder, report)
        return
    found = list_runs(run_dir)
    shown = [_row(folder) for folder in (found[:limit] if limit else found)]
    if json:
        print(msgspec.json.format(msgspec.json.encode(shown)).decode())
        return
    if not shown:
        watched().print(f"no runs in {runs_folder(run_dir)}")
        return
    _print(shown, len(found))


def _report(folder: RunFolder) -> RunReport:
    report = folder.report()
    if report is not None:
        return report
    lost = folder.state() is RunState.LOST
    raise UsageError(
        f"run {folder.run_id} has no report",
        cause="its supervisor is gone" if lost else "it has not ended",
        remedy="`videoflow gc` writes what is known of it" if lost else "wait for it, or `videoflow stop` it",
    )


def _print_account(folder: RunFolder, report: RunReport) -> None:
    """Prints what `run-local` said when the run ended; sizes of files are those of now."""
    spec, console = folder.spec(), results()
    for line in summary_lines(report, Path(spec.folder if spec else "."), columns(console)):
        console.print(line)
    for block in ending_blocks(report, spec) if spec else []:
        console.print()
        show_block(console, block)
    more = more_dead_letters(report)
    if more:
        console.print(f"\n{more}")


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
    watched().print(f"in {home_short(folder)}; how one ended: videoflow runs {rows[0].id}", style="dim")
