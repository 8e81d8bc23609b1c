"""Envelopes as bytes, on the log of a channel and in an outbox."""

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from videoflow.backends.coverage import Cause, Hop, Origin
from videoflow.backends.messaging import ChannelId, Envelope, Kind, Layout, Reliability, Writer
from videoflow.backends.payload import PayloadRef
from videoflow.errors import ValueRefused
from videoflow.wire import decode_envelope, decode_outbox, encode_envelope, encode_outbox

numbers = st.integers(0, 2**40)
times = st.none() | st.floats(allow_nan=False)
pairs = st.lists(st.tuples(numbers, numbers), max_size=3).map(tuple)
channels = st.builds(
    ChannelId,
    st.just("flow"),
    st.just("run"),
    st.text(max_size=5),
    st.text(max_size=5),
    st.builds(Layout, st.sampled_from(Reliability), st.none() | st.just("key"), st.integers(1, 4)),
)
envelopes: st.SearchStrategy[Envelope] = st.builds(
    Envelope,
    channel=channels,
    publication_id=st.text(max_size=5),
    kind=st.sampled_from(Kind),
    writer=st.builds(Writer, st.text(max_size=5), numbers, numbers),
    input_id=st.text(max_size=5),
    origin=st.builds(Origin, st.text(max_size=5), numbers, numbers),
    path=st.lists(st.builds(Hop, st.text(max_size=3), st.text(max_size=3), numbers, numbers)).map(tuple),
    partition=numbers,
    after=st.lists(st.tuples(st.text(max_size=3), numbers, numbers), max_size=2).map(tuple),
    intervals=pairs,
    cause=st.none() | st.sampled_from(Cause),
    elsewhere=pairs,
    event_time=times,
    low=times,
    key=st.text(max_size=5),
    source=st.text(max_size=5),
    headers=st.lists(st.tuples(st.text(max_size=3), st.text(max_size=3)), max_size=2).map(tuple),
    body=st.binary(max_size=20),
    payloads=st.lists(
        st.builds(PayloadRef, st.text(max_size=3), st.text(max_size=3), numbers), max_size=2
    ).map(tuple),
    size_bytes=numbers,
)


@given(envelopes)
def test_an_envelope_comes_out_as_it_went_in(envelope: Envelope) -> None:
    data = encode_envelope(envelope)
    assert decode_envelope(data, envelope.channel) == envelope
    assert decode_envelope(memoryview(data), envelope.channel) == envelope


@given(st.lists(envelopes, max_size=4))
def test_an_outbox_names_its_channels(sent: list[Envelope]) -> None:
    assert decode_outbox(encode_outbox(sent), "flow", "run") == sent


def test_every_field_of_an_envelope_is_written() -> None:
    """A field that comes later must not be forgotten here."""
    names = Envelope.__struct_fields__
    assert names[0] == "channel"
    row = msgspec.msgpack.decode(encode_envelope(minimal()))
    assert len(row) == len(names) - 1


def minimal(**more: Any) -> Envelope:
    return Envelope(
        channel=ChannelId("flow", "run", "n", "out"),
        publication_id="p",
        kind=Kind.DATA,
        writer=Writer("t", 0, 1),
        input_id="i",
        origin=Origin("n", 0, 0),
        **more,
    )


def test_damage_and_other_versions_are_refused() -> None:
    data = encode_envelope(minimal())
    for damaged in (b"", data[:-1], data + b"\x00", data.replace(b"data", b"dada")):
        with pytest.raises(ValueRefused):
            decode_envelope(damaged, minimal().channel)
    with pytest.raises(ValueRefused, match="version 99"):
        decode_envelope(encode_envelope(minimal(schema=99)), minimal().channel)
    with pytest.raises(ValueRefused):
        decode_outbox([b"\x91\xc0"], "flow", "run")
