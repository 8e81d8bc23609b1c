"""Sets of whole numbers as intervals: what is known of ordinals, in space that does not grow with them.

Used by the ledger, by channels and by readers. Adding what is there changes nothing; it refuses nothing.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator


class IntervalSet:
    """A set of integers kept as disjoint closed intervals in ascending order.

    >>> numbers = IntervalSet([(0, 2)])
    >>> numbers.add(3, 3), numbers.add(7, 9), 3 in numbers, numbers.closed_prefix()
    (None, None, True, 4)
    >>> numbers.intervals()
    ((0, 3), (7, 9))
    """

    __slots__ = ("_firsts", "_lasts")

    def __init__(self, intervals: Iterable[tuple[int, int]] = ()) -> None:
        self._firsts: list[int] = []
        self._lasts: list[int] = []
        for first, last in intervals:
            self.add(first, last)

    def add(self, first: int, last: int) -> None:
        """Adds the integers first..last, both included."""
        firsts, lasts = self._firsts, self._lasts
        if lasts and lasts[-1] + 1 == first:
            lasts[-1] = last
            return
        low = bisect_right(lasts, first - 2)
        high = bisect_right(firsts, last + 1)
        if low < high:
            first = min(first, firsts[low])
            last = max(last, lasts[high - 1])
        firsts[low:high] = [first]
        lasts[low:high] = [last]

    def update(self, other: "IntervalSet") -> None:
        """Adds all of another set."""
        for first, last in zip(other._firsts, other._lasts, strict=True):
            self.add(first, last)

    def __contains__(self, number: int) -> bool:
        index = bisect_right(self._firsts, number) - 1
        return index >= 0 and number <= self._lasts[index]

    def __len__(self) -> int:
        return sum(self._lasts) - sum(self._firsts) + len(self._firsts)

    def __bool__(self) -> bool:
        return bool(self._firsts)

    def __iter__(self) -> Iterator[int]:
        for first, last in zip(self._firsts, self._lasts, strict=True):
            yield from range(first, last + 1)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, IntervalSet) and self.intervals() == other.intervals()

    def __repr__(self) -> str:
        return f"IntervalSet({list(self.intervals())})"

    def intervals(self) -> tuple[tuple[int, int], ...]:
        """Returns the closed intervals, ascending."""
        return tuple(zip(self._firsts, self._lasts, strict=True))

    def missing(self, first: int, last: int) -> tuple[tuple[int, int], ...]:
        """Returns the parts of first..last that are not in the set, as closed intervals."""
        gaps = []
        at = first
        for index in range(bisect_left(self._lasts, first), len(self._lasts)):
            low, high = self._firsts[index], self._lasts[index]
            if low > last:
                break
            if low > at:
                gaps.append((at, low - 1))
            at = high + 1
        if at <= last:
            gaps.append((at, last))
        return tuple(gaps)

    def gap(self, first: int, last: int) -> int:
        """Returns how many of first..last, from the first on, are not in the set."""
        index = bisect_left(self._lasts, first)
        end = self._firsts[index] if index < len(self._firsts) else last + 1
        return max(0, min(end, last + 1) - first)

    def closed_prefix(self) -> int:
        """Returns the first integer from 0 on that is not in the set."""
        return self._lasts[0] + 1 if self._firsts and self._firsts[0] <= 0 else 0

    def last(self) -> int:
        """Returns the greatest integer, or -1 when empty."""
        return self._lasts[-1] if self._lasts else -1
