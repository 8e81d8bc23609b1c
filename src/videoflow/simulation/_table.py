"""What was hit: point, action and kind of task, counted.

Used by the search. A point that tasks of a kind cannot come to has no cell, and says why; every other one
has, whether it was hit or not.
"""

from collections import Counter
from collections.abc import Iterable, Iterator

from videoflow.simulation._kinds import KINDS
from videoflow.simulation._rarity import Hit
from videoflow.simulation._schedule import BARRIERS, CALL_ACTIONS, FENCED, actions_at

POINTS = (*BARRIERS, *(f"call:{name}" for name in CALL_ACTIONS), *(f"fence:{name}" for name in FENCED))
"""Every point, as its rows."""


_SOURCES = frozenset(("source", "live source"))
_SINKS = frozenset(("sink", "saving sink", "keeping sink"))
_WRITING: tuple[str, ...] = (
    "process.after",
    "payload.sealed",
    "publish.sent",
    "publish.accepted",
    "outbox.published",
)
_WRITING += (
    "tombstone.before",
    "flush.published",
    "call:publish",
    "call:terminate",
    "call:put",
    "fence:Publish",
)
_COMMITS = ("commit.before", "commit.after", "outbox.published", "flush.published", "fence:Commit")
_FENCES = tuple(f"fence:{name}" for name in FENCED)

REASONS: tuple[tuple[str, frozenset[str], tuple[str, ...]], ...] = (
    ("a live source is replaced only when it is dead", frozenset(("live source",)), _FENCES),
    (
        "it reads nothing but markers, which nobody owns and it does not wait for",
        _SOURCES,
        ("call:acquire", "call:wake", "fence:Pull"),
    ),
    ("nothing reads it", _SINKS, _WRITING),
    ("it makes no items of its own", frozenset(KINDS) - _SOURCES, ("source.item",)),
    ("it keeps nothing", frozenset(("competing", "ordered", "join", "sink")), _COMMITS),
    (
        "only a sink with checkpoints has effects of its own",
        frozenset(KINDS) - {"saving sink"},
        ("effect.done",),
    ),
    (
        "what replicas say once is recorded with its bytes",
        frozenset(("competing outbox",)),
        ("payload.sealed", "call:put"),
    ),
    ("it has no epoch", frozenset(("competing", "competing outbox")), ("call:acquire", *_FENCES)),
    (
        "tasks whose replicas compete say nothing at the end",
        frozenset(("competing outbox",)),
        ("flush.published",),
    ),
)
"""Why tasks of some kinds do not come to some points."""


def why_not(point: str, kind: str) -> str:
    """Returns why tasks of a kind do not come to a point; "" where they do."""
    return next((why for why, kinds, points in REASONS if kind in kinds and point in points), "")


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

    def missing(self, least: int = 1) -> list[Hit]:
        """Returns the cells hit less than so often, of points that tasks of their kind come to."""
        return [cell for cell in cells() if self.counts[cell] < least]

    def lines(self) -> Iterator[str]:
        """Yields the table: a row for each point and action, a column for each kind of task."""
        width = max(len(f"{point} {action}") for point in POINTS for action in actions_at(point))
        yield " " * width + "".join(f"{kind.replace(' ', '-'):>17}" for kind in KINDS)
        for point in POINTS:
            for action in actions_at(point):
                counts = [
                    "" if why_not(point, kind) else str(self.counts[point, action, kind]) for kind in KINDS
                ]
                yield (
                    f"{f'{point} {action}':<{width}}" + "".join(f"{count:>17}" for count in counts)
                ).rstrip()


def cells() -> Iterator[Hit]:
    """Yields every cell: a point, an action there, and a kind of task that comes there."""
    for point in POINTS:
        for kind in KINDS:
            if not why_not(point, kind):
                yield from ((point, action, kind) for action in actions_at(point))
