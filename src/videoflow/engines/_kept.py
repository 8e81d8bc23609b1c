"""What a run in threads leaves on disk, when it was given a folder of run folders.

Used by the threads engine, which keeps its records in memory: the documents are written when it starts, the
report and the dead letters when it ends. A run without a folder leaves nothing. It refuses a place that
cannot be written, before anything starts.
"""

from pathlib import Path

from videoflow.adapters.sqlite import SqliteStore
from videoflow.backends.outcomes import Known
from videoflow.backends.runtime import Change, FlowRuntime, StoreOutcome
from videoflow.clock import Clock
from videoflow.engines._report import iso_time
from videoflow.engines._suspended import Suspended, write_suspended
from videoflow.engines.run_folder import RunFolder
from videoflow.errors import OutputUnwritable, UnobservableState
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

    def finish(self, report: RunReport, records: FlowRuntime, suspended: Suspended | None) -> None:
        """Writes the dead letters, where there are any, and the report; all records where it is suspended.

        Args:
            report: Of the run.
            records: What the run kept in memory.
            suspended: The account to go on with, or None.
        """
        if suspended is not None:
            self._copy_everything(records)
            write_suspended(self.folder, suspended)
        elif report.dead_letters:
            self._copy_dead_letters(records)
        self.folder.write_report(report)

    def _copy_everything(self, records: FlowRuntime) -> None:
        deadline = self._clock.monotonic() + _CALL_SECONDS
        found = records.store.scan(f"run/{records.run_id}/", deadline=deadline)
        if not isinstance(found, Known):
            raise UnobservableState("the records of the run could not be read", cause=found.detail)
        store = SqliteStore(self.folder.store_path, self._clock)
        try:
            changes = [Change(key, stored.value) for key, stored in found.value.items()]
            if store.commit(changes, deadline=deadline) is not StoreOutcome.COMMITTED:
                raise UnobservableState("the records of the run may not have been written")
        finally:
            store.close()

    def _copy_dead_letters(self, records: FlowRuntime) -> None:
        deadline = self._clock.monotonic() + _CALL_SECONDS
        store = SqliteStore(self.folder.store_path, self._clock)
        try:
            copy = FlowRuntime(store, records.run_id)
            for letter in records.dead_letters(deadline=deadline):
                copy.put_dead_letter(letter, deadline=deadline)
        finally:
            store.close()
