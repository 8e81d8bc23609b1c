"""Each law of allocation that can be tried on one host notices its defect there."""

from pathlib import Path

import pytest

from tests.allocation.local_defects import DEFECTS, PACKAGE
from tests.allocation.local_subject import LocalSubject
from tests.allocation.planted import planted
from videoflow.testing.examiners import examine
from videoflow.testing.examiners.allocation import AllocationExaminer

APPLICABLE = {1, 4, 6, 7, 9, 11, 12, 14, 15, 17, 18, 22, 23, 25, 26, 28, 30, 31, 34}


@pytest.mark.parametrize("name", DEFECTS)
def test_a_planted_defect_is_noticed_by_its_law(name: str, tmp_path: Path) -> None:
    defect = DEFECTS[name]
    with planted(tmp_path, PACKAGE, defect.changes) as product:

        class Examined(AllocationExaminer):
            def make_subject(self) -> LocalSubject:
                return LocalSubject(product)

        findings = examine(Examined, [defect.test])
    assert [finding.test for finding in findings] == [defect.test]
    assert findings[0].seen.startswith(("AssertionError", "Failed: DID NOT RAISE")), findings[0].seen


def test_each_property_that_applies_to_one_host_has_its_defect() -> None:
    planted_for = {one for defect in DEFECTS.values() for one in defect.properties}
    assert planted_for == {f"ALLOC-{number}" for number in APPLICABLE}
