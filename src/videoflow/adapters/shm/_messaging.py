"""The messaging contract in a worker process."""

from collections.abc import Hashable, Mapping, Sequence

import msgspec

from videoflow.adapters.shm._inlet import Held, Inlet, Place
from videoflow.adapters.shm._ledger import Rows, closed_only, settled_fate
from videoflow.adapters.shm._links import Op, pairs_of
from videoflow.adapters.shm._log import SETTLED, cell, encode
from videoflow.adapters.shm._outlet import Handle, Outlet, Statement, check_group
from videoflow.adapters.shm._payloads import Claims
from videoflow.adapters.shm._process import Process
from videoflow.adapters.shm._slab import Slot, slot_of
from videoflow.adapters.shm._status import channel_status
from videoflow.backends.capabilities import MessagingCapabilities, Profile
from videoflow.backends.coverage import OriginRecord
from videoflow.backends.messaging import (
    Acquired,
    ChannelId,
    ChannelSpec,
    ChannelStatus,
    Delivery,
    DeliveryToken,
    Envelope,
    Kind,
    MessagingBackend,
    OwnerLabels,
    Retry,
    Settlement,
    SubscriptionId,
    SubscriptionKind,
    SubscriptionSpec,
    SubscriptionStatus,
    Terminal,
)
from videoflow.backends.outcomes import (
    Accepted,
    CleanupObservation,
    Durability,
    Observation,
    PublicationOutcome,
    SettleConfirmed,
    SettlementOutcome,
    SettleStale,
    SettleUnknown,
    UnknownReason,
    known,
    unknown,
)
from videoflow.clock import Waitable
from videoflow.errors import ContractBroken, IncompatibleProfile, Miss, StaleAuthority, UnknownName
from videoflow.faults import reach

SETTLED_AT_ONCE = 1024
CAPABILITIES = MessagingCapabilities(
    adapter="shm",
    profiles=frozenset({Profile.LIVE_LATEST, Profile.RELIABLE_WORK}),
    durability=Durability.HOST,
    atomic_append=True,
    atomic_settle=True,
    gated_dispatch=True,
    observes_publication=False,
    crosses_processes=True,
    crosses_hosts=False,
    lease_seconds=None,
    copies=known(1, 0.0),
    maximum_channels=None,
    maximum_envelope_bytes=256 << 10,
)


class ShmMessaging(MessagingBackend):
    """Publishes and receives for one worker process, without a server between it and its peers.

    Channels and subscriptions are provisioned by the supervisor; the `ensure_*` calls read them back. The
    bounds of a channel hold for each of its writer slots. Up to 1 024 tokens of a settle call are all
    or none.

    Args:
        process: The process's part of the log.
        claims: Of its payloads, which end when a publication is accepted.
        owner: Worker id and incarnation.
    """

    def __init__(self, process: Process, claims: Claims, owner: str) -> None:
        self._process = process
        self._claims = claims
        self.owner = owner
        layout = process.kit.layout
        self._outlets = {outlet.channel: outlet for outlet in process.outlets.values()}
        self._inlets = {inlet.subscription: inlet for inlet in process.inlets.values()}
        self._channels = {place.spec.channel: place for place in layout.channels}
        self._subscriptions = {place.spec.subscription: place for place in layout.subscriptions}
        self._interrupted = False
        self._settlements = 0

    # Provisioning -----------------------------------------------------------------------------

    def capabilities(self) -> MessagingCapabilities:
        """Returns what the log guarantees on one host."""
        return CAPABILITIES

    def ensure_channel(self, spec: ChannelSpec, operation_id: str, *, deadline: float) -> ChannelSpec:
        """Reads back what the supervisor provisioned."""
        place = self._channels.get(spec.channel)
        if place is None:
            raise UnknownName(f"channel {spec.channel} was not provisioned by the supervisor")
        if place.spec != spec:
            raise _different(str(spec.channel), spec.profile, spec, place.spec)
        return place.spec

    def ensure_subscription(
        self, spec: SubscriptionSpec, operation_id: str, *, deadline: float
    ) -> SubscriptionSpec:
        """Reads back what the supervisor provisioned."""
        place = self._subscriptions.get(spec.subscription)
        if place is None:
            raise UnknownName(f"subscription {spec.subscription} was not provisioned by the supervisor")
        if place.spec != spec:
            raise _different(str(spec.subscription), "subscription", spec, place.spec)
        return place.spec

    def observe_subscription(
        self, subscription: SubscriptionId, *, deadline: float
    ) -> Observation[SubscriptionStatus]:
        """Returns how far a subscription of this process has come."""
        inlet = self._inlets.get(subscription)
        now = self._process.clock.monotonic()
        if inlet is None:
            return unknown(UnknownReason.UNSUPPORTED, now, "the supervisor observes what others read")
        with self._process.lock:
            self._process.service()
            return known(inlet.status(), now)

    def observe_channel(self, channel: ChannelId, *, deadline: float) -> Observation[ChannelStatus]:
        """Returns what a channel holds."""
        now = self._process.clock.monotonic()
        place = self._channels.get(channel)
        if place is None:
            return unknown(UnknownReason.MISSING, now, f"channel {channel} was not provisioned")
        return known(channel_status(self._process.log, place), now)

    def announced(self, channel: ChannelId, *, deadline: float) -> Observation[tuple[OriginRecord, ...]]:
        """Returns what is closed on a channel that this process writes; skips count as delivered here.

        The ledger, with the cause of each skip, is read at the supervisor.
        """
        now = self._process.clock.monotonic()
        outlet = self._outlets.get(channel)
        if outlet is None:
            return unknown(UnknownReason.UNSUPPORTED, now, "only a channel's writers and the supervisor know")
        with self._process.lock:
            return known(tuple(closed_only(outlet.closed)), now)

    def settled(
        self, subscription: SubscriptionId, *, deadline: float
    ) -> Observation[tuple[OriginRecord, ...]]:
        """Returns Unknown: the reader's end of the ledger is read at the supervisor."""
        now = self._process.clock.monotonic()
        return unknown(UnknownReason.UNSUPPORTED, now, "the supervisor reads the ledger")

    def release_owner(self, owner: str, *, deadline: float) -> None:
        """Does nothing: the supervisor returns the leases of the dead."""

    def close(
        self, owned: OwnerLabels, expected_generation: str | None = None, *, deadline: float
    ) -> CleanupObservation:
        """Ends this process's use; the memory itself goes with the last process that holds it."""
        self._process.close()
        return CleanupObservation(complete=True, removed=(), remaining=())

    def linger(self, *, deadline: float) -> bool:
        """Waits until readers have settled all that this process published; its end would hold them up.

        Returns:
            Whether they have, by the deadline.
        """
        while True:
            with self._process.lock:
                self._process.service()
                done = all(outlet.idle() for outlet in self._outlets.values())
                done = done and not self._process.hub.unsent()
            if done or self._process.clock.monotonic() >= deadline:
                return done
            self._process.wait(deadline)

    # Publishing -------------------------------------------------------------------------------

    def begin_publish(self, envelopes: Sequence[Envelope], *, deadline: float) -> Sequence[Hashable]:
        """Appends what has room now, in order, and queues the rest; one handle per envelope."""
        handles = [Handle(envelope) for envelope in envelopes]
        groups: dict[tuple[ChannelId, str], list[Handle]] = {}
        for handle in handles:
            groups.setdefault((handle.envelope.channel, handle.envelope.input_id), []).append(handle)
        with self._process.lock:
            touched: dict[ChannelId, Outlet] = {}
            for (channel, _), group in groups.items():
                if len(group) > 1:
                    check_group([handle.envelope for handle in group])
                outlet = self._outlet(channel)
                touched[channel] = outlet
                for handle in group:
                    self._hold(handle)
                outlet.publish(Statement(group, deadline))
            for outlet in touched.values():
                outlet.commit()
            self._conclude(handles)
            self._process.hub.flush()
        return handles

    def outcomes(self, handles: Sequence[Hashable], *, deadline: float) -> Sequence[PublicationOutcome]:
        """Returns one outcome each, waiting for room until the deadline."""
        waiting = [handle for handle in handles if isinstance(handle, Handle)]
        if len(waiting) != len(handles):
            raise ContractBroken("a handle of something else was asked for its outcome")
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
        return [handle.outcome for handle in waiting if handle.outcome is not None]

    def terminate(
        self, channel: ChannelId, slot: int, epoch: int, kind: Kind, *, deadline: float
    ) -> Sequence[PublicationOutcome]:
        """Stamps the end of this process's slot."""
        with self._process.lock:
            outlet = self._outlet(channel)
            if slot != outlet.slot or kind not in (Kind.END, Kind.ABORT):
                raise ContractBroken(f"slot {slot} of {channel} cannot be ended here with {kind}")
            outlet.retry()
            outcome = outlet.terminate(epoch, kind)
            self._process.hub.flush()
            return [outcome]

    def _retry(self) -> None:
        for outlet in self._outlets.values():
            if outlet.queue:
                outlet.retry()

    def _queue_deadlines(self) -> list[float]:
        return [outlet.queue[0].deadline + 1e-3 for outlet in self._outlets.values() if outlet.queue]

    def _hold(self, handle: Handle) -> None:
        handle.slots = tuple(map(slot_of, handle.envelope.payloads))
        for slot in handle.slots:
            if not self._process.holds.take(slot):
                raise ContractBroken(f"an envelope of {handle.envelope.channel} refers to a freed payload")

    def _conclude(self, handles: Sequence[Handle]) -> None:
        """Lets go what a definite publication held: the log holds it now, or nobody."""
        for handle in handles:
            if handle.outcome is None or not handle.slots:
                continue
            for slot in handle.slots:
                if isinstance(handle.outcome, Accepted):
                    self._claims.accepted(slot, handle.envelope.publication_id)
                self._process.holds.drop(slot)
            handle.slots = ()

    def _outlet(self, channel: ChannelId) -> Outlet:
        outlet = self._outlets.get(channel)
        if outlet is None:
            raise UnknownName(f"this process does not write channel {channel}")
        return outlet

    # Receiving --------------------------------------------------------------------------------

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
        exclusive = subscription.kind is SubscriptionKind.EXCLUSIVE
        if exclusive and after is None:
            raise ContractBroken(f"{subscription} is exclusive: its reader names the position that it has")
        while True:
            with self._process.lock:
                self._process.service()
                walked = exclusive and not inlet.live and after is not None
                found = inlet.read(after, limit) if walked and after is not None else inlet.take(after, limit)
                if not found:
                    inlet.ask(limit)
                    self._process.hub.flush()
                interrupted, self._interrupted = self._interrupted or inlet.news, False
                inlet.news = False
            if found or interrupted or self._process.clock.monotonic() >= deadline:
                return found
            self._process.wait(min(deadline, inlet.due()))

    def waitable(self, subscription: SubscriptionId) -> Waitable:
        """Returns what becomes ready when `receive` would return something, or the status moves on."""
        return _InletReady(self._process, self._inlet(subscription))

    def renew(self, tokens: Sequence[DeliveryToken], *, deadline: float) -> Sequence[bool]:
        """Returns which tokens are live: a lease ends with its process only."""
        with self._process.lock:
            return [self._held(token) is not None for token in tokens]

    def hand_back(self, tokens: Sequence[DeliveryToken], *, deadline: float) -> None:
        """Returns what was not started."""
        with self._process.lock:
            back: dict[tuple[int, int], list[int]] = {}
            for token in tokens:
                inlet = self._inlet(token.subscription)
                if self._held(token) is None:
                    continue
                sequences = inlet.handed_back(token.position)
                if inlet.place.given:
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
            self._process.sweep()
            self._process.hub.flush()
        return outcomes

    def settlements(self, handles: Sequence[Hashable], *, deadline: float) -> Sequence[SettlementOutcome]:
        """Returns the outcomes, which are definite."""
        return [handle for handle in handles if isinstance(handle, (SettleConfirmed, SettleStale))]

    def acquire(self, subscription: SubscriptionId, epoch: int, *, deadline: float) -> Observation[Acquired]:
        """Becomes the owner; the settled coverage is what the supervisor knew when this process started."""
        process = self._process
        if subscription.kind is not SubscriptionKind.EXCLUSIVE:
            raise ContractBroken(f"{subscription} is competing and has no owner")
        inlet = self._inlets.get(subscription)
        if inlet is None:
            return unknown(UnknownReason.MISSING, process.clock.monotonic(), "nobody here reads it")
        with process.lock:
            word = inlet.place.epochs[process.me[1]]
            if epoch < process.log.words[word]:
                raise StaleAuthority(f"epoch {epoch} of {subscription} has been replaced")
            process.log.words[word] = epoch
            settled = tuple(process.kit.settled.get(inlet.number, ()))
            return known(Acquired(inlet.acquired(), settled), process.clock.monotonic())

    def interrupt(self) -> None:
        """Wakes a blocked receive."""
        self._interrupted = True
        self._process.wake()

    def _settle(self, settlements: Sequence[tuple[DeliveryToken, Settlement]]) -> list[SettlementOutcome]:
        for token, settlement in settlements:
            _check(token, settlement)
        outcomes = [self._judge(token) for token, _ in settlements]
        if any(isinstance(outcome, SettleStale) for outcome in outcomes):
            return [_alone(outcome) for outcome in outcomes]
        rows = Rows()
        places: dict[tuple[int, int], list[int]] = {}
        for token, settlement in settlements:
            inlet = self._inlet(token.subscription)
            held = self._held(token)
            if held is None:
                continue
            if isinstance(settlement, Retry):
                inlet.delay(token.position, settlement.delay_seconds)
                continue
            slot, sequence = token.position
            mine = places.setdefault((inlet.number, slot), [])
            if sequence in mine:
                continue
            mine.append(sequence)
            envelope = held.delivery.envelope
            fate = held.buried or settled_fate(envelope, settlement)
            if fate is not None:
                rows.add(inlet.number, envelope, fate)
        if places:
            self._commit(rows, places)
        return outcomes

    def _commit(self, rows: Rows, places: dict[tuple[int, int], list[int]]) -> None:
        process = self._process
        done = {}
        for (number, slot), sequences in places.items():
            leases = process.inlets[number].held
            done[number, slot] = pairs_of(sorted(n for s in sequences for n in leases[slot, s].sequences))
        cells = [
            (number, slot, pairs[at], pairs[at + 1])
            for (number, slot), pairs in done.items()
            for at in range(0, len(pairs), 2)
        ]
        entry = encode((rows.take(), cells))
        process.room_in(process.journal, len(entry))
        process.journal.append(entry)
        process.log.words[process.place.commit] = process.journal.head
        reach("shm.settled")
        for (number, slot), sequences in places.items():
            inlet = process.inlets[number]
            kept: list[Slot] = []
            for sequence in sequences:
                held = inlet.held[slot, sequence]
                for one in held.sequences:
                    at = inlet.cells[slot] + (one & (inlet.rings[slot].slots - 1))
                    count = held.delivery.token.transport_count
                    process.log.words[at] = cell(one, count, SETTLED)
                kept += self._let_go(inlet, (slot, sequence))
            peer = inlet.peers[slot]
            process.hub.queue(peer, (Op.DONE, number, done[number, slot], kept))
            if inlet.place.stamps[0]:
                for other in inlet.peers:
                    if other != peer:
                        process.hub.queue(other, (Op.POKE, number))

    def _let_go(self, inlet: Inlet, place: Place) -> list[Slot]:
        holds = self._process.holds
        slots = inlet.let_go(place).slots
        for slot in slots:
            holds.drop(slot)
        peer = inlet.peers[place[0]]
        return [slot for slot in set(slots) if holds.keep(peer, slot)]

    def _held(self, token: DeliveryToken) -> Held | None:
        inlet = self._inlet(token.subscription)
        held = inlet.held.get(token.position)
        if held is None:
            return None
        mine = held.delivery.token
        live = (mine.generation, mine.transport_count) == (token.generation, token.transport_count)
        return held if live else None

    def _judge(self, token: DeliveryToken) -> SettlementOutcome:
        inlet = self._inlet(token.subscription)
        if self._held(token) is not None or inlet.is_settled(token.position):
            return SettleConfirmed(token, f"{self.owner}/{token.message_id}")
        return SettleStale(token, token.transport_count, inlet.generation)

    def _inlet(self, subscription: SubscriptionId) -> Inlet:
        inlet = self._inlets.get(subscription)
        if inlet is None:
            raise UnknownName(f"this process does not read {subscription}")
        return inlet


class _InletReady:
    """Becomes ready as its inlet does."""

    def __init__(self, process: Process, inlet: Inlet) -> None:
        self._process = process
        self._inlet = inlet

    def ready(self) -> bool:
        with self._process.lock:
            came = self._process.service()
            ready = self._inlet.ready()
            if came and not ready:
                self._process.wake()  # what came may be for another inlet, which was asked before this one
            return ready

    def fileno(self) -> int | None:
        return self._process.hub.fileno()


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


def _different(
    subject: str, profile: str, wanted: msgspec.Struct, found: msgspec.Struct
) -> IncompatibleProfile:
    misses = [
        Miss(subject, profile, name, str(getattr(wanted, name)), str(getattr(found, name, "")), "start anew")
        for name in wanted.__struct_fields__
        if getattr(wanted, name) != getattr(found, name, None)
    ]
    return IncompatibleProfile(misses)
