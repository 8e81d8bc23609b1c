"""Thousands of histories of claimants that race in a cluster; every other run one of each size.

`make nightly` runs 10, 2 and a fifth of a history for each of its 200 kills, with 2, 8 and 32 claimants.
"""

import pytest

from tests.kubernetes.subject import KubernetesSubject
from videoflow.testing.examiners.allocation import history

FIRST = 10_000
FULL = 200
PER_KILL = {2: 10.0, 8: 2.0, 32: 0.2}


@pytest.mark.timeout(3600)
@pytest.mark.parametrize("claimants", PER_KILL)
def test_histories_of_racing_claimants_leave_a_cluster_as_it_was(kills: int, claimants: int) -> None:
    histories = int(kills * PER_KILL[claimants]) if kills >= FULL else 1
    served = [history(KubernetesSubject(), FIRST + seed, claimants) for seed in range(histories)]
    assert sum(served) >= histories
