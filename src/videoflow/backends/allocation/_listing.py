"""What a backend offers beyond its interface: the layouts in its plans, and a list of its claims."""

from typing import NamedTuple, Protocol, Self, runtime_checkable

from videoflow.backends.allocation._types import ClaimObservation
from videoflow.backends.outcomes import Observation
from videoflow.errors import ContractBroken


class LayoutEntry(NamedTuple):
    """One slice of a layout in `FeasiblePlan.geometry`, whose strings are written and read here.

    The entries of a card are all slices that it has afterwards; a card without entries is not changed.

    >>> str(LayoutEntry("GPU-1", "3g.40gb", 4))
    'GPU-1 3g.40gb@4'
    >>> LayoutEntry.parse("GPU-1 3g.40gb@4").start
    4

    Attributes:
        card: Key of the card.
        profile: Of the slice.
        start: Its first memory slot.
    """

    card: str
    profile: str
    start: int

    def __str__(self) -> str:
        return f"{self.card} {self.profile}@{self.start}"

    @classmethod
    def parse(cls, entry: str) -> Self:
        """Returns what `str` wrote.

        Raises:
            ContractBroken: It is no entry of a layout.
        """
        card, _, placed = entry.rpartition(" ")
        profile, _, start = placed.partition("@")
        if not (card and profile and start.isdecimal()):
            raise ContractBroken(f"{entry!r} is no slice of a layout")
        return cls(card, profile, int(start))


@runtime_checkable
class ListsClaims(Protocol):
    """A backend whose claims can be found by a process that knows nothing but the scope."""

    def claims(self, scope: str) -> Observation[tuple[ClaimObservation, ...]]:
        """Returns every claim of the durable records, in order of id; writes nothing."""
        ...
