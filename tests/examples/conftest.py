"""One folder of runs for all tests of the examples; the tests of one example run in one process."""

import pytest

from tests.examples.running import NAMES, Runs


@pytest.fixture(scope="session")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Runs:
    """The runs of the examples."""
    return Runs(tmp_path_factory.mktemp("examples"))


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        for name in NAMES:
            if f"[{name}" in item.nodeid:
                item.add_marker(pytest.mark.xdist_group(f"example-{name}"))
