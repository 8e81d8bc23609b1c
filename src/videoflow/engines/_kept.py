"""What a run in threads leaves on disk, when it was given a folder of run folders.

Used by the threads engine, which keeps its records in memory: the documents are written when it starts, the
report and the dead letters when it ends. A run without a folder leaves nothing. It refuses a place that
cannot be written, before anything starts.
"""

from pathlib import Path

from videoflow.adapters.sqlite import SqliteStore
from videoflow.backends.runtime import FlowRuntime
from videoflow.clock import Clock
from videoflow.engines._report import iso_time
from videoflow.engines.run_folder import RunFolder
from videoflow.errors import OutputUnwritable
from videoflow.graph.report import RunReport
from videoflow.planner.plan import Plan

_CALL_SECONDS = 30.0


class KeptRun:
    """The run folder of a run in threads.

    Args:
        root: Folder of run folders.
        run_id: ULID of the run.
        plan: What it runs.
        clock: Time.

    Raises:
        OutputUnwritable: The folder cannot be made or written.
    """

    def __init__(self, root: Path, run_id: str, plan: Plan, clock: Clock) -> None:
        self._clock = clock
        self.folder = RunFolder.create(
            root,
            run_id,
            engine=plan.engine,
            flow_id=plan.spec.flow_id,
            started_at=iso_time(clock.wall()),
        )
        try:
            self.folder.write_spec(plan.spec)
            self.folder.write_plan(plan)
        except OutputUnwritable:
            self.folder.remove()
            raise

    def discard(self) -> None:
        """Removes the folder of a run that did not start."""
        self.folder.remove()

    def finish(self, report: RunReport, records: FlowRuntime) -> None:
        """Writes the dead letters, where there are any, and the report.

        Args:
            report: Of the run.
            records: What the run kept in memory.
        """
        if report.dead_letters:
            self._copy_dead_letters(records)
        self.folder.write_report(report)

    def _copy_dead_letters(self, records: FlowRuntime) -> None:
        deadline = self._clock.monotonic() + _CALL_SECONDS
        store = SqliteStore(self.folder.store_path, self._clock)
        try:
            copy = FlowRuntime(store, records.run_id)
            for letter in records.dead_letters(deadline=deadline):
                copy.put_dead_letter(letter, deadline=deadline)
        finally:
            store.close()
