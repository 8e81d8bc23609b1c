"""Receiving and settling: leases by owner, fenced by generation; competing or exclusive.

Used through `MemoryMessaging`. It refuses an owner that was replaced, and exclusive calls on competing
subscriptions and the reverse.
"""

import math
from collections.abc import Hashable, Mapping, Sequence

from videoflow.backends.memory._broker import MemoryBroker
from videoflow.backends.memory._cells import Cell
from videoflow.backends.memory._channel import Channel
from videoflow.backends.memory._owned import Owned
from videoflow.backends.memory._subscription import Subscription
from videoflow.backends.messaging import (
    Acquired,
    Delivery,
    DeliveryToken,
    Receiver,
    Retry,
    Settlement,
    SubscriptionId,
    Terminal,
    settled_fate,
)
from videoflow.backends.outcomes import (
    Observation,
    SettleConfirmed,
    SettlementOutcome,
    SettleStale,
    SettleUnknown,
    UnknownReason,
    known,
    unknown,
)
from videoflow.clock import Clock, Signal, Waitable
from videoflow.errors import ContractBroken, StaleAuthority, UnknownName


class _Watch:
    """What one owner has seen of a subscription's status, and what it waits for.

    Attributes:
        seen: The version of the status that was last observed.
        told: The version of which a blocked receive was told by returning early.
    """

    def __init__(self, owned: "MemoryReceiver", subscription: Subscription) -> None:
        self.seen = 0
        self.told = 0
        self.waitable = Signal(lambda: owned.holds_for(subscription) or subscription.version != self.seen)
        self.arrival = Signal(lambda: owned.holds_for(subscription) or self.behind(subscription))

    def behind(self, subscription: Subscription) -> bool:
        """Whether the status has moved on since anybody here looked."""
        return subscription.version > max(self.seen, self.told)


class MemoryReceiver(Owned, Receiver):
    """Leases and settles messages for one owner."""

    def __init__(self, broker: MemoryBroker, owner: str, clock: Clock) -> None:
        super().__init__(broker, owner, clock)
        self._watches: dict[Subscription, _Watch] = {}
        self._found: dict[SubscriptionId, tuple[int, Channel, Subscription]] = {}

    def receive(
        self,
        subscription: SubscriptionId,
        *,
        deadline: float,
        max_items: int | None = None,
        after: Mapping[int, int] | None = None,
    ) -> Sequence[Delivery]:
        """Leases what there is.

        It also returns, empty, when the status has moved on, once for each time.

        Raises:
            UnknownName: Nobody made the subscription.
            StaleAuthority: The subscription is exclusive and another owner has it.
        """
        limit = math.inf if max_items is None else max_items
        with self._broker.lock:
            channel, found = self._subscription(subscription)
            watch = self._watch(found)
        if found.exclusive and after is None:
            raise ContractBroken(f"{subscription} is exclusive: its reader names the position it has reached")
        while True:
            now = self._clock.monotonic()
            with self._broker.lock:
                cells = self._take(found, now, limit, after)
                if cells:
                    found.tell(channel.sealed)
                    return [self._delivery(found, cell, now) for cell in cells]
                if deadline <= now or self._was_interrupted():
                    return ()
                if watch.behind(found):
                    watch.told = found.version
                    return ()
                until = min(deadline, found.due_at())
            self._clock.wait([watch.arrival, self._interruption], until)

    def waitable(self, subscription: SubscriptionId) -> Waitable:
        """Returns what is ready when there is something to lease, or a status that was not observed."""
        with self._broker.lock:
            return self._watch(self._subscription(subscription)[1]).waitable

    def holds_for(self, subscription: Subscription) -> bool:
        """Whether `receive` would return something, or refuse."""
        with self._broker.lock:
            if subscription.exclusive and subscription.owner != self.owner:
                return subscription.owner is not None
            return subscription.ready(self._clock.monotonic())

    def renew(self, tokens: Sequence[DeliveryToken], *, deadline: float) -> Sequence[bool]:
        """Says which leases are in force; they have no duration here."""
        with self._broker.lock:
            return [self._live(token)[1] is not None for token in tokens]

    def hand_back(self, tokens: Sequence[DeliveryToken], *, deadline: float) -> None:
        """Returns what was not started; it is delivered next, with the same transport count."""
        with self._broker.lock:
            touched = set()
            for token in tokens:
                subscription, cell = self._live(token)
                if cell is not None:
                    subscription.give_back(cell, charged=False)
                    touched.add(subscription)
            self._tell(touched)

    def begin_settle(
        self, settlements: Sequence[tuple[DeliveryToken, Settlement]], *, deadline: float
    ) -> Sequence[Hashable]:
        """Settles all tokens of the call, or none when one of them is stale.

        Those that were live beside a stale one are `SettleUnknown(missing)`: settle them again.

        Raises:
            UnknownName: Nobody made a token's subscription.
            ContractBroken: A retry for an exclusive reader, or a terminal without its record.
        """
        now = self._clock.monotonic()
        with self._broker.lock:
            judged = [self._judged(token, settlement) for token, settlement in settlements]
            if any(isinstance(outcome, SettleStale) for _, _, outcome in judged):
                return [_alone(outcome) for _, _, outcome in judged]
            touched = set()
            for (_, settlement), (subscription, cell, _) in zip(settlements, judged, strict=True):
                if cell is None or cell.owner is None:
                    continue
                touched.add(subscription)
                if isinstance(settlement, Retry):
                    due_at = now + settlement.delay_seconds if settlement.delay_seconds > 0 else -math.inf
                    subscription.give_back(cell, charged=False, due_at=due_at)
                else:
                    subscription.settle(cell, settled_fate(cell.entry.envelope, settlement))
            self._tell(touched)
        return [outcome for _, _, outcome in judged]

    def settlements(self, handles: Sequence[Hashable], *, deadline: float) -> Sequence[SettlementOutcome]:
        """Returns the outcomes, which are known at once."""
        outcomes: list[SettlementOutcome] = []
        for handle in handles:
            if not isinstance(handle, SettlementOutcome):
                raise ContractBroken("a handle that begin_settle did not return")
            outcomes.append(handle)
        return outcomes

    def acquire(self, subscription: SubscriptionId, epoch: int, *, deadline: float) -> Observation[Acquired]:
        """Becomes the owner; what an earlier one held is delivered again, with a greater count."""
        now = self._clock.monotonic()
        with self._broker.lock:
            try:
                channel, found = self._broker.subscription(subscription)
            except UnknownName as error:
                return unknown(UnknownReason.MISSING, now, str(error))
            if not found.exclusive:
                raise ContractBroken(f"{subscription} is competing: nobody owns it")
            if epoch < found.epoch or (epoch == found.epoch and found.owner not in (None, self.owner)):
                raise StaleAuthority(f"{subscription} is owned under epoch {found.epoch}, not {epoch}")
            for cell in tuple(found.leased.values()):
                found.give_back(cell, charged=cell.owner != self.owner)
            found.owner, found.epoch = self.owner, epoch
            found.tell(channel.sealed)
            found.notify()
            floors = found.floors(channel.last())
            return known(Acquired(floors, tuple(found.settled_by_reader().records())), now)

    def _subscription(self, name: SubscriptionId) -> tuple[Channel, Subscription]:
        found, removals = self._found.get(name), self._broker.removals
        if found is None or found[0] != removals:
            found = self._found[name] = removals, *self._broker.subscription(name)
        return found[1], found[2]

    def _watch(self, subscription: Subscription) -> _Watch:
        watch = self._watches.get(subscription)
        if watch is None:
            watch = self._watches[subscription] = _Watch(self, subscription)
            listeners = subscription.listeners.setdefault(self.owner, [])
            listeners += [watch.waitable.notify, watch.arrival.notify]
        return watch

    def _take(
        self, subscription: Subscription, now: float, limit: float, after: Mapping[int, int] | None
    ) -> list[Cell]:
        if not subscription.exclusive or after is None:
            return subscription.take(self.owner, now, limit)
        if subscription.owner != self.owner:
            raise StaleAuthority(f"{subscription.id} is owned by {subscription.owner or 'nobody'}")
        held = subscription.held_after(after)
        if len(held) >= limit:
            return held[: int(limit)]
        return held + subscription.take(self.owner, now, limit - len(held))

    def _delivery(self, subscription: Subscription, cell: Cell, now: float) -> Delivery:
        position = cell.entry.position
        token = DeliveryToken(
            subscription.id, f"{position[0]}-{position[1]}", position, cell.transport_count, cell.generation
        )
        return Delivery(token, cell.delivered_envelope(), now)

    def _live(self, token: DeliveryToken) -> tuple[Subscription, Cell | None]:
        _, subscription = self._subscription(token.subscription)
        cell = subscription.leased.get(token.position)
        return subscription, cell if cell is not None and cell.generation == token.generation else None

    def _judged(
        self, token: DeliveryToken, settlement: Settlement
    ) -> tuple[Subscription, Cell | None, SettlementOutcome]:
        subscription, cell = self._live(token)
        if isinstance(settlement, Retry) and subscription.exclusive:
            raise ContractBroken(f"{token.subscription} is exclusive: its reader retries in place")
        if isinstance(settlement, Terminal) and not settlement.record_ref:
            raise ContractBroken("a terminal settlement names the record that outlives the message")
        confirmed = SettleConfirmed(token, token.message_id)
        if cell is not None:
            return subscription, cell, confirmed
        waiting = subscription.cells.get(token.position)
        if waiting is not None:
            return subscription, None, SettleStale(token, waiting.transport_count, waiting.generation)
        settled = subscription.settled_by(token.position)
        if settled is not None and settled[1] != token.generation:
            return subscription, None, SettleStale(token, *settled)
        return subscription, None, confirmed

    def _tell(self, touched: set[Subscription]) -> None:
        for subscription in touched:
            channel, _ = self._subscription(subscription.id)
            subscription.tell(channel.sealed)
            for reader in subscription.group or (subscription,):
                reader.notify()


def _alone(outcome: SettlementOutcome) -> SettlementOutcome:
    """What is said of a token whose fellow is stale."""
    if isinstance(outcome, SettleConfirmed):
        return SettleUnknown(outcome.token, UnknownReason.MISSING)
    return outcome
