"""How long the random schedules of the contracts are."""

import pytest


@pytest.fixture
def schedules() -> int:
    """How many times as many examples as a quick run has; `tests/storm` runs more."""
    return 1
