"""What was hit: point, action and kind of task, counted.

Used by the search. A cell that was never reached is not there; whether all that can be there is there is for
whoever reads the table to say.
"""

from collections import Counter
from collections.abc import Iterable, Iterator

from videoflow.simulation._schedule import BARRIER_ACTIONS, BARRIERS, CALL_ACTIONS, FENCED, actions_at
from videoflow.simulation._simulate import Hit

KINDS = (
    "source",
    "live source",
    "competing",
    "ordered",
    "ordered outbox",
    "join",
    "join outbox",
    "sink",
    "saving sink",
    "keeping sink",
)
"""Every kind of task, as the columns of the table."""

POINTS = (*BARRIERS, *(f"call:{name}" for name in CALL_ACTIONS), *(f"fence:{name}" for name in FENCED))
"""Every point, as its rows."""


class Table:
    """Counts hits."""

    def __init__(self, hits: Iterable[tuple[Hit, int]] = ()) -> None:
        self.counts: Counter[Hit] = Counter()
        for hit, count in hits:
            self.counts[hit] += count

    def add(self, hits: Iterable[Hit]) -> None:
        """Counts some more."""
        self.counts.update(hits)

    def least(self) -> tuple[Hit, int] | None:
        """Returns the rarest cell that was hit, and how often."""
        return min(self.counts.items(), key=lambda item: item[1], default=None)

    def reached(self) -> set[tuple[str, str]]:
        """Returns each (point, kind) of which some action was hit."""
        return {(point, kind) for point, _, kind in self.counts}

    def missing(self, least: int = 1) -> list[Hit]:
        """Returns the cells hit less than so often, of points that tasks of their kind come to."""
        return [
            (point, action, kind)
            for point, kind in sorted(self.reached())
            for action in actions_at(point)
            if self.counts[point, action, kind] < least
        ]

    def lines(self) -> Iterator[str]:
        """Yields the table: a row for each point and action, a column for each kind of task."""
        kinds = [kind for kind in KINDS if any(found == kind for _, _, found in self.counts)]
        width = max(len(f"{point} {action}") for point in POINTS for action in BARRIER_ACTIONS)
        yield " " * width + "".join(f"{kind.replace(' ', '-'):>15}" for kind in kinds)
        reached = self.reached()
        for point in POINTS:
            for action in actions_at(point):
                if not any((point, kind) in reached for kind in kinds):
                    continue
                cells = [
                    str(self.counts[point, action, kind]) if (point, kind) in reached else "-"
                    for kind in kinds
                ]
                yield f"{f'{point} {action}':<{width}}" + "".join(f"{cell:>15}" for cell in cells)
