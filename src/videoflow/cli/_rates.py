"""Rates and time left, from the figures that a run shows now and a few seconds ago.

Used by the progress displays. It refuses to name a rate before two looks at the run lie apart.
"""

from collections import deque

from videoflow.graph.running import NodeStatus, RunStatus

_WINDOW_SECONDS = 5.0


class Rates:
    """Items per second of every node over the last few seconds."""

    def __init__(self) -> None:
        self._looks: deque[tuple[float, dict[str, int]]] = deque()

    def add(self, status: RunStatus) -> None:
        """Takes in a look at the run."""
        if self._looks and status.seconds <= self._looks[-1][0]:
            return
        self._looks.append((status.seconds, {node.node: node.items for node in status.nodes}))
        while len(self._looks) > 2 and self._looks[1][0] <= status.seconds - _WINDOW_SECONDS:
            self._looks.popleft()

    def rate(self, node: str) -> float | None:
        """Returns items per second of a node, or None where that cannot be said yet."""
        if not self._looks:
            return None
        (then, before), (now, after) = self._looks[0], self._looks[-1]
        if now <= then or node not in before or not after.get(node):
            return None
        return (after[node] - before[node]) / (now - then)

    def seconds_left(self, status: NodeStatus) -> float | None:
        """Returns how long a node needs for what it expects, at its present rate, or None."""
        rate = self.rate(status.node)
        if status.expected is None or not rate:
            return None
        return max(0, status.expected - status.items) / rate
