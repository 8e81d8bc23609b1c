"""Random schedules of stores: SQLite against memory, slabs of shared memory against memory."""

from hypothesis import settings
from hypothesis.stateful import run_state_machine_as_test

from tests.contracts.payload_subjects import MemoryPayloadSubject, ShmPayloadSubject
from tests.contracts.store_subjects import MemoryStoreSubject, SqliteStoreSubject
from videoflow.testing.examiners import PayloadSubject, StoreSubject
from videoflow.testing.examiners.machines import PayloadMachine, StoreMachine


def stores() -> tuple[StoreSubject, StoreSubject]:
    return MemoryStoreSubject(), SqliteStoreSubject()


def payloads() -> tuple[PayloadSubject, PayloadSubject]:
    return MemoryPayloadSubject(), ShmPayloadSubject()


class Records(StoreMachine):
    make_subjects = staticmethod(stores)


class Payloads(PayloadMachine):
    make_subjects = staticmethod(payloads)


def test_a_file_says_what_memory_says() -> None:
    run_state_machine_as_test(Records, settings=settings(max_examples=25, stateful_step_count=30))


def test_slabs_say_what_memory_says() -> None:
    run_state_machine_as_test(Payloads, settings=settings(max_examples=20, stateful_step_count=40))
