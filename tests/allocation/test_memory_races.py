"""Claimants of the reference race through lost answers and crashes, and planted defects lose those races."""

from pathlib import Path

import pytest
from hypothesis import settings

from tests.allocation.memory_defects import DEFECTS, PACKAGE
from tests.allocation.memory_subject import MemorySubject
from tests.allocation.planted import planted
from videoflow.testing.examiners.allocation import history
from videoflow.testing.examiners.allocation.machines import AllocationMachine

HISTORIES = {2: 12, 8: 3, 32: 1}
# Defects that an interleaving shows: how many claimants, and within how many histories.
LOSERS = {
    "ownership is written over what somebody wrote meanwhile": (8, 3),
    "ownership comes before its record": (2, 2),
    "the record goes before the devices": (2, 2),
}


class MemoryMachine(AllocationMachine):
    make_subject = MemorySubject


TestMemoryMachine = MemoryMachine.TestCase
TestMemoryMachine.settings = settings(max_examples=8, stateful_step_count=20)


@pytest.mark.parametrize("claimants", HISTORIES)
def test_racing_claimants_leave_everything_as_it_was(claimants: int) -> None:
    served = [history(MemorySubject(), seed, claimants) for seed in range(HISTORIES[claimants])]
    assert sum(served) >= len(served)


@pytest.mark.parametrize("name", LOSERS)
def test_a_defect_loses_a_race(name: str, tmp_path: Path) -> None:
    claimants, most = LOSERS[name]
    with planted(tmp_path, PACKAGE, DEFECTS[name].changes) as product:

        def run() -> None:
            for seed in range(most):
                history(MemorySubject(product), seed, claimants)

        with pytest.raises(AssertionError):
            run()
