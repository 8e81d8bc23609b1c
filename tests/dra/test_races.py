"""Claimants race for the devices of a driver, through conflicts, lost answers and crashes; a defect loses."""

from pathlib import Path

import pytest

from tests.allocation.dra_defects import BOTH, PACKAGE
from tests.allocation.planted import planted
from tests.dra.subject import DraSubject, DynamicDraSubject
from videoflow.testing.examiners.allocation import history

SUBJECTS = (DraSubject, DynamicDraSubject)
HISTORIES = {2: 2, 8: 1}
MANY = {2: 800, 8: 120, 32: 20}
# Defects that an interleaving shows, how many claimants, and the seed of a history in which it does.
LOSERS = {"a holder is left behind": (2, 0), "what is made belongs to no record": (2, 37)}


@pytest.mark.parametrize("kind", SUBJECTS)
@pytest.mark.parametrize("claimants", HISTORIES)
def test_racing_claimants_leave_everything_as_it_was(claimants: int, kind: type[DraSubject]) -> None:
    served = [history(kind(), seed, claimants) for seed in range(HISTORIES[claimants])]
    assert sum(served) >= len(served)


def test_thirty_two_claimants_at_once() -> None:
    assert history(DraSubject(), 0, 32, 0.01) >= 1


@pytest.mark.nightly
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("kind", SUBJECTS)
@pytest.mark.parametrize("claimants", MANY)
def test_racing_claimants_over_many_histories(claimants: int, kind: type[DraSubject]) -> None:
    served = [history(kind(), seed, claimants) for seed in range(1000, 1000 + MANY[claimants])]
    assert sum(served) >= len(served)


@pytest.mark.parametrize("name", LOSERS)
def test_a_defect_loses_a_race_that_ends_well_without_it(name: str, tmp_path: Path) -> None:
    claimants, seed = LOSERS[name]
    history(DraSubject(), seed, claimants, 0.1)
    with planted(tmp_path, PACKAGE, BOTH[name].changes) as product, pytest.raises(AssertionError):
        history(DraSubject(product), seed, claimants, 0.1)
