"""What the flow runtime records, in plain values."""

from enum import IntEnum, StrEnum

import msgspec


class Desired(IntEnum):
    """The desired state of a run; it only rises."""

    RUN = 0
    STOP = 1
    ABORT = 2


class CommitOutcome(StrEnum):
    """How a task's commit ended."""

    COMMITTED = "committed"
    STALE = "stale"
    UNKNOWN = "unknown"


class SourcePosition(msgspec.Struct, frozen=True, array_like=True):
    """How far a source has come: everything up to `ordinal` is accepted on all its channels.

    Attributes:
        epoch: Source epoch.
        ordinal: Last ordinal committed, -1 for none.
        offset: The user's offset of that item, or None for none.
    """

    epoch: int
    ordinal: int
    offset: int | None


class OutboxEntry(msgspec.Struct, frozen=True, array_like=True):
    """The encoded envelopes of the statements that one input caused, to be published after the commit.

    Attributes:
        input_id: The input.
        envelopes: Each encoded by `wire`, in order of publication.
    """

    input_id: str
    envelopes: tuple[bytes, ...]


class TaskCommit(msgspec.Struct, frozen=True, kw_only=True):
    """One commit of a task: all of it is applied, or none.

    Attributes:
        state: `node/key` → encoded value, or None to delete; keys not named are kept.
        cursor: The input positions, encoded by the core; None: unchanged.
        outbox: Replaces the stored outbox: the envelopes not yet known to be published.
        source: Source position, or None: unchanged.
        flushed: Flush outputs are in this outbox, or before.
    """

    state: dict[str, bytes | None] = {}
    cursor: bytes | None = None
    outbox: tuple[OutboxEntry, ...] = ()
    source: SourcePosition | None = None
    flushed: bool = False


class Committed(msgspec.Struct, frozen=True, kw_only=True):
    """What a task finds at its start."""

    number: int = 0
    state: dict[str, bytes] = {}
    cursor: bytes | None = None
    outbox: tuple[OutboxEntry, ...] = ()
    source: SourcePosition | None = None
    flushed: bool = False


class Head(msgspec.Struct, frozen=True, array_like=True):
    """The part of a task's record that every commit rewrites."""

    epoch: int = 0
    number: int = 0
    cursor: bytes | None = None
    outbox: tuple[OutboxEntry, ...] = ()
    source: SourcePosition | None = None
    flushed: bool = False


class FirstFailure(msgspec.Struct, frozen=True, kw_only=True):
    """Why a run is aborting; one record that everyone names.

    Attributes:
        node: The node that failed.
        code: Stable code of the error.
        message: One line.
        cause: The user's exception, `Type: text`.
        where: File, line and function.
        remedy: What to do.
        exit_status: Of the run.
    """

    node: str
    code: str
    message: str
    cause: str = ""
    where: str = ""
    remedy: str = ""
    exit_status: int = 4


class Aside(msgspec.Struct, frozen=True, array_like=True):
    """Which input a dead letter is of, without what the letter holds.

    Attributes:
        record_id: Of the dead letter.
        node: The node that put the input aside.
        origin: (node, epoch, ordinal) of the input.
        path: (node, port, k, n) of each fan-out that the input passed.
    """

    record_id: str
    node: str
    origin: tuple[str, int, int]
    path: tuple[tuple[str, str, int, int], ...] = ()


class DeadLetter(msgspec.Struct, frozen=True, kw_only=True):
    """An input put aside, self-contained, with what a replay needs.

    Attributes:
        record_id: `hash(run, node, input id)`.
        label: What is shown, such as `318-7f3a`.
        run_id: Which run.
        node: Which node failed.
        task: In which task.
        input_id: The input of that node.
        origin: (node, epoch, ordinal).
        path: (node, port, k, n) of each fan-out passed.
        attempts: How often it was tried.
        error: `Type: text` of the last error, or what killed the process.
        where: File, line and function, or "".
        trace: The traceback as text, or "".
        event_time: Seconds in the time of the source, or None.
        source: Name of the source, or "".
        members: Input name → encoded value with its arrays inline; empty where the copy did not fit.
        omitted: Input names whose bytes were left out, with the size that did not fit.
        at_seconds: Wall time.
    """

    record_id: str
    label: str
    run_id: str
    node: str
    task: str
    input_id: str
    origin: tuple[str, int, int]
    path: tuple[tuple[str, str, int, int], ...] = ()
    attempts: int = 1
    error: str = ""
    where: str = ""
    trace: str = ""
    event_time: float | None = None
    source: str = ""
    members: dict[str, bytes] = {}
    omitted: dict[str, int] = {}
    at_seconds: float = 0.0
