"""What one subscription must be able to have leased, as a sum that can be explained.

Used by the sizing, and by `explain` for its words. It refuses nothing.
"""

from dataclasses import dataclass

from videoflow.planner._turns import Skew, total
from videoflow.planner._words import count_text, list_text
from videoflow.planner.plan import ChannelRef

ReadingKey = tuple[ChannelRef, str]


@dataclass(frozen=True)
class Need:
    """The parts of a hold (rule 4); they are added.

    Attributes:
        first: Items to go on with: one, a whole group of a deeper parent, or one batch of each replica.
        skew: Items that may come out of turn before it.
        apart: Items that branches merged apart may be ahead of each other, by source.
        kept: Items kept unsettled for checkpoints, encoder delay included.
        ahead: Further items that the reader waits for before it answers: its own lookahead, and the rest of a
            batch.
        siblings: Room beyond the hold for paths beside this one that wait for further items.
        whole: The credit is the whole channel, because the order of others decides what is needed first.
        spread: W, where replicas compete.
        spread_why: How W came about.
    """

    first: int
    skew: Skew = ()
    apart: Skew = ()
    kept: int = 0
    ahead: int = 0
    siblings: int = 0
    whole: bool = False
    spread: int | None = None
    spread_why: str = ""

    @property
    def items(self) -> int:
        """The hold: what must fit the credit."""
        return self.first + total(self.skew) + total(self.apart) + self.kept + self.ahead

    def room(self, burst: int) -> int:
        """What must fit the channel, where one statement brings `burst` items at once."""
        return self.items - self.first + max(self.first, burst) + self.siblings

    def why(self) -> str:
        """Says the sum."""
        parts = [f"{self.first} to go on with"]
        if self.skew:
            behind = list_text([f"{items} behind {task}" for task, items in _by_task(self.skew).items()])
            parts.append(f"{total(self.skew)} that may come out of turn ({behind})")
        if self.apart:
            of = list_text([f"{term.items} of {term.task}" for term in self.apart])
            parts.append(f"{total(self.apart)} by which branches may be apart ({of})")
        if self.kept:
            parts.append(f"{self.kept} kept until a checkpoint")
        if self.ahead:
            parts.append(f"{self.ahead} that it waits for (lookahead, batch)")
        if len(parts) == 1:
            return f"it must hold {count_text(self.items, 'item')}"
        return f"it must hold {' + '.join(parts)} = {self.items} items"


def _by_task(skew: Skew) -> dict[str, int]:
    found: dict[str, int] = {}
    for term in skew:
        found[term.task] = found.get(term.task, 0) + term.items
    return found
