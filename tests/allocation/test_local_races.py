"""Claimants on one host race for its ledger through lost answers and crashes."""

from contextlib import closing

import pytest

from tests.allocation.local_subject import LocalSubject
from videoflow.testing.examiners.allocation import history

HISTORIES = {2: 4, 8: 1, 32: 1}


@pytest.mark.parametrize("claimants", HISTORIES)
def test_racing_claimants_leave_everything_as_it_was(claimants: int) -> None:
    served = 0
    for seed in range(HISTORIES[claimants]):
        with closing(LocalSubject()) as subject:
            served += history(subject, seed, claimants)
    assert served >= HISTORIES[claimants]
