"""The envelope: one publication on a channel.

Used by whoever publishes, carries or reads. It refuses nothing: `wire` does, where it becomes bytes.
"""

from enum import StrEnum
from typing import NamedTuple

import msgspec

from videoflow.backends.coverage import Cause, Hop, Origin
from videoflow.backends.messaging._names import ChannelId
from videoflow.backends.payload import PayloadRef

SCHEMA = 1


class Kind(StrEnum):
    """What an envelope says."""

    DATA = "data"
    SKIP = "skip"
    IDLE = "idle"
    EPOCH_END = "epoch_end"
    END = "end"
    ABORT = "abort"


class Writer(NamedTuple):
    """Who published: a task, the number of its replica, and its ownership epoch."""

    task: str
    slot: int
    epoch: int


class Envelope(msgspec.Struct, frozen=True):
    """One publication: identity, times, headers, encoded value, payload references.

    The envelopes of one `begin_publish` that share channel and `input_id` are one statement, and
    accepted all or none where `atomic_append` is claimed.

    Attributes:
        channel: Where it is published.
        partition: Which partition of the channel.
        publication_id: Identity of this publication, a hash of what it derives from (rule 1).
        kind: What it says.
        writer: Who says it.
        input_id: The input that it is the statement for.
        origin: The source item that it derives from; of an interval skip, its first ordinal.
        path: The fan-outs passed since, so that (origin, path) is the trace.
        after: Of a flush output: (origin node, epoch, greatest ordinal) that must precede it.
        intervals: Of a skip of whole ordinals: closed ordinal intervals, sorted; empty otherwise.
        cause: Of a skip: why nothing was said.
        elsewhere: Ordinals that other partitions received, as closed intervals.
        event_time: Seconds, in the time of the source, or None.
        low: No later ordinal of this origin has an earlier event time (rule 19), or None.
        key: Partition or latest key, or "".
        source: Name of the source that the item comes from, or "".
        headers: (name, text): the attributes by which live readers tell items apart, by publisher.
        body: The encoded value, without its large arrays.
        payloads: The objects that the body refers to, by index.
        size_bytes: Body and payloads together, which is what credits count.
        schema: Version of this layout.
    """

    channel: ChannelId
    publication_id: str
    kind: Kind
    writer: Writer
    input_id: str
    origin: Origin
    path: tuple[Hop, ...] = ()
    partition: int = 0
    after: tuple[tuple[str, int, int], ...] = ()
    intervals: tuple[tuple[int, int], ...] = ()
    cause: Cause | None = None
    elsewhere: tuple[tuple[int, int], ...] = ()
    event_time: float | None = None
    low: float | None = None
    key: str = ""
    source: str = ""
    headers: tuple[tuple[str, str], ...] = ()
    body: bytes = b""
    payloads: tuple[PayloadRef, ...] = ()
    size_bytes: int = 0
    schema: int = SCHEMA
