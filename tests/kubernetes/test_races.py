"""Claimants race in a cluster through conflicts, lost answers and crashes; defects lose those races.

Thousands of histories are run by `make nightly`, from `tests/storm`.
"""

from pathlib import Path

import pytest

from tests.allocation.kubernetes_defects import DEFECTS, PACKAGE
from tests.allocation.planted import planted
from tests.kubernetes.subject import KubernetesSubject
from videoflow.testing.examiners.allocation import history

HISTORIES = {2: 2, 8: 1, 32: 1}
# Defects that an interleaving shows, and the seed of a history of eight claimants in which it does.
LOSERS = {
    "a ledger is written over what somebody wrote meanwhile": 7,
    "who holds nothing leaves no mark on a ledger": 5,
    "the record goes before the devices": 0,
}
OFTEN = 0.1


@pytest.mark.parametrize("claimants", HISTORIES)
def test_racing_claimants_leave_everything_as_it_was(claimants: int) -> None:
    served = [history(KubernetesSubject(), seed, claimants) for seed in range(HISTORIES[claimants])]
    assert sum(served) >= len(served)


@pytest.mark.parametrize("name", LOSERS)
def test_a_defect_loses_a_race(name: str, tmp_path: Path) -> None:
    with planted(tmp_path, PACKAGE, DEFECTS[name].changes) as product, pytest.raises(AssertionError):
        history(KubernetesSubject(product), LOSERS[name], 8, OFTEN)


@pytest.mark.parametrize("name", LOSERS)
def test_without_the_defect_the_same_history_ends_well(name: str) -> None:
    history(KubernetesSubject(), LOSERS[name], 8, OFTEN)
