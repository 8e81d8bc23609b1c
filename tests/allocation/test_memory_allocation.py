"""The reference keeps every law of allocation."""

from collections.abc import Iterator

import pytest

from tests.allocation.memory_subject import MemorySubject
from videoflow import faults
from videoflow.backends.allocation import FeasiblePlan, ReleaseStatus, Sharing, WorkloadRequest
from videoflow.backends.outcomes import Known
from videoflow.testing.examiners.allocation import AllocationExaminer, FixtureCard, FixtureHost


class TestMemoryAllocation(AllocationExaminer):
    def make_subject(self) -> MemorySubject:
        return MemorySubject()


@pytest.fixture
def reached() -> Iterator[list[str]]:
    names: list[str] = []
    faults.arm(observer=names.append)
    yield names
    faults.disarm()


def test_the_points_where_a_crash_means_something_are_named(reached: list[str]) -> None:
    subject = MemorySubject()
    cards = (FixtureCard("GPU-1", "NVIDIA H100 80GB HBM3", 81559 << 20),)
    subject.furnish([FixtureHost("a", cards, managed=True)])
    backend = subject.backend()
    snapshot = backend.inventory("")
    assert isinstance(snapshot, Known)
    asked = WorkloadRequest("flow", "run", "w/0", sharing=Sharing.ISOLATED_MIG)
    plan = backend.plan([asked], snapshot.value)
    assert isinstance(plan, FeasiblePlan)
    claim = backend.reserve(plan, "op", snapshot.value.generation)
    assert reached == ["claim.owned", "claim.changing"]
    done = backend.release(claim.claim_id, "release", claim.desired_generation)
    assert done.status is ReleaseStatus.RELEASED
    assert reached[2:] == ["claim.restored"]
