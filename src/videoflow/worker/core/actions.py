"""What the core asks of its shell, and what the shell answers.

The core is a generator: it yields one action at a time and is sent that action's answer. It is pure:
no clock, no threads, no I/O, so the same code runs under every engine, in a simulation and in a
test that answers by hand.

Used by the cores, by the shell, and by whoever answers in its place. It refuses nothing: an action without
an answer here does not type-check.
"""

from collections.abc import Generator, Mapping, Sequence
from typing import Any

import msgspec

from videoflow.backends.messaging import Delivery, DeliveryToken, Envelope, Kind, Settlement
from videoflow.backends.outcomes import PublicationOutcome, SettlementOutcome
from videoflow.backends.runtime import CommitOutcome, FirstFailure, SourcePosition
from videoflow.worker.core._answers import ItemReady as ItemReady
from videoflow.worker.core._answers import Outputs as Outputs
from videoflow.worker.core._answers import Progress as Progress
from videoflow.worker.core._answers import Pulled as Pulled
from videoflow.worker.core._answers import Returned as Returned
from videoflow.worker.core._answers import Sourced as Sourced
from videoflow.worker.core._answers import SourceEnded as SourceEnded
from videoflow.worker.core._answers import WorkerFatal as WorkerFatal
from videoflow.worker.core._burst import BurstWalk as BurstWalk
from videoflow.worker.core._burst import Lingers as Lingers
from videoflow.worker.core._burst_outcome import BurstOutcome as BurstOutcome
from videoflow.worker.core._failures import Disposition as Disposition
from videoflow.worker.core._failures import Failure as Failure
from videoflow.worker.core._said import Element as Element
from videoflow.worker.core._said import InnerFate as InnerFate
from videoflow.worker.core._said import Publication as Publication
from videoflow.worker.core._said import Statement as Statement

# Actions --------------------------------------------------------------------------------------


class Pull(msgspec.Struct):
    """Receive inputs and markers, what there is; wait when there is nothing. Answer: `Pulled`.

    A waiting pull that receives nothing returns when progress or the desired state is not what the last such
    pull returned.

    Attributes:
        after: Per subscription: the positions read so far of an exclusive one, None for a competing one.
        max_items: Per subscription.
        wait: Whether to wait when there is nothing.
        until: Where inputs wait for others: seconds on the clock of `Pulled.at`, then, or when no more can
            come before something is settled, a pull returns that waits for input.
    """

    after: tuple[Mapping[int, int] | None, ...]
    max_items: int
    wait: bool
    until: float | None = None


class PullMarkers(msgspec.Struct):
    """Receive the markers that have come. Answer: deliveries per subscription to markers.

    Attributes:
        last: None will be received later: where some have come and are on their way, wait a little.
        rest: Wait until there are some or there will be none any more, as in a run that is to be resumed.
    """

    last: bool = False
    rest: bool = False


class Load(msgspec.Struct):
    """Decode the members of a group. Answer: a tuple of values (None for None), or `Failure`."""

    members: tuple[Delivery | None, ...]


class Burst(msgspec.Struct):
    """Load plain inputs and call the nodes of the task for them, as `Load` and `Call` do.

    Answer: `BurstOutcome`.

    Attributes:
        walk: How; it is lent what loads and what calls.
        deliveries: The inputs.
        held: What is to be published before what comes of them.
        lingers: Whether results may be published as soon as an input behind them takes its time.
    """

    walk: BurstWalk
    deliveries: Sequence[Delivery]
    held: Sequence[Statement]
    lingers: bool


class Hold(msgspec.Struct):
    """From here on, publish what is held where user code takes its time. Answer: None."""

    held: Sequence[Statement]


class Release(msgspec.Struct):
    """Publish nothing more of what is held. Answer: outcomes of what is out, the first of it."""


class Produce(msgspec.Struct):
    """Ask the source for items that come quickly, and call the nodes of its task for each, as `Call` does.

    Answer: `BurstOutcome`.

    Attributes:
        walk: How; it is lent what asks and what calls.
        position: As of `NextItem`.
        held: What is to be published before what comes of them; it may be out before they have come.
        inner: What became of that inside the task, to be told before.
    """

    walk: BurstWalk
    position: SourcePosition
    held: Sequence[Statement]
    inner: Sequence[InnerFate]


class Call(msgspec.Struct):
    """Call a node once. Answer: `Returned` or `Failure`."""

    node: str
    element: Element
    attempt: int


class CallBatch(msgspec.Struct):
    """Call a node once for several inputs. Answer: a list with one `Returned` each, or one `Failure`.

    Attributes:
        node: The node.
        elements: Its inputs, none of them a suspect.
        since: When each was received, on the clock of `Pulled.at`.
    """

    node: str
    elements: Sequence[Element]
    since: Sequence[float]


class Control(msgspec.Struct):
    """Give a node a marker once. Answer: `Returned` with no outputs, or `Failure`."""

    node: str
    element: Element
    attempt: int


class Flush(msgspec.Struct):
    """Call a node's `flush`. Answer: `Returned` or `Failure`."""

    node: str


class Checkpoint(msgspec.Struct):
    """Call a node's `checkpoint`. Answer: the number of oldest unsettled inputs now durable, or `Failure`.

    Attributes:
        node: The sink.
        unsettled: Inputs that it has not made durable.
        final: Nothing more comes.
        hold: What calls have changed in the state is held before, as `HoldState` does.
    """

    node: str
    unsettled: int
    final: bool
    hold: bool = False


class HoldState(msgspec.Struct):
    """Hold what calls have changed in the state since the last time, until a commit covers it. Answer: None.

    A sink makes inputs durable later than they were worked on; what the nodes of its task keep of an input
    must not be committed before its cursor is.
    """


class NextItem(msgspec.Struct):
    """Ask the source for its next item. Answer: `Sourced`.

    Attributes:
        position: The last position whose item was taken, for a source that has to be started again.
        held: To be published meanwhile, all of it, where the source takes its time.
        inner: What became of the held items inside the task, to be told before.
    """

    position: SourcePosition
    held: Sequence[Statement] = ()
    inner: Sequence[InnerFate] = ()


class Pause(msgspec.Struct):
    """Wait before a retry. Answer: None."""

    seconds: float


class Publish(msgspec.Struct):
    """Publish, in order, and wait for outcomes. Answer: one `PublicationOutcome` each."""

    publications: Sequence[Publication]
    barrier: str = "publish.sent"


class Announced(msgspec.Struct):
    """What was announced of an earlier epoch of the source? Answer: closed intervals per channel."""

    node: str
    epoch: int


class Republish(msgspec.Struct):
    """Publish the outbox found at the start. Answer: one `PublicationOutcome` each."""

    pending: Sequence[bytes]


class Commit(msgspec.Struct):
    """Commit the state changed since the last commit, with this. Answer: `CommitOutcome`.

    Attributes:
        number: Of the commit, without gaps.
        cursor: The task's position.
        publications: (input id of the statement, its envelopes), for the outbox.
        source: How far the source has come.
        flushed: The last words are in it.
        held: So many of the oldest held changes of the state are in it; the others are not.
    """

    number: int
    cursor: bytes | None = None
    publications: Sequence[tuple[str, Sequence[Publication]]] = ()
    source: SourcePosition | None = None
    flushed: bool = False
    held: int = 0


class KeepOnce(msgspec.Struct):
    """Record what a replica that shares its input says, once per input. Answer: per input, what stands.

    That is None where it is what was given, else the encoded envelopes that another said before it died.

    Attributes:
        publications: (input id of the task's input, everything that it says of it).
        forget: Inputs that are settled.
    """

    publications: Sequence[tuple[str, Sequence[Publication]]]
    forget: Sequence[str] = ()


class ForgetOnce(msgspec.Struct):
    """Forget whatever `KeepOnce` recorded for this task, whoever did: every input is settled. Answer: None.

    Who died between the settlement of an input and its next record has left some.
    """


class KeepEpochs(msgspec.Struct):
    """Keep that an ordered reader is through with the epochs of sources before these. Answer: None.

    What says that an epoch has ended is settled afterwards, and not given to its next incarnation.
    """

    epochs: Mapping[str, int]


class Recall(msgspec.Struct):
    """What was recorded with `KeepOnce` for an input? Answer: encoded envelopes, or None."""

    input_id: str


class Settle(msgspec.Struct):
    """Report inner fates, then settle. Answer: one `SettlementOutcome` per token."""

    settlements: Sequence[tuple[DeliveryToken, Settlement]]
    inner: Sequence[InnerFate]


class PutAside(msgspec.Struct):
    """Record a dead letter durably. Answer: its reference.

    Attributes:
        node: Whose.
        element: Its input.
        failure: Why it is put aside.
        attempts: How often it was tried.
        unread: Where the input could not be decoded: per input of the node what came, None for what did not.
    """

    node: str
    element: Element
    failure: Failure
    attempts: int
    unread: Sequence[Envelope | None] = ()


PUT_ASIDE = 1 << 30


class Attempts(msgspec.Struct):
    """How many incarnations have a started record for this input of this node? Answer: int.

    `PUT_ASIDE`, where it was put aside already by one that died before it could settle it.
    """

    node: str
    input_id: str


class RecordStarted(msgspec.Struct):
    """Record that this incarnation starts user code for a suspect. Answer: None."""

    node: str
    input_id: str


class FailRun(msgspec.Struct):
    """Record the first failure of the run and raise its desired state to abort. Answer: None."""

    failure: FirstFailure


class Suspend(msgspec.Struct):
    """Is this run stopped to be resumed? Answer: bool.

    Asked when the input is drained or the source was stopped: after a yes nothing is flushed.

    Attributes:
        keep: After a yes, what is received and not settled is kept.
    """

    keep: bool = True


class Terminate(msgspec.Struct):
    """Stamp the end of this replica on every output channel. Answer: None."""

    kind: Kind


Action = (
    Pull
    | PullMarkers
    | Load
    | Burst
    | Produce
    | Hold
    | Release
    | Call
    | CallBatch
    | Control
    | Flush
    | Checkpoint
    | HoldState
    | NextItem
    | Pause
    | Publish
    | Republish
    | Announced
    | Commit
    | KeepOnce
    | ForgetOnce
    | KeepEpochs
    | Recall
    | Settle
    | PutAside
    | Attempts
    | RecordStarted
    | FailRun
    | Suspend
    | Terminate
)

Steps = Generator[Action, Any, Any]
"""A part of a core: it yields actions, is sent their answers, and returns what it came to."""

Answer = (
    Pulled
    | Returned
    | list[Returned]
    | BurstOutcome
    | Failure
    | Sourced
    | CommitOutcome
    | Sequence[PublicationOutcome]
    | Sequence[SettlementOutcome]
    | tuple[Any, ...]
    | int
    | str
    | None
)
