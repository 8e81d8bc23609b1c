"""What all tests share: the options of a run, and how generated examples are drawn."""

import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

# The processes that tests start would otherwise compile all of videoflow each time, where the environment
# forbids to keep what was compiled.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
os.environ.setdefault("PYTHONPYCACHEPREFIX", str(Path(__file__).parent.parent / ".work" / "compiled"))

NIGHTLY_KILLS = 200

# No deadlines: how long an example takes says more about the machine than about the code.
settings.register_profile(
    "house", deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow], database=None
)
settings.load_profile("house")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--kills",
        type=int,
        default=20,
        help="how many workers the crash tests kill (default 20; make storm and make nightly: 200)",
    )


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leaves out what only the nightly command runs, and says how much that is."""
    if config.getoption("--kills") >= NIGHTLY_KILLS:
        return
    late = [item for item in items if item.get_closest_marker("nightly")]
    if late:
        config.hook.pytest_deselected(items=late)
        items[:] = [item for item in items if not item.get_closest_marker("nightly")]


@pytest.fixture(scope="session")
def kills(request: pytest.FixtureRequest) -> int:
    """How many workers the crash tests kill in this run."""
    count: int = request.config.getoption("--kills")
    return count
