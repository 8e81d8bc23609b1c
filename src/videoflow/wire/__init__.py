"""Values and envelopes as bytes: one value domain, whatever carries it.

Used by the worker at every emission (`freeze`), for every publication and delivery (`encode_value`,
`decode_value`), by the shared-memory log and the outbox for envelopes. It refuses by name what no
edge carries, and makes nothing from bytes but plain values, arrays, dataclasses and Structs.
"""

from videoflow.wire._arrays import Unsealed, array_in
from videoflow.wire._envelopes import decode_envelope, decode_outbox, encode_envelope, encode_outbox
from videoflow.wire._freeze import freeze
from videoflow.wire._types import FLOW_MODULE, Value
from videoflow.wire._values import (
    INLINE_BYTES,
    EncodedValue,
    Load,
    StoreArray,
    decode_value,
    encode_small,
    encode_value,
)

__all__ = [
    "FLOW_MODULE",
    "INLINE_BYTES",
    "EncodedValue",
    "Load",
    "StoreArray",
    "Unsealed",
    "Value",
    "array_in",
    "decode_envelope",
    "decode_outbox",
    "decode_value",
    "encode_envelope",
    "encode_outbox",
    "encode_small",
    "encode_value",
    "freeze",
]
