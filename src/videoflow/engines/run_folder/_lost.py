"""The end of a run whose supervisor died: its report is written by whoever finds it.

Used by `videoflow gc`. It refuses to make up figures: what the supervisor alone knew is listed as unknown.
"""

import msgspec

from videoflow.adapters.sqlite import SqliteStore
from videoflow.backends.runtime import DeadLetter, FlowRuntime
from videoflow.clock import Clock, RealClock
from videoflow.engines._report import letter_report
from videoflow.engines.run_folder._folder import RunFolder, write_atomically
from videoflow.errors import FlowError, OutputUnwritable, RunFailed
from videoflow.graph.report import FailureReport, GapReport, RunReport, Verdict
from videoflow.graph.spec import NodeKind

_CALL_SECONDS = 10.0
_LOOK_SECONDS = 0.02


def bury_lost_run(folder: RunFolder) -> RunReport:
    """Writes the report of a run whose supervisor died, and removes half-written files.

    Raises:
        OutputUnwritable: The folder cannot be written.
    """
    report = lost_report(folder, RealClock())
    try:
        for part in folder.path.glob(".*.tmp"):
            part.unlink(missing_ok=True)
        write_atomically(folder.report_path, report.to_json())
    except OSError as error:
        raise OutputUnwritable(
            f"run {folder.run_id} cannot be marked as failed",
            cause=error.strerror or str(error),
            where=str(folder.path),
            remedy="run `videoflow gc` as the user who started the run",
        ) from error
    return report


def lost_report(folder: RunFolder, clock: Clock) -> RunReport:
    """Returns the report of a lost run, and records its end in the run's store where there is one."""
    supervisor = folder.supervisor()
    process = f"process {supervisor.process.pid}" if supervisor else "the process that ran it"
    gaps = [GapReport(where="run", what="the ledger is unknown", cause="it was lost with the supervisor")]
    letters: list[DeadLetter] = []
    try:
        letters = _dead_letters(folder, clock)
    except FlowError as error:
        gaps.append(GapReport(where="run.sqlite", what="the run records cannot be read", cause=str(error)))
    spec = None
    try:
        spec = folder.spec()
    except FlowError as error:
        gaps.append(GapReport(where="spec.json", what="the flow cannot be read", cause=str(error)))
    sources = [node.name for node in (spec.nodes if spec else ()) if node.kind is NodeKind.PRODUCER]
    gaps += [GapReport(where=name, what="outcome and items of the source are unknown") for name in sources]
    return RunReport(
        run_id=folder.run_id,
        flow_id=spec.flow_id if spec else (supervisor.flow_id if supervisor else ""),
        engine=supervisor.engine if supervisor else "",
        verdict=Verdict.FAILED,
        exit_status=RunFailed.exit_status,
        gaps=gaps,
        dead_letters=[letter_report(letter) for letter in letters],
        outputs=[output for node in (spec.nodes if spec else ()) for output in node.traits.outputs],
        failure=FailureReport(
            code=RunFailed.code,
            message="supervisor lost",
            cause=f"{process} ended without a report",
            effect="its workers ended with it; outputs hold what was written until then",
            remedy="run the flow again",
        ),
        started_at=supervisor.started_at if supervisor else "",
        folder=str(folder.path),
    )


def _dead_letters(folder: RunFolder, clock: Clock) -> list[DeadLetter]:
    """Reads the dead letters and marks the run as ended; the last to close the store folds its log."""
    if not folder.store_path.exists():
        return []
    store = SqliteStore(folder.store_path, clock)
    try:
        runtime = FlowRuntime(store, folder.run_id)
        deadline = clock.monotonic() + _CALL_SECONDS
        letters = runtime.dead_letters(deadline=deadline)
        runtime.finish(Verdict.FAILED.value, deadline=deadline)
    except msgspec.MsgspecError as error:
        raise FlowError("a dead letter is not readable", cause=str(error)) from error
    finally:
        store.close()
    _fold(folder, clock)
    return letters


def _fold(folder: RunFolder, clock: Clock) -> None:
    """Folds the write-ahead log once the workers, which the kernel is still ending, have let go of it."""
    deadline = clock.monotonic() + _CALL_SECONDS
    while any(folder.path.glob(f"{folder.store_path.name}-*")) and clock.monotonic() < deadline:
        clock.wait([], min(deadline, clock.monotonic() + _LOOK_SECONDS))
        SqliteStore(folder.store_path, clock).close()
