"""Implementations that are wrong at run time, by the name of their defect."""

from collections.abc import Hashable, Mapping, Sequence
from typing import Any

from tests.contracts.memory_subject import MemorySubject
from tests.contracts.payload_subjects import MemoryPayloadSubject
from tests.contracts.store_subjects import MemoryStoreSubject
from videoflow.backends.memory import MemoryMessaging, MemoryPayloads, MemoryRuntimeStore
from videoflow.backends.messaging import Delivery, Envelope
from videoflow.backends.outcomes import Accepted, Durability, Observation, PublicationOutcome, Rejected
from videoflow.backends.payload import Missing, PayloadRef
from videoflow.backends.runtime import Change, Stored, StoreOutcome
from videoflow.testing.examiners import Subject


def _accepted(name: str) -> Accepted:
    return Accepted(name, 0, duplicate=False, durability=Durability.MEMORY)


class _DropsMessages(MemoryMessaging):
    def begin_publish(self, envelopes: Sequence[Envelope], *, deadline: float) -> Sequence[Hashable]:
        return [_accepted(envelope.publication_id) for envelope in envelopes]

    def outcomes(self, handles: Sequence[Any], *, deadline: float) -> Sequence[PublicationOutcome]:
        return handles

    def receive(self, *_: object, **__: object) -> Sequence[Delivery]:
        return ()


class _Hopeful(MemoryMessaging):
    def outcomes(self, handles: Sequence[Any], *, deadline: float) -> Sequence[PublicationOutcome]:
        return [
            _accepted(outcome.publication_id) if isinstance(outcome, Rejected) else outcome
            for outcome in super().outcomes(handles, deadline=deadline)
        ]


class _Messages(MemorySubject):
    made: type[MemoryMessaging]

    def backend(self, owner: str) -> MemoryMessaging:
        if owner not in self._backends:
            self._backends[owner] = self.made(self.broker, owner, self.clock)
        return self._backends[owner]


class Drops(_Messages):
    made = _DropsMessages


class Hopes(_Messages):
    made = _Hopeful


class _DropsPayloads(MemoryPayloads):
    def put(self, data: Any, content_id: str, contract: object, *, deadline: float) -> PayloadRef:
        return PayloadRef("memory", "1", len(data), "", 1, content_id)

    def read(self, ref: PayloadRef, *, deadline: float) -> Missing:
        return Missing()


class DropsPayloads(MemoryPayloadSubject):
    def store(self, owner: str) -> MemoryPayloads:
        return _DropsPayloads(self.pool, owner, self.clock)


class _DropsRecords(MemoryRuntimeStore):
    def commit(self, changes: Sequence[Change], *, deadline: float) -> StoreOutcome:
        return StoreOutcome.COMMITTED


class _Caches(MemoryRuntimeStore):
    """Never writes: it answers from what it remembers."""

    def __init__(self, clock: Any) -> None:
        super().__init__(clock)
        self.cache = MemoryRuntimeStore(clock)

    def get(self, keys: Sequence[str], *, deadline: float) -> Observation[dict[str, Stored]]:
        return self.cache.get(keys, deadline=deadline)

    def scan(self, prefix: str, *, deadline: float) -> Observation[dict[str, Stored]]:
        return self.cache.scan(prefix, deadline=deadline)

    def commit(self, changes: Sequence[Change], *, deadline: float) -> StoreOutcome:
        return self.cache.commit(changes, deadline=deadline)


class DropsRecords(MemoryStoreSubject):
    def __init__(self) -> None:
        super().__init__()
        self.store = self.memory = _DropsRecords(self.clock)


class CachesRecords(MemoryStoreSubject):
    def __init__(self) -> None:
        super().__init__()
        self.store = self.memory = _Caches(self.clock)


BAD: Mapping[str, type[Subject]] = {
    "a backend that drops everything": Drops,
    "a backend that says accepted before it knows": Hopes,
    "a payload store that drops everything": DropsPayloads,
    "a store that drops everything": DropsRecords,
    "a store that answers from a cache": CachesRecords,
}
