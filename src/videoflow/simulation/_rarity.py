"""What is to be hit next: how much each cell of the table is wanted, by how often it was hit so far.

Used by the search. It decides by the counts alone that it is given, so that a search from one seed is always
the same; a schedule that it aimed is a plain value, which is replayed as it is.
"""

from collections.abc import Mapping, Sequence

from videoflow.simulation._kinds import KINDS

Hit = tuple[str, str, str]
"""(point, action, kind of task)."""

_SHARPNESS = 3.5
_LEAST_WANTED, _MOST_WANTED = 0.35, 2.5
_USUALLY = 2.0  # the rarest cells of a graph were hit less often than all in the mean, in this proportion


class Rarity:
    """How much each cell is wanted.

    Args:
        counts: Cell → how often it was hit; whoever counts goes on counting in it.
        cells: Every cell.
    """

    def __init__(self, counts: Mapping[Hit, int], cells: Sequence[Hit]) -> None:
        self._counts = counts
        self._cells = cells

    def rates(self, cells: Sequence[Hit]) -> list[float]:
        """Returns how often each of some cells is to be chosen, compared with the others."""
        counts = self._counts
        return [(1 + counts.get(cell, 0)) ** -_SHARPNESS for cell in cells]

    def wanted(self, cells: Sequence[Hit]) -> float:
        """Returns how much a graph with these cells is wanted, compared with usual ones: 0.35 to 2.5."""
        counts = self._counts
        if not cells:
            return 1.0
        usual = sum(counts.get(cell, 0) for cell in self._cells) / len(self._cells)
        rarest = sorted(counts.get(cell, 0) for cell in set(cells))[: len(KINDS)]
        ratio = (1 + usual) / (1 + sum(rarest) / len(rarest)) / _USUALLY
        return min(_MOST_WANTED, max(_LEAST_WANTED, ratio))
