"""Every property that applies to one machine has a test, and a planted defect that it notices."""

import pytest

from tests.promises.planting import ROOT
from tests.promises.properties import PROPERTIES
from tests.promises.properties_page import defects_of, laws_of

NAMES = (
    *(f"M{n}" for n in (1, 2, 3, 4, 5, 6, 7, 9, 10, 12, 13, 14, 15, 17, 19, 22, 23, 26)),
    *(f"P{n}" for n in (1, 2, 4, 5, 7, 9, 10, 11, 12, 15, 16, 17, 19, 21, 22)),
    *(f"R{n}" for n in (1, 3, 4, 6, 7, 9, 10, 11, 12, 13, 15, 17, 18, 19, 21, 22, 23, 24, 26, 27, 28, 29)),
    *(f"R{n}" for n in (31, 33, 35, 36, 45, 46)),
)


def test_all_properties_are_there() -> None:
    assert tuple(PROPERTIES) == NAMES


@pytest.mark.parametrize("name", NAMES)
def test_a_property_has_tests_that_exist_and_defects_or_a_reason(name: str) -> None:
    found = PROPERTIES[name]
    if found.not_here:
        assert not any((found.tests, found.defects, laws_of(name)))
        return
    assert found.tests or laws_of(name), "nothing tries it"
    assert defects_of(name), "nothing shows that its tests can fail"
    assert {defect for _, defect, _ in defects_of(name)} >= set(found.defects), "a defect is gone"
    for test in found.tests:
        file, _, function = test.partition("::")
        assert f"def {function}(" in (ROOT / file).read_text(encoding="utf-8"), f"{test} is gone"


def test_most_defects_are_changes_of_the_product() -> None:
    changes = [change for name in NAMES for _, _, change in defects_of(name)]
    assert sum(changes) > len(changes) / 2


def test_the_page_has_every_property_its_tests_and_its_defects() -> None:
    shown = (ROOT / "docs" / "reference" / "properties.md").read_text(encoding="utf-8")
    rows = {line.split("|")[1].strip(): line for line in shown.splitlines() if line.startswith("| ")}
    assert set(NAMES) == rows.keys() - {"property"}
    for name, each in PROPERTIES.items():
        wanted = (each.says, each.not_here, *each.defects, *(t.rpartition("::")[2] for t in each.tests))
        assert [words for words in wanted if words not in rows[name]] == []
