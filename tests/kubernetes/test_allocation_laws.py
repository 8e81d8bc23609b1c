"""A cluster keeps every law of allocation that it claims."""

from tests.kubernetes.subject import KubernetesSubject
from videoflow.testing.examiners.allocation import AllocationExaminer


class TestKubernetesAllocation(AllocationExaminer):
    def make_subject(self) -> KubernetesSubject:
        return KubernetesSubject()
