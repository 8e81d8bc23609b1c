"""Thousands of histories of claimants that race over the reference; every other run a few of them.

`make nightly` runs 15, 3 and half a history for each of its 200 kills, with 2, 8 and 32 claimants.
"""

import pytest

from tests.allocation.memory_subject import MemorySubject
from videoflow.testing.examiners.allocation import history

FIRST = 10_000
FULL = 200
PER_KILL = {2: 15.0, 8: 3.0, 32: 0.5}


@pytest.mark.timeout(3600)
@pytest.mark.parametrize("claimants", PER_KILL)
def test_histories_of_racing_claimants_leave_everything_as_it_was(kills: int, claimants: int) -> None:
    histories = int(kills * PER_KILL[claimants]) if kills >= FULL else 1
    served = [history(MemorySubject(), FIRST + seed, claimants) for seed in range(histories)]
    assert sum(served) >= histories
