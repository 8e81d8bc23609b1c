"""The run report: what became of every frame, and how the run ended.

Made by the engines, read by whoever ran the flow. It refuses to call a run complete when some end
of the ledger could not be read.
"""

from enum import StrEnum
from typing import Any

import msgspec

from videoflow.graph._profile import Bottleneck as Bottleneck
from videoflow.graph._profile import HopTimes as HopTimes
from videoflow.graph._profile import NodeTimes as NodeTimes
from videoflow.graph._profile import ProfileReport as ProfileReport
from videoflow.graph._profile import TaskTimes as TaskTimes
from videoflow.graph._render_html import report_html
from videoflow.graph._render_json import report_json

REPORT_SCHEMA = 1


class Verdict(StrEnum):
    """How a run ended."""

    COMPLETE = "complete"
    INCOMPLETE = "incomplete"
    STOPPED = "stopped"
    STALLED = "stalled"
    FAILED = "failed"


class SourceReport(msgspec.Struct, kw_only=True):
    """What one source said of itself at its end.

    Attributes:
        node: Its node.
        outcome: `complete`, `truncated`, `damaged` (whole, with frames that could not be decoded),
            `undecodable`, `stalled`, `disconnected`, `stopped`, `failed`, or `unknown` where nobody said.
        items: Ordinals announced, skips included.
        detail: In words.
        figures: The source's own figures, such as frames decoded and corrupt.
        required: Whether a bad outcome makes the run incomplete.
    """

    node: str
    outcome: str
    items: int
    detail: str = ""
    figures: dict[str, Any] = {}
    required: bool = True


class EdgeReport(msgspec.Struct, kw_only=True):
    """The ledger of one edge: announced = the sum of the rest, or the ledger does not close.

    Counts are of statements: ordinals, or traces below a fan-out. Items in flight at the end close only
    where the run was ended without draining. `closed` is None where an end could not be read. `replica` is
    set for markers, of which each replica of the child has all.
    """

    parent: str
    child: str
    announced: int
    delivered: int = 0
    skipped: dict[str, int] = {}
    dropped: dict[str, int] = {}
    dead_lettered: int = 0
    abandoned: int = 0
    in_flight: int = 0
    closed: bool | None = True
    transport: str = ""
    detail: str = ""
    replica: int | None = None

    @property
    def reader(self) -> str:
        """The child in words, and whether it is given markers."""
        if self.replica is None:
            return self.child
        return f"{self.child} (markers)" if self.replica == 0 else f"{self.child} (markers, {self.replica})"


class BatchReport(msgspec.Struct, kw_only=True):
    """How many inputs a node was given in one call, and how long they waited for each other.

    Inputs that were called alone, because their process died before or others of their call failed, are not
    in it.

    Attributes:
        calls: That gathered inputs, be it one.
        mean_items: Inputs of a call on average.
        sizes: Inputs → calls with so many.
        waits: (seconds, inputs that waited no longer than that, and longer than those before), to a twelfth.
        p50_wait_seconds: Half of the inputs waited no longer, from when a replica received them.
        p95_wait_seconds: So for 95 of 100.
        p99_wait_seconds: So for 99 of 100.
    """

    calls: int
    mean_items: float
    sizes: dict[int, int]
    waits: list[tuple[float, int]]
    p50_wait_seconds: float | None = None
    p95_wait_seconds: float | None = None
    p99_wait_seconds: float | None = None


class NodeReport(msgspec.Struct, kw_only=True):
    """Figures of one node over all its replicas and incarnations; times in seconds per call."""

    node: str
    task: str
    items: int = 0
    outputs: int = 0
    errors: int = 0
    dead_letters: int = 0
    restarts: int = 0
    p50_seconds: float | None = None
    p95_seconds: float | None = None
    p99_seconds: float | None = None
    busy_share: float | None = None
    batches: BatchReport | None = None


class GapReport(msgspec.Struct, kw_only=True):
    """Something that is missing or in doubt: which source or edge, from where to where, and why."""

    where: str
    what: str
    cause: str = ""


class DeadLetterReport(msgspec.Struct, kw_only=True):
    """One dead letter, for the table.

    Attributes:
        label: What `videoflow dead-letters show` takes.
        node: Which node failed.
        error: Its last error.
        attempts: How often it was tried.
        origin: Source node, source epoch and ordinal, joined with `/`.
        event_time: Seconds in the time of the source, or None.
        source: Address of the source, or "".
        where: File, line and function, or "".
    """

    label: str
    node: str
    error: str
    attempts: int
    origin: str
    event_time: float | None = None
    source: str = ""
    where: str = ""


class DeviceReport(msgspec.Struct, kw_only=True):
    """One accelerator of one task replica; memory in bytes.

    Attributes:
        workload: Task and number of the replica, joined with `/`.
        device: UUID of the device.
        product: As the driver spells it.
        sharing: How it was asked for.
        exclusive: Whether it was granted to this replica alone, among all that ask the ledger of this user.
        policy: By which it was granted.
        memory_bytes: Usable memory of the device, or None where it could not be read.
        declared_peak_bytes: What the replica says that it uses at most, or None.
        highest_used_bytes: The most that was seen in use by it, or None where nobody could tell.
        samples: How often that was looked at, about once a second: a shorter peak may have been higher.
        detail: Why a look told nothing, or "".
    """

    workload: str
    device: str
    product: str
    sharing: str
    exclusive: bool
    policy: str
    memory_bytes: int | None = None
    declared_peak_bytes: int | None = None
    highest_used_bytes: int | None = None
    samples: int = 0
    detail: str = ""


class FailureReport(msgspec.Struct, kw_only=True):
    """The first failure, with the fields of an error block."""

    code: str
    message: str
    node: str = ""
    cause: str = ""
    where: str = ""
    effect: str = ""
    remedy: str = ""


class RunReport(msgspec.Struct, kw_only=True):
    """The account of a run.

    Attributes:
        run_id: ULID.
        flow_id: Name of the flow.
        engine: Which engine ran it.
        verdict: How it ended.
        exit_status: What the command line exits with.
        sources: One each.
        edges: One per edge, fused ones included.
        nodes: One each.
        gaps: What is missing or in doubt.
        devices: Accelerators that its tasks were granted.
        dead_letters: What was put aside.
        values: Node name → what `Collect` collected.
        outputs: Paths written.
        failure: The first failure, or None.
        started_at: ISO 8601 with zone.
        seconds: Duration.
        folder: The run folder, or "".
        resumable: It was stopped to be resumed, and can be.
        resumed_from: The run that it went on with, or ""; the account is of both together.
        profile: Where the time went, of this run alone, where that was measured.
        schema: Version of this document.
    """

    run_id: str
    flow_id: str
    engine: str
    verdict: Verdict
    exit_status: int
    sources: list[SourceReport] = []
    edges: list[EdgeReport] = []
    nodes: list[NodeReport] = []
    gaps: list[GapReport] = []
    devices: list[DeviceReport] = []
    dead_letters: list[DeadLetterReport] = []
    values: dict[str, Any] = {}
    outputs: list[str] = []
    failure: FailureReport | None = None
    started_at: str = ""
    seconds: float = 0.0
    folder: str = ""
    resumable: bool = False
    resumed_from: str = ""
    profile: ProfileReport | None = None
    schema: int = REPORT_SCHEMA

    def to_json(self) -> bytes:
        """Returns the document, indented; values that JSON cannot hold are described in their place."""
        return report_json(self)

    @staticmethod
    def from_json(document: bytes) -> "RunReport":
        """Reads a document; raises `msgspec.ValidationError` for anything else."""
        return msgspec.json.decode(document, type=RunReport)

    def _repr_html_(self) -> str:
        return report_html(self)
