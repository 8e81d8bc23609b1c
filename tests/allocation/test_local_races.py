"""Claimants on one host race for its ledger through lost answers and crashes; a defect loses."""

from contextlib import closing
from pathlib import Path

import pytest

from tests.allocation.local_defects import DEFECTS, PACKAGE
from tests.allocation.local_subject import LocalSubject
from tests.allocation.planted import planted
from videoflow.testing.examiners.allocation import history

HISTORIES = {2: 4, 8: 1, 32: 1}
MANY = {2: 400, 8: 60, 32: 8}


def served(histories: int, first: int, claimants: int) -> int:
    """How many operations became ready in so many histories."""
    total = 0
    for seed in range(first, first + histories):
        with closing(LocalSubject()) as subject:
            total += history(subject, seed, claimants)
    return total


@pytest.mark.parametrize("claimants", HISTORIES)
def test_racing_claimants_leave_everything_as_it_was(claimants: int) -> None:
    assert served(HISTORIES[claimants], 0, claimants) >= HISTORIES[claimants]


@pytest.mark.nightly
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("claimants", MANY)
def test_racing_claimants_over_many_histories(claimants: int) -> None:
    assert served(MANY[claimants], 1000, claimants) >= MANY[claimants]


def test_a_defect_loses_a_race_that_ends_well_without_it(tmp_path: Path) -> None:
    changes = DEFECTS["what is held is free for the next"].changes
    with closing(LocalSubject()) as subject:
        history(subject, 0, 8, 0.1)
    with (
        planted(tmp_path, PACKAGE, changes) as product,
        closing(LocalSubject(product)) as subject,
        pytest.raises(AssertionError, match="held alone by"),
    ):
        history(subject, 0, 8, 0.1)
