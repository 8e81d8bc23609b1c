"""Outcome values that the contracts share: what is known, what was accepted, what was settled.

Used by every backend and by whoever calls one. Expected endings are values of this module; it
refuses to turn an unknown into anything else: an `Observation` has no truth value.
"""

from collections.abc import Hashable
from enum import StrEnum
from typing import Generic, NoReturn, TypeVar

import msgspec

T = TypeVar("T")


class UnknownReason(StrEnum):
    """Why something could not be read."""

    TIMEOUT = "timeout"
    AUTH = "auth"
    MALFORMED = "malformed"
    UNREACHABLE = "unreachable"
    UNSUPPORTED = "unsupported"
    MISSING = "missing"


class _NoTruth:
    __slots__ = ()

    def __bool__(self) -> NoReturn:
        raise TypeError("an Observation has no truth value; ask is_known() or match on its type")


class Known(msgspec.Struct, _NoTruth, Generic[T], frozen=True):
    """A value that was read.

    Attributes:
        value: What was read.
        observed_at: Monotonic seconds of the reader's clock.
        generation: The provider's version of what was seen, or None.
    """

    value: T
    observed_at: float
    generation: str | None = None


class Unknown(msgspec.Struct, _NoTruth, frozen=True):
    """A read that failed: never zero, empty, idle or done."""

    reason: UnknownReason
    observed_at: float
    detail: str = ""


Observation = Known[T] | Unknown


def known(value: T, observed_at: float, generation: str | None = None) -> Known[T]:
    """Returns `Known(value, observed_at, generation)`."""
    return Known(value, observed_at, generation)


def unknown(reason: UnknownReason, observed_at: float, detail: str = "") -> Unknown:
    """Returns `Unknown(reason, observed_at, detail)`."""
    return Unknown(reason, observed_at, detail)


def is_known(observation: Known[T] | Unknown) -> bool:
    """Returns whether the observation holds a value."""
    return isinstance(observation, Known)


def value_or(observation: Known[T] | Unknown, shown: T) -> T:
    """Returns the value, or `shown` where it is unknown. For display only: decide nothing on it."""
    return observation.value if isinstance(observation, Known) else shown


class Durability(StrEnum):
    """What an accepted publication survives, each as far as it says and no further.

    `MEMORY`: nothing; it ends with the process. `HOST`: the death of workers, as long as one process of
    the run holds it. `STREAM`: the death of every process of the run; a server keeps it. `STREAM_QUORUM`:
    and the loss of a minority of servers, since a majority had stored it before it was accepted.
    """

    MEMORY = "memory"
    HOST = "host"
    STREAM = "stream"
    STREAM_QUORUM = "stream-quorum"


class RejectReason(StrEnum):
    """Why a publication was definitely not taken."""

    FULL = "full"
    SEALED = "sealed"
    STALE = "stale"
    DENIED = "denied"
    TOO_LARGE = "too_large"


class Accepted(msgspec.Struct, frozen=True):
    """The publication is in the channel; `duplicate` when it, or its statement, was there before."""

    publication_id: str
    sequence: int
    duplicate: bool
    durability: Durability


class Rejected(msgspec.Struct, frozen=True):
    """The publication is definitely not in the channel."""

    publication_id: str
    reason: RejectReason
    retryable: bool


class PublicationUnknown(msgspec.Struct, frozen=True):
    """The publication may be in the channel; publish again with the same id, or observe it."""

    publication_id: str
    reason: UnknownReason


class PublicationUnresolvable(msgspec.Struct, frozen=True):
    """The backend keeps no record to ask; the runtime's own intent must decide."""

    publication_id: str
    reason: str


PublicationOutcome = Accepted | Rejected | PublicationUnknown | PublicationUnresolvable


class SettleConfirmed(msgspec.Struct, frozen=True):
    """The settlement took effect; `settlement_id` is the completion receipt."""

    token: Hashable
    settlement_id: str


class SettleUnknown(msgspec.Struct, frozen=True):
    """The settlement may have taken effect; settle the same token again."""

    token: Hashable
    reason: UnknownReason


class SettleStale(msgspec.Struct, frozen=True):
    """Refused before anything was sent: the token is not the live one."""

    token: Hashable
    current_transport_count: int
    current_generation: int


SettlementOutcome = SettleConfirmed | SettleUnknown | SettleStale


class CleanupObservation(msgspec.Struct, frozen=True):
    """What a removal removed and what remains; an unreadable inventory is `complete=False`."""

    complete: bool
    removed: tuple[str, ...]
    remaining: tuple[str, ...]
    reason: str = ""
