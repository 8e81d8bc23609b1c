"""Joins of streams that were merged apart: the one place where a hold depends on bounds above it.

Two tasks that merge the same sources write them in two orders: one may be ahead in one source, the other in
another. A join below both holds items of each that the other has not written yet, so each of its inputs must
hold more than that: what the channels between a source and the other merging task have room for. So these
channels get a small bound.

Why this is enough: of the first n items that a join still needs in the order of one merging task, fewer than
n are unwritten by the other when the last of them is written. Whichever of the two finished its first n
earlier, one of these was written by both, and stands among the first n of both. Used by the sizing. It
refuses such joins below one another, for which no bound is enough.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace

from videoflow.errors import FlowInvalid, Problem
from videoflow.planner._needs import Need, ReadingKey
from videoflow.planner._tasks import Task
from videoflow.planner._turns import Term, Turns, disagree
from videoflow.planner._wiring import Reading, Wiring
from videoflow.planner.plan import ChannelRef, InputMode

_ROUNDS = 8
Needs = Mapping[ReadingKey, Need]


@dataclass(frozen=True)
class Interleaving:
    """What joins of streams that were merged apart ask for.

    Attributes:
        needs: All needs, those of such joins raised.
        limits: Channel → largest bound in items, for the channels on which streams may drift apart.
        joins: The names of the joins.
    """

    needs: Needs
    limits: Mapping[ChannelRef, int]
    joins: tuple[str, ...]


@dataclass(frozen=True)
class _Gap:
    """On this input of a join there may be items of a source that another task has not merged yet."""

    reading: Reading
    source: str
    merging: Task


def interleave(
    wiring: Wiring,
    turns: Mapping[ChannelRef, Turns],
    needs: Needs,
    floor: Callable[[ChannelRef, Needs], int],
    bound: int,
) -> Interleaving:
    """Raises the needs of such joins until the bounds that they depend on stand still.

    Args:
        wiring: The flow, cut.
        turns: Whose order each channel is in.
        needs: What each subscription must hold without it.
        floor: Returns the least bound of a channel, given needs.
        bound: The bound to give the channels between the sources and a task that merges them apart.

    Raises:
        FlowInvalid: Such joins below one another, of which no bounds are enough.
    """
    streams = _Streams(wiring, turns)
    mixed = {task.name: streams.mixed(task) for task in wiring.tasks if task.mode is InputMode.JOIN}
    mixed = {name: found for name, found in mixed.items() if disagree(turns[r.channel] for r in found)}
    gaps = [gap for readings in mixed.values() for gap in streams.gaps(readings)]
    region = {channel for gap in gaps for channel in streams.above(gap.merging, gap.source)}
    raised = needs
    for _ in range(_ROUNDS):
        limits = {channel: max(floor(channel, raised), bound) for channel in region}
        following = {**needs, **_raised(streams, gaps, needs, limits)}
        if following == raised:
            return Interleaving(raised, limits, tuple(mixed))
        raised = following
    cause = "it joins streams whose sources were merged in different nodes, one such join below another"
    remedy = "merge the sources once, in one node, and let all branches read that node"
    raise FlowInvalid([Problem(name, cause, remedy) for name in mixed])


def _raised(
    streams: "_Streams", gaps: list[_Gap], needs: Needs, limits: Mapping[ChannelRef, int]
) -> dict[ReadingKey, Need]:
    found: dict[ReadingKey, dict[str, int]] = {}
    for gap in gaps:
        apart = found.setdefault((gap.reading.channel, gap.reading.reader), {})
        missing = streams.unmerged(gap.merging, gap.source, limits)
        apart[gap.source] = max(apart.get(gap.source, 0), missing)
    return {
        key: replace(
            needs[key],
            apart=tuple(Term(source, needs[key].first * items) for source, items in sorted(apart.items())),
        )
        for key, apart in found.items()
    }


class _Streams:
    """Where the items of each source go."""

    def __init__(self, wiring: Wiring, turns: Mapping[ChannelRef, Turns]) -> None:
        self.wiring = wiring
        self.turns = turns
        self.tasks_above: dict[str, frozenset[str]] = {}
        for task in wiring.tasks:
            writers = {wiring.writers[reading.channel].name for reading in wiring.read_by(task)}
            self.tasks_above[task.name] = frozenset(writers).union(
                *(self.tasks_above[name] for name in writers)
            )

    def mixed(self, task: Task) -> list[Reading]:
        """Returns the subscriptions of a task on channels with several sources."""
        return [r for r in self.wiring.read_by(task) if len(self.turns[r.channel].sources) > 1]

    def gaps(self, readings: list[Reading]) -> Iterator[_Gap]:
        """Yields what two inputs of one join may lack of each other.

        Where one order was made from the other there is no gap: what the later lacks, the earlier holds.
        """
        for mine in readings:
            for other in readings:
                if other.edge is mine.edge:
                    continue
                orders = self.turns[mine.channel].merged_by
                for pair, name in self.turns[other.channel].merged_by.items():
                    if pair in orders and not self._are_related(orders[pair], name):
                        for source in pair:
                            yield _Gap(mine, source, self.wiring.task_of(name))

    def _are_related(self, one: str, other: str) -> bool:
        return one == other or one in self.tasks_above[other] or other in self.tasks_above[one]

    def above(self, task: Task, source: str) -> set[ChannelRef]:
        """Returns the channels between a source and a task."""
        names = {task.name, *self.tasks_above[task.name]}
        return {r.channel for r in self._carrying(source) if r.task.name in names}

    def unmerged(self, task: Task, source: str, limits: Mapping[ChannelRef, int]) -> int:
        """Returns how many items a source may have written that a task has not; one is being written."""
        behind: dict[str, int] = {}
        for reading in self._carrying(source):
            if reading.channel in limits:
                writer = self.wiring.writers[reading.channel].name
                items = behind.get(writer, 1) + limits[reading.channel]
                behind[reading.task.name] = max(behind.get(reading.task.name, 1), items)
        return behind.get(task.name, 1)

    def _carrying(self, source: str) -> list[Reading]:
        """Returns the subscriptions on channels with items of a source, in the order of tasks."""
        return [r for r in self.wiring.readings if source in self.turns[r.channel].sources]
