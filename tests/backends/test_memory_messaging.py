"""The laws of messaging, over the memory reference with a clock that does not run by itself."""

import pytest
from hypothesis import settings
from hypothesis.stateful import run_state_machine_as_test

from tests.backends.messaging_fates import LedgerSuite, LiveSuite
from tests.backends.messaging_harness import Harness
from tests.backends.messaging_leases import CompetingSuite, ExclusiveSuite
from tests.backends.messaging_machine import MessagingMachine
from tests.backends.messaging_payloads import PayloadSuite
from tests.backends.messaging_publishing import PublishingSuite
from videoflow.backends.memory import MemoryBroker, MemoryMessaging, MemoryPayloads, MemoryPool
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


class MemoryMachine(MessagingMachine):
    make_harness = MemoryHarness


def test_random_schedules_keep_every_law() -> None:
    run_state_machine_as_test(MemoryMachine, settings=settings(max_examples=60, stateful_step_count=40))
