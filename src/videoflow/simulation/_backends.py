"""The memory backends of one worker, whose answers may be lost, late, repeated or refused.

Used by the simulator, one of each per incarnation. They stay within the contracts: whatever they do, a
backend may do.
"""

from collections.abc import Hashable, Mapping, Sequence

from videoflow.backends.capabilities import RuntimeCapabilities
from videoflow.backends.coverage import OriginRecord
from videoflow.backends.memory import MemoryBroker, MemoryMessaging, MemoryPayloads, MemoryPool
from videoflow.backends.messaging import (
    Acquired,
    ChannelId,
    ChannelStatus,
    Delivery,
    DeliveryToken,
    Envelope,
    Kind,
    Settlement,
    SubscriptionId,
    SubscriptionStatus,
)
from videoflow.backends.outcomes import (
    Observation,
    PublicationOutcome,
    PublicationUnknown,
    Rejected,
    RejectReason,
    SettlementOutcome,
    SettleUnknown,
    Unknown,
    UnknownReason,
    unknown,
)
from videoflow.backends.payload import (
    Buffer,
    Corrupt,
    Missing,
    PayloadBytes,
    PayloadRef,
    RetentionContract,
    TransientFailure,
)
from videoflow.backends.runtime import Change, RuntimeStore, Stored, StoreOutcome
from videoflow.clock import Clock
from videoflow.simulation._script import Script

_TIMEOUT = UnknownReason.TIMEOUT


class FaultyMessaging(MemoryMessaging):
    """Carries messages for one incarnation of a worker."""

    def __init__(self, broker: MemoryBroker, owner: str, clock: Clock, script: Script) -> None:
        super().__init__(broker, owner, clock)
        self._script = script
        self._instead: list[PublicationOutcome] | None = None
        self._settled_instead: list[SettlementOutcome] | None = None

    def begin_publish(self, envelopes: Sequence[Envelope], *, deadline: float) -> Sequence[Hashable]:
        """Publishes, or not, or twice."""
        action = self._script.reach("call:publish")
        ids = [envelope.publication_id for envelope in envelopes]
        self._instead = None
        if action == "full":
            self._instead = [Rejected(name, RejectReason.FULL, retryable=True) for name in ids]
            return ids
        if action in ("lost", "unsent"):
            self._instead = [PublicationUnknown(name, _TIMEOUT) for name in ids]
        handles: Sequence[Hashable] = ids
        if action != "unsent":
            handles = super().begin_publish(envelopes, deadline=deadline)
        if action == "twice":
            super().begin_publish(envelopes, deadline=deadline)
        if self._script.due:
            self._script.die()
        return handles

    def outcomes(self, handles: Sequence[Hashable], *, deadline: float) -> Sequence[PublicationOutcome]:
        """Returns the outcomes, or says that they are unknown."""
        if self._instead is not None:
            instead, self._instead = self._instead, None
            return instead
        found = super().outcomes(handles, deadline=deadline)
        if self._script.due:
            self._script.die()
        return found

    def terminate(
        self, channel: ChannelId, slot: int, epoch: int, kind: Kind, *, deadline: float
    ) -> Sequence[PublicationOutcome]:
        """Stamps the end, perhaps twice."""
        if self._script.reach("call:terminate") == "twice":
            super().terminate(channel, slot, epoch, kind, deadline=deadline)
        return super().terminate(channel, slot, epoch, kind, deadline=deadline)

    def receive(
        self,
        subscription: SubscriptionId,
        *,
        deadline: float,
        max_items: int | None = None,
        after: Mapping[int, int] | None = None,
    ) -> Sequence[Delivery]:
        """Leases what there is, or some of it, or nothing."""
        action = self._script.reach("call:receive")
        if action == "empty":
            return ()
        if action == "short":
            max_items = 1
        found = super().receive(subscription, deadline=deadline, max_items=max_items, after=after)
        if self._script.due:
            self._script.die()
        return found

    def begin_settle(
        self, settlements: Sequence[tuple[DeliveryToken, Settlement]], *, deadline: float
    ) -> Sequence[Hashable]:
        """Settles, or not, or twice."""
        action = self._script.reach("call:settle")
        self._settled_instead = None
        if action in ("lost", "unsent"):
            self._settled_instead = [SettleUnknown(token, _TIMEOUT) for token, _ in settlements]
        if action == "unsent":
            return [token for token, _ in settlements]
        if action == "twice":
            super().begin_settle(settlements, deadline=deadline)
        return super().begin_settle(settlements, deadline=deadline)

    def settlements(self, handles: Sequence[Hashable], *, deadline: float) -> Sequence[SettlementOutcome]:
        """Returns the outcomes, or says that they are unknown."""
        if self._settled_instead is not None:
            instead, self._settled_instead = self._settled_instead, None
            return instead
        return super().settlements(handles, deadline=deadline)

    def acquire(self, subscription: SubscriptionId, epoch: int, *, deadline: float) -> Observation[Acquired]:
        """Becomes the owner; whether it did may be unknown."""
        action = self._script.reach("call:acquire")
        found = super().acquire(subscription, epoch, deadline=deadline)
        return self._unreadable() if action is not None else found

    def observe_subscription(
        self, subscription: SubscriptionId, *, deadline: float
    ) -> Observation[SubscriptionStatus]:
        """Reads a status, or cannot."""
        if self._script.reach("call:observe") is not None:
            return self._unreadable()
        return super().observe_subscription(subscription, deadline=deadline)

    def observe_channel(self, channel: ChannelId, *, deadline: float) -> Observation[ChannelStatus]:
        """Reads a status, or cannot."""
        if self._script.reach("call:observe") is not None:
            return self._unreadable()
        return super().observe_channel(channel, deadline=deadline)

    def announced(self, channel: ChannelId, *, deadline: float) -> Observation[tuple[OriginRecord, ...]]:
        """Reads the writers' end, or cannot."""
        if self._script.reach("call:observe") is not None:
            return self._unreadable()
        return super().announced(channel, deadline=deadline)

    def _unreadable(self) -> Unknown:
        return unknown(_TIMEOUT, self._clock.monotonic(), "a simulated time-out")


class FaultyPayloads(MemoryPayloads):
    """Keeps bytes for one incarnation of a worker.

    Attributes:
        missing: What was asked for and was gone.
    """

    def __init__(self, pool: MemoryPool, owner: str, clock: Clock, worker: str, script: Script) -> None:
        super().__init__(pool, owner, clock, worker)
        self._script = script
        self.missing: list[str] = []

    def put(
        self, data: Buffer, content_id: str, contract: RetentionContract, *, deadline: float
    ) -> PayloadRef | None:
        """Keeps an object, or has no room."""
        if self._script.reach("call:put") is not None:
            return None
        return super().put(data, content_id, contract, deadline=deadline)

    def read(
        self, ref: PayloadRef, *, deadline: float
    ) -> PayloadBytes | TransientFailure | Missing | Corrupt:
        """Returns an object, or cannot now."""
        if self._script.reach("call:read") is not None:
            return TransientFailure("a simulated time-out")
        found = super().read(ref, deadline=deadline)
        if isinstance(found, Missing):
            self.missing.append(ref.content_id)
        return found


class FaultyStore(RuntimeStore):
    """The run's records, as one worker reaches them."""

    def __init__(self, store: RuntimeStore, clock: Clock, script: Script) -> None:
        self._store = store
        self._clock = clock
        self._script = script

    def capabilities(self) -> RuntimeCapabilities:
        """Returns those of the store itself."""
        return self._store.capabilities()

    def get(self, keys: Sequence[str], *, deadline: float) -> Observation[dict[str, Stored]]:
        """Reads, or cannot."""
        if self._script.reach("call:look") is not None:
            return unknown(_TIMEOUT, self._clock.monotonic(), "a simulated time-out")
        return self._store.get(keys, deadline=deadline)

    def scan(self, prefix: str, *, deadline: float) -> Observation[dict[str, Stored]]:
        """Reads, or cannot."""
        if self._script.reach("call:look") is not None:
            return unknown(_TIMEOUT, self._clock.monotonic(), "a simulated time-out")
        return self._store.scan(prefix, deadline=deadline)

    def commit(self, changes: Sequence[Change], *, deadline: float) -> StoreOutcome:
        """Commits, or not; what happened may be unknown."""
        action = self._script.reach("call:commit")
        outcome = StoreOutcome.UNKNOWN
        if action != "unsent":
            outcome = self._store.commit(changes, deadline=deadline)
        return StoreOutcome.UNKNOWN if action == "lost" else outcome

    def append(self, log: str, records: Sequence[bytes], *, deadline: float) -> StoreOutcome:
        """Appends."""
        return self._store.append(log, records, deadline=deadline)

    def read_log(self, log: str, after: int, *, deadline: float) -> Observation[list[tuple[int, bytes]]]:
        """Reads a log."""
        return self._store.read_log(log, after, deadline=deadline)

    def close(self) -> None:
        """Ends the use."""
