"""What one station has come to so far, and which of its planned faults are due there.

Used by the simulator and by the faulty backends of a worker. It refuses nothing: a fault that is never
reached does not fire, and the search does not count the schedule.
"""

from collections.abc import Iterable

from videoflow.faults import InjectedFault
from videoflow.simulation._schedule import PlannedFault


class SimulatedDeath(BaseException):
    """Ends a simulated process; no code of the product catches it."""


class Script:
    """The faults of one station, over all its incarnations.

    Attributes:
        hits: Point → how often it was reached, as far as that is counted.
        fired: The faults that happened, in order.
        due: How the process ends when the backend call in work returns: `crash`, `raise`, or "" for not.
    """

    def __init__(self, faults: Iterable[PlannedFault] = (), *, counts: bool = False) -> None:
        """Plans faults.

        Args:
            faults: What is planned.
            counts: Every point is counted, and not only those where something is planned.
        """
        self.hits: dict[str, int] = {}
        self.fired: list[PlannedFault] = []
        self.due = ""
        self._planned = {(fault.point, fault.hit): fault for fault in faults}
        self._points = {point for point, _ in self._planned}
        self._counts = counts

    def reach(self, point: str) -> str | None:
        """Counts a point; returns the action that is due there, or None."""
        if not (self._counts or point in self._points):
            return None
        hits = self.hits
        hit = hits[point] = hits.get(point, 0) + 1
        fault = self._planned.get((point, hit))
        if fault is None:
            return None
        self.fired.append(fault)
        return fault.action

    def die(self) -> None:
        """Ends the process whose end was put off to that of a call, since the call is one step."""
        due, self.due = self.due, ""
        end_process(due, "tombstone.before")


def end_process(action: str, barrier: str) -> None:
    """Ends a simulated process by its death, or by an exception of the worker's own."""
    if action == "crash":
        raise SimulatedDeath
    raise InjectedFault(barrier)
