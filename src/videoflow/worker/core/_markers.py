"""Markers, beside the inputs of a task: given to `on_control` of a node, and settled apart from all else.

Part of every core. Nothing waits for markers: they are in no order, window, join or cursor, and what has not
come when the inputs are finished is left. A node that keeps state has its markers settled with the commit
that keeps what they changed; any other one at once.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence

from videoflow.backends.coverage import Hop
from videoflow.backends.messaging import Completed, CompletedReason, Delivery, Kind, Settlement, Terminal
from videoflow.ids import hash_id
from videoflow.worker.core._concluding import Concluding
from videoflow.worker.core._groups import is_suspect
from videoflow.worker.core._pending import Pending, Settlements
from videoflow.worker.core._program import NodeProgram
from videoflow.worker.core.actions import Element, Failure, Load, PullMarkers, PutAside, Steps, Suspend

_LAST_PULLS = 64


class Marked(Concluding, ABC):
    """Takes markers, whenever a core has pulled some."""

    @abstractmethod
    def conclude_pending(self) -> Steps:
        """Publishes, commits and settles what was worked on."""

    def keep_markers(self, settlements: Settlements) -> Steps:
        """Settles markers with the next commit."""
        self.pending.settlements += settlements
        self.pending.inputs += 1
        yield from ()

    def last_markers(self) -> Steps:
        """Takes the markers that have come by now; a writer that goes on does not keep this task."""
        for _ in range(_LAST_PULLS if self.program.controls else 0):
            markers = yield PullMarkers(last=True)
            if not any(markers):
                break
            yield from self.take_markers(markers)
        if self.pending:
            yield from self.conclude_pending()

    def to_resume(self) -> Steps:
        """Asks whether the run is stopped to be resumed; if so, works off what it has and keeps the rest.

        Who makes the markers ends, too, and does not wait for this task; so all of them can be waited for.
        """
        if self.program.controls:
            if not (yield Suspend(keep=False)):
                return False
            while any(markers := (yield PullMarkers(rest=True))):
                yield from self.take_markers(markers)
            if self.pending:
                yield from self.conclude_pending()
        return bool((yield Suspend()))

    def take_markers(self, markers: Sequence[Sequence[Delivery]]) -> Steps:
        """Gives markers to their nodes.

        Args:
            markers: Per subscription of `program.controls`; none at all is as good as none of each.
        """
        for (name, _), deliveries in zip(self.program.controls, markers, strict=False):
            node = next(node for node in self.program.nodes if node.spec.name == name)
            settlements: Settlements = []
            for delivery in deliveries:
                if is_suspect(delivery) and self.pending:
                    yield from self.conclude_pending()
                settlements.append((delivery.token, (yield from self._settlement(node, delivery))))
            if not settlements:
                continue
            if node.spec.traits.stateful or node.spec.traits.checkpoints:
                yield from self.keep_markers(settlements)
            else:
                yield from self.settle(Pending([], settlements))

    def _settlement(self, node: NodeProgram, delivery: Delivery) -> Steps:
        if delivery.envelope.kind is not Kind.DATA:
            return Completed(CompletedReason.SKIPPED)
        element = self._marker(node, delivery)
        loaded = yield Load((delivery,))
        if isinstance(loaded, Failure):
            reference: str | None = yield PutAside(node.spec.name, element, loaded, 1, [delivery.envelope])
        else:
            element.values = (loaded[0],)
            reference = yield from self.walk.marker(node, element, suspect=is_suspect(delivery))
        done: Settlement = Completed(CompletedReason.DELIVERED) if reference is None else Terminal(reference)
        return done

    def _marker(self, node: NodeProgram, delivery: Delivery) -> Element:
        """Returns a marker as an input of its own: no input of the node has its identity or its trace."""
        envelope, name, slot = delivery.envelope, node.spec.name, self.start.slot
        return Element(
            hash_id(self.program.run_id, name, "marker", slot, envelope.publication_id),
            envelope.origin,
            (*envelope.path, Hop(name, "on_control", slot, self.program.task.replicas)),
            last=envelope.origin.ordinal,
            key=envelope.key,
            source=envelope.source or envelope.origin.node,
            event_time=envelope.event_time,
            marker=f"{envelope.channel} (marker)",
        )
