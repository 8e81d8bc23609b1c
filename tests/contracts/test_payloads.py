"""The laws of the payload store, over memory and shared memory."""

from tests.contracts.payload_subjects import MemoryPayloadSubject, ShmPayloadSubject
from videoflow.testing.examiners import PayloadExaminer


class TestMemory(PayloadExaminer):
    def make_subject(self) -> MemoryPayloadSubject:
        return MemoryPayloadSubject()


class TestShm(PayloadExaminer):
    def make_subject(self) -> ShmPayloadSubject:
        return ShmPayloadSubject()
