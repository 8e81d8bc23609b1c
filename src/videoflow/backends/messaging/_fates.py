"""What publishing and settling add to the ledger; the same in every adapter, which keeps it (rule 15)."""

from typing import Final

from videoflow.backends.coverage import Cause, Fate, FateKind
from videoflow.backends.messaging._envelope import Envelope, Kind
from videoflow.backends.messaging._specs import Completed, CompletedReason, Terminal

_DATA: Final = Kind.DATA
_DELIVERED: Final = Fate(FateKind.DELIVERED)
_DROPPED: Final = Fate(FateKind.DROPPED, Cause.DROPPED)
_EXPIRED: Final = Fate(FateKind.DROPPED, Cause.EXPIRED)
_ELSEWHERE: Final = Fate(FateKind.ELSEWHERE)
_FATES: Final[dict[CompletedReason, Fate | None]] = {
    CompletedReason.DELIVERED: _DELIVERED,
    CompletedReason.SKIPPED: Fate(FateKind.SKIPPED, Cause.SKIPPED),
    CompletedReason.DROPPED: _DROPPED,
    CompletedReason.EXPIRED: _EXPIRED,
    CompletedReason.ABANDONED: Fate(FateKind.ABANDONED),
    CompletedReason.DUPLICATE: None,
    CompletedReason.SUPERSEDED: None,
}
_STANDING: Final = (CompletedReason.DUPLICATE, CompletedReason.SUPERSEDED, CompletedReason.ABANDONED)


def buried_fate(cause: Cause) -> Fate:
    """Returns the fate of an item that was evicted or that expired."""
    return _EXPIRED if cause is Cause.EXPIRED else _DROPPED


def announced_fate(envelope: Envelope) -> Fate | None:
    """Returns what a writer announces: delivered, or why not; None for what takes no ordinal.

    A notice that something went to another partition announces nothing: the envelope there does.
    """
    kind = envelope.kind
    if kind is _DATA:
        return _DELIVERED
    if kind in (Kind.SKIP, Kind.IDLE) and not envelope.elsewhere:
        return Fate(FateKind.SKIPPED, envelope.cause or Cause.SKIPPED)
    return None


def settled_fate(envelope: Envelope, settlement: Completed | Terminal) -> Fate | None:
    """Returns what a settlement adds to the ledger; None where what stands, stands."""
    announced = announced_fate(envelope)
    if announced is None:
        return _ELSEWHERE if envelope.elsewhere else None
    if isinstance(settlement, Terminal):
        return Fate(FateKind.DEAD_LETTERED)
    if envelope.kind is _DATA or settlement.reason in _STANDING:
        return _FATES[settlement.reason]
    return announced
