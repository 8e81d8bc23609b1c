"""The spread of rule 4: how far competing replicas may answer their inputs out of turn.

Used by the sizing. It refuses nothing; it never goes below what works.
"""

from collections.abc import Mapping

from videoflow.graph.spec import PortRef
from videoflow.planner._facts import SizingDefaults
from videoflow.planner._ports import Port
from videoflow.planner._tasks import Task
from videoflow.planner._wiring import Reading, Wiring
from videoflow.planner._words import count_text, size_text
from videoflow.planner.plan import InputMode


class Spreads:
    """Computes spreads for one scale: 1 for what they should be, 0 for the least that works."""

    def __init__(
        self, wiring: Wiring, ports: Mapping[PortRef, Port], defaults: SizingDefaults, scale: float
    ) -> None:
        self._wiring = wiring
        self._ports = ports
        self._defaults = defaults
        self._scale = scale
        self._heaviest: dict[str, int] = {}

    def of(self, reading: Reading) -> tuple[int, str]:
        """Returns the spread of a competing subscription, and how it came about."""
        task, defaults = reading.task, self._defaults
        prefetch = self._prefetch(reading) if reading.edge.latest is None else 0
        least = task.replicas * (task.batch + task.lookahead) + 1
        wanted = max(least, 2 * task.replicas * (prefetch + task.batch))
        why = f"2 x {count_text(task.replicas, 'replica')} x ({prefetch} prefetched + {task.batch} in work)"
        heaviest = self._heaviest_below(task)
        if heaviest and wanted * heaviest > defaults.credit_bytes:
            wanted = max(least, defaults.credit_bytes // heaviest)
            why += f", lowered so that items of {size_text(heaviest)} fit {size_text(defaults.credit_bytes)}"
        spread = least + int(self._scale * (wanted - least))
        if spread < wanted:
            why += ", lowered to fit the memory budget"
        if spread == least:
            why += f"; at least {least}, one more than the replicas work on at once"
        return spread, f"spread {spread}: {why}"

    def _prefetch(self, reading: Reading) -> int:
        channel = reading.channel
        port = self._ports[PortRef(node=channel.node, port=channel.port)]
        return self._defaults.prefetch_of(port.item_bytes, reading.task.replicas)

    def of_partitions(self, task: Task, skew: int) -> tuple[int, str]:
        """Returns how far the partitions of a task may be apart, in statements, and how it came about."""
        least = 1 + skew + task.replicas
        wanted = max(least, 1 + skew + task.replicas * self._defaults.prefetch)
        why = f"1 + {skew} out of turn + {count_text(task.replicas, 'partition')}"
        heaviest = self._heaviest_below(task)
        if heaviest and wanted * heaviest > self._defaults.credit_bytes:
            wanted = max(least, self._defaults.credit_bytes // heaviest)
        spread = least + int(self._scale * (wanted - least))
        return spread, f"spread {spread}: {why}, with {self._defaults.prefetch} prefetched where they fit"

    def _heaviest_below(self, task: Task) -> int:
        """Returns the most bytes that one of the task's inputs puts before an ordered reader or a join."""
        if task.name not in self._heaviest:
            heaviest = 0
            for channel in self._wiring.written_by(task):
                port = self._ports[PortRef(node=channel.node, port=channel.port)]
                for below in self._wiring.readers(channel):
                    competes = below.task.mode is InputMode.COMPETING
                    item = self._heaviest_below(below.task) if competes else port.item_bytes
                    heaviest = max(heaviest, port.burst * item)
            self._heaviest[task.name] = heaviest
        return self._heaviest[task.name]
