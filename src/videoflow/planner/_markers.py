"""The markers of `.control(...)`: how many wait for a reader, and its subscription.

Markers go beside the inputs of a task, so that no bound of those depends on them, and they never block their
writer: what a replica has not taken in time is dropped, the oldest first. Used by sizing
and by the plan. It refuses nothing.
"""

from dataclasses import dataclass

from videoflow.graph.spec import LatestSpec
from videoflow.planner._facts import SizingDefaults
from videoflow.planner._ports import Port
from videoflow.planner._wiring import MarkerReading
from videoflow.planner._words import count_text, size_text
from videoflow.planner.plan import SubscriptionPlan

_MOST_WAITING = 256
_LEAST_WAITING = 4
_MOST_LEASED = 32


@dataclass(frozen=True)
class MarkerRoom:
    """How many markers there is room for, for each replica that reads them.

    Attributes:
        waiting: That wait, before the oldest is dropped.
        leased: That it has taken and not settled.
    """

    waiting: int
    leased: int


def marker_room(port: Port, defaults: SizingDefaults, scale: float) -> MarkerRoom:
    """Returns how many markers of a port may wait, as far as their bytes allow.

    Args:
        port: Whose items they are.
        defaults: Where sizing starts.
        scale: 1: as many as should be; 0: as few as may be.
    """
    fits = max(_LEAST_WAITING, min(_MOST_WAITING, defaults.credit_bytes // max(1, port.item_bytes)))
    waiting = _LEAST_WAITING + int(scale * (fits - _LEAST_WAITING))
    return MarkerRoom(waiting, max(1, min(_MOST_LEASED, waiting // 4)))


def marker_subscription(reading: MarkerReading, port: Port, room: MarkerRoom) -> SubscriptionPlan:
    """Returns the subscription of each replica to the markers of a channel."""
    why = [f"beside the inputs: nothing waits for them; {room.waiting} wait, then the oldest is dropped"]
    if room.waiting < _MOST_WAITING:
        why.append(
            f"no more, since each counts as {size_text(port.item_bytes)}: max_item_bytes on the class of "
            f"{reading.channel.node} may say less"
        )
    if reading.task.replicas > 1:
        why.append(f"all of them to each of {count_text(reading.task.replicas, 'replica')}")
    return SubscriptionPlan(
        channel=reading.channel,
        reader=reading.reader,
        exclusive=False,
        credit_items=room.leased,
        credit_bytes=room.leased * port.item_bytes,
        latest=LatestSpec(capacity=room.waiting),
        scope=len(port.scope),
        broadcast=True,
        why="; ".join(why),
    )
