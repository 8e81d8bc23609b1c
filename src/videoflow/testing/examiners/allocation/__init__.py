"""The examiner of `videoflow.backends.allocation`: its laws, and races of claimants under faults.

Used by authors of allocation adapters, who bring an `AllocationSubject`: the authority as a fixture, with raw
probes behind the backend. What an adapter does not claim must be refused by name, before any write.
"""

from videoflow.testing.examiners.allocation._acts import NEEDS
from videoflow.testing.examiners.allocation._geometry import GeometrySuite
from videoflow.testing.examiners.allocation._owning import OwningSuite
from videoflow.testing.examiners.allocation._planning import PlanningSuite
from videoflow.testing.examiners.allocation._races import Race, history
from videoflow.testing.examiners.allocation._reading import ReadingSuite
from videoflow.testing.examiners.allocation._releasing import ReleasingSuite
from videoflow.testing.examiners.allocation._steps import Actor, Stage
from videoflow.testing.examiners.allocation._subject import (
    Ability,
    AllocationSubject,
    Call,
    Crashed,
    Fate,
    FixtureCard,
    FixtureHost,
    Layout,
    Read,
    Seizable,
    Staged,
)

__all__ = [
    "NEEDS",
    "Ability",
    "Actor",
    "AllocationExaminer",
    "AllocationSubject",
    "Call",
    "Crashed",
    "Fate",
    "FixtureCard",
    "FixtureHost",
    "Layout",
    "Race",
    "Read",
    "Seizable",
    "Stage",
    "Staged",
    "history",
]


class AllocationExaminer(PlanningSuite, GeometrySuite, ReadingSuite, OwningSuite, ReleasingSuite):
    """Every law of `videoflow.backends.allocation`.

    Example:
        class TestMyAllocation(AllocationExaminer):
            def make_subject(self):
                return MySubject()
    """
