"""Each law of allocation notices its defect in the allocator of a cluster."""

from pathlib import Path

import pytest

from tests.allocation.kubernetes_defects import DEFECTS, PACKAGE
from tests.allocation.planted import planted
from tests.kubernetes.subject import KubernetesSubject
from videoflow.testing.examiners import examine
from videoflow.testing.examiners.allocation import AllocationExaminer

SHOWN = ("AssertionError", "Failed: DID NOT RAISE")


@pytest.mark.parametrize("name", DEFECTS)
def test_a_planted_defect_is_noticed_by_its_law(name: str, tmp_path: Path) -> None:
    defect = DEFECTS[name]
    with planted(tmp_path, PACKAGE, defect.changes) as product:

        class Examined(AllocationExaminer):
            def make_subject(self) -> KubernetesSubject:
                return KubernetesSubject(product)

        findings = examine(Examined, [defect.test])
    assert [finding.test for finding in findings] == [defect.test]
    assert findings[0].seen.startswith(SHOWN), findings[0].seen
