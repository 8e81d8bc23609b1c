"""Promises of batches: each has a defect that a test notices."""

from pathlib import Path

import pytest

from tests.promises.planting import Change, Planted, sampled

BATCHING, GATHERED = "worker/core/_batching.py", "worker/core/_gathered.py"
TESTS = "tests/worker/test_batching.py::"

# What is planted; where; the test that must fail, and words of its complaint.
DEFECTS: dict[str, tuple[Change, str, str]] = {
    "a batch waits for more when no more can come": (
        Change(
            BATCHING,
            "        if self._held_up or all(progress.drained for progress in self._progress):\n",
            "        if self._held_up:\n",
        ),
        TESTS + "test_nobody_waits_for_more_when_no_more_can_come",
        "it waited at the end",
    ),
    "a bad one takes its batch along": (
        Change(
            BATCHING,
            "            elif len(called) == 1:\n                answers = [(answer,)]\n",
            "            else:\n                answers = [(answer,)] * len(called)\n",
        ),
        TESTS + "test_a_batch_that_raises_takes_nobody_along",
        "assert [",
    ),
    "the most frequent shape goes first": (
        Change(
            GATHERED,
            "    first = next((one.kind for one in row if one.called), None)\n",
            "    kinds = [one.kind for one in row]\n    first = max(kinds, key=kinds.count)\n",
        ),
        TESTS + "test_the_oldest_goes_first_whatever_its_shape[options0]",
        "somebody younger went before the oldest",
    ),
    "a batch goes with inputs of any shape": (
        Change(GATHERED, "    return () if group_by is None else ", "    return () if group_by else "),
        TESTS + "test_what_is_said_of_an_input_is_what_is_said_of_it_alone[shaped-unordered]",
        "a call was given two shapes",
    ),
    "results are mixed up": (
        Change(BATCHING, "        given = iter(answers)\n", "        given = reversed(answers)\n"),
        TESTS + "test_what_is_said_of_an_input_is_what_is_said_of_it_alone[any-unordered]",
        "assert said(bench) == alone",
    ),
    "a suspect is called with others": (
        Change(BATCHING, "        if group.suspect:\n", "        if group.suspect and not self._gathered:\n"),
        TESTS + "test_deaths_change_nothing_and_a_suspect_is_called_alone[replicas]",
        "a suspect was called with others",
    ),
    "the newest says how long a batch waits": (
        Change(BATCHING, "until = row[0].since + ", "until = row[-1].since + "),
        TESTS + "test_nobody_waits_longer_than_it_may",
        "a wait was made longer",
    ),
    "what was told while inputs waited is forgotten": (
        Change(
            BATCHING,
            "        self._held_up, self._behind_news = False, True\n",
            "        self._held_up = False\n",
        ),
        "tests/simulation/test_found_ends.py::"
        "test_inputs_that_waited_for_others_while_the_end_was_told_do_not_keep_a_resumed_run",
        "deadlock",
    ),
    "a window that is used up is waited for": (
        Change(
            "worker/_reading.py",
            "                if behind > plan.spread - len(lasts):\n",
            "                if behind > plan.spread + 1000:\n",
        ),
        "tests/engines/test_batching.py::test_a_window_that_is_used_up_is_not_waited_for[threads]",
        "somebody waited in vain",
    ),
    "a commit covers what waits for others": (
        Change(
            BATCHING,
            "            return self._gathered[0].before\n",
            "            return self._order.cursor()\n",
        ),
        TESTS + "test_deaths_change_nothing_and_a_suspect_is_called_alone[committed]",
        "assert ",
    ),
}


ALWAYS = ("a batch waits for more when no more can come",)


@pytest.mark.parametrize("name", sampled(DEFECTS, ALWAYS))
def test_the_suite_notices(name: str, tmp_path: Path) -> None:
    change, test, complaint = DEFECTS[name]
    ran = Planted(tmp_path, [change]).test(test)
    assert ran.status == 1, ran.output
    assert complaint in ran.output
