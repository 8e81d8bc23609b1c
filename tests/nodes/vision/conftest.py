"""Real footage is fetched once by the project's script; without apt, its tests are not collected."""

import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
HAS_APT = shutil.which("apt-get") is not None

collect_ignore = [] if HAS_APT else ["test_real_footage.py"]


def pytest_report_header() -> list[str]:
    return [] if HAS_APT else ["no apt-get here: tests on real footage are not collected"]


@pytest.fixture(scope="session")
def footage() -> Path:
    """The path of Debian's video of people walking, 768x576, 10 frames a second."""
    done = subprocess.run([ROOT / "tools" / "fetch_footage.sh"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return Path(done.stdout.strip())
