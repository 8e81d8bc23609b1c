"""What is to go wrong in one simulated run, and where: plain values that a run can be repeated from.

Used by the simulator, by the search for failing schedules and by the one who reads their story. It refuses
an action at a point where it means nothing.
"""

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

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
        stop_at: Step at which the run is asked to stop, or None.
        items: Source → the most items that it makes; None in place of the mapping: all.
        calm: The one furthest downstream moves first, and calls take no time.
    """

    seed: int
    faults: tuple[PlannedFault, ...] = ()
    stop_at: int | None = None
    items: tuple[tuple[str, int], ...] | None = None
    calm: bool = False


Hits = Mapping[tuple[str, str], int]
"""(station, point) → how often it was reached without faults."""


def choose_faults(
    chance: random.Random, hits: Hits, count: int, weights: Mapping[str, int] | None = None
) -> tuple[PlannedFault, ...]:
    """Returns random faults at points that are known to be reached.

    Each point has the same chance, however often it is reached, so that rare ones are not missed.

    Args:
        chance: Decides.
        hits: What is reached without faults.
        count: At most so many.
        weights: Station → how often it is chosen among those that come to a point; 1 where it is not named.
    """
    weighed = weights or {}
    stations: dict[str, list[str]] = {}
    for station, point in hits:
        stations.setdefault(point, []).append(station)
    points = sorted(stations)
    faults: dict[tuple[str, str, int], PlannedFault] = {}
    for _ in range(count if points else 0):
        point = points[int(chance.random() * len(points))]
        there = stations[point]
        station = there[0]
        if len(there) > 1:
            station = chance.choices(there, [weighed.get(name, 1) for name in there])[0]
        reached = hits[station, point]
        # The first one is to happen in any case: without faults before it the station comes there.
        hit = 1 + int(chance.random() * (reached + 1 if faults else (reached + 1) // 2))
        fault = PlannedFault(station, point, chance.choice(actions_at(point)), hit)
        faults[station, point, hit] = fault
        if point == "outbox.published":  # who comes there has died with a commit that was not published
            before = 1 + int(chance.random() * hits.get((station, "commit.after"), 1))
            faults[station, "commit.after", before] = PlannedFault(station, "commit.after", "crash", before)
    return tuple(faults.values())


def deaths(faults: Sequence[PlannedFault]) -> int:
    """Returns how many of the faults end a process."""
    return sum(fault.action in ("crash", "raise", "replace") for fault in faults)
