"""Each law has a defect, planted in a copy of the product or at run time, in which it is found broken."""

from pathlib import Path

from tests.contracts.defects import CHEAP, DEFECTS
from tests.contracts.table import EXAMINERS, noticed
from tests.promises.planting import ROOT


def test_every_law_has_a_defect_and_most_are_changes_of_the_product() -> None:
    laws = {law.name for _, examiner in EXAMINERS for law in examiner.laws().values()}
    assert {defect.law for defect in DEFECTS.values()} == laws
    patched = [defect for defect in DEFECTS.values() if defect.change is not None]
    assert len(patched) > len(DEFECTS) / 2


def test_some_defects_are_noticed_each_time(tmp_path: Path) -> None:
    found = noticed(tmp_path, CHEAP)
    unnoticed = {name: laws for name, laws in found.items() if DEFECTS[name].law not in laws}
    assert unnoticed == {}
    assert len(found) == len(CHEAP)


def test_the_page_of_laws_has_every_law_and_every_defect() -> None:
    page = (ROOT / "docs" / "reference" / "laws.md").read_text(encoding="utf-8")
    laws = {law for _, examiner in EXAMINERS for law in examiner.laws().values()}
    assert [law.name for law in laws if law.sentence not in page] == []
    assert [name for name in DEFECTS if name not in page] == []
    assert "NOT NOTICED" not in page
