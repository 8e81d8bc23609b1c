"""Says whether there is a second client to try the fake API server with."""

import os
import shutil

import pytest

KUBECTL = shutil.which("kubectl")
collect_ignore = [] if KUBECTL or os.environ.get("CI") else ["test_kubectl.py"]


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    if collect_ignore:
        terminalreporter.write_line("kubectl is MISSING: the fake API server was not tried with it", red=True)
