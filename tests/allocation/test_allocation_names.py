"""The faces of the reference and of the examiner: frozen lists, each name documented."""

import inspect
from types import ModuleType

import pytest

from videoflow.backends.allocation import lifecycle, planning
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
PLANNING = """
    KIND_OF OPERATORS WHOLE_CARD defaults_of geometry_of plan_name rule_of uncertain_hosts
"""
EXAMINER = """
    Ability Actor AllocationExaminer AllocationSubject Call Crashed Fate FixtureCard FixtureHost Layout
    NEEDS Race Read Seizable Stage Staged history
"""


FACES = [(lifecycle, LIFECYCLE), (planning, PLANNING), (reference, REFERENCE), (examiner, EXAMINER)]


@pytest.mark.parametrize(("face", "names"), FACES)
def test_the_names_are_these_and_each_is_documented(face: ModuleType, names: str) -> None:
    assert sorted(face.__all__) == sorted(names.split())
    for name in names.split():
        found = getattr(face, name)
        if inspect.isclass(found) or inspect.isfunction(found):
            assert found.__doc__, name
