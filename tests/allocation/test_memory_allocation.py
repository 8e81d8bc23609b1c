"""The reference keeps every law of allocation."""

from tests.allocation.memory_subject import MemorySubject
from videoflow.testing.examiners.allocation import AllocationExaminer


class TestMemoryAllocation(AllocationExaminer):
    def make_subject(self) -> MemorySubject:
        return MemorySubject()
