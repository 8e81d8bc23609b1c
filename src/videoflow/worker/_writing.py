"""How a shell writes: values into envelopes, envelopes to channels, and the end of its writing.

Used by the shell. It refuses to go on where what was announced before cannot be read; a publication for
which there is no room is an outcome.
"""

from collections.abc import Sequence
from typing import Any

import msgspec

from videoflow import faults, wire
from videoflow.backends.coverage import OriginRecord
from videoflow.backends.messaging import Envelope, Writer
from videoflow.backends.outcomes import Accepted, Known, PublicationOutcome, Rejected, RejectReason
from videoflow.errors import UnobservableState
from videoflow.worker._control import RunControl
from videoflow.worker._figures import TaskFigures
from videoflow.worker._job import Backends, Job, Quit
from videoflow.worker._names import channel_id
from videoflow.worker._payloads import PayloadFull, Payloads
from videoflow.worker.core import actions as a

_ROOM_SECONDS = 0.25


class Writing:
    """The outputs of one replica.

    Args:
        job: Which replica.
        backends: Where its outputs go.
        payloads: Encodes values.
        figures: Where it counts.
        control: What is desired of the run.

    Attributes:
        channels: What it writes, by channel number.
        epoch: Its ownership epoch, once it has one.
    """

    def __init__(
        self, job: Job, backends: Backends, payloads: Payloads, figures: TaskFigures, control: RunControl
    ) -> None:
        self._job = job
        self._backends = backends
        self._messaging = backends.messaging
        self._payloads = payloads
        self._figures = figures
        self._control = control
        self.epoch = 0
        self.channels = tuple(
            channel_id(ref, job.flow_id, job.program.run_id) for ref in job.program.channels
        )

    def publish(self, action: a.Publish) -> Sequence[PublicationOutcome]:
        """Publishes as many, in order, as there is room for.

        Raises:
            Quit: The worker was told to end meanwhile.
        """
        faults.reach("process.after")
        ready = whole_statements(action.publications, self._encoded(action.publications))
        outcomes = self._published([p.envelope for p in action.publications[:ready]], action.barrier)
        accepted = 0
        for publication, outcome in zip(action.publications, outcomes, strict=False):
            if isinstance(outcome, Accepted):
                accepted += 1
                if outcome.duplicate:
                    self._payloads.unused(publication.envelope)
        if accepted == len(action.publications):
            faults.reach("publish.accepted")
            self._payloads.settled()
            return outcomes
        full = [
            Rejected(p.envelope.publication_id, RejectReason.FULL, retryable=True)
            for p in action.publications[ready:]
        ]
        return [*outcomes, *full]

    def encode(self, publications: Sequence[a.Publication]) -> None:
        """Puts every value into its envelope, waiting for room.

        Raises:
            Quit: The worker was told to end meanwhile.
        """
        while self._encoded(publications) < len(publications):
            continue

    def republish(self, action: a.Republish) -> Sequence[PublicationOutcome]:
        """Publishes what an earlier incarnation committed.

        Raises:
            Quit: The worker was told to end meanwhile.
        """
        found = wire.decode_outbox(action.pending, self._job.flow_id, self._job.program.run_id)
        writer = Writer(self._job.task, self._job.slot, self.epoch)  # it speaks now: not an old one
        envelopes = [msgspec.structs.replace(envelope, writer=writer) for envelope in found]
        outcomes = self._published(envelopes, "publish.sent")
        faults.reach("outbox.published")
        return outcomes

    def announced(self, action: a.Announced) -> tuple[Any, ...]:
        """Returns what was announced of an earlier epoch, per channel.

        Raises:
            UnobservableState: It could not be read.
        """
        found = []
        for channel in self.channels:
            observed = self._messaging.announced(channel, deadline=self._backends.deadline())
            if not isinstance(observed, Known):
                raise UnobservableState(f"what was announced on {channel} could not be read")
            found.append(_closed(observed.value, action.node, action.epoch))
        return tuple(found)

    def terminate(self, action: a.Terminate) -> None:
        """Stamps the end of this replica on every channel."""
        for channel in self.channels:
            self._messaging.terminate(
                channel, self._job.slot, self.epoch, action.kind, deadline=self._backends.deadline()
            )
        faults.reach("terminator.sent")

    def _encoded(self, publications: Sequence[a.Publication]) -> int:
        """Puts values into envelopes; returns how many there was room for."""
        for number, publication in enumerate(publications):
            try:
                self._payloads.encode(publication)
            except PayloadFull:
                if self._control.quit:
                    raise Quit from None
                return number
        return len(publications)

    def _published(self, envelopes: Sequence[Envelope], barrier: str) -> Sequence[PublicationOutcome]:
        deadline = self._backends.deadline(_ROOM_SECONDS)
        handles = self._messaging.begin_publish(envelopes, deadline=deadline)
        faults.reach(barrier)
        outcomes = self._messaging.outcomes(handles, deadline=deadline)
        known = [outcome.duplicate for outcome in outcomes if isinstance(outcome, Accepted)]
        self._figures.move(len(known), known.count(False))
        if self._control.quit:
            raise Quit
        return outcomes


def whole_statements(publications: Sequence[a.Publication], ready: int) -> int:
    """Returns how many of the first `ready` publications are whole statements: none is sent in parts."""
    while 0 < ready < len(publications):
        last, following = publications[ready - 1].envelope, publications[ready].envelope
        if (last.channel, last.input_id) != (following.channel, following.input_id):
            break
        ready -= 1
    return ready


def _closed(records: Sequence[OriginRecord], node: str, epoch: int) -> tuple[tuple[int, int], ...]:
    found = next((r for r in records if (r.node, r.epoch) == (node, epoch)), None)
    if found is None:
        return ()
    return tuple(i for _, _, intervals in found.ordinals for i in intervals) + tuple(found.deep_ordinals)
