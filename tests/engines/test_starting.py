"""A worker that the system has no room for is said, and leaves nothing half made."""

import errno
import gc
import os
import resource
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from videoflow.engines._local_worker import WorkerProcess
from videoflow.errors import EnvironmentFault


def descriptors() -> set[str]:
    return set(os.listdir("/proc/self/fd"))


@contextmanager
def room_for(more: int) -> Iterator[None]:
    """Lets this process open so many more files."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    free = [os.open(os.devnull, os.O_RDONLY) for _ in range(more)]
    lowest = os.open(os.devnull, os.O_RDONLY)
    for number in (*free, lowest):
        os.close(number)
    resource.setrlimit(resource.RLIMIT_NOFILE, (lowest, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@pytest.mark.parametrize("more", range(8))
def test_too_few_files_are_said_and_none_stays_open(tmp_path: Path, more: int) -> None:
    boot: Any = SimpleNamespace(task="count")
    with (tmp_path / "kit").open("wb") as kit:
        gc.collect()  # what others left behind is not counted
        before = descriptors()
        with room_for(more), pytest.raises(EnvironmentFault, match="for task count") as caught:
            WorkerProcess(boot, [kit.fileno()], ["count"], tmp_path / "log")
        cause, remedy = caught.value.cause, caught.value.remedy
        del caught  # with the frames that hold what was half made
        gc.collect()
        assert descriptors() == before
    assert cause == os.strerror(errno.EMFILE)
    assert "ulimit -n" in remedy
