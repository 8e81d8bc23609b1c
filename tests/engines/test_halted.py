"""A worker that was stopped by a signal is no sign of life, whatever it was doing."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from videoflow.engines._local_replica import Replica
from videoflow.processes import is_halted


@pytest.fixture
def waiting() -> Iterator[int]:
    """A process that waits for ever, or until the test has ended."""
    process = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    yield process.pid
    process.kill()
    process.communicate()


def test_a_process_is_halted_from_its_stop_until_it_goes_on(waiting: int) -> None:
    assert not is_halted(waiting)
    os.kill(waiting, signal.SIGSTOP)
    os.waitpid(waiting, os.WUNTRACED)
    assert is_halted(waiting)
    os.kill(waiting, signal.SIGCONT)
    os.waitpid(waiting, os.WCONTINUED)
    assert not is_halted(waiting)


def test_a_halted_worker_is_not_busy_in_its_call(waiting: int) -> None:
    task: Any = SimpleNamespace(name="node")
    process: Any = SimpleNamespace(pid=waiting, page=SimpleNamespace(calling=("node", 0.0)))
    replica = Replica(task, 0, process=process, opened=True)
    assert replica.busy
    os.kill(waiting, signal.SIGSTOP)
    os.waitpid(waiting, os.WUNTRACED)
    assert not replica.busy
