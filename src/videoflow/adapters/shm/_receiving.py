"""How a worker process receives and settles."""

from collections.abc import Hashable, Mapping, Sequence
from typing import cast

from videoflow.adapters.shm._inlet import Inlet
from videoflow.adapters.shm._leases import Held
from videoflow.adapters.shm._ledger import DELIVERED, Rows, cause_of
from videoflow.adapters.shm._links import Op, pairs_of
from videoflow.adapters.shm._log import encode
from videoflow.adapters.shm._process import Process
from videoflow.backends.coverage import Fate
from videoflow.backends.messaging import (
    Acquired,
    Completed,
    CompletedReason,
    Delivery,
    DeliveryToken,
    Envelope,
    Receiver,
    Retry,
    Settlement,
    SubscriptionId,
    SubscriptionKind,
    Terminal,
    buried_fate,
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
from videoflow.clock import Waitable
from videoflow.errors import ContractBroken, StaleAuthority, UnknownName
from videoflow.faults import reach

SETTLED_AT_ONCE = 1024
_DONE = int(Op.DONE)
_DELIVERED = CompletedReason.DELIVERED


class ShmReceiver(Receiver):
    """Leases and settles for one process; up to 1 024 tokens of a settle call are all or none.

    Args:
        process: The process's part of the log.
        owner: Worker id and incarnation.
    """

    def __init__(self, process: Process, owner: str) -> None:
        self._process = process
        self.owner = owner
        self._inlets = {inlet.subscription: inlet for inlet in process.inlets.values()}
        self._interrupted = False

    def receive(
        self,
        subscription: SubscriptionId,
        *,
        deadline: float,
        max_items: int | None = None,
        after: Mapping[int, int] | None = None,
    ) -> Sequence[Delivery]:
        """Leases what there is; waits for the first until the deadline, or until the status moves on."""
        inlet = self._inlet(subscription)
        limit = max_items or inlet.spec.credit.items
        _require_position(subscription, after)
        while True:
            with self._process.lock:
                self._listen()
                found = self._taken(inlet, after, limit)
                interrupted, self._interrupted = self._interrupted or inlet.news, False
                inlet.news = False
            if found or interrupted or self._process.clock.monotonic() >= deadline:
                return found
            self._process.wait(min(deadline, inlet.due()))

    def receive_each(
        self, wanted: Sequence[tuple[SubscriptionId, Mapping[int, int] | None]], *, max_items: int
    ) -> list[Sequence[Delivery]]:
        """Leases what there is of each, after one look at what peers say."""
        found: list[Sequence[Delivery]] = []
        with self._process.lock:
            self._listen()
            for subscription, after in wanted:
                _require_position(subscription, after)
                inlet = self._inlet(subscription)
                found.append(self._taken(inlet, after, max_items))
                self._interrupted = inlet.news = False
        return found

    def waitable(self, subscription: SubscriptionId) -> Waitable:
        """Returns what becomes ready when `receive` would return something, or the status moves on."""
        return _InletsReady(self._process, (self._inlet(subscription),))

    def waitables(self, subscriptions: Sequence[SubscriptionId]) -> Sequence[Waitable]:
        """Returns one for all of them."""
        return (_InletsReady(self._process, tuple(map(self._inlet, subscriptions))),)

    def renew(self, tokens: Sequence[DeliveryToken], *, deadline: float) -> Sequence[bool]:
        """Returns which tokens are live: a lease ends with its process only."""
        with self._process.lock:
            return [_live(self._inlet(token.subscription), token) is not None for token in tokens]

    def hand_back(self, tokens: Sequence[DeliveryToken], *, deadline: float) -> None:
        """Returns what was not started."""
        with self._process.lock:
            back: dict[tuple[int, int], list[int]] = {}
            for token in tokens:
                inlet = self._inlet(token.subscription)
                if _live(inlet, token) is None:
                    continue
                sequences = inlet.handed_back(token.position)
                if sequences:
                    back.setdefault((inlet.number, token.position[0]), []).extend(sequences)
            for (number, slot), sequences in back.items():
                peer = self._process.inlets[number].peers[slot]
                self._process.hub.queue(peer, (Op.BACK, number, pairs_of(sorted(sequences))))
            self._process.service()

    def begin_settle(
        self, settlements: Sequence[tuple[DeliveryToken, Settlement]], *, deadline: float
    ) -> Sequence[Hashable]:
        """Settles at once; the handles are the outcomes."""
        outcomes: list[Hashable] = []
        with self._process.lock:
            for start in range(0, len(settlements), SETTLED_AT_ONCE):
                outcomes += self._settle(settlements[start : start + SETTLED_AT_ONCE])
            if self._process.dropped or self._process.unpins:
                self._process.sweep()
            self._process.hub.flush()
        return outcomes

    def settlements(self, handles: Sequence[Hashable], *, deadline: float) -> Sequence[SettlementOutcome]:
        """Returns the outcomes, which are definite."""
        return cast("Sequence[SettlementOutcome]", handles)

    def acquire(self, subscription: SubscriptionId, epoch: int, *, deadline: float) -> Observation[Acquired]:
        """Becomes the owner; the settled coverage is what the supervisor knew when this process started."""
        process = self._process
        if subscription.kind is not SubscriptionKind.EXCLUSIVE:
            raise ContractBroken(f"{subscription} is competing and has no owner")
        inlet = self._inlets.get(subscription)
        if inlet is None:
            return unknown(UnknownReason.MISSING, process.clock.monotonic(), "nobody here reads it")
        with process.lock:
            word = inlet.place.epochs[process.me[1] - inlet.place.first]
            if epoch < process.log.words[word]:
                raise StaleAuthority(f"epoch {epoch} of {subscription} has been replaced")
            process.log.words[word] = epoch
            settled = tuple(process.kit.settled.get(inlet.number, ()))
            return known(Acquired(inlet.acquired(), settled), process.clock.monotonic())

    def interrupt(self) -> None:
        """Wakes a blocked receive."""
        self._interrupted = True
        self._process.wake()

    def _listen(self) -> None:
        """Takes what peers say, unless who waited has just done so; the lock is held."""
        self._process.introduce()
        if not self._process.looked:
            self._process.service()
        self._process.looked = False

    def _taken(self, inlet: Inlet, after: Mapping[int, int] | None, limit: int) -> list[Delivery]:
        """Leases what one inlet has, or asks for more; the lock is held."""
        walked = not inlet.live and inlet.subscription.kind is SubscriptionKind.EXCLUSIVE
        found = inlet.read(after, limit) if walked and after is not None else inlet.take(after, limit)
        if not found:
            inlet.ask(limit)
            self._process.hub.flush()
        return found

    def _settle(self, settlements: Sequence[tuple[DeliveryToken, Settlement]]) -> list[SettlementOutcome]:
        leases, outcomes, live = self._judge(settlements)
        if not live:
            return [_alone(outcome) for outcome in outcomes]
        rows = Rows()
        done: dict[tuple[int, int], dict[int, Held]] = {}
        where, mine = (-1, -1), {}
        said, usual = None, False
        for (token, settlement), (inlet, lease) in zip(settlements, leases, strict=True):
            if lease is None:
                continue
            if isinstance(settlement, Retry):
                inlet.delay(token.position, settlement.delay_seconds)
                continue
            slot, sequence = token.position
            if slot != where[1] or inlet.number != where[0]:
                where = inlet.number, slot
                mine = done.setdefault(where, {})
            if sequence in mine:
                continue
            mine[sequence] = lease
            envelope = lease.delivery.envelope
            if settlement is not said:
                said = settlement
                usual = type(said) is Completed and said.reason is _DELIVERED
            fate = DELIVERED if usual and lease.size >= 0 else _fate(lease, envelope, settlement)
            if fate is not None:
                rows.add(inlet.number, envelope, fate)
        if done:
            self._commit(rows, done)
        return outcomes

    def _judge(
        self, settlements: Sequence[tuple[DeliveryToken, Settlement]]
    ) -> tuple[list[tuple[Inlet, Held | None]], list[SettlementOutcome], bool]:
        """Returns what each token stands for, what is said of it, and whether all are live or settled."""
        live = True
        leases: list[tuple[Inlet, Held | None]] = []
        outcomes: list[SettlementOutcome] = []
        receipt = f"{self.owner}/"
        subscription, inlet = None, None
        for token, settlement in settlements:
            if type(settlement) is not Completed:
                _check(token, settlement)
            if inlet is None or token.subscription is not subscription:
                subscription = token.subscription
                inlet = self._inlet(subscription)
            lease = inlet.held.get(token.position)
            if lease is not None and lease.delivery.token is not token:
                lease = _live(inlet, token)
            leases.append((inlet, lease))
            if lease is None and not inlet.is_settled(token.position):
                live = False
                outcomes.append(SettleStale(token, token.transport_count, inlet.generation))
            else:
                outcomes.append(SettleConfirmed(token, receipt + token.message_id))
        return leases, outcomes, live

    def _commit(self, rows: Rows, done: dict[tuple[int, int], dict[int, Held]]) -> None:
        process = self._process
        told, cells = [], []
        for where, leases in done.items():
            pairs = pairs_of(sorted([n for lease in leases.values() for n in lease.sequences]))
            told.append((where, leases, pairs))
            cells += [(*where, pairs[at], pairs[at + 1]) for at in range(0, len(pairs), 2)]
        entry = encode((rows.take(), cells))
        process.room_in(process.journal, len(entry))
        process.journal.append(entry)
        process.log.words[process.place.commit] = process.journal.head
        reach("shm.settled")
        for (number, slot), leases, pairs in told:
            inlet = process.inlets[number]
            kept = inlet.settled(slot, leases)
            peer = inlet.peers[slot]
            process.hub.queue(peer, (_DONE, number, pairs, kept))
            if inlet.place.stamps[0]:
                for other in inlet.peers:
                    if other != peer:
                        process.hub.queue(other, (Op.POKE, number))

    def _inlet(self, subscription: SubscriptionId) -> Inlet:
        inlet = self._inlets.get(subscription)
        if inlet is None:
            raise UnknownName(f"this process does not read {subscription}")
        return inlet


def _require_position(subscription: SubscriptionId, after: Mapping[int, int] | None) -> None:
    if after is None and subscription.kind is SubscriptionKind.EXCLUSIVE:
        raise ContractBroken(f"{subscription} is exclusive: its reader names the position that it has")


class _InletsReady:
    """Becomes ready as one of its inlets does."""

    def __init__(self, process: Process, inlets: tuple[Inlet, ...]) -> None:
        self._process = process
        self._inlets = inlets

    def ready(self) -> bool:
        with self._process.lock:
            self._process.introduce()
            came = self._process.service()
            ready = self._process.looked = any(inlet.ready() for inlet in self._inlets)
            others = self._process.inlets.values() if came else ()
            if any(other.ready() for other in others if other not in self._inlets):
                self._process.wake()  # it was asked before these, by the same who waits
            return ready

    def fileno(self) -> int | None:
        return self._process.hub.fileno()


def _live(inlet: Inlet, token: DeliveryToken) -> Held | None:
    """Returns the lease that a token stands for, or None where it is not the live one."""
    held = inlet.held.get(token.position)
    if held is None or held.delivery.token is token:
        return held
    mine = held.delivery.token
    live = mine.generation == token.generation and mine.transport_count == token.transport_count
    return held if live else None


def _fate(lease: Held, envelope: Envelope, settlement: Completed | Terminal) -> Fate | None:
    """Returns what a settlement adds to the ledger."""
    if lease.cause:
        return buried_fate(cause_of(lease.cause))
    return settled_fate(envelope, settlement)


def _check(token: DeliveryToken, settlement: Settlement) -> None:
    if isinstance(settlement, Retry) and token.subscription.kind is SubscriptionKind.EXCLUSIVE:
        raise ContractBroken(f"{token.subscription} is exclusive: a retry would change its order")
    if isinstance(settlement, Terminal) and not settlement.record_ref:
        raise ContractBroken("a terminal settlement names no durable record")


def _alone(outcome: SettlementOutcome) -> SettlementOutcome:
    """What is said of a token whose fellow is stale."""
    if isinstance(outcome, SettleConfirmed):
        return SettleUnknown(outcome.token, UnknownReason.MISSING)
    return outcome
