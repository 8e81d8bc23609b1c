"""The faces of the reference and of the examiner: frozen lists, each name documented."""

import inspect
from types import ModuleType

import pytest

from videoflow.backends.allocation import lifecycle
from videoflow.backends.memory import allocation as reference
from videoflow.testing.examiners import allocation as examiner

REFERENCE = """
    Conflict GRANT_VARIABLE Hold Interposer Layout Listing MANAGER_FACT MemoryAllocation MemoryCard
    MemoryCluster MemoryHost MemoryPlan MemoryPod MemorySlice MigTable Refused Unanswered Written
"""
LIFECYCLE = """
    Aborted Journal NotBegun Phase Record RecordedAllocation Steps Superseded Taken UNDER_WAY Unanswered
    Undecided changed_by claim_name plan_digest
"""
EXAMINER = """
    Ability Actor AllocationExaminer AllocationSubject Call Crashed Fate FixtureCard FixtureHost Layout
    NEEDS Race Read Seizable Stage Staged history
"""


@pytest.mark.parametrize(
    ("face", "names"), [(lifecycle, LIFECYCLE), (reference, REFERENCE), (examiner, EXAMINER)]
)
def test_the_names_are_these_and_each_is_documented(face: ModuleType, names: str) -> None:
    assert sorted(face.__all__) == sorted(names.split())
    for name in names.split():
        found = getattr(face, name)
        if inspect.isclass(found) or inspect.isfunction(found):
            assert found.__doc__, name
