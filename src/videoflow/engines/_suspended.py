"""A run that was stopped to be resumed, as it lies in its folder: what the run that goes on begins with.

Used by the engines. It refuses a run that did not end that way, one that was gone on with already, another
flow, another layout of tasks, and a source whose file has changed.
"""

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

import msgspec

from videoflow.adapters.sqlite import SqliteStore
from videoflow.backends.coverage import OriginRecord
from videoflow.backends.runtime import FlowRuntime
from videoflow.clock import Clock
from videoflow.engines._differences import plan_differences, spec_differences
from videoflow.engines.run_folder import RunFolder, RunState, find_run
from videoflow.errors import OutputUnwritable, UsageError
from videoflow.graph.running import RunRequest
from videoflow.graph.spec import FlowSpec, NodeKind
from videoflow.ids import ulid_milliseconds
from videoflow.planner.plan import Plan
from videoflow.worker import NodeFigures

_SUSPENDED, _GONE_ON = "suspended.json", "resumed.json"
_CALL_SECONDS = 30.0
_NANOSECONDS = 1_000_000


class Suspended(msgspec.Struct, frozen=True, kw_only=True):
    """The account of a run up to where it was suspended, with those that it went on with.

    Attributes:
        run_id: Which run.
        first_run_id: The first of the runs that went on with each other.
        announced: By channel of the plan.
        settled: By subscription of the plan, one for each partition.
        inner: Task → number of an edge inside it → what became of its items.
        figures: Task → node → figures.
        over: (task, slot) of the replicas that had ended by themselves.
        again: Tasks whose figures are not exact: what they hold is given to them again, or a worker died.
        seconds: How long it took.
    """

    run_id: str
    first_run_id: str
    announced: list[list[OriginRecord]]
    settled: list[list[OriginRecord]]
    inner: dict[str, dict[int, list[OriginRecord]]] = {}
    figures: dict[str, dict[str, NodeFigures]] = {}
    over: list[tuple[str, int]] = []
    again: list[str] = []
    seconds: float = 0.0


class GoneOn(msgspec.Struct, frozen=True):
    """Which run went on with a suspended one."""

    run_id: str


def write_suspended(folder: RunFolder, suspended: Suspended) -> None:
    """Leaves the account in the folder of a run; from then on it can be resumed.

    Raises:
        OutputUnwritable: It cannot be written.
    """
    folder.write_document(_SUSPENDED, msgspec.json.encode(suspended))


class Resumption:
    """A suspended run that another one goes on with.

    Args:
        request: With the run to resume in its options.
        clock: For deadlines.

    Attributes:
        suspended: Its account.

    Raises:
        UsageError: It cannot be resumed, or not with this flow.
    """

    def __init__(self, request: RunRequest, clock: Clock) -> None:
        self._clock = clock
        self.folder = find_run(request.options.resume, request.options.runs_folder)
        self.suspended = self._read()
        self._require_same(request.spec)
        self._require_unchanged(request.spec)

    def require_plan(self, plan: Plan) -> None:
        """Refuses a plan that lays the tasks out in another way.

        Raises:
            UsageError: It does.
        """
        try:
            before = Plan.from_json(self.folder.plan_path.read_bytes())
        except (OSError, msgspec.MsgspecError) as error:
            raise self._refused("its plan cannot be read", str(error), "run the flow anew") from error
        found = plan_differences(before, plan)
        if found:
            raise self._refused(
                "its tasks are not those of this plan", "\n".join(found), "use the engine and options it had"
            )

    def claim(self, run_id: str) -> None:
        """Marks the run as gone on with, once and for all.

        Raises:
            UsageError: Another run did.
            OutputUnwritable: It cannot be marked.
        """
        path = self.folder.path / _GONE_ON
        part = self.folder.path / f".{_GONE_ON}.{run_id}.tmp"
        try:
            part.write_bytes(msgspec.json.encode(GoneOn(run_id)))
            os.link(part, path)
        except FileExistsError:
            raise self._gone_on(path) from None
        except OSError as error:
            raise OutputUnwritable(
                f"run {self.folder.run_id} cannot be marked as gone on with",
                cause=error.strerror or str(error),
                where=str(path),
                effect="nothing was started",
                remedy="resume it as the user who started it",
            ) from error
        finally:
            part.unlink(missing_ok=True)

    def release(self) -> None:
        """Takes the mark back, for a run that did not start."""
        (self.folder.path / _GONE_ON).unlink(missing_ok=True)

    @contextlib.contextmanager
    def records(self) -> Iterator[FlowRuntime]:
        """Gives the records of the run."""
        store = SqliteStore(self.folder.store_path, self._clock)
        try:
            yield FlowRuntime(store, self.folder.run_id)
        finally:
            store.close()

    # Refusals ---------------------------------------------------------------------------------

    def _read(self) -> Suspended:
        state = self.folder.state()
        if state is RunState.RUNNING:
            remedy = f"stop it first: videoflow stop --resumable {self.folder.run_id}"
            raise self._refused("it is still running", "", remedy)
        if state is not RunState.FINISHED:
            raise self._refused(
                "its supervisor was lost", "what was under way went with it", "run the flow anew"
            )
        path = self.folder.path / _GONE_ON
        if path.exists():
            raise self._gone_on(path)
        try:
            data = (self.folder.path / _SUSPENDED).read_bytes()
            return msgspec.json.decode(data, type=Suspended)
        except FileNotFoundError:
            report = self.folder.report()
            ended = report.verdict.value if report else "unreadable"
            whys = {
                "complete": ("it is complete", "there is nothing left to do", "run the flow anew"),
                "stopped": (
                    "it was not stopped to be resumed",
                    "its outputs are finished, and its last words are said",
                    "run the flow anew, and stop it with `videoflow stop --resumable`",
                ),
            }
            other = (f"it ended as {ended}", "only a run that was stopped to be resumed can be", "run anew")
            raise self._refused(*whys.get(ended, other)) from None
        except (OSError, msgspec.MsgspecError) as error:
            raise self._refused("its account cannot be read", str(error), "run the flow anew") from error

    def _require_same(self, spec: FlowSpec) -> None:
        before = self.folder.spec()
        found = ["its spec.json is gone"] if before is None else spec_differences(before, spec)
        if found:
            raise self._refused("it ran another flow", "\n".join(found), "give the flow as it was then")

    def _require_unchanged(self, spec: FlowSpec) -> None:
        began = ulid_milliseconds(self.suspended.first_run_id) or 0
        for node in spec.nodes:
            paths = node.traits.inputs if node.kind is NodeKind.PRODUCER else ()
            for name in paths:
                try:
                    found = Path(spec.folder, name).stat()
                except OSError as error:
                    raise self._refused(
                        f"{name}, which {node.name} reads, is gone",
                        error.strerror or str(error),
                        "bring it back",
                    ) from error
                if max(found.st_ctime_ns, found.st_mtime_ns) >= (began + 1) * _NANOSECONDS:
                    cause = f"reading would go on in the middle of another file than {node.name} began with"
                    raise self._refused(f"{name} has changed since", cause, "run the flow anew")

    def _gone_on(self, path: Path) -> UsageError:
        try:
            other = msgspec.json.decode(path.read_bytes(), type=GoneOn).run_id
        except (OSError, msgspec.MsgspecError):
            other = "another run"
        return self._refused(
            f"{other} went on with it already", "", f"resume {other}, if it was stopped for that"
        )

    def _refused(self, what: str, cause: str, remedy: str) -> UsageError:
        return UsageError(
            f"run {self.folder.run_id} cannot be resumed: {what}",
            cause=cause,
            where=str(self.folder.path),
            effect="nothing was started",
            remedy=remedy,
        )


def resumption_of(request: RunRequest, plan: Plan, clock: Clock) -> Resumption | None:
    """Returns the run to go on with, or None; called once the id of the new run is made.

    Raises:
        UsageError: It cannot be resumed, or not like this.
    """
    if not request.options.resume:
        return None
    resumption = Resumption(request, clock)
    resumption.require_plan(plan)
    return resumption
