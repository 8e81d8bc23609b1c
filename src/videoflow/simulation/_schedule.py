"""What is to go wrong in one simulated run, and where: plain values that a run can be repeated from.

Used by the simulator, by the search for failing schedules and by the one who reads their story. It refuses
an action at a point where it means nothing.
"""

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate

BARRIER_ACTIONS = ("crash", "raise", "delay")
"""What may happen at a named barrier: the process dies; an exception ends it; it is not heard of for long."""

BARRIERS = (
    "acquire.after",
    "receive.after",
    "process.before",
    "process.after",
    "payload.sealed",
    "publish.sent",
    "publish.accepted",
    "commit.before",
    "commit.after",
    "outbox.published",
    "settle.sent",
    "release.before",
    "tombstone.before",
    "flush.published",
    "terminator.sent",
    "source.item",
    "effect.done",
)
"""The barriers that the worker and the memory backends reach."""

CALL_ACTIONS: Mapping[str, tuple[str, ...]] = {
    "publish": ("lost", "unsent", "full", "twice"),
    "settle": ("lost", "unsent", "twice"),
    "commit": ("lost", "unsent"),
    "look": ("unreadable",),
    "receive": ("short", "empty"),
    "observe": ("unreadable",),
    "acquire": ("unreadable",),
    "terminate": ("twice",),
    "wake": ("lost",),
    "put": ("full",),
    "read": ("unreadable",),
}
"""What may happen to a call of a backend.

`lost`: it took effect, and its answer did not come; `unsent`: it took no effect, and nobody knows; `twice`:
it was made twice; `full`: there was no room; `short`, `empty`: less came than there is; `unreadable`: it
could not be read now.
"""

FENCED = ("Pull", "Publish", "Commit", "Settle", "Terminate")
"""Actions before which a worker may be replaced although it lives; it then goes on, for a while."""


def actions_at(point: str) -> tuple[str, ...]:
    """Returns what may happen at a point: a barrier, `call:<name>` or `fence:<action>`."""
    if point.startswith("call:"):
        return CALL_ACTIONS[point.removeprefix("call:")]
    return ("replace",) if point.startswith("fence:") else BARRIER_ACTIONS


@dataclass(frozen=True, order=True)
class PlannedFault:
    """One fault.

    Attributes:
        station: `<task>-<slot>`.
        point: A barrier, `call:<name>` or `fence:<action>`.
        action: One of `actions_at(point)`.
        hit: The n-th time that the station comes there, over all its incarnations, counted from 1.
    """

    station: str
    point: str
    action: str
    hit: int = 1

    def __post_init__(self) -> None:
        if self.action not in actions_at(self.point):
            raise ValueError(f"{self.action!r} means nothing at {self.point!r}")

    def __str__(self) -> str:
        return f"{self.station}: {self.action} at {self.point}, time {self.hit}"


@dataclass(frozen=True)
class Schedule:
    """Everything that decides how a simulated run goes.

    Attributes:
        seed: Of every choice that is not said here, above all who moves next.
        faults: What goes wrong.
        stops: Steps at which the run is asked to stop; the first one counts, and the others change nothing.
        quits: The last of them ends the run without draining.
        resumed: It is stopped to be resumed, and another run goes on with it.
        items: Source → the most items that it makes; None in place of the mapping: all.
        calm: The one furthest downstream moves first, and calls take no time.
    """

    seed: int
    faults: tuple[PlannedFault, ...] = ()
    stops: tuple[int, ...] = ()
    quits: bool = False
    resumed: bool = False
    items: tuple[tuple[str, int], ...] | None = None
    calm: bool = False

    def of(self, station: str) -> list[PlannedFault]:
        """Returns the faults of one station."""
        return [fault for fault in self.faults if fault.station == station]


_ENDS = frozenset(("crash", "raise", "replace"))
_NEEDED = frozenset(("call:look", "call:acquire", "call:observe", "call:commit"))

Hits = Mapping[tuple[str, str], int]
"""(station, point) → how often it was reached without faults."""
Place = tuple[str, str, str]
"""(station, point, action)."""


def choose_faults(
    chance: random.Random,
    hits: Hits,
    count: int,
    deaths: int = 4,
    rates: Mapping[Place, float] | None = None,
    readers: Mapping[str, Sequence[str]] | None = None,
) -> tuple[PlannedFault, ...]:
    """Returns random faults at points that are known to be reached.

    A point has the same chance however often it is reached, so that rare ones are not missed.

    Args:
        chance: Decides.
        hits: What is reached without faults.
        count: At most so many.
        deaths: At most so many of them end a process.
        rates: (station, point, action) → how often it is chosen, compared with others, in the order of
            `places_of(hits)`; without them each is as likely as another.
        readers: Station → those that read live edges from it.
    """
    places = list(rates) if rates is not None else places_of(hits)
    up_to = list(accumulate(rates.values())) if rates is not None else None
    readers = readers or {}
    faults: dict[tuple[str, str, int], PlannedFault] = {}
    for _ in range(count if places else 0):
        station, point, action = chance.choices(places, cum_weights=up_to)[0]
        reached = hits[station, point]
        # The first one is to happen in any case: without faults before it the station comes there.
        hit = 1 + int(chance.random() * (reached + 1 if faults else (reached + 1) // 2))
        chosen = {(station, point, hit): PlannedFault(station, point, action, hit)}
        first = _before(chance, hits, station, point, readers)
        if first is not None:
            chosen[first.station, first.point, first.hit] = first
        if _deaths([*faults.values(), *chosen.values()]) <= deaths:
            faults |= chosen
    return tuple(faults.values())


def places_of(hits: Hits) -> list[Place]:
    """Returns every (station, point, action) where something may go wrong, in order."""
    return [(station, point, action) for station, point in sorted(hits) for action in actions_at(point)]


def _before(
    chance: random.Random, hits: Hits, station: str, point: str, readers: Mapping[str, Sequence[str]]
) -> PlannedFault | None:
    """Returns what has to happen before a station comes to a point that no calm run comes to."""
    after = {"outbox.published": "commit.after", "call:observe": "source.item"}.get(point)
    if point == "tombstone.before":  # something is evicted where nobody takes it
        late = readers[station][int(chance.random() * len(readers[station]))]
        return PlannedFault(late, "acquire.after", "delay")
    if after is None or (point == "call:observe" and (station, "source.item") not in hits):
        return None
    return PlannedFault(station, after, "crash", 1 + int(chance.random() * hits.get((station, after), 1)))


def _deaths(faults: Sequence[PlannedFault]) -> int:
    """Returns how many of the faults end a process, or may: one that cannot read what it needs gives up."""
    return sum(fault.action in _ENDS or fault.point in _NEEDED for fault in faults)
