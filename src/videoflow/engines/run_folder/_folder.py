"""One run folder: its documents, who supervises the run, and whether that process still lives.

Used by engines, which make it, and through the face of this package. It refuses a place that cannot be
written, before anything starts.
"""

import os
import shutil
from enum import StrEnum
from pathlib import Path

import msgspec

from videoflow.engines._home import runs_folder
from videoflow.errors import OutputUnwritable, UnobservableState
from videoflow.graph.report import RunReport
from videoflow.graph.spec import FlowSpec
from videoflow.planner.plan import Plan
from videoflow.processes import ProcessIdentity, is_alive, this_process


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

    def write_document(self, name: str, document: bytes) -> None:
        """Writes a document of the run; raises `OutputUnwritable` where it cannot."""
        self._write(self.path / name, document, effect="the run itself has ended")

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
        """Returns the flow, or None where it was not written.

        Raises:
            FlowFileError: What is there is no flow.
            UnobservableState: It cannot be read.
        """
        try:
            return FlowSpec.from_json(self.spec_path.read_bytes())
        except FileNotFoundError:
            return None
        except OSError as error:
            raise UnobservableState(
                f"the flow of run {self.run_id} cannot be read",
                cause=error.strerror or str(error),
                where=str(self.spec_path),
                remedy="read it as the user who started the run, or remove the run folder",
            ) from error

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
