"""How far the items of a channel may be out of turn, and whose order they are in.

Within one source the turn is the ordinal: only tasks whose replicas compete disturb it, each by its spread,
and an ordered task restores it. Between sources there is no order by contract, but there is one in fact: the
order in which the task that merged them wrote. A join that reads two channels with several sources each
depends on it, and no ordered task restores it. Used by the sizing and the interleaving. It refuses nothing.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from itertools import combinations

from videoflow.planner._tasks import Task
from videoflow.planner.plan import InputMode


@dataclass(frozen=True)
class Term:
    """So many items may come out of turn behind this task."""

    task: str
    items: int


Skew = tuple[Term, ...]
Pair = tuple[str, str]


def total(skew: Skew) -> int:
    """Returns how many items may come out of turn."""
    return sum(term.items for term in skew)


def scaled(skew: Skew, times: int) -> Skew:
    """Returns the same where each item has become so many."""
    return tuple(Term(term.task, term.items * times) for term in skew)


@dataclass(frozen=True)
class Turns:
    """The order of one channel.

    Attributes:
        sources: Whose items it carries.
        skew: How far an item may be from its turn among those of its own source.
        drift: How far it may be from its place in the order in which its sources were merged.
        merged_by: Two sources → the task that put their items into one order.
    """

    sources: frozenset[str]
    skew: Skew = ()
    drift: Skew = ()
    merged_by: Mapping[Pair, str] = field(default_factory=dict)

    @property
    def from_merge(self) -> Skew:
        """How far items may be from a place that all readers agree on."""
        return self.drift if len(self.sources) > 1 else self.skew


@dataclass(frozen=True)
class Arrival:
    """What one subscription of a task brings, and its spread where replicas compete."""

    turns: Turns
    spread: int | None


def leave(task: Task, arrivals: tuple[Arrival, ...], sources: frozenset[str], burst: int) -> Turns:
    """Returns the order of a channel that a task writes, given that of what it reads.

    Args:
        task: The writer.
        arrivals: Its subscriptions.
        sources: Whose items the channel carries.
        burst: The most items that one input makes on it.
    """
    skew: Skew = ()
    drift: Skew = ()
    apart = max((a.spread for a in arrivals if a.spread is not None), default=0)
    for arrival in arrivals:
        spread = () if arrival.spread is None else (Term(task.name, arrival.spread),)
        if task.mode is InputMode.COMPETING:
            skew += (*arrival.turns.skew, *spread)
        drift += (*arrival.turns.from_merge, *spread)
    if task.partitions > 1:
        skew = (Term(task.name, apart),)
    if task.mode is InputMode.JOIN:
        drift = skew
    elif task.mode is InputMode.COMPETING and len(arrivals) > 1:
        drift += (Term(task.name, task.replicas * task.batch),)
    return Turns(sources, scaled(skew, burst), scaled(drift, burst), _merged_by(task, arrivals, sources))


def _merged_by(task: Task, arrivals: tuple[Arrival, ...], sources: frozenset[str]) -> dict[Pair, str]:
    """A task that reads both sources on one channel keeps their order; any other makes a new one."""
    found: dict[Pair, str] = {}
    for pair in combinations(sorted(sources), 2):
        before = [a.turns.merged_by[pair] for a in arrivals if pair in a.turns.merged_by]
        keeps = len(before) == 1 and task.mode is not InputMode.JOIN
        found[pair] = before[0] if keeps else task.name
    return found


def disagree(turns: Iterable[Turns]) -> bool:
    """Returns whether two channels that meet in a join carry two sources in different orders."""
    merged_by: dict[Pair, str] = {}
    for channel in turns:
        for pair, task in channel.merged_by.items():
            if merged_by.setdefault(pair, task) != task:
                return True
    return False
