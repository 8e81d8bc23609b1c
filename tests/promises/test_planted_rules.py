"""Each rule of the worker has a defect here that some test of the suite must notice."""

from pathlib import Path

import pytest

from tests.promises.planting import Change, Planted, sampled

CORE = "worker/core/_core.py"
CONCLUDING = "worker/core/_concluding.py"
SOURCE = "worker/core/_source.py"
WALK = "worker/core/_walk.py"
ELEMENTS = "worker/core/_elements.py"
GROUPS = "worker/core/_groups.py"
CHECKPOINTS = "worker/core/_checkpoints.py"
CHANNEL = "backends/memory/_channel.py"

PUBLISH = "        yield from self.publish(said)\n"
AGAIN = "        yield from self.say_again(pending.recalled)\n"
SETTLE = "        yield from self.settle(pending)\n"
SAID = "        said = pending.flat()\n"
COMMIT = "            yield from self.commit(action)\n"

RULES = "tests/promises/test_rules.py::"
STEPPED = "tests/worker/test_core.py::"
THREADS = "tests/engines/test_threads.py::"
MEMORY = "tests/contracts/test_messaging.py::TestMemory::"

# What is planted; where; the test that must fail, and words of its complaint.
DEFECTS: dict[str, tuple[Change, str, str]] = {
    "it settles before it publishes": (
        Change(
            CORE,
            PUBLISH + AGAIN + SETTLE,
            SETTLE + PUBLISH + AGAIN,
        ),
        STEPPED + "test_whatever_dies_nothing_is_lost_or_said_twice[True-0]",
        'assert said(bench, "total") == wanted',
    ),
    "it publishes before it commits": (
        Change(
            CORE,
            COMMIT + SAID,
            f"            yield from self.publish(pending.flat())\n{COMMIT}{SAID}",
        ),
        RULES + "test_what_is_published_is_what_was_committed_however_often_it_was_worked_out[0]",
        "assert published == {name: committed[name] for name in published}",
    ),
    "a source commits before it publishes": (
        Change(
            SOURCE,
            "            yield from self.publish(pending.flat())\n            due = ",
            "            if self._uncommitted_items:\n                yield from self._commit(())\n"
            "            yield from self.publish(pending.flat())\n            due = ",
        ),
        STEPPED + "test_whatever_dies_nothing_is_lost_or_said_twice[True-5]",
        'assert said(bench, "total") == wanted',
    ),
    "an ordered reader takes what comes": (
        Change(
            CORE,
            "self._competing = task.mode is InputMode.COMPETING",
            "self._competing = len(start.program.entry.input_names) == 1",
        ),
        STEPPED + "test_a_fan_out_keeps_its_order_below_replicas[0]",
        "assert consumed(bench) == ",
    ),
    "a join ignores a skip": (
        Change(ELEMENTS, " or not said or (gone and not missing_is_none)", " or not said"),
        STEPPED + "test_a_skipped_branch_skips_the_group_or_is_none[0]",
        "assert consumed(bench) == ",
    ),
    "it flushes again": (
        Change(
            CONCLUDING,
            "not self.program.flushing or self.start.committed.flushed",
            "not self.program.flushing",
        ),
        RULES + "test_nobody_is_asked_for_last_words_that_were_committed[1]",
        "flushed_again == 0",
    ),
    "it ends before its last words": (
        Change(
            CORE,
            "            if not (aborted or self.suspended):\n                yield from self.flush",
            "            if not (aborted or self.suspended):\n                yield Terminate(Kind.END)\n"
            "                yield from self.flush",
        ),
        STEPPED + "test_outputs_of_a_stateful_task_are_committed_before_they_are_published",
        "published after its terminator",
    ),
    "a failed attempt keeps its state": (
        Change(
            "worker/_nodes.py",
            "                state.rollback()\n",
            "                state.keep()\n",
        ),
        RULES + "test_an_attempt_that_failed_leaves_nothing_in_the_state",
        'assert report.values["rows"] == ',
    ),
    "a dead letter makes no skip": (
        Change(
            WALK,
            "        if not emitted:\n",
            "        if element.cause is Cause.DEAD_LETTER:\n            return []\n"
            "        if not emitted:\n",
        ),
        STEPPED + "test_a_poisoned_input_is_put_aside_and_its_neighbours_are_not[0]",
        "assert consumed(bench) == ",
    ),
    "a commit covers what was not worked on": (
        Change(CORE, "msgspec.msgpack.encode(self._worked)", "self._cursor()"),
        STEPPED + "test_whatever_dies_nothing_is_lost_or_said_twice[True-7]",
        'assert said(bench, "total") == wanted',
    ),
    "an abort ends like an end": (
        Change(
            CORE,
            "            yield from self._abandon()\n            kind = Kind.ABORT\n",
            "            yield from self._abandon()\n            kind = Kind.END\n",
        ),
        STEPPED + "test_a_fatal_node_aborts_what_waits_for_it_and_the_rest_drains[0]",
        'assert bench.failed == "left"',
    ),
    "a sink settles what is not durable": (
        Change(
            CHECKPOINTS,
            "self.holding.durable(count, final=final)",
            "self.holding.durable(self.holding.unsettled, final=final)",
        ),
        STEPPED + "test_a_sink_with_checkpoints_writes_everything_once_whatever_dies[0]",
        "called 5 inputs durable, it held 1",
    ),
    "a first delivery is charged": (
        Change(GROUPS, "delivery.token.transport_count > 1", "delivery.token.transport_count > 0"),
        STEPPED + "test_a_killer_is_put_aside_within_its_budget_and_its_neighbours_are_not[True-0]",
        "the first death leaves no record",
    ),
    "a channel forgets what was said": (
        Change(
            CHANNEL,
            "            elif self.announced.covers(envelope.origin, envelope.path):\n"
            "                return None\n",
            "",
        ),
        MEMORY + "test_a_repetition_is_recognised_before_and_after_settlement_and_across_writers",
        "assert ",
    ),
}


ALWAYS = (
    "it settles before it publishes",
    "it publishes before it commits",
    "an ordered reader takes what comes",
    "a join ignores a skip",
    "a channel forgets what was said",
)


@pytest.mark.parametrize("name", sampled(DEFECTS, ALWAYS))
def test_the_suite_notices(name: str, tmp_path: Path) -> None:
    change, test, complaint = DEFECTS[name]
    ran = Planted(tmp_path, [change]).test(test)
    assert ran.status == 1, ran.output
    assert complaint in ran.output


def test_nothing_is_noticed_where_nothing_is_planted(tmp_path: Path) -> None:
    ran = Planted(tmp_path).test(*{test for _, test, _ in DEFECTS.values()})
    assert ran.status == 0, ran.output
