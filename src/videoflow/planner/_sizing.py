"""How much every subscription must be able to hold, so that no wait can become a cycle (rule 4).

A competing task may answer its inputs out of turn, but never further than its *spread*. Whoever needs them
in turn must be able to hold all that may come early: its *hold*. Credits are never below it, and a channel
has room for it. This module computes both for one `scale` of the spreads; `_fitting` chooses it. Used by the
fitting. It refuses nothing: whether the figures fit is judged there.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from videoflow.graph.spec import PortRef
from videoflow.planner._facts import PlanFacts
from videoflow.planner._interleaving import Interleaving, Needs, interleave
from videoflow.planner._markers import MarkerRoom, marker_room
from videoflow.planner._needs import Need, ReadingKey
from videoflow.planner._ports import Port, describe_ports, output_scope
from videoflow.planner._spreads import Spreads
from videoflow.planner._tasks import Task
from videoflow.planner._turns import Arrival, Turns, leave, total
from videoflow.planner._wiring import Reading, Wiring
from videoflow.planner.plan import ChannelRef, InputMode


@dataclass(frozen=True)
class Sizing:
    """The needs of a flow at one scale of its spreads.

    Attributes:
        ports: What is known of each port.
        interleaving: What each subscription must hold, and the bounds that this depends on.
        floors: Channel → least bound in items.
        reserves: Task → bytes of its largest step, all replicas together.
        markers: Channel with markers → how many of them there is room for.
    """

    ports: Mapping[PortRef, Port]
    interleaving: Interleaving
    floors: Mapping[ChannelRef, int]
    reserves: Mapping[str, int]
    markers: Mapping[ChannelRef, MarkerRoom]

    def port(self, channel: ChannelRef) -> Port:
        """Returns what is known of the port that a channel carries."""
        return self.ports[PortRef(node=channel.node, port=channel.port)]

    def need(self, reading: Reading) -> Need:
        """Returns what a subscription must hold."""
        return self.interleaving.needs[reading.channel, reading.reader]

    def floor_bytes(self, channel: ChannelRef) -> int:
        """Returns the least room of a channel in bytes, all partitions together."""
        return self.floors[channel] * self.port(channel).item_bytes * channel.partitions

    def beside(self, channel: ChannelRef) -> int:
        """Returns the room that a channel has beyond what one reader may lease."""
        needs = self.interleaving.needs
        return max((need.siblings for (read, _), need in needs.items() if read == channel), default=0)

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

    Raises:
        FlowInvalid: Joins that no bounds can keep from waiting for each other.
    """
    return _Sizer(wiring, facts, scale).run()


class _Sizer:
    def __init__(self, wiring: Wiring, facts: PlanFacts, scale: float) -> None:
        self.wiring = wiring
        self.defaults = facts.defaults
        self.ports = describe_ports(wiring, facts)
        self.spreads = Spreads(wiring, self.ports, facts.defaults, scale)
        self.lookahead = _lookahead(wiring)
        self.turns: dict[ChannelRef, Turns] = {}
        self.needs: dict[ReadingKey, Need] = {}
        self.apart_items = 1 + int(scale * (facts.defaults.interleave_items - 1))
        self.markers = {
            reading.channel: marker_room(self._port(reading.channel), facts.defaults, scale)
            for reading in wiring.markers
        }

    def run(self) -> Sizing:
        for task in self.wiring.tasks:
            arrivals = []
            for reading in self.wiring.read_by(task):
                need = self._need(reading)
                self.needs[reading.channel, reading.reader] = need
                arrivals.append(Arrival(self.turns[reading.channel], need.spread))
            for channel in self.wiring.written_by(task):
                port = self._port(channel)
                self.turns[channel] = leave(task, tuple(arrivals), port.sources, port.burst)
        found = interleave(self.wiring, self.turns, self.needs, self._floor, self.apart_items)
        floors = {channel: self._floor(channel, found.needs) for channel in self.wiring.writers}
        reserves = {task.name: task.replicas * self._step_bytes(task) for task in self.wiring.tasks}
        return Sizing(self.ports, found, floors, reserves, self.markers)

    def _step_bytes(self, task: Task) -> int:
        """Returns the bytes of all outputs of one input; the payload of two layouts is written once."""
        ports = {(channel.node, channel.port): channel for channel in self.wiring.written_by(task)}
        return sum(self._port(c).burst * self._port(c).item_bytes for c in ports.values())

    def _port(self, channel: ChannelRef) -> Port:
        return self.ports[PortRef(node=channel.node, port=channel.port)]

    def _need(self, reading: Reading) -> Need:
        task, turns = reading.task, self.turns[reading.channel]
        if task.mode is InputMode.COMPETING:
            spread, why = self.spreads.of(reading)
            return Need(first=task.replicas * (task.batch + task.lookahead), spread=spread, spread_why=why)
        is_join = task.mode is InputMode.JOIN
        is_mixed = is_join and self._is_mixed(task)
        window: tuple[int | None, str] = None, ""
        if task.partitions > 1:
            window = self.spreads.of_partitions(task, self._skew_of(task))
        first = self._group(reading) if is_join else 1
        return Need(
            first=first,
            skew=turns.from_merge if is_mixed else turns.skew,
            kept=task.holds_items,
            ahead=task.lookahead + task.gathers * first,
            siblings=self._siblings(reading) if is_join else 0,
            whole=is_mixed,
            spread=window[0],
            spread_why=window[1],
        )

    def _skew_of(self, task: Task) -> int:
        """Returns how far the input of a task may be out of turn; of several inputs, the most."""
        return max(total(self.turns[r.channel].skew) for r in self.wiring.read_by(task))

    def _is_mixed(self, task: Task) -> bool:
        """Returns whether several inputs of a join carry several sources each on one channel."""
        readings = self.wiring.read_by(task)
        return len({r.edge.input for r in readings if len(self.turns[r.channel].sources) > 1}) > 1

    def _group(self, reading: Reading) -> int:
        """Returns how many items of a deeper parent meet one item of the others."""
        parent = self.wiring.spec.node(reading.parent.node)
        items = 1
        for hop in output_scope(parent, reading.parent.port):
            if hop not in reading.task.entry.scope:
                name, _, port = hop.rpartition(".")
                items *= self.wiring.spec.node(name).many[port]
        return items

    def _siblings(self, reading: Reading) -> int:
        others = [edge for edge in self.wiring.spec.inputs(reading.task.name) if edge is not reading.edge]
        return max((self.lookahead[parent.node] for edge in others for parent in edge.parents), default=0)

    def _floor(self, channel: ChannelRef, needs: Needs) -> int:
        burst = self._port(channel).burst
        floor = 1
        for reading in self.wiring.readers(channel):
            need = needs[channel, reading.reader]
            floor = max(floor, need.room(burst) + self._waiting(reading))
        return floor + self._marked(channel)

    def _marked(self, channel: ChannelRef) -> int:
        """Returns how many markers a channel keeps: the newest, and those that each replica has taken."""
        room = self.markers.get(channel)
        if room is None:
            return 0
        replicas = sum(reading.task.replicas for reading in self.wiring.markers_on(channel))
        return room.waiting + replicas * room.leased

    def _waiting(self, reading: Reading) -> int:
        """Returns how many items a live edge keeps beside those that are leased."""
        latest = reading.edge.latest
        if latest is None:
            return 0
        keys = 1
        if latest.key == "source":
            keys = len(self._port(reading.channel).sources)
        elif latest.key is not None:
            keys = self.defaults.latest_keys
        return latest.capacity * keys


def _lookahead(wiring: Wiring) -> dict[str, int]:
    """Returns for every node how many further items the path to it may wait for."""
    found: dict[str, int] = {}
    for node in wiring.spec.nodes:
        parents = [parent.node for edge in wiring.spec.inputs(node.name) for parent in edge.parents]
        batch = node.options.batch
        own = node.options.lookahead + (0 if batch is None else batch.max_items - 1)
        found[node.name] = own + max((found[parent] for parent in parents), default=0)
    return found
