"""A process that wakes late loses in every allocator, by a defect that another law is there for (nightly)."""

from collections.abc import Mapping
from pathlib import Path
from types import ModuleType
from typing import Protocol

import pytest

from tests.allocation import dra_defects, kubernetes_defects, memory_defects
from tests.allocation.memory_subject import MemorySubject
from tests.allocation.planted import Defect, planted
from tests.dra.subject import DraSubject, DynamicDraSubject
from tests.kubernetes.subject import KubernetesSubject
from videoflow.testing.examiners import examine
from videoflow.testing.examiners.allocation import AllocationExaminer, AllocationSubject

LATE = "test_alloc_4_a_late_rollback_unseats_nobody"


class Makes(Protocol):
    """Makes a subject of a copy of an allocator."""

    def __call__(self, product: ModuleType) -> AllocationSubject: ...


CASES: dict[str, tuple[Makes, str, Mapping[str, Defect], str]] = {
    "memory": (
        MemorySubject,
        memory_defects.PACKAGE,
        memory_defects.DEFECTS,
        "ownership is written over what somebody wrote meanwhile",
    ),
    "kubernetes": (
        KubernetesSubject,
        kubernetes_defects.PACKAGE,
        kubernetes_defects.DEFECTS,
        "a ledger is written over what somebody wrote meanwhile",
    ),
    "DRA": (DraSubject, dra_defects.PACKAGE, dra_defects.STATIC, "what is made belongs to no record"),
    "DRA with DynamicMIG": (
        DynamicDraSubject,
        dra_defects.PACKAGE,
        dra_defects.DYNAMIC,
        "what is made belongs to no record",
    ),
}


@pytest.mark.nightly
@pytest.mark.parametrize("name", CASES)
def test_a_planted_defect_is_noticed_by_whoever_wakes_late(name: str, tmp_path: Path) -> None:
    make, package, defects, defect = CASES[name]
    with planted(tmp_path, package, defects[defect].changes) as product:

        class Examined(AllocationExaminer):
            def make_subject(self) -> AllocationSubject:
                return make(product)

        findings = examine(Examined, [LATE])
    assert [finding.test for finding in findings] == [LATE]
    assert findings[0].seen.startswith("AssertionError"), findings[0].seen
