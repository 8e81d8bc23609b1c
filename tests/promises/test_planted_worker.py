"""Promises of the worker, of replays and of who watches over a run: each has a defect that a test notices."""

from collections.abc import Collection
from pathlib import Path

import pytest

from tests.promises.planting import Change, Planted

CORE, NODES, PENDING = "worker/core/_core.py", "worker/_nodes.py", "worker/core/_pending.py"
CONCLUDING, PAYLOADS, RECORDS = "worker/core/_concluding.py", "worker/_payloads.py", "worker/_records.py"
SHELL, SUSPENDING, REPLAYING = "worker/_shell.py", "worker/_suspending.py", "engines/_replaying.py"
CHECKPOINTS = "worker/core/_checkpoints.py"
REPLAYED, REPLICAS = "nodes/replayed.py", "engines/_threads_replicas.py"
TASKS, JUDGING = "planner/_tasks.py", "planner/_judging_engine.py"

SINKS, UNDECODABLE = "tests/worker/test_fused_sinks.py::", "tests/worker/test_undecodable.py::"
TRAFFIC, GATHERED = "tests/worker/test_payload_traffic.py::", "tests/state/test_replay_gathered.py::"
REPLAY, MARKERS = "tests/state/test_replay.py::", "tests/state/test_resumed_markers.py::"
WATCHING, PLANNED = "tests/engines/test_watching_over.py::", "tests/planner/test_tasks.py::"
ONCE, REQUIRING = "tests/worker/test_partitions.py::", "tests/planner/test_requiring.py::"
METER, COSTS = "worker/_meter.py", "engines/_costs.py"
PROFILE, FUSED = "tests/engines/test_profile.py::", "tests/engines/test_measured_fusing.py::"

OPTIONS = ("-q", "-n", "0", "-p", "no:cacheprovider", "--tb", "short", "--no-header", "-o", "timeout=50")

# What is planted; where; the test that must fail, and words of its complaint.
DEFECTS: dict[str, tuple[Change, str, str]] = {
    "state is committed ahead of its sink": (
        Change(NODES, "        for _ in range(held):\n", "        while self._held:\n"),
        SINKS + "test_what_a_node_keeps_is_never_ahead_of_what_the_sink_below_it_made_durable[Sum]",
        "assert [",
    ),
    "what is flushed into a sink stays undone": (
        Change(CONCLUDING, "        yield from self.flushed_into(consumed)\n", ""),
        SINKS + "test_what_is_flushed_into_a_sink_of_the_same_task_is_made_durable",
        "five sums, and what they came to",
    ),
    "what a suspended sink holds never came out": (
        Change(CHECKPOINTS, "                yield from self.settle(Pending([], [], inner))\n", ""),
        SINKS + "test_what_a_sink_holds_when_a_run_is_suspended_has_come_out_of_the_nodes_above_it",
        "never came out",
    ),
    "what is flushed inside a task is of no source": (
        Change("worker/core/_walk.py", "last=at.ordinal, source=at.node, after", "last=at.ordinal, after"),
        SINKS + "test_a_sink_is_told_the_same_of_what_is_flushed_fused_or_not",
        "assert ",
    ),
    "a source keeps its sink from saying what is durable": (
        Change(
            "planner/_grouping.py",
            "    if first.kind is NodeKind.PRODUCER:\n        yield",
            '    if sink.name == "":\n        yield',
        ),
        PLANNED + "test_a_sink_with_checkpoints_is_fused_where_it_speaks_for_the_whole_task",
        "DID NOT RAISE",
    ),
    "more is asked for before what came is settled": (
        Change(CORE, "if self.pending and not self._more:", "if self.pending and self._once:"),
        "tests/worker/test_bursts.py::"
        "test_what_came_is_settled_before_more_is_asked_for_where_there_was_no_more[True]",
        "it asked for more",
    ),
    "what a source has answered is taken for an answer of the node behind it": (
        Change("worker/core/_burst.py", "made.answers = answers[1:]", "made.answers = answers"),
        "tests/worker/test_bursts.py::"
        "test_what_a_source_has_answered_is_not_answered_for_the_nodes_behind_it[True]",
        "assert [",
    ),
    "what lies between items that were dropped together is taken for dropped": (
        Change(
            "worker/core/_groups.py",
            "intervals = envelope.intervals or",
            "said = [n for both in envelope.intervals for n in both]\n"
            "    intervals = ((said[0], said[-1]),) if said else",
        ),
        "tests/worker/test_ends.py::"
        "test_items_that_were_dropped_together_out_of_turn_are_said_to_be_dropped_and_none_between_them",
        "assert [",
    ),
    "a commit forgets an epoch that is over": (
        Change("worker/core/_order.py", "for at in self._epochs.items()}", "for at in ()}"),
        "tests/simulation/test_found_ends.py::"
        "test_what_came_in_an_epoch_that_is_over_is_known_when_nothing_of_the_next_one_has_come",
        "assert [",
    ),
    "a burst forgets what key an item was given": (
        Change("worker/core/_burst.py", "key = given.key if key is None else key", "key = given.key"),
        "tests/worker/test_bursts.py::test_a_burst_says_what_the_walk_says[None]",
        "assert made.publications == publications",
    ),
    "what a source holds back waits for its next item": (
        Change("worker/_linger.py", "self._out = due and self.inside", "self._out = False and self.inside"),
        "tests/worker/test_linger.py::test_what_is_held_is_published_while_user_code_runs",
        "nobody published what was held",
    ),
    "results wait for an input behind them": (
        Change("worker/_shell.py", "self._linger if action.lingers else NEVER", "NEVER"),
        "tests/worker/test_linger.py::"
        "test_results_come_out_while_an_input_that_came_with_theirs_is_worked_on[source0-node0]",
        "a result did not come out",
    ),
    "results wait for an input behind them that is worked on alone": (
        Change(
            "worker/core/_concluding.py",
            "        if self.outbox or not self.pending.publications:\n",
            "        if self.outbox or self.pending.publications:\n",
        ),
        "tests/worker/test_linger.py::"
        "test_results_come_out_while_an_input_that_came_with_theirs_is_worked_on[source1-node1]",
        "a result did not come out",
    ),
    "an ended epoch is forgotten by who starts again": (
        Change("worker/core/_epochs.py", "        if news:\n", "        if news and not self._over:\n"),
        "tests/worker/test_ends.py::"
        "test_an_epoch_that_ended_is_over_for_a_reader_that_starts_again_before_the_next_one_begins",
        "assert ",
    ),
    "a recorded answer loses what happened inside": (
        Change(CORE, "        if commits or pending.once:\n", "        if commits:\n"),
        SINKS + "test_an_answer_that_is_recalled_keeps_what_happened_inside_its_task",
        "assert [",
    ),
    "a marker is durable before anything behind it is": (
        Change(PENDING, "if held.consumed or final or not any(", "if held.consumed or final or any("),
        SINKS + "test_a_marker_is_settled_with_an_input_behind_it_or_at_the_end",
        "assert [",
    ),
    "what is skipped waits for a sink that waits for more": (
        Change(
            CHECKPOINTS,
            "count > self._kept or (count > most and holding.data > most)",
            "holding.unsettled > most",
        ),
        SINKS + "test_what_a_node_skips_does_not_wait_for_more_than_may_come[Sum]",
        "deadlock",
    ),
    "what never comes to a sink is settled before the cursor passes it": (
        Change(
            CHECKPOINTS,
            "        self._finished_checkpoint = False\n        holding.inputs.append(HeldInput(outcome",
            "        if not data:\n"
            "            yield from self.settle(Pending([], settlements, outcome.inner))\n"
            "            return\n"
            "        self._finished_checkpoint = False\n        holding.inputs.append(HeldInput(outcome",
        ),
        SINKS + "test_what_never_comes_to_a_sink_is_not_missing_when_the_sink_starts_again",
        "the run failed, and nothing was wrong",
    ),
    "a failed parent swallows what another one says of several items": (
        Change("worker/core/_order.py", ", *line.silent(found)])", "])"),
        "tests/simulation/test_found_ends.py::"
        "test_what_was_dropped_together_is_taken_apart_where_a_parent_has_failed",
        "deadlock",
    ),
    "what was dropped beside an item is settled in the run that goes on": (
        Change("worker/_suspending.py", "_together(_without(records, held), ", "_together(records, "),
        "tests/simulation/test_found_ends.py::"
        "test_what_is_kept_with_something_dropped_is_not_taken_for_settled_when_the_run_goes_on",
        "came again",
    ),
    "what is published meanwhile is told later": (
        Change("worker/core/_burst.py", "hold(made.publications, made.inner)", "hold(made.publications)"),
        "tests/simulation/test_found_ends.py::"
        "test_what_was_published_while_its_source_waited_is_in_the_ledger_where_that_died_then",
        "which does not exist",
    ),
    "the end of an epoch is kept before what a sink holds of it is durable": (
        Change(
            "worker/core/_epochs.py",
            "        for token, _ in settlements if self._ends else ():\n"
            '            node, epoch = self._ends.pop(message_of(token), ("", -1))\n',
            "        for message in list(self._ends):\n            node, epoch = self._ends.pop(message)\n",
        ),
        "tests/simulation/test_found_ends.py::"
        "test_what_a_sink_holds_of_an_epoch_is_given_again_although_the_epoch_is_over",
        "never came out",
    ),
    "a failure that was not told stays untold": (
        Change("worker/_shell.py", "            self._tell_failed(standing)\n", "            pass\n"),
        "tests/simulation/test_found_ends.py::"
        "test_a_failure_is_told_by_who_starts_again_where_its_process_died_before_it_told[False]",
        "deadlock",
    ),
    "last words are never recorded": (
        Change("worker/core/_concluding.py", "suspect=self.start.restarted", "suspect=False"),
        "tests/simulation/test_found_ends.py::"
        "test_last_words_that_end_the_process_of_a_node_below_are_put_aside_like_an_input",
        "'last'",
    ),
    "what a source gave and never said counts as made": (
        Change("engines/_account.py", "        elif refs:\n", "        elif refs and False:\n"),
        "tests/simulation/test_found_ends.py::test_what_a_source_never_said_is_not_made_where_the_run_was_stopped",
        "was never given item 0.0 of source",
    ),
    "a marker is settled with what came before it": (
        Change(CHECKPOINTS, "settlements, [], markers=True)", "settlements, [])"),
        "tests/worker/test_marked_sinks.py::test_no_marker_is_lost[False]",
        "assert {",
    ),
    "a hiccup of the store passes for lost bytes": (
        Change(PAYLOADS, "Failure(Disposition.TRANSIENT, f", "Failure(Disposition.POISON, f"),
        UNDECODABLE + "test_a_hiccup_of_the_store_is_waited_for_however_long_it_lasts",
        "Failure",
    ),
    "what cannot be decoded is not kept": (
        Change(RECORDS, "members[name] = bytes(came.body)", 'members[name] = b"\\xc0"'),
        UNDECODABLE + "test_what_cannot_be_decoded_is_put_aside_once_and_the_rest_passes[1]",
        "DID NOT RAISE",
    ),
    "each stage stores a frame anew": (
        Change(PAYLOADS, "store.capabilities().forwards_references", "False"),
        TRAFFIC + "test_an_unchanged_frame_is_stored_once_through_five_stages",
        "stored for",
    ),
    "a slow read keeps figures from being told": (
        Change(
            SHELL,
            "        a.Load: lambda self, action: self._reading.load(action),\n",
            "        a.Load: lambda self, action: (\n"
            "            self._nodes.figures.lock.acquire(),\n"
            "            self._reading.load(action),\n"
            "            self._nodes.figures.lock.release(),\n"
            "        )[1],\n",
        ),
        TRAFFIC + "test_heartbeats_and_orders_pass_while_a_payload_is_read_slowly",
        "LinkClosed",
    ),
    "a replay takes letters that nobody named": (
        Change("engines/replay.py", "    return chosen or letters\n", "    return letters\n"),
        REPLAY + "test_one_letter_from_the_command_line_with_a_folder_for_what_is_relative",
        "too many values to unpack",
    ),
    "a replay keeps groups that are not whole": (
        Change("engines/replay.py", 'same = ("on_error",', 'same = ("fuse", "on_error",'),
        GATHERED + "test_what_ran_in_a_group_is_replayed_without_it_and_with_state_of_its_own",
        "it cannot be fused",
    ),
    "a letter stands for all elements": (
        Change(REPLAYED, "if letter.k == place.k), None)", "if letter.k == place.k or place.k >= 0), None)"),
        GATHERED + "test_elements_without_a_letter_are_missing[threads]",
        "the last is what it was told by markers",
    ),
    "a kept marker is forgotten": (
        Change(SUSPENDING, "list(markers) if any(markers) else []", "[]"),
        MARKERS + "test_markers_before_and_after_the_stop_are_those_of_one_run[threads]",
        "assert ",
    ),
    "a call may hang for a minute more": (
        Change("engines/_endings.py", "now - since <= limit:", "now - since <= limit + 60:"),
        WATCHING + "test_a_call_that_hangs_is_named_although_the_others_go_on",
        "assert ",
    ),
    "a long call is a stall": (
        Change(REPLICAS, "        return bool(self.calling) or any(r.", "        return any(r."),
        WATCHING + "test_warming_up_a_long_call_and_a_quiet_source_are_no_stalls[long-call]",
        "no progress for 0.5 s",
    ),
    "warming up is a stall": (
        Change(REPLICAS, "        self.opening = True\n", "        self.opening = False\n"),
        WATCHING + "test_warming_up_a_long_call_and_a_quiet_source_are_no_stalls[warm-up]",
        "no progress for 0.5 s",
    ),
    "replicas of a node with state compete": (
        Change(
            TASKS,
            '        if reason is not None:\n            cause = f"it',
            '        if reason == "":\n            cause = f"it',
        ),
        PLANNED + "test_replicas_that_cannot_compete_are_refused_with_the_reason[traits1-has a flush]",
        "DID NOT RAISE",
    ),
    "a host has any number of processors": (
        Change(JUDGING, "processors >= needed,", "processors >= 0,"),
        REQUIRING + "test_a_replica_that_no_host_can_hold_is_refused_and_shared_processors_are_a_note",
        "DID NOT RAISE",
    ),
    "the memory of one replica is that of all": (
        Change(JUDGING, "sum(task.replicas * (task.memory_bytes", "sum(1 * (task.memory_bytes"),
        REQUIRING + "test_memory_that_nodes_ask_for_is_counted_beside_the_buffers",
        "DID NOT RAISE",
    ),
    "a quantile is made of the mean": (
        Change(
            "worker/_figures.py",
            "        return _quantile(self.buckets, share)\n",
            "        return self.seconds / max(1, self.items)\n",
        ),
        "tests/worker/test_figures.py::test_quantiles_are_those_of_the_calls_and_not_of_their_mean",
        "assert ",
    ),
    "what died before it forgot is kept for ever": (
        Change(CORE, "            yield ForgetOnce()\n", "            yield from self.settle(Pending())\n"),
        ONCE + "test_what_replicas_answer_by_chance_is_said_once[0-0.0]",
        "an answer is kept whose input is settled",
    ),
}

DEFECTS |= {
    "a wait for room counts as publishing": (
        Change(METER, "waits = Part.BLOCKED if frame.part in _WRITES else frame.part", "waits = frame.part"),
        "tests/worker/test_meter.py::test_a_wait_within_a_publication_is_waiting_for_room_and_no_part_of_it",
        "assert ",
    ),
    "what another thread does is counted": (
        Change(METER, "        return threading.get_ident() == self._thread\n", "        return True\n"),
        "tests/worker/test_meter.py::test_another_thread_is_not_counted",
        "assert ",
    ),
    "a node is blamed for its hops": (
        Change("engines/_profile.py", "        if around > task.busy_seconds:\n", "        if not task:\n"),
        PROFILE + "test_a_task_that_mostly_hands_over_is_not_blamed_on_its_node",
        "assert ",
    ),
    "another node passes for the measured one": (
        Change(COSTS, "        if digests.get(name) == known.digest\n", "        if name in digests\n"),
        FUSED + "test_a_node_with_other_arguments_or_another_file_was_not_measured",
        "assert ",
    ),
    "a run that goes on is planned anew": (
        Change(COSTS, "    if request.options.resume:\n", "    if not request:\n"),
        FUSED + "test_a_run_goes_on_in_the_tasks_in_which_it_was_stopped",
        "its tasks are not those of this plan",
    ),
}

ALWAYS = (
    "state is committed ahead of its sink",
    "what is flushed into a sink stays undone",
    "a marker is durable before anything behind it is",
    "a hiccup of the store passes for lost bytes",
    "what cannot be decoded is not kept",
    "each stage stores a frame anew",
    "a slow read keeps figures from being told",
    "a letter stands for all elements",
)


def unnoticed(folder: Path, names: Collection[str]) -> dict[str, str]:
    """Plants some in one copy, since they are far from each other; returns those that no test notices.

    One that another one of the copy hides is planted alone.
    """
    missed = _unnoticed_together(folder / "together", names)
    if len(names) == 1:
        return missed
    alone = (_unnoticed_together(folder / str(number), [name]) for number, name in enumerate(missed))
    return {name: said for each in alone for name, said in each.items()}


def _unnoticed_together(folder: Path, names: Collection[str]) -> dict[str, str]:
    planted = Planted(folder, [DEFECTS[name][0] for name in names])
    ran = planted.module("pytest", *OPTIONS, *sorted(DEFECTS[name][1] for name in names))
    assert ran.status == 1, ran.output
    missed = {}
    for name in names:
        _, test, complaint = DEFECTS[name]
        said = ran.output.partition(f"_ {test.partition('::')[2]} _")[2].partition("\n____")[0]
        if complaint not in said:
            missed[name] = said or ran.output
    return missed


def test_the_suite_notices_those_that_are_planted_each_time(tmp_path: Path) -> None:
    assert unnoticed(tmp_path, ALWAYS) == {}


@pytest.mark.nightly
@pytest.mark.parametrize("folder", sorted({test.split("/")[1] for _, test, _ in DEFECTS.values()}))
def test_the_suite_notices_all_others(folder: str, tmp_path: Path) -> None:
    here = {name for name, (_, test, _) in DEFECTS.items() if test.split("/")[1] == folder}
    assert unnoticed(tmp_path, here - set(ALWAYS)) == {}
