"""The control link of one worker: a socket that its engine inherited to it, and the messages on it.

Used by `worker.process` and by the local engine. Everything that a worker is told at its start, and all that
both sides say afterwards, goes here; payloads never do. A message longer than one datagram is sent in parts.
It refuses to wait while it sends: what the socket does not take stays queued.
"""

import array
import socket
from collections import deque
from collections.abc import Sequence

import msgspec

from videoflow.backends.coverage import Cause, Fate, FateKind, Hop, Origin
from videoflow.backends.runtime import Desired, FirstFailure
from videoflow.worker._figures import NodeFigures
from videoflow.worker._meter import Spending
from videoflow.worker.core.actions import InnerFate

PART_BYTES = 60 << 10
_MOST_DESCRIPTORS = 250
_MORE, _LAST = b"+", b"."


class PlantedFault(msgspec.Struct, frozen=True, array_like=True):
    """A fault to arm, as in `faults.Fault`."""

    barrier: str
    action: str
    hit: int
    record: str


class Boot(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """What a worker is to be. Its descriptors: the page of figures, then those of the kit.

    Attributes:
        plan: `plan.json`, as it lies in the run folder.
        task: Which task of it.
        slot: Number of the replica.
        incarnation: Unique per start.
        run_id: ULID of the run.
        run_folder: Where `run.sqlite` is.
        import_path: `sys.path` of the process that built the flow.
        desired: The desired state of the run.
        failed_task: The task that the run failed in, or None.
        abandon: Only settle what waits, without user code.
        restarted: An earlier incarnation of this replica died.
        died: How it died, in words, or "".
        faults: Planted faults.
        classes: Node classes by value, as the notebook adapter made them, or b"".
        kit: What the message log wants a worker to know.
        profile: Measure where the time goes.
    """

    plan: bytes
    task: str
    slot: int
    incarnation: str
    run_id: str
    run_folder: str
    import_path: tuple[str, ...] = ()
    desired: Desired = Desired.RUN
    failed_task: str | None = None
    abandon: bool = False
    restarted: bool = False
    died: str = ""
    faults: tuple[PlantedFault, ...] = ()
    classes: bytes = b""
    kit: bytes = b""
    profile: bool = False


class Desire(msgspec.Struct, frozen=True, tag=True):
    """The desired state of the run has risen."""

    desired: Desired
    failed_task: str | None = None


class EndNow(msgspec.Struct, frozen=True, tag=True):
    """End without draining."""


class Opened(msgspec.Struct, frozen=True, tag=True):
    """Every node of the task is open."""


class PackedFate(msgspec.Struct, frozen=True, array_like=True):
    """An `InnerFate` in few bytes; neighbours with one fate become one."""

    edge: int
    node: str
    epoch: int
    first: int
    last: int
    kind: FateKind
    cause: Cause | None = None
    path: tuple[Hop, ...] = ()


class Inner(msgspec.Struct, frozen=True, tag=True):
    """Fates on edges inside the task, packed."""

    fates: list[PackedFate]


class Failed(msgspec.Struct, frozen=True, tag=True):
    """The run has failed; the first failure as recorded."""

    failure: FirstFailure


class Figures(msgspec.Struct, frozen=True, tag=True):
    """The figures of this incarnation so far, and where its time went, where the run is profiled."""

    nodes: dict[str, NodeFigures]
    spending: Spending | None = None


class Ended(msgspec.Struct, frozen=True, tag=True):
    """The task has ended here: `end` or `abort`, or None when it was told to end now."""

    kind: str | None


class Broken(msgspec.Struct, frozen=True, tag=True):
    """This worker cannot go on.

    Attributes:
        failure: Why, as the first failure of the run where it is one.
        again: Whether another incarnation may do better.
    """

    failure: FirstFailure
    again: bool


Message = Boot | Desire | EndNow | Opened | Inner | Failed | Figures | Ended | Broken
_encode = msgspec.msgpack.Encoder().encode
_decoder: msgspec.msgpack.Decoder[Message] = msgspec.msgpack.Decoder(Message)


class LinkClosed(Exception):
    """The process at the other end is gone."""


class Link:
    """One end of a control link.

    Args:
        end: A connected SEQPACKET socket.

    Attributes:
        sent_bytes: Bytes sent so far.
        received_bytes: Bytes received so far.
    """

    def __init__(self, end: socket.socket) -> None:
        self.socket = end
        self.sent_bytes = 0
        self.received_bytes = 0
        self._outgoing: deque[tuple[bytes, Sequence[int]]] = deque()
        self._incoming = bytearray()
        self._descriptors: list[int] = []

    def fileno(self) -> int:
        """Returns the descriptor to poll."""
        return self.socket.fileno()

    def queue(self, message: Message, descriptors: Sequence[int] = ()) -> None:
        """Queues a message; `descriptors` must stay open until it is sent."""
        data = _encode(message)
        parts = [data[at : at + PART_BYTES] for at in range(0, len(data), PART_BYTES)]
        for part in parts[:-1]:
            self._outgoing.append((_MORE + part, ()))
        self._outgoing.append((_LAST + parts[-1], descriptors))

    def flush(self) -> bool:
        """Sends what is queued, as far as the socket takes it; returns whether nothing is left.

        Raises:
            LinkClosed: The other end is gone.
        """
        while self._outgoing:
            data, descriptors = self._outgoing[0]
            try:
                self.sent_bytes += (
                    socket.send_fds(self.socket, [data], list(descriptors))
                    if descriptors
                    else self.socket.send(data)
                )
            except BlockingIOError:
                return False
            except OSError as error:
                raise LinkClosed from error
            self._outgoing.popleft()
        return True

    def send(self, message: Message) -> None:
        """Queues a message and sends it, on a socket that blocks.

        Raises:
            LinkClosed: The other end is gone.
        """
        self.queue(message)
        self.flush()

    def receive(self) -> tuple[Message, list[int]] | None:
        """Returns the next whole message and its descriptors; None when the socket has no more now.

        Raises:
            LinkClosed: The other end is gone, and all that it said was returned before.
        """
        while True:
            try:
                data, ancillary, _, _ = self.socket.recvmsg(
                    PART_BYTES + 1, socket.CMSG_SPACE(_MOST_DESCRIPTORS * 4), socket.MSG_CMSG_CLOEXEC
                )
            except BlockingIOError:
                return None
            except OSError as error:
                raise LinkClosed from error
            if not data:
                raise LinkClosed
            self.received_bytes += len(data)
            for level, kind, content in ancillary:
                if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS:
                    received = array.array("i")
                    received.frombytes(content[: len(content) - len(content) % received.itemsize])
                    self._descriptors += received
            self._incoming += data[1:]
            if data[:1] == _LAST:
                message = _decoder.decode(self._incoming)
                descriptors, self._descriptors = self._descriptors, []
                self._incoming = bytearray()
                return message, descriptors

    def close(self) -> None:
        """Closes this end; the other one sees it."""
        self.socket.close()


def packed(fates: Sequence[InnerFate]) -> list[PackedFate]:
    """Returns fates with neighbours joined."""
    found: dict[tuple[object, ...], PackedFate] = {}
    done: list[PackedFate] = []
    for fate in fates:
        origin = fate.origin
        new = PackedFate(
            fate.edge,
            origin.node,
            origin.epoch,
            origin.ordinal,
            fate.last,
            fate.fate.kind,
            fate.fate.cause,
            fate.path,
        )
        if fate.path:
            done.append(new)
            continue
        key = (new.edge, new.node, new.epoch, new.kind, new.cause)
        before = found.get(key)
        if before is not None and before.last == new.first - 1:
            found[key] = msgspec.structs.replace(before, last=new.last)
            continue
        if before is not None:
            done.append(before)
        found[key] = new
    return [*done, *found.values()]


def unpacked(fates: Sequence[PackedFate]) -> list[InnerFate]:
    """Returns what `packed` was given, neighbours joined."""
    return [
        InnerFate(f.edge, Origin(f.node, f.epoch, f.first), f.last, f.path, Fate(f.kind, f.cause))
        for f in fates
    ]
