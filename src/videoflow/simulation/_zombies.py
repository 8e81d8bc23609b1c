"""Workers that were replaced although they lived: they go on until they notice, or for a few actions.

Used by the simulator. One host reaps a worker before it replaces it, so that this cannot happen there; epochs
must fence all the same. A replaced worker calls no nodes: what user code does twice nobody can fence.
"""

import contextlib
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from videoflow.backends.memory import MemoryBroker, MemoryMessaging
from videoflow.backends.outcomes import Accepted
from videoflow.backends.runtime import CommitOutcome
from videoflow.clock import WouldBlock
from videoflow.errors import FlowError, StaleAuthority
from videoflow.simulation._clock import StationClock
from videoflow.simulation._schedule import FENCED
from videoflow.simulation._station import Incarnation, Station
from videoflow.worker import Quit, WorkerFatal
from videoflow.worker.core import actions

_ACTIONS = 6


@dataclass
class _Zombie:
    station: str
    live: Incarnation
    clock: StationClock
    left: int = _ACTIONS


class Zombies:
    """All replaced workers that still live.

    Args:
        supervisor: With whose object leases are returned.
        broker: Where it is looked up which epoch has spoken.

    Attributes:
        living: They.
    """

    def __init__(self, supervisor: MemoryMessaging, broker: MemoryBroker) -> None:
        self._supervisor = supervisor
        self._broker = broker
        self.living: list[_Zombie] = []

    def add(self, station: Station) -> None:
        """Lets the live incarnation of a station live on."""
        assert station.live is not None
        self.living.append(_Zombie(station.name, station.live, station.clock))

    def move(self, chance: random.Random, stations: Sequence[Station]) -> list[str]:
        """Lets one make one more action; returns the violations in that."""
        zombie = self.living[int(chance.random() * len(self.living))]
        zombie.left -= 1
        action = zombie.live.action
        violations: list[str] = []
        over = zombie.left < 0 or type(action).__name__ not in FENCED
        if not over:
            zombie.clock.waits, zombie.clock.for_input = 0, type(action) is actions.Pull
            over = not self._act(zombie, stations, violations)
        if over:
            self.living.remove(zombie)
            self._end(zombie)
        return violations

    def end_all(self) -> None:
        """Ends them all."""
        for zombie in self.living:
            self._end(zombie)
        self.living.clear()

    def _act(self, zombie: _Zombie, stations: Sequence[Station], violations: list[str]) -> bool:
        """Makes an action; returns whether it may go on."""
        live = zombie.live
        assert live.action is not None
        assert live.steps is not None
        fenced = isinstance(live.action, actions.Publish) and self._fenced(live.action)
        try:
            answer = live.shell.perform(live.action)
            said = answer if isinstance(answer, list) else ()
            if fenced and any(isinstance(outcome, Accepted) for outcome in said):
                violations.append(f"epochs fence: {zombie.station} published after its successor had")
            if isinstance(live.action, actions.Commit) and answer is CommitOutcome.COMMITTED:
                violations += _committed(zombie, stations)
            live.action = live.steps.send(answer)
        except (StopIteration, WouldBlock, Quit, WorkerFatal, StaleAuthority, FlowError):
            return False
        return True

    def _fenced(self, action: actions.Publish) -> bool:
        """Whether a newer epoch has spoken on each channel that it would publish on."""
        return all(
            self._broker.channel(publication.envelope.channel).slots[publication.envelope.writer.slot].epoch
            > publication.envelope.writer.epoch
            for publication in action.publications
        )

    def _end(self, zombie: _Zombie) -> None:
        """Ends one; what it stored in vain it gives back itself."""
        with contextlib.suppress(FlowError):
            zombie.live.shell.close()
        self._supervisor.release_owner(zombie.live.owner, deadline=1.0)


def _committed(zombie: _Zombie, stations: Sequence[Station]) -> Iterator[str]:
    owner = next(station for station in stations if station.name == zombie.station)
    if owner.live is not None and owner.live.steps is not None:
        yield f"epochs fence: {zombie.station} committed after it had been replaced"
