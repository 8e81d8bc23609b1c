"""What an ordered reader or a join holds and gives out: deliveries, and groups of them by trace."""

from collections.abc import Sequence

import msgspec

from videoflow.backends.coverage import Hop, Origin
from videoflow.backends.messaging import Delivery, DeliveryToken, Kind, SubscriptionId

Key = tuple[int, ...]
Message = tuple[SubscriptionId, str]


def is_suspect(delivery: Delivery) -> bool:
    """Returns whether something was delivered before to a process that died (rule 8)."""
    return delivery.token.transport_count > 1


class CursorRecord(msgspec.Struct, array_like=True):
    """How far a task has come in one origin: epoch, and the next (ordinal, k, k, …) expected."""

    node: str
    epoch: int
    expected: list[int]


class Held(msgspec.Struct):
    """A delivery that is not settled; `remaining` of its traces are in no finished group yet.

    `again`: it says what another message said that is still held.
    """

    reader: int
    delivery: Delivery
    remaining: int = 1
    arrived: int = 0
    again: bool = False


class Said(msgspec.Struct):
    """What one parent says of a trace: with one delivery, or with all those of its fan-out.

    Attributes:
        held: The deliveries, by k.
        last: The last ordinal that they say it of.
        many: They are the items of a deeper fan-out, and not one delivery that stands for all.
        whole: None of these items is missing.
    """

    held: list[Held]
    last: int
    many: bool = False
    whole: bool = True


Member = Held | list[Held] | None


class Group(msgspec.Struct):
    """What the inputs say of one trace (or of an interval of ordinals that all parents skip).

    Attributes:
        origin: First ordinal.
        path: Fan-outs passed.
        last: Last ordinal.
        members: One per parent; the list of a deeper parent's items; None for a parent that was aborted
            before it said everything.
        shares: Deliveries of which this group finishes so many traces.
        absent: Per parent: whether it never says anything of this origin, as of what a node flushed.
    """

    origin: Origin
    path: tuple[Hop, ...]
    last: int
    members: tuple[Member, ...]
    shares: list[tuple[Held, int]]
    absent: tuple[bool, ...] = ()

    @property
    def suspect(self) -> bool:
        """Whether some member was delivered before to a process that died."""
        return any(is_suspect(held.delivery) for held, _ in self.shares)


def has_data(done: Sequence[Held]) -> bool:
    """Returns whether anything of it is data; the rest is skips, which have no bytes and change nothing."""
    return any(held.delivery.envelope.kind is Kind.DATA for held in done)


def message_of(token: DeliveryToken) -> Message:
    """Returns what a message is known by: its id is its subscription's own."""
    return token[:2]


def groups_of(held: Held) -> list[Group]:
    """Returns what one delivery says as groups of its own: of a skip, one for each of its intervals."""
    envelope, at = held.delivery.envelope, held.delivery.envelope.origin
    intervals = envelope.intervals or ((at.ordinal, at.ordinal),)
    held.remaining = len(intervals)
    return [
        Group(at._replace(ordinal=first), envelope.path, last, (held,), [(held, 1)])
        for first, last in intervals
    ]
