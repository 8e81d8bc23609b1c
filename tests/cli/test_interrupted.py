"""Ctrl-C while the command is still being loaded."""

import sys

import pytest

import videoflow.cli


class Interrupted:
    """Finds modules, until the user loses patience."""

    def find_spec(self, name: str, path: object = None, target: object = None) -> None:
        if name == "videoflow.cli.app":
            raise KeyboardInterrupt


def test_an_interruption_of_the_start_is_no_trace(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "videoflow.cli.app", raising=False)
    monkeypatch.setattr(sys, "meta_path", [Interrupted(), *sys.meta_path])
    assert videoflow.cli.main() == 130
