"""What makes a run fast can each be left out, and nothing else changes: kills, simulation and examples alike.

Only `make nightly` runs it. With everything on, the other tests of the storm, the search and the examples do.
"""

from pathlib import Path

import pytest

from tests.promises.planting import PRODUCT, Change, Planted
from tools.simulate import noticed

SCHEDULES = 3000
SECONDS = 900.0
MODELS = Path("nodes/vision/models")  # which a copy leaves out
STORM = ("tests/storm/test_storm.py", "tests/storm/test_parts.py", "tests/storm/test_live_edges.py")
EXAMPLES = ("tests/examples/test_examples.py",)
OPTIONS = ("-q", "-x", "-n", "0", "-p", "no:cacheprovider", "-o", "timeout=800", "--no-header")

WITHOUT = {
    "bursts": Change(
        "worker/core/_burst.py",
        "    return plain and whole and program.checkpointing is None\n",
        "    return False\n",
    ),
    "items that wait for company": Change(
        "worker/core/_burst.py", "QUICK_SECONDS = 0.001", "QUICK_SECONDS = 0.0"
    ),
    "results that come out meanwhile": Change(
        "worker/_shell.py",
        "        lingers = self._linger if action.lingers else NEVER\n",
        "        lingers = NEVER\n",
    ),
    "references that are handed on": Change(
        "worker/_payloads.py", "store.capabilities().forwards_references", "False"
    ),
    "more of small items at a time": Change(
        "planner/_facts.py", "    small_prefetch: int = 64\n", "    small_prefetch: int = 1\n"
    ),
    "appends of many at once": Change(
        "adapters/shm/_outlet.py",
        "        if words[place.end] or first.writer.epoch < words[place.epoch]:\n            return []\n",
        "        if words is not None:\n            return []\n",
    ),
    "waits without a look": Change(
        "worker/_reading.py",
        "        rests = action.wait and action.until is None and self._is_far_from_its_end()\n",
        "        rests = False\n",
    ),
    "one look for who waited": Change(
        "adapters/shm/_receiving.py",
        "        if not self._process.looked:",
        "        if self._process:",
    ),
    "one look for several subscriptions": Change(
        "adapters/shm/_receiving.py", "    def receive_each(", "    def receive_each_at_once("
    ),
    "arrays made where they are sent from": Change(
        "worker/_made.py",
        "        if able.crosses_processes and",
        "        if not able.crosses_processes and",
    ),
}


@pytest.mark.nightly
@pytest.mark.timeout(3 * SECONDS)
@pytest.mark.parametrize("name", WITHOUT)
def test_nothing_else_changes_without(name: str, tmp_path: Path) -> None:
    planted = Planted(tmp_path, [WITHOUT[name]])
    (planted.folder / "videoflow" / MODELS).symlink_to(PRODUCT / MODELS)
    ran = planted.run("-m", "pytest", *OPTIONS, "--kills", "40", *STORM, *EXAMPLES, seconds=SECONDS)
    assert ran.status == 0, ran.output[-4000:]
    seen = noticed(WITHOUT[name], tmp_path / "simulated", SCHEDULES)
    assert (seen["found"], seen["broken"]) == ([], [])
    assert seen["counted"] >= SCHEDULES
