"""Claimants race in a cluster through conflicts, lost answers and crashes; defects lose those races."""

from pathlib import Path

import pytest

from tests.allocation.kubernetes_defects import DEFECTS, PACKAGE
from tests.allocation.planted import planted
from tests.kubernetes.subject import KubernetesSubject
from videoflow.testing.examiners.allocation import history

HISTORIES = {2: 6, 8: 2, 32: 1}
# Defects that an interleaving shows: how many claimants, and within how many histories.
LOSERS = {
    "the record goes before the devices": (8, 3),
}


@pytest.mark.parametrize("claimants", HISTORIES)
def test_racing_claimants_leave_everything_as_it_was(claimants: int) -> None:
    served = [history(KubernetesSubject(), seed, claimants) for seed in range(HISTORIES[claimants])]
    assert sum(served) >= len(served)


@pytest.mark.parametrize("name", LOSERS)
def test_a_defect_loses_a_race(name: str, tmp_path: Path) -> None:
    claimants, most = LOSERS[name]
    with planted(tmp_path, PACKAGE, DEFECTS[name].changes) as product:

        def run() -> None:
            for seed in range(most):
                history(KubernetesSubject(product), seed, claimants)

        with pytest.raises(AssertionError):
            run()
