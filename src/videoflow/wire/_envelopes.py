"""Envelopes as bytes: for the log of a channel, and for the outbox of a task.

Used by adapters and by the commit of a task. It refuses bytes of another version, and damaged ones.
"""

from collections.abc import Iterable, Sequence

import msgspec

from videoflow.backends.coverage import Cause, Hop, Origin
from videoflow.backends.messaging import SCHEMA, ChannelId, Envelope, Kind, Layout, Writer
from videoflow.backends.payload import PayloadRef
from videoflow.errors import ValueRefused

# The fields of an envelope after its channel, in their order; a positional row is the fastest to read.
_Row = tuple[
    str,
    Kind,
    Writer,
    str,
    Origin,
    tuple[Hop, ...],
    int,
    tuple[tuple[str, int, int], ...],
    tuple[tuple[int, int], ...],
    Cause | None,
    tuple[tuple[int, int], ...],
    float | None,
    float | None,
    str,
    str,
    tuple[tuple[str, str], ...],
    bytes,
    tuple[PayloadRef, ...],
    int,
    int,
]


class _Addressed(msgspec.Struct, frozen=True, array_like=True):
    node: str
    port: str
    layout: Layout
    row: bytes


_encoder = msgspec.msgpack.Encoder()
_rows = msgspec.msgpack.Decoder(_Row)
_addressed = msgspec.msgpack.Decoder(_Addressed)


def encode_envelope(envelope: Envelope) -> bytes:
    """Returns an envelope as bytes, without its channel, which the place of the bytes says."""
    e = envelope
    return _encoder.encode(
        (
            e.publication_id,
            e.kind,
            e.writer,
            e.input_id,
            e.origin,
            e.path,
            e.partition,
            e.after,
            e.intervals,
            e.cause,
            e.elsewhere,
            e.event_time,
            e.low,
            e.key,
            e.source,
            e.headers,
            e.body,
            e.payloads,
            e.size_bytes,
            e.schema,
        )
    )


def decode_envelope(data: bytes | memoryview, channel: ChannelId) -> Envelope:
    """Returns the envelope that `encode_envelope` wrote, on this channel.

    Raises:
        ValueRefused: The bytes are damaged, or of another version.
    """
    try:
        envelope = Envelope(channel, *_rows.decode(data))
    except msgspec.MsgspecError as error:
        raise ValueRefused("an envelope cannot be decoded", cause=str(error)) from error
    if envelope.schema != SCHEMA:
        raise ValueRefused(f"an envelope of version {envelope.schema} cannot be decoded, only of {SCHEMA}")
    return envelope


def encode_outbox(envelopes: Iterable[Envelope]) -> tuple[bytes, ...]:
    """Returns envelopes as bytes with node, port and layout of their channels, in order."""
    return tuple(
        _encoder.encode(_Addressed(e.channel.node, e.channel.port, e.channel.layout, encode_envelope(e)))
        for e in envelopes
    )


def decode_outbox(entries: Sequence[bytes], flow_id: str, run_id: str) -> list[Envelope]:
    """Returns the envelopes of an outbox, on the channels of this run.

    Raises:
        ValueRefused: The bytes are damaged, or of another version.
    """
    envelopes = []
    for data in entries:
        try:
            entry = _addressed.decode(data)
        except msgspec.MsgspecError as error:
            raise ValueRefused("an outbox entry cannot be decoded", cause=str(error)) from error
        channel = ChannelId(flow_id, run_id, entry.node, entry.port, entry.layout)
        envelopes.append(decode_envelope(entry.row, channel))
    return envelopes
