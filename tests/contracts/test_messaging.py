"""The laws of messaging, over the memory reference with a clock that does not run by itself."""

import msgspec
import pytest
from hypothesis import settings
from hypothesis.stateful import run_state_machine_as_test

from tests.backends.messaging_fates import LedgerSuite, LiveSuite
from tests.backends.messaging_harness import (
    LABELS,
    ROOMY,
    Harness,
    channel_id,
    competing,
    data,
    live,
    reliable,
)
from tests.backends.messaging_leases import CompetingSuite, ExclusiveSuite
from tests.backends.messaging_machine import MessagingMachine
from tests.backends.messaging_payloads import PayloadSuite
from tests.backends.messaging_publishing import PublishingSuite
from videoflow.backends.capabilities import Profile
from videoflow.backends.memory import MemoryBroker, MemoryMessaging, MemoryPayloads, MemoryPool
from videoflow.backends.messaging import ChannelSpec, OwnerLabels
from videoflow.clock import ManualClock


class MemoryHarness(Harness):
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


class TestMemory(PublishingSuite, CompetingSuite, ExclusiveSuite, LiveSuite, LedgerSuite, PayloadSuite):
    @pytest.fixture
    def harness(self) -> Harness:
        return MemoryHarness()

    def test_what_waited_for_a_late_live_reader_takes_no_room_and_is_limited(self, harness: Harness) -> None:
        now, work = competing("now"), competing("work")
        spec = ChannelSpec(
            channel=channel_id(),
            profile=Profile.RELIABLE_WORK,
            slots=1,
            bounds=ROOMY,
            subscriptions=(now, work),
            labels=LABELS,
        )
        engine, deadline = harness.backend("engine"), harness.soon()
        engine.ensure_channel(spec, "op", deadline=deadline)
        engine.ensure_subscription(reliable(work), "op", deadline=deadline)
        harness.accepted(*(data(channel_id(), n) for n in range(3)))
        engine.ensure_subscription(live(now), "op", deadline=deadline)
        assert harness.status(now).evicted == 2
        harness.settle(*harness.receive(work, 2))
        assert harness.channel_status(channel_id()).items == 1

    def test_removing_a_channel_takes_nothing_from_another(self, harness: Harness) -> None:
        now, work = competing("now"), competing("work", channel_id("other"))
        gone = ChannelSpec(
            channel=channel_id(),
            profile=Profile.LIVE_LATEST,
            slots=1,
            bounds=ROOMY,
            subscriptions=(now,),
            labels=OwnerLabels("flow", "run", "somebody"),
        )
        engine, deadline = harness.backend("engine"), harness.soon()
        engine.ensure_channel(gone, "op", deadline=deadline)
        engine.ensure_subscription(
            msgspec.structs.replace(live(now), labels=gone.labels), "op", deadline=deadline
        )
        stays = harness.provision(reliable(work))
        ref = self.put(harness, 0)
        harness.accepted(*(data(name, 0, payloads=(ref,)) for name in (gone.channel, stays)))
        harness.accepted(data(gone.channel, 1))
        assert harness.status(now).evicted == 1
        assert engine.close(gone.labels, deadline=deadline).removed == (str(gone.channel),)
        assert self.kept(harness) == 1
        harness.settle(*harness.receive(work, 1))
        assert self.kept(harness) == 0


class MemoryMachine(MessagingMachine):
    make_harness = MemoryHarness


def test_random_schedules_keep_every_law() -> None:
    run_state_machine_as_test(MemoryMachine, settings=settings(max_examples=40, stateful_step_count=40))
