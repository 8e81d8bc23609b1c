"""Copies of plain values, many times as fast as `copy.deepcopy`: written and read again by a fast codec."""

from typing import TypeVar, cast

import msgspec

T = TypeVar("T")

_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder().decode


def copied(value: T) -> T:
    """Returns a copy that shares nothing that could change; only for what JSON can hold."""
    return cast("T", _decode(_encode(value)))
