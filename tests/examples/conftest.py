"""One folder of runs for all tests of the examples."""

import pytest

from tests.examples.running import Runs


@pytest.fixture(scope="session")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Runs:
    """The runs of the examples."""
    return Runs(tmp_path_factory.mktemp("examples"))
