"""Every implementation of the allocation contract, with its subject and its defects; and the properties.

A new implementation is one more line of `IMPLEMENTATIONS`: the matrix then has one more column.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from tests.allocation import dra_defects, kubernetes_defects, local_defects, memory_defects
from tests.allocation.local_subject import LocalSubject
from tests.allocation.memory_subject import MemorySubject
from tests.allocation.planted import Defect
from tests.dra.subject import DraSubject, DynamicDraSubject
from tests.kubernetes.subject import KubernetesSubject
from videoflow.testing.examiners.allocation import NEEDS, AllocationExaminer, AllocationSubject


@dataclass(frozen=True)
class Implementation:
    """One column of the matrix."""

    name: str
    subject: type[AllocationSubject]
    defects: Mapping[str, Defect]


IMPLEMENTATIONS = (
    Implementation("memory", MemorySubject, memory_defects.DEFECTS),
    Implementation("local", LocalSubject, local_defects.DEFECTS),
    Implementation("kubernetes", KubernetesSubject, kubernetes_defects.DEFECTS),
    Implementation("DRA", DraSubject, dra_defects.STATIC),
    Implementation("DRA with DynamicMIG", DynamicDraSubject, dra_defects.DYNAMIC),
)

PROPERTIES = {
    "ALLOC-1": "no layout that the card has no memory for",
    "ALLOC-2": "slices only where they may begin",
    "ALLOC-4": "one owner, whatever races or wakes late",
    "ALLOC-6": "what is left undone is on record",
    "ALLOC-7": "an unread thing is unknown, and stops what needs it",
    "ALLOC-8": "kind and capacity of the same hosts",
    "ALLOC-9": "whole devices on physical evidence alone",
    "ALLOC-11": "plans are values",
    "ALLOC-12": "foreigners are kept out, or the operation gives back",
    "ALLOC-14": "nothing short, nothing taken for zero",
    "ALLOC-15": "masks show exactly the grant",
    "ALLOC-17": "prepared slices are used as they are",
    "ALLOC-18": "one allocator for a device",
    "ALLOC-20": "a claim is shared only by a declared group",
    "ALLOC-21": "allocated, prepared and ready are three states",
    "ALLOC-22": "operations and releases are idempotent over crashes",
    "ALLOC-23": "refused by name before any write",
    "ALLOC-24": "no gate is implied",
    "ALLOC-25": "sharers stay within the device",
    "ALLOC-26": "accounting is no isolation",
    "ALLOC-28": "cutting a card anew is deliberate, and after draining",
    "ALLOC-30": "desired, admitted and ready are three numbers",
    "ALLOC-31": "hard is kept or refused, soft stays soft",
    "ALLOC-34": "defaults say that they are",
}


def property_of(test: str) -> str:
    """The id that a test is named after."""
    found = re.match(r"test_alloc_(\d+)_", test)
    assert found, test
    return f"ALLOC-{found.group(1)}"


def laws_of(identity: str) -> list[str]:
    """The tests of a property."""
    return [test for test in AllocationExaminer.laws() if property_of(test) == identity]


def missing(implementation: Implementation, test: str) -> list[str]:
    """Why a test is not tried on an implementation; empty: it is."""
    wanted = getattr(getattr(AllocationExaminer, test), NEEDS, ())
    lacks = implementation.subject.lacks
    return [lacks[ability] for ability in wanted if ability in lacks]


def tried(implementation: Implementation, identity: str) -> list[str]:
    """The tests of a property that an implementation is held to."""
    return [test for test in laws_of(identity) if not missing(implementation, test)]
