"""How deliveries are settled, by what became of them; used by the core of a task that reads."""

from collections.abc import Iterable, Sequence

from videoflow.backends.coverage import Cause, FateKind, Origin
from videoflow.backends.messaging import (
    Acquired,
    Completed,
    CompletedReason,
    Delivery,
    Kind,
    Settlement,
    Terminal,
)
from videoflow.backends.runtime import Aside
from videoflow.worker.core._groups import Held, Member
from videoflow.worker.core._walk import Outcome


def deliveries_of(member: Member) -> list[Held]:
    """Returns what one parent said of a group."""
    if member is None:
        return []
    return member if isinstance(member, list) else [member]


def settlement(held: Held, cause: Cause | None, outcome: Outcome) -> Settlement:
    """Returns how a member of a group that was worked on is settled."""
    envelope = held.delivery.envelope
    if envelope.kind is not Kind.DATA:
        return Completed(CompletedReason.SKIPPED)
    if outcome.record_ref is not None:
        return Terminal(outcome.record_ref)
    if cause is Cause.ABORTED:
        return Completed(CompletedReason.ABANDONED)
    return Completed(CompletedReason.SKIPPED if cause is not None else CompletedReason.DELIVERED)


def repetition(held: Held, entry: str, asides: Sequence[Aside]) -> Settlement:
    """Settles what was committed before and not settled, because its worker died in between.

    Args:
        held: The delivery.
        entry: The node that it goes to.
        asides: What earlier incarnations put aside.
    """
    if held.again:
        return Completed(CompletedReason.DUPLICATE)
    envelope = held.delivery.envelope
    if envelope.kind is not Kind.DATA:
        return Completed(CompletedReason.SKIPPED)
    for aside in asides:  # a join puts the shorter trace of its group aside
        below = envelope.path[: len(aside.path)] == aside.path
        if aside.node == entry and aside.origin == envelope.origin and below:
            return Terminal(aside.record_id)
    return Completed(CompletedReason.DELIVERED)


def was_worked_on(subscriptions: Iterable[Acquired | None], origin: Origin) -> bool:
    """Returns whether something that was said of an origin's item was settled as worked on."""
    worked = FateKind.DELIVERED, FateKind.DEAD_LETTERED
    return any(
        kind in worked and any(first <= origin.ordinal <= last for first, last in intervals)
        for acquired in subscriptions
        for record in (() if acquired is None else acquired.settled)
        if (record.node, record.epoch) == origin[:2]
        for kind, _, intervals in record.ordinals
    )


def abandonment(delivery: Delivery) -> Settlement:
    """Returns how something is settled that waits for a node that failed."""
    data = delivery.envelope.kind is Kind.DATA
    return Completed(CompletedReason.ABANDONED if data else CompletedReason.SKIPPED)
