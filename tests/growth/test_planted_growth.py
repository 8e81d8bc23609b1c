"""What grows with items or runs is noticed: each defect is planted in a copy, in which a test must fail."""

from pathlib import Path

import pytest

from tests.promises.planting import Change, Planted, sampled

GROWTH = "tests/growth/test_growth.py::test_a_run_of_many_items_holds_no_more_than_one_of_few"
SHORT = "tests/growth/test_short_runs.py::test_short_runs_in_"

# What is planted; the test that must fail, and words of its complaint.
DEFECTS: dict[str, tuple[Change, str, str]] = {
    "a worker keeps what it has encoded": (
        Change(
            "worker/_payloads.py",
            "        encoded = wire.encode_small(publication.value)\n",
            "        encoded = wire.encode_small(publication.value)\n"
            "        vars(self).setdefault('kept', []).append(encoded)\n",
        ),
        f"{GROWTH}[chain]",
        "doubled-0",
    ),
    "each commit leaves a record of its own": (
        Change(
            "backends/runtime/_flow.py",
            'Change(f"{key}/state/{name}", value)',
            'Change(f"{key}/state/{name}/{number}", value)',
        ),
        f"{GROWTH}[joined]",
        "records of single items are kept",
    ),
    "the thread of a run stays": (
        Change(
            "engines/_threads_run.py",
            "                self._phase = RunPhase.ENDED\n            self._ended.set_result(report)\n",
            "                self._phase = RunPhase.ENDED\n            self._ended.set_result(report)\n"
            "        threading.Event().wait()\n",
        ),
        f"{SHORT}threads_leave_nothing_open",
        "after 30 runs",
    ),
    "the memory of a run stays open": (
        Change(
            "adapters/shm/_host.py",
            "            self._release()\n            self._poll.close()\n",
            "            self._poll.close()\n",
        ),
        f"{SHORT}processes_leave_nothing_open",
        "after 1 runs",
    ),
}
ALWAYS = ("a worker keeps what it has encoded",)


@pytest.mark.parametrize("name", sampled(DEFECTS, ALWAYS))
def test_what_grows_is_noticed(name: str, tmp_path: Path) -> None:
    change, test, complaint = DEFECTS[name]
    ran = Planted(tmp_path, [change]).test(test)
    assert ran.status == 1, ran.output
    assert complaint in ran.output
