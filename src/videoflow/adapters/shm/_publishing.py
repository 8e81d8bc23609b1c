"""How a worker process publishes."""

from collections.abc import Hashable, Sequence
from typing import cast

from videoflow.adapters.shm._joint import JointOutlet
from videoflow.adapters.shm._outlet import Outlet
from videoflow.adapters.shm._payloads import Claims
from videoflow.adapters.shm._process import Process
from videoflow.adapters.shm._slab import Slot, slot_of
from videoflow.adapters.shm._statements import Handle, Intents, Statement, check_group
from videoflow.backends.messaging import ChannelId, Envelope, Kind, Publisher
from videoflow.backends.outcomes import Accepted, PublicationOutcome, Rejected
from videoflow.errors import ContractBroken, UnknownName

_DEFINITE = {Accepted, Rejected}
_HANDLES = {Accepted, Rejected, Handle}


class ShmPublisher(Publisher):
    """Appends to the rings of one process.

    Args:
        process: The process's part of the log.
        claims: Of its payloads, which end when a publication is accepted.
    """

    def __init__(self, process: Process, claims: Claims) -> None:
        self._process = process
        self._claims = claims
        self._outlets = _by_channel(process)

    def begin_publish(self, envelopes: Sequence[Envelope], *, deadline: float) -> Sequence[Hashable]:
        """Appends what has room now, in order, and queues the rest; a handle is the outcome, once definite.

        What is usual, statements of one item each, is appended in one go.
        """
        with self._process.lock:
            outlet = self._only_outlet(envelopes)
            usual = [] if outlet is None else outlet.extend(envelopes)
            if outlet is not None and len(usual) < len(envelopes):  # there may be room that was not heard of
                outlet.commit()
                self._process.service()
                usual += outlet.extend(envelopes[len(usual) :])
            rest: Sequence[Hashable] = ()
            if outlet is not None:
                outlet.commit()
                self._end_intents(envelopes[: len(usual)])
            if len(usual) < len(envelopes):
                rest = self._begin(envelopes[len(usual) :], deadline)
            self._process.introduce()
            self._process.hub.flush()
        return [*usual, *rest]

    def _only_outlet(self, envelopes: Sequence[Envelope]) -> Outlet | None:
        """Returns where all go, if each is a statement of its own and names what this process holds."""
        held = self._process.holds.counts
        channel = envelopes[0].channel if envelopes else None
        if channel is None or len({envelope.input_id for envelope in envelopes}) < len(envelopes):
            return None
        for envelope in envelopes:
            if envelope.channel is not channel and envelope.channel != channel:
                return None
            if envelope.payloads and not all(slot_of(ref) in held for ref in envelope.payloads):
                return None
        outlet = self._outlet(channel)
        return outlet if isinstance(outlet, Outlet) and not outlet.queue else None

    def _begin(self, envelopes: Sequence[Envelope], deadline: float) -> list[Hashable]:
        """Appends or queues statements of any kind; the lock is held."""
        intents = Intents(envelopes)
        handles = [Handle(envelope, intents) for envelope in envelopes]
        statements: dict[ChannelId, dict[str, list[Handle]]] = {}
        channel, mine = None, {}
        for handle in handles:
            envelope = handle.envelope
            if envelope.channel is not channel:
                channel = envelope.channel
                mine = statements.setdefault(channel, {})
            mine.setdefault(envelope.input_id, []).append(handle)
        touched = [(self._outlet(channel), groups.values()) for channel, groups in statements.items()]
        new: list[Handle] = []
        for outlet, groups in touched:
            for group in groups:
                check_group([handle.envelope for handle in group], outlet.partitions)
                new += [h for h in group if h.envelope.payloads and not outlet.knows(h.envelope)]
        self._hold(new)
        for outlet, groups in touched:
            for group in groups:
                outlet.publish(Statement(group, deadline))
            outlet.commit()
        self._conclude(handles)
        return [handle.outcome or handle for handle in handles]

    def outcomes(self, handles: Sequence[Hashable], *, deadline: float) -> Sequence[PublicationOutcome]:
        """Returns one outcome each, waiting for room until the deadline."""
        kinds = set(map(type, handles))
        if kinds <= _DEFINITE:
            return cast("Sequence[PublicationOutcome]", handles)
        if not kinds <= _HANDLES:
            raise ContractBroken("a handle of something else was asked for its outcome")
        waiting = [handle for handle in handles if isinstance(handle, Handle)]
        while any(handle.outcome is None for handle in waiting):
            with self._process.lock:
                self._process.service()
                self._retry()
                if self._process.clock.monotonic() >= deadline:
                    unsent = {handle for handle in waiting if handle.outcome is None}
                    for outlet in self._outlets.values():
                        outlet.withdraw(unsent)
                if all(handle.outcome is not None for handle in waiting):
                    break
            self._process.wait(min([deadline, *self._queue_deadlines()]))
        with self._process.lock:
            self._conclude(waiting)
        found = [handle.outcome if isinstance(handle, Handle) else handle for handle in handles]
        return cast("Sequence[PublicationOutcome]", found)

    def terminate(
        self, channel: ChannelId, slot: int, epoch: int, kind: Kind, *, deadline: float
    ) -> Sequence[PublicationOutcome]:
        """Stamps the end of this process's slot."""
        with self._process.lock:
            outlet = self._outlet(channel)
            if slot != outlet.slot or kind not in (Kind.END, Kind.ABORT):
                raise ContractBroken(f"slot {slot} of {channel} cannot be ended here with {kind}")
            outlet.retry()
            outcomes = outlet.terminate(epoch, kind)
            self._process.hub.flush()
            return outcomes

    def _retry(self) -> None:
        for outlet in self._outlets.values():
            if outlet.queue:
                outlet.retry()

    def _queue_deadlines(self) -> list[float]:
        return [outlet.queue[0].deadline + 1e-3 for outlet in self._outlets.values() if outlet.queue]

    def _hold(self, handles: Sequence[Handle]) -> None:
        """Holds what publications refer to until they are definite, so that none of it goes between two."""
        holds = self._process.holds
        taken: list[Slot] = []
        for handle in handles:
            slots = tuple(map(slot_of, handle.envelope.payloads))
            for slot in slots:
                if slot not in holds.counts and self._process.kit.incarnation > 1:
                    # The outbox of an earlier incarnation: its slots are kept until they are said again.
                    self._claims.make(slot, f"intent/{handle.envelope.publication_id}")
                if slot not in holds.counts or not holds.take(slot):
                    for other in taken:
                        holds.drop(other)
                    raise UnknownName(
                        f"an envelope of {handle.envelope.channel} names a payload that is gone"
                    )
                taken.append(slot)
            handle.slots = slots

    def _conclude(self, handles: Sequence[Handle]) -> None:
        """Lets go what a definite publication held: the log holds it now, or nobody."""
        for handle in handles:
            if handle.outcome is None or handle.concluded:
                continue
            handle.concluded = True
            envelope = handle.envelope
            if (
                envelope.payloads
                and isinstance(handle.outcome, Accepted)
                and handle.intents.accepted(envelope)
            ):
                self._end_intents((envelope,))
            for slot in handle.slots:
                self._process.holds.drop(slot)

    def _end_intents(self, envelopes: Sequence[Envelope]) -> None:
        """Ends the claims of publications that are in every channel that they are for."""
        for envelope in envelopes:
            for ref in envelope.payloads:
                self._claims.accepted(slot_of(ref), envelope.publication_id)

    def _outlet(self, channel: ChannelId) -> Outlet | JointOutlet:
        outlet = self._outlets.get(channel)
        if outlet is None:
            raise UnknownName(f"this process does not write channel {channel}")
        return outlet


def _by_channel(process: Process) -> dict[ChannelId, Outlet | JointOutlet]:
    partitions: dict[ChannelId, list[Outlet]] = {}
    for outlet in process.outlets.values():
        partitions.setdefault(outlet.channel, []).append(outlet)
    return {
        channel: found[0] if len(found) == 1 else JointOutlet(found, process.clock)
        for channel, found in partitions.items()
    }
