"""The laws of messaging over the shared-memory log: one process plays supervisor, writers and readers.

What needs several owners of one replica at the same time cannot be tried here, since a replica is one
process; what only the supervisor does (making and removing) is tried elsewhere.
"""

import itertools
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, cast

import msgspec
import pytest

from tests.backends.messaging_fates import LedgerSuite, LiveSuite
from tests.backends.messaging_harness import (
    LABELS,
    ROOMY,
    Harness,
    channel_id,
    competing,
    data,
    exclusive,
    fan_out,
    live,
    ordinals,
    reliable,
)
from tests.backends.messaging_leases import CompetingSuite, ExclusiveSuite
from tests.backends.messaging_payloads import PayloadSuite
from tests.backends.messaging_publishing import ProvisioningSuite, PublishingSuite
from videoflow.adapters.shm import ShmHost, ShmMessaging, ShmPayloads, TaskShape, open_worker
from videoflow.backends.capabilities import Profile
from videoflow.backends.messaging import (
    Bounds,
    ChannelId,
    ChannelSpec,
    Delivery,
    Envelope,
    Kind,
    MessagingBackend,
    SubscriptionId,
    SubscriptionSpec,
)
from videoflow.backends.outcomes import Unknown
from videoflow.backends.payload import PayloadStore, RetentionContract
from videoflow.clock import RealClock
from videoflow.errors import IncompatibleProfile, UnknownName
from videoflow.faults import Fault, FaultAction, InjectedFault, arm, disarm

SLAB_BYTES = 1 << 20


class _Clock(RealClock):
    """The machine's clock, which a test may put forward."""

    def __init__(self) -> None:
        super().__init__()
        self.ahead = 0.0

    def monotonic(self) -> float:
        return super().monotonic() + self.ahead

    def wait(self, waitables: Any, deadline: float) -> Any:
        return super().wait(waitables, deadline - self.ahead)


class ShmHarness(Harness):
    def __init__(self) -> None:
        self.clock = self.time = _Clock()
        self.hosts: list[ShmHost] = []
        self.specs: list[tuple[ChannelSpec, tuple[SubscriptionSpec, ...]]] = []
        self.workers: dict[tuple[str, int], tuple[ShmMessaging, ShmPayloads]] = {}
        self.incarnations: dict[tuple[str, int], int] = {}
        self.replica_of: dict[str, int] = {}
        self.free: list[int] = []

    def provision(
        self,
        *specs: SubscriptionSpec,
        slots: int = 1,
        bounds: Bounds = ROOMY,
        profile: Profile = Profile.RELIABLE_WORK,
    ) -> ChannelId:
        channel = specs[0].subscription.channel
        spec = ChannelSpec(
            channel=channel,
            profile=profile,
            slots=slots,
            bounds=bounds,
            subscriptions=tuple(spec.subscription for spec in specs),
            labels=LABELS,
        )
        assert not self.hosts, "this harness makes one channel"
        self.host = ShmHost(self.clock, 1 << 30)
        self.hosts.append(self.host)
        replicas = max(spec.replicas for spec in specs)
        self.host.provision(
            [spec],
            specs,
            [
                TaskShape(
                    name="write", replicas=slots, writes=(channel,), slab_bytes=SLAB_BYTES, largest_bytes=4096
                ),
                TaskShape(name="read", replicas=replicas, reads=tuple(s.subscription for s in specs)),
            ],
        )
        self.free = list(range(replicas))
        for slot in range(slots):
            self._open("write", slot)
        for slot in range(replicas):
            self._open("read", slot)
        self.settle_down()
        return channel

    def _open(self, task: str, slot: int) -> None:
        number = self.incarnations[task, slot] = self.incarnations.get((task, slot), 0) + 1
        kit = self.host.kit(task, slot, number)
        self.workers[task, slot] = open_worker(
            kit.document, kit.descriptors, self.clock, f"{task}.{slot}.{number}", lost=lambda: None
        )

    def _reader(self, owner: str) -> int:
        if owner not in self.replica_of:
            self.replica_of[owner] = self.free.pop(0)
        return self.replica_of[owner]

    def backend(self, owner: str) -> MessagingBackend:
        if owner == "engine":
            return cast("MessagingBackend", self.host)  # what a supervisor observes has the same names
        if owner == "writer":
            return cast("MessagingBackend", _Writers(self))  # the part that writers use
        return self.workers["read", self._reader(owner)][0]

    def receive(
        self,
        subscription: SubscriptionId,
        count: int,
        owner: str = "reader",
        after: Mapping[int, int] | None = None,
    ) -> list[Delivery]:
        """As the harness has it, but lets the writers answer in between."""
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

    def payloads(self, owner: str) -> PayloadStore:
        if owner in ("engine", "writer"):
            return self.workers["write", 0][1]
        return self.workers["read", self._reader(owner)][1]

    def kill(self, owner: str) -> None:
        replica = self.replica_of.pop(owner)
        messaging, _ = self.workers.pop(("read", replica))
        messaging._process.close()
        self.host.worker_died("read", replica)
        self._open("read", replica)
        self.free.insert(0, replica)
        self.settle_down()

    def settle_down(self) -> None:
        for _ in range(4):
            for messaging, _ in self.workers.values():
                with messaging._process.lock:
                    messaging._process.service()

    def advance(self, seconds: float) -> None:
        self.time.ahead += seconds

    def close(self) -> None:
        for messaging, _ in self.workers.values():
            messaging._process.close()
        for host in self.hosts:
            host.close()


class _Writers:
    """All writer slots as one object."""

    def __init__(self, harness: ShmHarness) -> None:
        self._harness = harness

    def _slot(self, slot: int) -> ShmMessaging:
        if not self._harness.hosts:
            raise UnknownName("nothing was made")
        return self._harness.workers["write", slot][0]

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


class TestShm(PublishingSuite, CompetingSuite, ExclusiveSuite, LiveSuite, LedgerSuite, PayloadSuite):
    @pytest.fixture
    def harness(self) -> Iterator[Harness]:
        made = ShmHarness()
        yield made
        made.close()

    def test_what_nobody_made_is_unknown_at_the_supervisor(self, harness: ShmHarness) -> None:
        harness.provision(reliable(competing()))
        engine, other = harness.backend("engine"), channel_id("other")
        reader = competing("stranger")
        assert isinstance(engine.observe_channel(other, deadline=0.0), Unknown)
        assert isinstance(engine.observe_subscription(reader, deadline=0.0), Unknown)
        assert isinstance(engine.announced(other, deadline=0.0), Unknown)
        assert isinstance(engine.settled(reader, deadline=0.0), Unknown)
        with pytest.raises(UnknownName):
            harness.backend("reader").receive(reader, deadline=0.0)

    def test_a_full_slab_is_backpressure_for_reliable_items_and_eviction_for_live_ones(
        self, harness: ShmHarness
    ) -> None:
        now, work = competing("now"), competing("work")
        channel = harness.provision(live(now, capacity=10_000), reliable(work))
        writer, contract = harness.payloads("writer"), RetentionContract()

        def fill(first: int) -> int:
            number = first
            while (ref := writer.put(bytes(4096), f"{number}/0", contract, deadline=0.0)) is not None:
                harness.accepted(data(channel, number, payloads=(ref,)))
                number += 1
            return number

        full = fill(0)
        assert full == SLAB_BYTES // 4096
        assert harness.status(now).evicted == 0, "what another reader keeps was dropped in vain"
        harness.settle(*harness.receive(work, full))
        harness.settle_down()
        ref = writer.put(bytes(4096), "more/0", contract, deadline=harness.soon())
        assert ref is not None, "the live reader kept the last slot"
        assert harness.status(now).evicted == 1

    def test_a_long_run_costs_what_a_short_one_costs(self, harness: ShmHarness) -> None:
        work = competing()
        channel = harness.provision(reliable(work), slots=2)
        writers = [harness.workers["write", slot][0] for slot in range(2)]
        for start in range(0, 3000, 50):
            mine = [data(channel, start + n, slot=n % 2) for n in range(50)]
            harness.accepted(*sorted(mine, key=lambda envelope: envelope.writer.slot))
            harness.settle(*harness.receive(work, 50))
        harness.announced(channel)
        harness.settle_down()
        for writer in writers:
            (outlet,) = writer._process.outlets.values()
            assert not outlet.records
            (known,) = outlet.closed.origins.values()
            assert len(known.closed.intervals()) < 600, "what is closed is not joined over the writers"

    def test_what_was_settled_as_its_reader_died_is_settled(self, harness: ShmHarness) -> None:
        work, sink = competing(), exclusive()
        channel = harness.provision(reliable(work), reliable(sink))
        harness.accepted(data(channel, 0), data(channel, 1))
        harness.backend("a").acquire(sink, 1, deadline=0.0)
        taken = [*harness.receive(work, 1, "a"), *harness.receive(sink, 1, "a", after={0: -1})]
        arm([Fault("shm.settled", FaultAction.RAISE)])
        with pytest.raises(InjectedFault):
            harness.settle(*taken, owner="a")
        disarm()
        harness.kill("a")
        assert ordinals(harness.receive(work, 1, "b")) == [1]
        assert ordinals(harness.receive(sink, 1, "b", after={0: -1})) == [1]
        harness.nothing(work, "b")

    def test_what_a_dead_writer_said_is_not_said_again_by_another(self, harness: ShmHarness) -> None:
        channel = harness.provision(reliable(competing()), slots=2)
        workers = harness.workers
        harness.accepted(data(channel, 0), *fan_out(channel, 1, 3))
        workers.pop(("write", 0))[0]._process.close()
        harness.host.worker_died("write", 0)
        harness.settle_down()
        harness.duplicates(data(channel, 0, slot=1), *fan_out(channel, 1, 3, slot=1))
        harness.accepted(data(channel, 2, slot=1))

    def test_workers_read_back_what_was_provisioned_and_refuse_another(self, harness: ShmHarness) -> None:
        channel = harness.provision(reliable(competing()))
        backend = harness.backend("reader")
        (spec, *_) = [place.spec for place in harness.host._made().channels]
        assert backend.ensure_channel(spec, "op", deadline=0.0) == spec
        with pytest.raises(IncompatibleProfile) as caught:
            backend.ensure_channel(msgspec.structs.replace(spec, slots=2), "op", deadline=0.0)
        assert [miss.guarantee for miss in caught.value.misses] == ["slots"]
        assert channel == spec.channel


# The supervisor makes and removes everything at once, in a call of its own.
for _name in vars(ProvisioningSuite):
    if _name.startswith("test_"):
        setattr(TestShm, _name, None)
for _name in (
    # Two channels, or channels that come and go.
    "test_an_intent_ends_when_its_publication_is_in_every_layout",
    "test_removing_a_channel_lets_go_of_what_it_held",
    "test_acquiring_what_nobody_made_is_unknown",
    # Several owners of one replica, of which the older one lives: on one host it is dead and reaped.
    "test_a_newer_epoch_fences_the_older_one",
    "test_a_superseded_token_settles_nothing",
    # Not yet: refused with `NotYet`.
    "test_partitions_fill_on_their_own",
    # Replicas are given items before they ask, in turn.
    "test_what_a_dead_replica_held_comes_first_and_is_counted",
    # One writer says again what another, living one said: its input would have to be given to both.
    "test_a_repetition_is_recognised_before_and_after_settlement_and_across_writers",
    "test_the_first_statement_for_an_input_wins_whole",
):
    assert getattr(TestShm, _name) is not None
    setattr(TestShm, _name, None)
