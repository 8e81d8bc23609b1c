"""The shared-memory log as a subject: one process plays supervisor, writers and readers.

The supervisor makes everything at once; so what is asked for is collected until something is used.
"""

import itertools
from collections.abc import Mapping, Sequence
from typing import Any, cast

from videoflow.adapters.shm import CAPABILITIES, ShmHost, ShmMessaging, ShmPayloads, TaskShape, open_worker
from videoflow.adapters.shm._log import Log, committed, read_record
from videoflow.adapters.shm._memory import attach
from videoflow.backends.capabilities import MessagingCapabilities
from videoflow.backends.messaging import (
    ChannelId,
    ChannelSpec,
    Delivery,
    Envelope,
    Kind,
    MessagingBackend,
    SubscriptionId,
    SubscriptionSpec,
)
from videoflow.backends.outcomes import UnknownReason, unknown
from videoflow.backends.payload import PayloadStore
from videoflow.clock import RealClock, Waitable
from videoflow.errors import UnknownName
from videoflow.testing.examiners import MessagingSubject
from videoflow.wire import decode_envelope

SLAB_BYTES = 1 << 20
LARGEST_BYTES = 4096
_SETTLED = 2


class AheadClock(RealClock):
    """The machine's clock, which a test may put forward."""

    def __init__(self) -> None:
        super().__init__()
        self.ahead = 0.0

    def monotonic(self) -> float:
        return super().monotonic() + self.ahead

    def wait(self, waitables: Any, deadline: float) -> Any:
        return super().wait(waitables, deadline - self.ahead)


class ShmSubject(MessagingSubject):
    """One host, a writing task with a replica for each slot, and a reading task."""

    def __init__(self) -> None:
        self.clock = self.time = AheadClock()
        self.host: ShmHost | None = None
        self.channels: dict[ChannelId, ChannelSpec] = {}
        self.readers: dict[SubscriptionId, SubscriptionSpec] = {}
        self.workers: dict[tuple[str, int], tuple[ShmMessaging, ShmPayloads]] = {}
        self.incarnations: dict[tuple[str, int], int] = {}
        self.replica_of: dict[str, int] = {}
        self.free: list[int] = []

    @property
    def capabilities(self) -> MessagingCapabilities:
        return CAPABILITIES

    def used(self) -> ShmHost:
        """Makes what was asked for."""
        if self.host is None:
            if not self.channels:
                raise UnknownName("nothing was made")
            slots = max(spec.slots for spec in self.channels.values())
            replicas = max((spec.replicas for spec in self.readers.values()), default=1)
            self.host = ShmHost(self.clock, 1 << 30)
            self.host.provision(list(self.channels.values()), list(self.readers.values()), self.tasks())
            self.free = list(range(replicas))
            for slot in range(slots):
                self.open("write", slot)
            for slot in range(replicas):
                self.open("read", slot)
            self.settle_down()
        return self.host

    def tasks(self) -> list[TaskShape]:
        """Returns the two tasks."""
        slots = max((spec.slots for spec in self.channels.values()), default=1)
        replicas = max((spec.replicas for spec in self.readers.values()), default=1)
        return [
            TaskShape(
                name="write",
                replicas=slots,
                writes=tuple(self.channels),
                slab_bytes=SLAB_BYTES,
                largest_bytes=LARGEST_BYTES,
            ),
            TaskShape(name="read", replicas=replicas, reads=tuple(self.readers)),
        ]

    def open(self, task: str, slot: int) -> None:
        """Starts a replica, as it were."""
        assert self.host is not None
        number = self.incarnations[task, slot] = self.incarnations.get((task, slot), 0) + 1
        kit = self.host.kit(task, slot, number)
        self.workers[task, slot] = open_worker(
            kit.document, kit.descriptors, self.clock, f"{task}.{slot}.{number}", lost=lambda: None
        )

    def replica(self, owner: str) -> int:
        """Returns which replica an owner is; the owner of a partition is the replica of its number."""
        if owner not in self.replica_of:
            wanted = int(owner.removeprefix("part-")) if owner.startswith("part-") else self.free[0]
            self.free.remove(wanted)
            self.replica_of[owner] = wanted
        return self.replica_of[owner]

    def backend(self, owner: str) -> MessagingBackend:
        if owner == "engine":
            return cast("MessagingBackend", _Engine(self))  # what a supervisor does and observes
        if owner == "writer":
            return cast("MessagingBackend", _Writers(self))  # the part that writers use
        self.used()
        return self.workers["read", self.replica(owner)][0]

    def receive(
        self,
        subscription: SubscriptionId,
        count: int,
        owner: str = "reader",
        after: Mapping[int, int] | None = None,
    ) -> list[Delivery]:
        """As every subject does, but lets the writers answer in between."""
        found: list[Delivery] = []
        position = dict(after) if after is not None else None
        deadline = self.soon()
        while len(found) < count and self.clock.monotonic() < deadline:
            self.settle_down()
            limit = count - len(found)
            found += self.backend(owner).receive(subscription, deadline=0.0, max_items=limit, after=position)
            if position is not None:
                position.update(delivery.token.position for delivery in found)
        assert len(found) == count
        return found

    def waited(self, waitable: Waitable) -> bool:
        """As every subject does, but lets the writers answer first."""
        self.settle_down()
        return super().waited(waitable)

    def payloads(self, owner: str) -> PayloadStore:
        self.used()
        if owner in ("engine", "writer"):
            return self.workers["write", 0][1]
        return self.workers["read", self.replica(owner)][1]

    def kill(self, owner: str) -> None:
        host, replica = self.used(), self.replica(owner)
        del self.replica_of[owner]
        messaging, _ = self.workers.pop(("read", replica))
        messaging._process.close()
        host.worker_died("read", replica)
        self.open("read", replica)
        self.free.insert(0, replica)
        self.settle_down()

    def settle_down(self) -> None:
        for _ in range(4):
            for messaging, _ in self.workers.values():
                with messaging._process.lock:
                    messaging._process.introduce()
                    messaging._process.service()

    def advance(self, seconds: float) -> None:
        self.time.ahead += seconds

    def close(self) -> None:
        for messaging, _ in self.workers.values():
            messaging._process.close()
        if self.host is not None:
            self.host.close()

    # Raw probes -------------------------------------------------------------------------------

    def raw(self, channel: ChannelId) -> tuple[str, ...]:
        """Reads the rings and the readers' cells in the memory itself."""
        if self.host is None:
            return ()
        layout = self.host._made()
        log = Log(attach(self.host._descriptors[0], write=True))
        found = set()
        for place in layout.partitions_of(channel):
            for slot, ring in enumerate(place.rings):
                for sequence in range(log.words[ring.tail], committed(log, ring)[0]):
                    settled = [
                        any(
                            (log.words[cells[slot] + (sequence & (ring.slots - 1))] >> 16) == sequence
                            and log.words[cells[slot] + (sequence & (ring.slots - 1))] & 255 == _SETTLED
                            for cells in layout.subscriptions[number].cells
                        )
                        for number in place.subscriptions
                    ]
                    if not all(settled):
                        data, _, _, _ = read_record(log, ring, sequence)
                        found.add(decode_envelope(data, channel).publication_id)
                        data.release()
        log.close()
        return tuple(sorted(found))

    def raw_objects(self) -> int:
        """Counts the slots that the allocators gave away."""
        self.settle_down()
        return sum(len(messaging._process.slab.live()) for messaging, _ in self.workers.values())


class _Engine:
    """The supervisor, with what it is asked for before it makes anything."""

    def __init__(self, subject: ShmSubject) -> None:
        self._subject = subject

    def capabilities(self) -> MessagingCapabilities:
        return CAPABILITIES

    def ensure_channel(self, spec: ChannelSpec, operation_id: str, *, deadline: float) -> ChannelSpec:
        subject = self._subject
        if subject.host is not None or subject.channels.get(spec.channel, spec) != spec:
            subject.used()
            worker = subject.workers["write", 0][0]
            return worker.ensure_channel(spec, operation_id, deadline=deadline)
        self._try({**subject.channels, spec.channel: spec}, subject.readers)
        subject.channels[spec.channel] = spec
        return spec

    def ensure_subscription(
        self, spec: SubscriptionSpec, operation_id: str, *, deadline: float
    ) -> SubscriptionSpec:
        subject = self._subject
        if subject.host is not None or subject.readers.get(spec.subscription, spec) != spec:
            subject.used()
            worker = subject.workers["read", 0][0]
            return worker.ensure_subscription(spec, operation_id, deadline=deadline)
        self._try(subject.channels, {**subject.readers, spec.subscription: spec})
        subject.readers[spec.subscription] = spec
        return spec

    def _try(
        self,
        channels: Mapping[ChannelId, ChannelSpec],
        readers: Mapping[SubscriptionId, SubscriptionSpec],
    ) -> None:
        """Asks a host that is thrown away, which refuses what the real one would refuse."""
        trial = ShmSubject()
        trial.channels, trial.readers = dict(channels), dict(readers)
        host = ShmHost(trial.clock, 1 << 30)
        try:
            host.provision(list(channels.values()), list(readers.values()), trial.tasks())
        finally:
            host.close()

    def __getattr__(self, name: str) -> Any:
        if self._subject.host is None and not self._subject.channels:
            now = self._subject.clock.monotonic()
            return lambda *_, **__: unknown(UnknownReason.MISSING, now, "nothing was made")
        return getattr(self._subject.used(), name)


class _Writers:
    """All writer slots as one object."""

    def __init__(self, subject: ShmSubject) -> None:
        self._subject = subject

    def _slot(self, slot: int) -> ShmMessaging:
        self._subject.used()
        return self._subject.workers["write", slot][0]

    def begin_publish(self, envelopes: Sequence[Envelope], *, deadline: float) -> list[Any]:
        handles: list[Any] = []
        for slot, mine in itertools.groupby(envelopes, key=lambda e: e.writer.slot):
            backend = self._slot(slot)
            handles += [(backend, h) for h in backend.begin_publish(list(mine), deadline=deadline)]
        return handles

    def outcomes(self, handles: Sequence[Any], *, deadline: float) -> list[Any]:
        outcomes: list[Any] = []
        for backend, mine in itertools.groupby(handles, key=lambda handle: handle[0]):
            outcomes += backend.outcomes([handle for _, handle in mine], deadline=deadline)
        return outcomes

    def terminate(self, channel: ChannelId, slot: int, epoch: int, kind: Kind, *, deadline: float) -> Any:
        return self._slot(slot).terminate(channel, slot, epoch, kind, deadline=deadline)
