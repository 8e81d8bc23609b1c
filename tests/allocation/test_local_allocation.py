"""The allocator of one host keeps every law of allocation that it can be tried on."""

from tests.allocation.local_subject import LocalSubject
from videoflow.testing.examiners.allocation import AllocationExaminer


class TestLocalAllocation(AllocationExaminer):
    def make_subject(self) -> LocalSubject:
        return LocalSubject()
