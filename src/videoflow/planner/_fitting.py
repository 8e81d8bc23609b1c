"""Fits the buffers of a flow into its memory budget, or says what does not fit and what to do."""

from dataclasses import dataclass

from videoflow.backends.messaging import Reliability
from videoflow.backends.outcomes import Known, Unknown
from videoflow.errors import MemoryShort, UnobservableState
from videoflow.planner._facts import PlanFacts
from videoflow.planner._sizing import Sizing, size
from videoflow.planner._wiring import Wiring
from videoflow.planner._words import list_text, size_text
from videoflow.planner.plan import ChannelRef

_SCALES = (1.0, 0.75, 0.5, 0.25, 0.0)


@dataclass(frozen=True)
class ChannelRoom:
    """The bounds of one partition of a channel."""

    items: int
    size_bytes: int
    is_shrunk: bool


@dataclass(frozen=True)
class Fit:
    """Needs and bounds that fit."""

    sizing: Sizing
    rooms: dict[ChannelRef, ChannelRoom]

    @property
    def memory_bytes(self) -> int:
        """What all buffers need at most."""
        rooms = sum(room.size_bytes * channel.partitions for channel, room in self.rooms.items())
        return rooms + sum(self.sizing.reserves.values())


def fit(wiring: Wiring, facts: PlanFacts) -> Fit:
    """Chooses the largest spreads and bounds that the budget and the payload store have room for.

    A payload store that has no room even for the least is left to be refused by name.

    Raises:
        MemoryShort: The budget is more than there is, or less than the flow needs.
        UnobservableState: The available memory could not be read.
    """
    _check_budget(facts)
    sizing = size(wiring, facts, _SCALES[0])
    room = _room(facts)
    for scale in _SCALES[1:]:
        if sizing.least_bytes <= room:
            break
        sizing = size(wiring, facts, scale)
    if sizing.least_bytes > facts.memory_budget_bytes:
        raise _too_small(wiring, facts, sizing)
    return Fit(sizing, _share(facts, sizing, max(0, room - sizing.least_bytes)))


def _room(facts: PlanFacts) -> int:
    """Returns what buffers may take: their budget, or what the payload store has free where that is less."""
    free = facts.payload.free_bytes
    return (
        min(facts.memory_budget_bytes, free.value) if isinstance(free, Known) else facts.memory_budget_bytes
    )


def _check_budget(facts: PlanFacts) -> None:
    available = facts.available_bytes
    if isinstance(available, Unknown):
        raise UnobservableState(
            "the available memory could not be read",
            cause=available.detail or available.reason,
            effect="nothing was started",
            remedy="run where the memory of the machine and of the container can be read",
        )
    if facts.memory_budget_bytes > available.value:
        less = size_text(available.value // 4)
        raise MemoryShort(
            f"the memory budget is {size_text(facts.memory_budget_bytes)}, "
            f"and {size_text(available.value)} are available",
            cause="that is the smaller of what the machine has free and what the container allows",
            effect="nothing was started",
            remedy=f'ask for less, such as --memory-bytes "{less}", or free memory',
        )


def _share(facts: PlanFacts, sizing: Sizing, spare: int) -> dict[ChannelRef, ChannelRoom]:
    """Gives every channel its floor, and of the rest the same share of what it would like."""
    wanted: dict[ChannelRef, tuple[int, int, int]] = {}
    for channel, floor in sizing.floors.items():
        item_bytes = sizing.port(channel).item_bytes
        floor_bytes = sizing.floor_bytes(channel)
        live = channel.reliability is Reliability.LIVE
        items = floor if live else max(floor, _wanted_items(facts, sizing, channel))
        liked = min(facts.defaults.credit_bytes, items * item_bytes) * channel.partitions
        size_bytes = max(floor_bytes, liked)
        wanted[channel] = (items, floor_bytes, size_bytes)
    above = sum(size_bytes - floor_bytes for _, floor_bytes, size_bytes in wanted.values())
    rooms = {}
    for channel, (items, floor_bytes, size_bytes) in wanted.items():
        granted = size_bytes
        if above > spare:
            granted = floor_bytes + (size_bytes - floor_bytes) * spare // above
        rooms[channel] = ChannelRoom(items, granted // channel.partitions, granted < size_bytes)
    return rooms


def _wanted_items(facts: PlanFacts, sizing: Sizing, channel: ChannelRef) -> int:
    limit = sizing.interleaving.limits.get(channel)
    return facts.defaults.credit_items + sizing.beside(channel) if limit is None else limit


def _too_small(wiring: Wiring, facts: PlanFacts, sizing: Sizing) -> MemoryShort:
    largest = sorted(sizing.floors, key=sizing.floor_bytes, reverse=True)[:3]
    shown = "\n".join(
        f"{channel.node}.{channel.port}: {sizing.floors[channel] * channel.partitions} items of up to "
        f"{size_text(sizing.port(channel).item_bytes)} = {size_text(sizing.floor_bytes(channel))}"
        for channel in largest
    )
    competing = [task.name for task in wiring.tasks if task.replicas > 1]
    remedies = [f'--memory-bytes "{_rounded_up(sizing.least_bytes)}"']
    if competing:
        remedies.append(f"fewer replicas of {list_text(competing)}")
    remedies.append(
        "smaller frames, or max_item_bytes on classes whose outputs are smaller than their inputs"
    )
    return MemoryShort(
        f"the flow needs {size_text(sizing.least_bytes)} for items in flight, "
        f"the memory budget is {size_text(facts.memory_budget_bytes)}",
        cause=f"the largest buffers, at their least:\n{shown}",
        effect="nothing was started",
        remedy=list_text(remedies, "or"),
    )


def _rounded_up(size_bytes: int) -> str:
    return f"{-(-size_bytes // (1 << 20))} MiB"
