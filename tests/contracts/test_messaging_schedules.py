"""Random schedules of messaging: memory against a small model, shared memory against memory."""

from hypothesis import settings
from hypothesis.stateful import run_state_machine_as_test

from tests.contracts.memory_subject import MemorySubject
from tests.contracts.shm_subject import ShmSubject
from videoflow.testing.examiners import MessagingSubject
from videoflow.testing.examiners.envelopes import competing
from videoflow.testing.examiners.machines import MessagingMachine, PartitionMachine, TwinMachine


def memory_and_shm() -> tuple[MessagingSubject, MessagingSubject]:
    return MemorySubject(), ShmSubject()


class MemoryMachine(MessagingMachine):
    make_subject = MemorySubject


class ShmTwins(TwinMachine):
    make_subjects = staticmethod(memory_and_shm)


class ShmPartitions(PartitionMachine):
    make_subjects = staticmethod(memory_and_shm)


def test_the_death_of_who_had_received_nothing_is_no_delivery() -> None:
    twins = ShmTwins()
    try:
        twins.publish_a_skip(back=0, width=1)
        twins.read(subscription=competing(), count=1)
        twins.take_over()
        twins.take_over()
        twins.read(subscription=competing(), count=1)
    finally:
        twins.teardown()


def test_random_schedules_keep_every_law_in_memory() -> None:
    run_state_machine_as_test(MemoryMachine, settings=settings(max_examples=40, stateful_step_count=40))


def test_shared_memory_says_what_memory_says() -> None:
    run_state_machine_as_test(ShmTwins, settings=settings(max_examples=12, stateful_step_count=40))


def test_partitions_in_shared_memory_say_what_those_in_memory_say() -> None:
    run_state_machine_as_test(ShmPartitions, settings=settings(max_examples=12, stateful_step_count=40))
