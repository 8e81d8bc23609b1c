"""The laws of a runtime store, over memory."""

import pytest

from tests.backends.store_suite import StoreSuite
from videoflow.backends.memory import MemoryRuntimeStore
from videoflow.backends.runtime import RuntimeStore
from videoflow.clock import ManualClock


class TestMemoryStore(StoreSuite):
    @pytest.fixture
    def store(self) -> RuntimeStore:
        return MemoryRuntimeStore(ManualClock())

    def test_it_promises_nothing_beyond_the_process(self, store: RuntimeStore) -> None:
        found = store.capabilities()
        assert found.atomic_commit
        claims = (found.shared, found.survives_process, found.survives_power, found.crosses_hosts)
        assert not any(claims)
