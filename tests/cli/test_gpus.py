"""`videoflow gpus` and `doctor` where no GPU can be seen: plain words, a good exit, and nothing written."""

import json
from pathlib import Path

import pytest

from videoflow.backends.outcomes import UnknownReason, unknown
from videoflow.cli.app import main
from videoflow.deploy.allocation_local import _opening


@pytest.fixture
def silent(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A machine whose driver is not there; returns the user's folder, which does not exist."""
    missing = unknown(UnknownReason.MISSING, 0.0, "libnvidia-ml.so.1 is not there")
    monkeypatch.setattr(_opening, "read_host", lambda *found, **asked: missing)
    monkeypatch.setenv("VIDEOFLOW_HOME", str(tmp_path / "home"))
    return tmp_path / "home"


def test_no_driver_is_told_in_plain_words_and_leaves_no_trace(
    silent: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["gpus"]) == 0
    said = capsys.readouterr().out
    assert "No GPU can be seen from here. That does not mean that there is none." in said
    assert "libnvidia-ml.so.1 is not there" in said
    assert main(["gpus", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["seen"], found["devices"]) == (False, [])
    assert found["reason"].startswith("missing")
    assert not silent.exists()
