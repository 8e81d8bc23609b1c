"""A run whose supervisor died, buried while its last worker is still being ended."""

from collections.abc import Sequence
from pathlib import Path

from videoflow.adapters.sqlite import SqliteStore
from videoflow.backends.runtime import FlowRuntime
from videoflow.clock import RealClock, Waitable
from videoflow.engines.run_folder import RunFolder, lost_report
from videoflow.graph.report import Verdict


class WorkerEndsMeanwhile(RealClock):
    """A clock on which the last worker lets go of the store while somebody waits."""

    def __init__(self, worker: SqliteStore) -> None:
        super().__init__()
        self.worker = worker
        self.waits = 0

    def wait(self, waitables: Sequence[Waitable], deadline: float) -> set[Waitable]:
        self.waits += 1
        self.worker.close()
        return super().wait(waitables, deadline)


def test_the_log_is_folded_although_a_worker_held_the_store_when_it_was_closed(tmp_path: Path) -> None:
    folder = RunFolder.create(tmp_path, "01ARZ3NDEKTSV4RRFFQ69G5FAV")
    worker = SqliteStore(folder.store_path, RealClock())
    FlowRuntime(worker, folder.run_id).put_note("a", b"b", deadline=RealClock().monotonic() + 10)
    clock = WorkerEndsMeanwhile(worker)
    assert lost_report(folder, clock).verdict is Verdict.FAILED
    assert clock.waits > 0, "the worker held the store, so there was something to wait for"
    assert not list(folder.path.glob("run.sqlite-*"))
