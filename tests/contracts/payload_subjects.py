"""Payload stores as subjects: memory, and slabs of shared memory."""

import itertools

from videoflow.adapters.shm import ShmHost, ShmMessaging, ShmPayloads, TaskShape, open_worker
from videoflow.backends.capabilities import Profile
from videoflow.backends.memory import MemoryPayloads, MemoryPool
from videoflow.backends.messaging import ChannelSpec, Completed
from videoflow.backends.outcomes import Accepted
from videoflow.backends.payload import PayloadRef
from videoflow.clock import ManualClock, RealClock
from videoflow.testing.examiners import PayloadSubject
from videoflow.testing.examiners.envelopes import LABELS, ROOMY, channel_id, competing, data, reliable

_OWNERS = ("a", "b")
_DONE = Completed()


class MemoryPayloadSubject(PayloadSubject):
    """A pool of ten small objects."""

    unit_bytes = 10
    capacity = 10

    def __init__(self) -> None:
        self.clock = ManualClock()
        self.pool = MemoryPool(self.unit_bytes * self.capacity)
        self._stores: dict[str, MemoryPayloads] = {}
        self._numbers = itertools.count(1)

    def store(self, owner: str) -> MemoryPayloads:
        if owner not in self._stores:
            name = f"{owner}.{next(self._numbers)}"
            self._stores[owner] = MemoryPayloads(self.pool, name, self.clock, worker=owner)
        return self._stores[owner]

    def kill(self, owner: str) -> None:
        self.pool.owner_died(self._stores.pop(owner)._owner)

    def raw(self, ref: PayloadRef) -> bytes | None:
        item = self.pool.objects.get(ref.key)
        return None if item is None or item.data is None else bytes(item.data)

    def raw_objects(self) -> int:
        return len(self.pool.objects)

    def close(self) -> None:
        """There is nothing to end."""


class ShmPayloadSubject(PayloadSubject):
    """Two workers, each with a slab; `b` reads what `a` publishes."""

    unit_bytes = 4096
    capacity = 8

    def __init__(self) -> None:
        self.clock = RealClock()
        self.host = ShmHost(self.clock, 1 << 28)
        self._numbers = itertools.count()
        self._incarnations = dict.fromkeys(_OWNERS, 0)
        self._workers: dict[str, tuple[ShmMessaging, ShmPayloads]] = {}
        self._channel, reader = channel_id("a"), competing("b", channel_id("a"))
        spec = ChannelSpec(
            channel=self._channel,
            profile=Profile.RELIABLE_WORK,
            slots=1,
            bounds=ROOMY,
            subscriptions=(reader,),
            labels=LABELS,
        )
        size, largest = self.unit_bytes * self.capacity, self.unit_bytes
        shapes = [
            TaskShape(name="a", writes=(self._channel,), slab_bytes=size, largest_bytes=largest),
            TaskShape(name="b", reads=(reader,), slab_bytes=size, largest_bytes=largest),
        ]
        self._reader = reader
        self.host.provision([spec], [reliable(reader)], shapes)
        for owner in _OWNERS:
            self._start(owner)
        self._settle_down()

    def _start(self, owner: str) -> None:
        self._incarnations[owner] += 1
        kit = self.host.kit(owner, 0, self._incarnations[owner])
        self._workers[owner] = open_worker(
            kit.document, kit.descriptors, self.clock, owner, lost=lambda: None
        )

    def _settle_down(self) -> None:
        for _ in range(4):
            for messaging, _ in self._workers.values():
                with messaging._process.lock:
                    messaging._process.introduce()
                    messaging._process.service()

    def store(self, owner: str) -> ShmPayloads:
        self._settle_down()
        return self._workers[owner][1]

    def carry(self, ref: PayloadRef, owner: str) -> None:
        """Publishes the object; the writer's claim is made anew, since the log now holds it."""
        messaging, payloads = self._workers["a"]
        claim = [(ref, "intent/p")]
        number = next(self._numbers)
        envelope = data(self._channel, number, payloads=(ref,), suffix="-carried")
        handles = messaging.begin_publish([envelope], deadline=self.soon())
        (outcome,) = messaging.outcomes(handles, deadline=self.soon())
        assert isinstance(outcome, Accepted)
        payloads.acquire_obligation(claim, deadline=self.soon())
        self._settle_down()
        reader = self._workers["b"][0]
        assert len(reader.receive(self._reader, deadline=self.soon(), max_items=1)) == 1

    def kill(self, owner: str) -> None:
        """The killed reader's deliveries are settled by its next incarnation."""
        self._workers.pop(owner)[0]._process.close()
        self.host.worker_died(owner, 0)
        self._start(owner)
        self._settle_down()
        if owner == "b":
            reader = self._workers["b"][0]
            taken = reader.receive(self._reader, deadline=self.clock.monotonic())
            reader.settle([(delivery.token, _DONE) for delivery in taken], deadline=self.soon())
            self._settle_down()

    def raw(self, ref: PayloadRef) -> bytes | None:
        slab, _, offset = ref.key.partition(":")
        for messaging, _ in self._workers.values():
            process = messaging._process
            if process.place.slab == int(slab):
                if int(offset) not in process.slab.live():
                    return None
                return bytes(process.memory(int(slab))[int(offset) : int(offset) + ref.size_bytes])
        return None

    def raw_objects(self) -> int:
        self._settle_down()
        for messaging, _ in self._workers.values():
            with messaging._process.lock:
                messaging._process.sweep()
        return sum(len(messaging._process.slab.live()) for messaging, _ in self._workers.values())

    def close(self) -> None:
        for messaging, _ in self._workers.values():
            messaging._process.close()
        self.host.close()
