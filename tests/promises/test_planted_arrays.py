"""Promises of arrays that nodes make for their outputs: each has a defect that a test notices."""

from pathlib import Path

import pytest

from tests.promises.planting import Change, Planted, sampled

MADE, NODES, SHELL = "worker/_made.py", "worker/_nodes.py", "worker/_shell.py"
TESTS, RUNS = "tests/worker/test_made.py::", "tests/engines/test_made_arrays.py::"

# What is planted; where; the test that must fail, and words of its complaint.
DEFECTS: dict[str, tuple[Change, str, str]] = {
    "what a node has sent and keeps uses up the store": (
        Change(MADE, "len(self._unsent) + len(self._sealed) <", "len(self._unsent) <"),
        TESTS + "test_a_node_that_keeps_all_that_it_makes_can_still_publish[emitted]",
        "PayloadFull",
    ),
    "no publication keeps what was made for it": (
        Change(
            "worker/_payloads.py", "            self.making.claim(encoded.payloads, publication_id)\n", ""
        ),
        TESTS + "test_each_publication_keeps_what_it_names_and_the_last_one_gives_it_back",
        "names a payload that is gone",
    ),
    "who has emitted an array writes to it": (
        Change(
            "wire/_arrays.py",
            "        if array is not None:\n            array.flags.writeable = False\n",
            "        if array is not None:\n            array.flags.writeable = True\n",
        ),
        TESTS + "test_it_is_written_until_it_is_emitted_and_then_read_only",
        "DID NOT RAISE",
    ),
    "what was made and not sent stays": (
        Change(MADE, "                memory.pending.abandon()\n", "                memory.pending.seal()\n"),
        TESTS + "test_it_is_given_back_when_nobody_needs_it[never_emitted]",
        "assert ",
    ),
    "what is opened writes over an outbox": (
        Change(
            SHELL,
            "        self._nodes.restore(committed.state)\n",
            "        self._nodes.restore(committed.state)\n"
            "        self._nodes.lend(self._payloads.making.empty)\n",
        ),
        RUNS + "test_what_is_made_before_an_outbox_is_published_again_is_not_made_in_its_place",
        "assert [",
    ),
    "what stays in its task lies in the store": (
        Change(
            NODES, "max(running.limits.values(), default=0)", "max(running.limits.values(), default=1 << 20)"
        ),
        RUNS + "test_only_what_leaves_its_task_is_made_there",
        "assert all(",
    ),
}

ALWAYS = ("no publication keeps what was made for it",)


@pytest.mark.parametrize("name", sampled(DEFECTS, ALWAYS))
def test_the_suite_notices(name: str, tmp_path: Path) -> None:
    change, test, complaint = DEFECTS[name]
    ran = Planted(tmp_path, [change]).test(test)
    assert ran.status == 1, ran.output
    assert complaint in ran.output
