"""No property without a law, none without a defect that it notices, and the printed matrix is up to date."""

import re
from pathlib import Path

import pytest

from tests.allocation.implementations import (
    IMPLEMENTATIONS,
    PROPERTIES,
    Implementation,
    laws_of,
    property_of,
    tried,
)
from tests.allocation.matrix import page
from videoflow.testing.examiners.allocation import AllocationExaminer

PAGE = Path(__file__).resolve().parents[2] / "docs" / "reference" / "allocation-matrix.md"
EACH = pytest.mark.parametrize("implementation", IMPLEMENTATIONS, ids=lambda one: one.name)


def test_each_property_has_laws_that_are_named_after_it() -> None:
    assert {property_of(test) for test in AllocationExaminer.laws()} == set(PROPERTIES)
    assert all(laws_of(identity) for identity in PROPERTIES)


def test_each_law_names_the_property_that_its_test_is_named_after() -> None:
    for test, law in AllocationExaminer.laws().items():
        assert property_of(test) in law.properties, test


@EACH
def test_each_property_that_is_tried_has_a_defect(implementation: Implementation) -> None:
    held = {identity for identity in PROPERTIES if tried(implementation, identity)}
    shown = {identity for defect in implementation.defects.values() for identity in defect.properties}
    assert held <= shown
    for name, defect in implementation.defects.items():
        assert property_of(defect.test) in defect.properties, name
        assert defect.test in tried(implementation, property_of(defect.test)), name


def test_the_printed_matrix_is_up_to_date() -> None:
    text = PAGE.read_text(encoding="utf-8")
    printed = re.search(r"Printed on (\d{4}-\d\d-\d\d) by", text)
    assert printed is not None
    assert text == page(printed.group(1))
