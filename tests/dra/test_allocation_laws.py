"""Dynamic resource allocation keeps every law of allocation that it claims, with cards cut by hand or not."""

from tests.dra.subject import DraSubject, DynamicDraSubject
from videoflow.testing.examiners.allocation import AllocationExaminer


class TestDraAllocation(AllocationExaminer):
    def make_subject(self) -> DraSubject:
        return DraSubject()


class TestDynamicDraAllocation(AllocationExaminer):
    def make_subject(self) -> DynamicDraSubject:
        return DynamicDraSubject()
