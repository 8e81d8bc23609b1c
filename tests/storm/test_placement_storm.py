"""The solver against brute force on many problems, and the rest of its planted defects.

`make nightly` runs 20 000 problems (100 for each of its 200 kills); every other run a few of them.
"""

from pathlib import Path

import pytest

from tests.placement.small import disagreement
from tests.placement.test_planted_placement import MORE_DEFECTS, notices

FIRST = 100_000
PROBLEMS_PER_KILL = 100
FULL = 200


@pytest.mark.timeout(3600)
def test_the_solver_agrees_with_brute_force_on_as_many_problems_as_asked(kills: int) -> None:
    problems = kills * PROBLEMS_PER_KILL if kills >= FULL else kills
    assert [said for seed in range(FIRST, FIRST + problems) if (said := disagreement(seed))] == []


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "defect" in metafunc.fixturenames:
        full = metafunc.config.getoption("--kills") >= FULL
        metafunc.parametrize("defect", list(MORE_DEFECTS) if full else list(MORE_DEFECTS)[:1])


def test_a_defect_of_placement_is_noticed(defect: str, tmp_path: Path) -> None:
    notices(MORE_DEFECTS[defect], tmp_path)
