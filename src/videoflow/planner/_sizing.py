"""How much every subscription must be able to hold, so that no wait can become a cycle (rule 4).

A competing task may answer its inputs out of turn, but never further than its *spread*. Whoever needs
them in turn must be able to hold all that may come early: its *hold*. Credits are never below it, and a
channel has room for it. This module computes both for one `scale` of the spreads; `_fitting` chooses it.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from videoflow.graph.spec import PortRef
from videoflow.planner._facts import PlanFacts, SizingDefaults
from videoflow.planner._ports import Port, describe_ports, output_scope
from videoflow.planner._tasks import Task
from videoflow.planner._wiring import Reading, Wiring
from videoflow.planner._words import count_text, list_text, size_text
from videoflow.planner.plan import ChannelRef, InputMode

ReadingKey = tuple[ChannelRef, str]


@dataclass(frozen=True)
class Term:
    """So many items may come out of turn behind this task."""

    task: str
    items: int


Skew = tuple[Term, ...]


def total(skew: Skew) -> int:
    """Returns how many items may come out of turn."""
    return sum(term.items for term in skew)


@dataclass(frozen=True)
class Need:
    """What one subscription must be able to have leased, and why.

    Attributes:
        first: Items to go on with: one, a whole group of a deeper parent, or one batch of each replica.
        skew: Items that may come out of turn before it.
        kept: Items kept unsettled for checkpoints, encoder delay included.
        ahead: Further items that the reader waits for before it answers (its own lookahead).
        siblings: Room beyond the hold for paths beside this one that wait for further items.
        spread: W, where replicas compete.
        spread_why: How W came about.
    """

    first: int
    skew: Skew = ()
    kept: int = 0
    ahead: int = 0
    siblings: int = 0
    spread: int | None = None
    spread_why: str = ""

    @property
    def items(self) -> int:
        """The hold: what must fit the credit."""
        return self.first + total(self.skew) + self.kept + self.ahead

    def room(self, burst: int) -> int:
        """What must fit the channel, where one statement brings `burst` items at once."""
        return self.items - self.first + max(self.first, burst) + self.siblings

    def why(self) -> str:
        """Says the sum."""
        parts = [f"{self.first} to go on with"]
        if self.skew:
            behind = list_text([f"{term.items} behind {term.task}" for term in self.skew])
            parts.append(f"{total(self.skew)} that may come out of turn ({behind})")
        if self.kept:
            parts.append(f"{self.kept} kept until a checkpoint")
        if self.ahead:
            parts.append(f"{self.ahead} of lookahead")
        if len(parts) == 1:
            return f"it must hold {count_text(self.items, 'item')}"
        return f"it must hold {' + '.join(parts)} = {self.items} items"


@dataclass(frozen=True)
class Sizing:
    """The needs of a flow at one scale of its spreads.

    Attributes:
        ports: What is known of each port.
        needs: What each subscription must hold.
        floors: Channel → least bound in items.
        reserves: Task → bytes of its largest step, all replicas together.
    """

    ports: Mapping[PortRef, Port]
    needs: Mapping[ReadingKey, Need]
    floors: Mapping[ChannelRef, int]
    reserves: Mapping[str, int]

    def port(self, channel: ChannelRef) -> Port:
        """Returns what is known of the port that a channel carries."""
        return self.ports[PortRef(node=channel.node, port=channel.port)]

    def need(self, reading: Reading) -> Need:
        """Returns what a subscription must hold."""
        return self.needs[reading.channel, reading.reader]

    def floor_bytes(self, channel: ChannelRef) -> int:
        """Returns the least bound of a channel in bytes."""
        return self.floors[channel] * self.port(channel).item_bytes

    @property
    def least_bytes(self) -> int:
        """What the flow needs at least."""
        return sum(map(self.floor_bytes, self.floors)) + sum(self.reserves.values())


def size(wiring: Wiring, facts: PlanFacts, scale: float) -> Sizing:
    """Computes the needs of every subscription.

    Args:
        wiring: The flow, cut.
        facts: Item sizes and defaults.
        scale: 1: spreads as they should be; 0: as small as they may be.
    """
    return _Sizer(wiring, facts, scale).run()


class _Sizer:
    def __init__(self, wiring: Wiring, facts: PlanFacts, scale: float) -> None:
        self.wiring = wiring
        self.defaults = facts.defaults
        self.scale = scale
        self.ports = describe_ports(wiring, facts)
        self.lookahead = _lookahead(wiring)
        self.skew: dict[ChannelRef, Skew] = {}
        self.needs: dict[ReadingKey, Need] = {}

    def run(self) -> Sizing:
        for task in self.wiring.tasks:
            arriving: Skew = ()
            for reading in self.wiring.read_by(task):
                need = self._need(reading)
                self.needs[reading.channel, reading.reader] = need
                if need.spread is not None:
                    arriving += (*self.skew[reading.channel], Term(task.name, need.spread))
            for channel in self.wiring.written_by(task):
                burst = self._port(channel).burst
                self.skew[channel] = tuple(Term(term.task, term.items * burst) for term in arriving)
        floors = {channel: self._floor(channel) for channel in self.wiring.writers}
        reserves = {task.name: task.replicas * self._step_bytes(task) for task in self.wiring.tasks}
        return Sizing(self.ports, self.needs, floors, reserves)

    def _step_bytes(self, task: Task) -> int:
        """Returns the bytes of all outputs of one input; the payload of two layouts is written once."""
        ports = {(channel.node, channel.port): channel for channel in self.wiring.written_by(task)}
        return sum(self._port(c).burst * self._port(c).item_bytes for c in ports.values())

    def _port(self, channel: ChannelRef) -> Port:
        return self.ports[PortRef(node=channel.node, port=channel.port)]

    def _need(self, reading: Reading) -> Need:
        task = reading.task
        if task.mode is InputMode.COMPETING:
            spread, why = self._spread(reading)
            return Need(first=task.replicas * (task.batch + task.lookahead), spread=spread, spread_why=why)
        return Need(
            first=self._group(reading),
            skew=self.skew[reading.channel],
            kept=task.holds_items,
            ahead=task.lookahead,
            siblings=self._siblings(reading) if task.mode is InputMode.JOIN else 0,
        )

    def _group(self, reading: Reading) -> int:
        """Returns how many items of a deeper parent meet one item of the others."""
        node = reading.task.entry
        parent = self.wiring.spec.node(reading.parent.node)
        items = 1
        for hop in output_scope(parent, reading.parent.port):
            if hop not in node.scope and reading.task.mode is InputMode.JOIN:
                name, _, port = hop.rpartition(".")
                items *= self.wiring.spec.node(name).many[port]
        return items

    def _siblings(self, reading: Reading) -> int:
        others = [edge for edge in self.wiring.spec.inputs(reading.task.name) if edge is not reading.edge]
        return max((self.lookahead[parent.node] for edge in others for parent in edge.parents), default=0)

    def _spread(self, reading: Reading) -> tuple[int, str]:
        task, defaults = reading.task, self.defaults
        prefetch = prefetch_of(reading, defaults)
        wanted = 2 * task.replicas * (prefetch + task.batch)
        least = task.replicas * (task.batch + task.lookahead) + 1
        why = f"2 x {count_text(task.replicas, 'replica')} x ({prefetch} prefetched + {task.batch} in work)"
        heaviest = self._heaviest_below(reading)
        spread = max(wanted, least)
        if heaviest and spread * heaviest > defaults.credit_bytes:
            spread = max(least, defaults.credit_bytes // heaviest)
            why += f", lowered so that items of {size_text(heaviest)} fit {size_text(defaults.credit_bytes)}"
        scaled = least + int(self.scale * (spread - least))
        if scaled < spread:
            why += ", lowered to fit the memory budget"
        if scaled == least:
            why += "; one more than what the replicas work on at once is the least"
        return scaled, f"spread {scaled}: {why}"

    def _heaviest_below(self, reading: Reading) -> int:
        """Returns the most bytes that one of the task's inputs puts before an ordered reader or a join."""
        heaviest = 0
        for channel in self.wiring.written_by(reading.task):
            port = self._port(channel)
            for below in self.wiring.readers(channel):
                if below.task.mode is InputMode.COMPETING:
                    heaviest = max(heaviest, port.burst * self._heaviest_below(below))
                else:
                    heaviest = max(heaviest, port.burst * port.item_bytes)
        return heaviest

    def _floor(self, channel: ChannelRef) -> int:
        burst = self._port(channel).burst
        floor = 1
        for reading in self.wiring.readers(channel):
            need = self.needs[channel, reading.reader]
            waiting = 0
            if reading.edge.latest is not None:
                keys = 1 if reading.edge.latest.key is None else self._keys(reading)
                waiting = reading.edge.latest.capacity * keys
            floor = max(floor, need.room(burst) + waiting)
        return floor

    def _keys(self, reading: Reading) -> int:
        return max(self.defaults.latest_keys, len(self._port(reading.channel).sources))


def prefetch_of(reading: Reading, defaults: SizingDefaults) -> int:
    """Returns what a replica keeps leased beyond its work: nothing on a live edge, where it would age."""
    return defaults.prefetch if reading.edge.latest is None else 0


def _lookahead(wiring: Wiring) -> dict[str, int]:
    """Returns for every node how many further items the path to it may wait for."""
    found: dict[str, int] = {}
    for node in wiring.spec.nodes:
        parents = [parent.node for edge in wiring.spec.inputs(node.name) for parent in edge.parents]
        found[node.name] = node.options.lookahead + max((found[parent] for parent in parents), default=0)
    return found
