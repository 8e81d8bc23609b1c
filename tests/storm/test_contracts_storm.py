"""All defects of the contracts, and long random schedules of every adapter; part of `make nightly`."""

import sys
from pathlib import Path

import pytest
from hypothesis import settings
from hypothesis.stateful import run_state_machine_as_test

from tests.contracts.defects import DEFECTS
from tests.contracts.table import noticed, page
from tests.contracts.test_messaging_schedules import MemoryMachine, ShmPartitions, ShmTwins
from tests.contracts.test_store_schedules import Payloads, Records

MACHINES = (MemoryMachine, ShmTwins, ShmPartitions, Records, Payloads)


@pytest.mark.timeout(1500)
def test_every_defect_is_noticed_by_the_law_that_it_breaks(
    tmp_path: Path, kills: int, capsys: pytest.CaptureFixture[str]
) -> None:
    names = list(DEFECTS) if kills >= 200 else []
    found = noticed(tmp_path, names)
    with capsys.disabled():
        sys.stdout.write(page("now", found) if names else "")
    assert [name for name, laws in found.items() if DEFECTS[name].law not in laws] == []


@pytest.mark.timeout(1500)
@pytest.mark.parametrize("machine", MACHINES)
def test_long_schedules_agree(machine: type, kills: int) -> None:
    if kills >= 200:
        run_state_machine_as_test(machine, settings=settings(max_examples=400, stateful_step_count=60))
