"""What tests of the command line share: a home of their own."""

from pathlib import Path

import pytest


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The home folder of videoflow, for every test alone."""
    monkeypatch.setenv("VIDEOFLOW_HOME", str(tmp_path / "home"))
    monkeypatch.delenv("COLUMNS", raising=False)
    return tmp_path / "home"
