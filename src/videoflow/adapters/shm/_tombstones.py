"""What evicted items are delivered as; made by the reader's end of a subscription."""

import msgspec

from videoflow.backends.coverage import Cause
from videoflow.backends.intervals import IntervalSet
from videoflow.backends.messaging import Envelope, Kind


def tombstone(run: list[Envelope], cause: Cause) -> Envelope:
    """Returns the skip that evicted items of one origin are delivered as."""
    first = min(run, key=_ordinal)
    ordinals = IntervalSet()
    for envelope in run:
        if not envelope.path:
            ordinals.add(envelope.origin.ordinal, envelope.origin.ordinal)
    return msgspec.structs.replace(
        first,
        kind=Kind.SKIP,
        cause=cause,
        intervals=ordinals.intervals(),
        event_time=None,
        body=b"",
        payloads=(),
        size_bytes=0,
    )


def _ordinal(envelope: Envelope) -> int:
    return envelope.origin.ordinal
