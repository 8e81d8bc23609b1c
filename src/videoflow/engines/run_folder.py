"""The folder of one run: its documents, who supervises it, and whether that process still lives.

Used by the engines, which make it, and by the command line, which lists, stops and cleans. It refuses a
place that cannot be written, before anything starts.
"""

import os
import shutil
from collections.abc import Iterator
from enum import StrEnum
from pathlib import Path

import msgspec

from videoflow.clock import RealClock
from videoflow.engines._home import home_folder, runs_folder
from videoflow.engines._lost import lost_report
from videoflow.engines._outputs import OutputClaims, claim_outputs, outputs_of, require_writable, sweep_claims
from videoflow.engines._process import ProcessIdentity, is_alive, this_process
from videoflow.errors import OutputUnwritable, UsageError
from videoflow.graph.report import RunReport
from videoflow.graph.spec import FlowSpec
from videoflow.planner.plan import Plan

__all__ = [
    "OutputClaims",
    "RunFolder",
    "RunState",
    "Supervisor",
    "bury_lost_run",
    "claim_outputs",
    "find_run",
    "home_folder",
    "list_runs",
    "outputs_of",
    "require_writable",
    "runs_folder",
    "sweep_claims",
    "write_atomically",
]


class RunState(StrEnum):
    """What can be said of a run from its folder.

    `UNKNOWN`: its supervisor is on another host, or in another container, and left no report.
    """

    RUNNING = "running"
    FINISHED = "finished"
    LOST = "lost"
    UNKNOWN = "unknown"


class Supervisor(msgspec.Struct, frozen=True, kw_only=True):
    """Who runs a run.

    Attributes:
        process: The supervising process.
        engine: Which engine it is.
        flow_id: Name of the flow.
        started_at: ISO 8601 with zone.
        stops_on_signal: SIGTERM asks the run to stop; otherwise it would end the process.
    """

    process: ProcessIdentity
    engine: str = ""
    flow_id: str = ""
    started_at: str = ""
    stops_on_signal: bool = False


class RunFolder:
    """One run folder: `spec.json`, `plan.json`, `report.json`, `run.sqlite`, `supervisor.json`, `logs/`.

    Documents are written whole or not at all.

    Args:
        path: The folder, which exists; its name is the run id.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.run_id = path.name
        self.spec_path = path / "spec.json"
        self.plan_path = path / "plan.json"
        self.report_path = path / "report.json"
        self.store_path = path / "run.sqlite"
        self.supervisor_path = path / "supervisor.json"
        self.logs_path = path / "logs"

    @staticmethod
    def create(
        root: Path | None, run_id: str, *, engine: str = "", flow_id: str = "", started_at: str = ""
    ) -> "RunFolder":
        """Makes the folder of a new run, supervised by the calling process.

        Args:
            root: Folder of run folders; None for the default one.
            run_id: ULID of the run.
            engine: Which engine runs it, for `videoflow runs`.
            flow_id: Name of the flow, likewise.
            started_at: ISO 8601 with zone, likewise.

        Raises:
            OutputUnwritable: The folder cannot be made; nothing is left of it.
        """
        folder = RunFolder(runs_folder(root) / run_id)
        made = False
        try:
            folder.path.parent.mkdir(parents=True, exist_ok=True)
            folder.path.mkdir(mode=0o700)
            made = True
            folder.logs_path.mkdir()
            supervisor = Supervisor(
                process=this_process(), engine=engine, flow_id=flow_id, started_at=started_at
            )
            write_atomically(folder.supervisor_path, msgspec.json.encode(supervisor))
        except OSError as error:
            if made:
                folder.remove()
            raise OutputUnwritable(
                "the run folder cannot be made",
                cause=error.strerror or str(error),
                where=str(folder.path),
                effect="nothing was started",
                remedy="name a folder that can be written with --run-dir or VIDEOFLOW_HOME",
            ) from error
        return folder

    def write_spec(self, spec: FlowSpec) -> None:
        """Writes `spec.json`; raises `OutputUnwritable` where it cannot."""
        self._write(self.spec_path, spec.to_json())

    def write_plan(self, plan: Plan) -> None:
        """Writes `plan.json`; raises `OutputUnwritable` where it cannot."""
        self._write(self.plan_path, plan.to_json())

    def write_report(self, report: RunReport) -> None:
        """Writes `report.json`; from then on the run is finished.

        Raises:
            OutputUnwritable: It cannot be written; the run counts as lost until `videoflow gc`.
        """
        ending = f"the run itself ended as {report.verdict}"
        self._write(self.report_path, report.to_json(), effect=ending)

    def _write(self, path: Path, document: bytes, *, effect: str = "nothing was started") -> None:
        try:
            write_atomically(path, document)
        except OSError as error:
            raise OutputUnwritable(
                f"{path.name} of the run cannot be written",
                cause=error.strerror or str(error),
                where=str(path),
                effect=effect,
                remedy="make room there, or name another folder with --run-dir or VIDEOFLOW_HOME",
            ) from error

    def supervisor(self) -> Supervisor | None:
        """Returns who supervises, or None where that was never written or cannot be read."""
        try:
            return msgspec.json.decode(self.supervisor_path.read_bytes(), type=Supervisor)
        except (OSError, msgspec.MsgspecError):
            return None

    def note_signals(self) -> None:
        """Notes that the supervising process, which is the caller, takes SIGTERM as a request to stop."""
        supervisor = self.supervisor()
        if supervisor is not None:
            noted = msgspec.structs.replace(supervisor, stops_on_signal=True)
            write_atomically(self.supervisor_path, msgspec.json.encode(noted))

    def spec(self) -> FlowSpec | None:
        """Returns the flow, or None where it was not written."""
        return FlowSpec.from_json(self.spec_path.read_bytes()) if self.spec_path.exists() else None

    def report(self) -> RunReport | None:
        """Returns the report, or None where there is none, or none that this version reads."""
        try:
            return RunReport.from_json(self.report_path.read_bytes())
        except (OSError, msgspec.MsgspecError):
            return None

    def state(self) -> RunState:
        """Returns what can be said of the run now."""
        if self.report_path.exists():
            return RunState.FINISHED
        supervisor = self.supervisor()
        alive = False if supervisor is None else is_alive(supervisor.process)
        if self.report_path.exists():  # it may have ended between the two looks
            return RunState.FINISHED
        if alive is None:
            return RunState.UNKNOWN
        return RunState.RUNNING if alive else RunState.LOST

    def remove(self) -> None:
        """Removes the folder and everything in it; one that is gone already is fine."""
        shutil.rmtree(self.path, ignore_errors=True)


def list_runs(root: Path | None = None) -> list[RunFolder]:
    """Returns the runs of a folder (None: the default one), newest first; none where it does not exist."""
    return sorted(_run_folders(runs_folder(root)), key=lambda folder: folder.run_id, reverse=True)


def _run_folders(root: Path) -> Iterator[RunFolder]:
    if not root.is_dir():
        return
    for path in root.iterdir():
        folder = RunFolder(path)
        if folder.supervisor_path.exists() or folder.report_path.exists():
            yield folder


def find_run(text: str, root: Path | None = None) -> RunFolder:
    """Returns the run that a person means: its id, the beginning or the end of it, or `last`.

    Raises:
        UsageError: No run, or more than one, is meant.
    """
    runs = list_runs(root)
    if text == "last" and runs:
        return runs[0]
    wanted = text.upper()
    found = [run for run in runs if run.run_id.upper() == wanted] or [
        run for run in runs if wanted and run.run_id.upper().startswith(wanted)
    ]
    found = found or [run for run in runs if wanted and run.run_id.upper().endswith(wanted)]
    if len(found) == 1:
        return found[0]
    if found:
        listed = ", ".join(run.run_id for run in found[:5])
        raise UsageError(f"{text!r} names {len(found)} runs", cause=listed, remedy="give more of the id")
    raise UsageError(
        f"there is no run {text!r}",
        cause=f"{len(runs)} run{'s' if len(runs) != 1 else ''} in {runs_folder(root)}",
        remedy="see `videoflow runs`; a run made with --run-dir is found with the same option",
    )


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


def write_atomically(path: Path, data: bytes) -> None:
    """Writes a file whole or not at all; a reader sees the old content or the new.

    Raises:
        OSError: The file cannot be written; no part of it is left.
    """
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        temporary.write_bytes(data)
        temporary.replace(path)
    except OSError:
        temporary.unlink(missing_ok=True)
        raise
