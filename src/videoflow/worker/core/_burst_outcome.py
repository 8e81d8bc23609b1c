"""What a burst came to: what is to be published, and what became of its inputs inside the task.

Used by who walks a burst, and by the core that made it. It refuses nothing.
"""

from collections.abc import Sequence

import msgspec

from videoflow.backends.coverage import Cause, Fate, FateKind
from videoflow.backends.runtime import SourcePosition
from videoflow.worker.core._answers import ItemReady, Returned, SourceEnded
from videoflow.worker.core._failures import Failure
from videoflow.worker.core._said import Element, InnerFate, Statement

_NOWHERE = SourcePosition(0, -1, None)


class BurstOutcome(msgspec.Struct):
    """What a burst came to.

    Attributes:
        inputs: How many inputs are through.
        publications: What is to be published, in order.
        inner: Fates on edges inside the task; those of neighbours are one.
        latest: The last of them by edge.
        whole: All of `latest`, where the last input came to every edge and was skipped nowhere.
        seconds: Time in user code.
        answers: Set where the input behind those that are through is left unfinished: what the nodes that it
            was given to have answered, a source left out.
        position: Of a source: of the last item that is through.
        item: What a source answered last, unless that is through.
        slow: The last item took its time, so that none may come soon.
    """

    inputs: int = 0
    publications: list[Statement] = []
    inner: list[InnerFate] = []
    latest: dict[int, InnerFate] = {}
    whole: list[InnerFate] = []
    seconds: float = 0.0
    answers: list[Returned | Failure] | None = None
    position: SourcePosition = _NOWHERE
    item: ItemReady | SourceEnded | Failure | None = None
    slow: bool = False

    def add_deliveries(self, edges: Sequence[int], element: Element) -> None:
        """Adds that one input came to these edges inside the task, all those that there are."""
        if self.whole and _goes_on(self.whole[0], element):
            for fate in self.whole:
                fate.last = element.last
            return
        self.add_fates([(edge, None) for edge in edges], element)
        self.whole = [self.latest[edge] for edge in edges]

    def add_fates(self, fates: Sequence[tuple[int, Cause | None]], element: Element) -> None:
        """Adds what became of one input on edges inside the task."""
        self.whole = []
        for edge, cause in fates:
            self._add_fate(edge, cause, element)

    def _add_fate(self, edge: int, cause: Cause | None, element: Element) -> None:
        """Adds a fate; it lengthens the last one of its edge where it goes on with it."""
        kind = FateKind.DELIVERED if cause is None else FateKind.SKIPPED
        last = self.latest.get(edge)
        if last is not None and last.fate == (kind, cause) and _goes_on(last, element):
            last.last = element.last
            return
        self.latest[edge] = fate = InnerFate(
            edge, element.origin, element.last, element.path, Fate(kind, cause)
        )
        self.inner.append(fate)


def _goes_on(last: InnerFate, element: Element) -> bool:
    """Returns whether an input is the one behind those that a fate is of."""
    origin = element.origin
    follows = last.last + 1 == origin.ordinal and last.origin[:2] == origin[:2]
    return follows and not (last.path or element.path)
