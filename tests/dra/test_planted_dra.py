"""Each law of allocation notices its defect in the allocator of dynamic resource allocation."""

from pathlib import Path

import pytest

from tests.allocation.dra_defects import BOTH, DYNAMIC, PACKAGE, STATIC
from tests.allocation.planted import Defect, planted
from tests.dra.subject import DraSubject, DynamicDraSubject
from videoflow.testing.examiners import examine
from videoflow.testing.examiners.allocation import AllocationExaminer

SHOWN = ("AssertionError", "Failed: DID NOT RAISE")
CASES = [
    *((DraSubject, name, defect) for name, defect in STATIC.items()),
    *((DynamicDraSubject, name, defect) for name, defect in DYNAMIC.items()),
]


@pytest.mark.parametrize(
    ("kind", "defect"),
    [
        # What is planted in both is planted nightly in the second.
        pytest.param(
            kind,
            defect,
            id=f"{kind.__name__}-{name}",
            marks=[pytest.mark.nightly] if kind is DynamicDraSubject and name in BOTH else [],
        )
        for kind, name, defect in CASES
    ],
)
def test_a_planted_defect_is_noticed_by_its_law(
    kind: type[DraSubject], defect: Defect, tmp_path: Path
) -> None:
    with planted(tmp_path, PACKAGE, defect.changes) as product:

        class Examined(AllocationExaminer):
            def make_subject(self) -> DraSubject:
                return kind(product)

        findings = examine(Examined, [defect.test])
    assert [finding.test for finding in findings] == [defect.test]
    assert findings[0].seen.startswith(SHOWN), findings[0].seen
