"""`videoflow stop`: asks a run to end, from another terminal.

The first time its sources end and the rest drains; the second time it ends without draining.
"""

import os
import signal
from typing import Annotated

import typer

from videoflow.backends.runtime import Desired, FlowRuntime
from videoflow.cli._console import watched
from videoflow.cli._where import CALL_SECONDS, RunDir, records_of
from videoflow.clock import RealClock
from videoflow.engines.run_folder import (
    RunFolder,
    RunState,
    find_run,
    list_runs,
    note_resumable,
    refuse_stopping,
)
from videoflow.errors import EnvironmentFault, UsageError


def register(app: typer.Typer) -> None:
    """Adds the command."""
    app.command("stop")(stop)


def stop(
    run: Annotated[
        str,
        typer.Argument(
            metavar="RUN", help="Run id, part of one, or `last`; may be left out when only one runs."
        ),
    ] = "",
    run_dir: RunDir = None,
    resumable: Annotated[
        bool,
        typer.Option(
            "--resumable",
            help="Say no last words and finish no file: `run-local --resume` goes on from there.",
        ),
    ] = False,
) -> None:
    """Ask a run to stop; a second time ends it without draining."""
    folder = find_run(run, run_dir) if run else _only_one([*list_runs(run_dir)])
    _refuse_ended(folder)
    records = records_of(folder)
    if records is None:
        if resumable:
            raise UsageError(
                f"run {folder.run_id} cannot be stopped to be resumed from here",
                cause="it keeps its state in the memory of another program",
                effect="it goes on",
                remedy="call stop(resumable=True) on its run handle, or run it with --engine local",
            )
        _signal(folder)
        watched().print(f"asked run {folder.run_id} to stop")
        return
    try:
        draining = _suspend(folder, records) if resumable else _raise(records)
    finally:
        records.store.close()
    if resumable:
        watched().print(
            f"asked run {folder.run_id} to stop; go on with run-local FILE --resume {folder.run_id}"
        )
    elif draining:
        watched().print(
            f"asked run {folder.run_id} to stop: sources end, the rest drains; ask again to end it at once"
        )
    else:
        watched().print(f"asked run {folder.run_id} to end without draining")


def _only_one(runs: list[RunFolder]) -> RunFolder:
    running = [run for run in runs if run.state() is RunState.RUNNING]
    if len(running) != 1:
        raise UsageError(
            "nothing is running here" if not running else f"{len(running)} runs are running",
            cause=", ".join(run.run_id for run in running[:5]),
            remedy="name the run; see `videoflow runs`",
        )
    return running[0]


def _refuse_ended(folder: RunFolder) -> None:
    state = folder.state()
    if state is RunState.FINISHED:
        report = folder.report()
        ending = f" ({report.verdict.value})" if report else ""
        raise UsageError(f"run {folder.run_id} has ended already{ending}", remedy="see `videoflow runs`")
    if state is RunState.LOST:
        raise UsageError(
            f"run {folder.run_id} is lost: its supervisor is gone", remedy="clean up with `videoflow gc`"
        )


def _raise(records: FlowRuntime) -> bool:
    """Raises the desired state by one step; returns whether the run will drain."""
    deadline = RealClock().monotonic() + CALL_SECONDS
    now = records.desired(deadline=deadline)
    wanted = Desired.STOP if now is Desired.RUN else Desired.ABORT
    return records.raise_desired(wanted, deadline=deadline) is Desired.STOP


def _suspend(folder: RunFolder, records: FlowRuntime) -> bool:
    """Asks for a stop that is to be resumed."""
    deadline = RealClock().monotonic() + CALL_SECONDS
    if records.desired(deadline=deadline) is not Desired.RUN:
        raise refuse_stopping()
    note_resumable(records, deadline=deadline)
    return records.raise_desired(Desired.STOP, deadline=deadline) is Desired.STOP


def _signal(folder: RunFolder) -> None:
    """Asks a run that keeps its state in memory, which listens to a signal when the command line runs it."""
    supervisor = folder.supervisor()
    if supervisor is None or not supervisor.stops_on_signal:
        raise UsageError(
            f"run {folder.run_id} cannot be stopped from here",
            cause="it keeps its state in the memory of another program",
            remedy="stop that program, or call stop() on its run handle",
        )
    try:
        os.kill(supervisor.process.pid, signal.SIGTERM)
    except OSError as error:
        raise EnvironmentFault(
            f"run {folder.run_id} could not be asked to stop",
            cause=error.strerror or str(error),
            remedy="press Ctrl-C in its terminal, or stop it as the user who started it",
        ) from error
