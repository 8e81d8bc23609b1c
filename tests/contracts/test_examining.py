"""The examiners themselves: what they tell an author, what they need, what they refuse."""

import subprocess
import sys
from typing import ClassVar

import pytest

from tests.contracts.sloppy import Sloppy
from tests.contracts.store_subjects import MemoryStoreSubject
from videoflow.faults import Fault, FaultAction
from videoflow.testing import FaultNotFired, injected
from videoflow.testing.examiners import RuntimeStoreExaminer, examine, law_of

TOLD = {
    "store.reads": "compare keys as text, without patterns or case folding",
    "store.all-or-none": "check every expected version before the first change",
    "store.versions": "draw versions from one counter that outlives the keys",
    "store.logs": "number under the same lock as the append",
    "store.keeps": "claim only what a second process sees",
    "store.refuses": "raise ContractBroken before the first change",
}


def test_a_sloppy_store_is_told_what_to_mend() -> None:
    findings = examine(Sloppy)
    assert {finding.law.name for finding in findings} >= set(TOLD)
    for finding in findings:
        assert TOLD.get(finding.law.name, "") in str(finding)
        assert finding.law.sentence in str(finding)
        assert finding.test in str(finding)


def test_with_pytest_the_complaint_stands_beside_what_was_seen() -> None:
    with pytest.raises(AssertionError) as caught:
        Sloppy().test_a_log_is_read_in_order_after_a_number(Sloppy().make_subject())
    (note,) = caught.value.__notes__
    assert note.startswith("broken law store.logs: A log is read in the order of its appends")
    assert "\nmend: number under the same lock as the append" in note


def test_what_cannot_be_done_must_fail() -> None:
    class Claims(RuntimeStoreExaminer):
        cannot: ClassVar = {"test_a_delete_deletes": "it was so last year"}

        def make_subject(self) -> MemoryStoreSubject:
            return MemoryStoreSubject()

    (finding,) = examine(Claims, ["test_a_delete_deletes"])
    assert finding.seen == "it passes, although it cannot: it was so last year"


def test_what_cannot_be_done_is_named_rightly() -> None:
    with pytest.raises(TypeError, match="test_a_deleet_deletes, which is no test of a law"):
        type("Typo", (RuntimeStoreExaminer,), {"cannot": {"test_a_deleet_deletes": "a slip"}})


def test_every_test_of_an_examiner_has_a_law() -> None:
    tests = [name for name in dir(RuntimeStoreExaminer) if name.startswith("test_")]
    assert [name for name in tests if law_of(getattr(RuntimeStoreExaminer, name)) is None] == []
    assert len(tests) > 10


def test_a_fault_that_did_not_fire_fails() -> None:
    never = injected(Fault("commit.after", FaultAction.RAISE, hit=2))
    with pytest.raises(FaultNotFired, match=r"hit 2 of commit\.after"), never:
        pass


def test_only_the_examiners_need_a_test_tool() -> None:
    told = "import sys, videoflow.testing; sys.exit({'pytest', 'hypothesis'} & set(sys.modules) != set())"
    assert subprocess.run([sys.executable, "-c", told], check=False).returncode == 0
