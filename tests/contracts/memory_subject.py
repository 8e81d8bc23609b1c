"""The memory reference as a subject, with a clock that does not run by itself."""

from videoflow.backends.memory import MemoryBroker, MemoryMessaging, MemoryPayloads, MemoryPool
from videoflow.backends.messaging import ChannelId
from videoflow.clock import ManualClock
from videoflow.testing.examiners import MessagingSubject


class MemorySubject(MessagingSubject):
    def __init__(self) -> None:
        self.clock = self.time = ManualClock(100.0)
        self.pool = MemoryPool(10**8)
        self.broker = MemoryBroker(self.pool)
        self._backends: dict[str, MemoryMessaging] = {}
        self._stores: dict[str, MemoryPayloads] = {}

    def backend(self, owner: str) -> MemoryMessaging:
        if owner not in self._backends:
            self._backends[owner] = MemoryMessaging(self.broker, owner, self.clock)
        return self._backends[owner]

    def payloads(self, owner: str) -> MemoryPayloads:
        if owner not in self._stores:
            self._stores[owner] = MemoryPayloads(self.pool, owner, self.clock)
        return self._stores[owner]

    def kill(self, owner: str) -> None:
        self.backend("engine").release_owner(owner, deadline=0.0)
        self._backends.pop(owner, None)
        self._stores.pop(owner, None)

    def settle_down(self) -> None:
        """Every call takes effect at once."""

    def close(self) -> None:
        """There is nothing to end."""

    def advance(self, seconds: float) -> None:
        self.time.advance(seconds)

    def raw(self, channel: ChannelId) -> tuple[str, ...]:
        found = self.broker._channels.get(channel)
        if found is None:
            return ()
        entries = [cell.entry for s in found.subscriptions.values() for cell in s.cells.values()]
        return tuple(sorted({entry.envelope.publication_id for entry in entries}))

    def raw_objects(self) -> int:
        self.pool.sweep(self.clock.monotonic())
        return sum(1 for item in self.pool.objects.values() if item.data is not None)
