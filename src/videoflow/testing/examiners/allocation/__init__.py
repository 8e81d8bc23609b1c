"""The examiner of `videoflow.backends.allocation`: its laws, and races of claimants under faults.

Used by authors of allocation adapters, who bring an `AllocationSubject`: the authority as a fixture, with raw
probes behind the backend. What an adapter does not claim must be refused by name, before any write.
"""

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
)

__all__ = [
    "Ability",
    "AllocationSubject",
    "Call",
    "Crashed",
    "Fate",
    "FixtureCard",
    "FixtureHost",
    "Layout",
    "Read",
]
