"""Each promise of markers has a defect here that some test must notice."""

from pathlib import Path

import pytest

from tests.promises.planting import Change, Planted, sampled

MARKERS = "worker/core/_markers.py"
STEPPED = "tests/worker/test_markers.py::"
ENGINES = "tests/engines/test_markers.py::"
EACH = "test_every_replica_is_given_every_marker_and_the_results_are_as_without"
BROADCAST = "tests/contracts/test_messaging.py::"

# What is planted; where; the test that must fail, and words of its complaint.
DEFECTS: dict[str, tuple[Change, str, str]] = {
    "markers gate completion": (
        Change(
            MARKERS,
            "            if not any(markers):\n                break\n",
            "            if not any(markers):\n"
            "                from videoflow.worker.core.actions import Pull\n\n"
            "                yield Pull((None,), 1, wait=True)\n                break\n",
        ),
        STEPPED + "test_a_task_ends_with_its_inputs_though_its_markers_go_on[0]",
        "deadlock: ",
    ),
    "markers reach one replica only": (
        Change(
            "worker/_names.py",
            "return SubscriptionId(channel, plan.reader, kind, None, slot)",
            "return SubscriptionId(channel, plan.reader, kind, None, 0)",
        ),
        STEPPED + EACH + "[0-competing-0.0]",
        "AssertionError",
    ),
    "the last markers are left": (
        Change("worker/core/_core.py", "            yield from self.last_markers()\n", ""),
        STEPPED + EACH,
        "AssertionError",
    ),
    "a marker that failed counts as delivered": (
        Change(
            MARKERS,
            "if reference is None else Terminal(reference)",
            "if reference != 0 else Terminal(reference)",
        ),
        STEPPED + "test_a_poisonous_marker_is_put_aside_and_is_no_input[0-competing]",
        "isinstance(",
    ),
    "a marker is a suspect too late": (
        Change(
            MARKERS,
            "suspect=is_suspect(delivery)",
            "suspect=delivery.token.transport_count > 2",
        ),
        STEPPED + "test_a_marker_that_ends_its_process_is_put_aside_after_as_many_attempts_as_an_input[0]",
        "the first death leaves no record",
    ),
    "markers are charged to the inputs' credit": (
        Change(
            "planner/_wiring.py",
            "return ChannelRef(node=parent.node, port=parent.port, reliability=Reliability.LIVE)",
            "return ChannelRef(node=parent.node, port=parent.port)",
        ),
        "tests/planner/test_markers.py::"
        "test_markers_have_a_live_channel_and_a_broadcast_to_each_replica_beside_the_inputs",
        "<Reliability.RELIABLE: 'reliable'> is <Reliability.LIVE: 'live'>",
    ),
    "a marker counts as an item of its node": (
        Change(
            "worker/_nodes.py",
            "            self.figures.nodes[name].seconds += seconds\n        return Returned((), seconds)",
            "            self.figures.nodes[name].called(seconds, 0)\n        return Returned((), seconds)",
        ),
        ENGINES + "test_every_replica_is_given_every_marker_and_the_ledger_closes[threads-competing]",
        "were delivered",
    ),
    "memory leaves a tombstone": (
        Change(
            "backends/memory/_subscription.py",
            "if self.id.slot is not None:  # a broadcast leaves no tombstone",
            "if self.id.slot == -1:",
        ),
        BROADCAST + "TestMemory::test_too_many_drop_the_oldest_and_leave_no_tombstone",
        "broken law messaging.broadcast",
    ),
    "shared memory hands out skips": (
        Change(
            "adapters/shm/_broadcast.py",
            "            elif record.data:\n",
            "            elif record is not None:\n",
        ),
        BROADCAST + "TestShm::test_skips_are_noted_and_not_handed_out",
        "broken law messaging.broadcast",
    ),
    "shared memory waits for a dead reader": (
        Change(
            "adapters/shm/_broadcast.py",
            "return sequence in self.returned or self._ungiven(sequence)",
            "return False",
        ),
        BROADCAST + "TestShm::test_a_dead_reader_holds_nobody_up",
        "broken law messaging.broadcast-unhindered",
    ),
}


ALWAYS = (
    "markers gate completion",
    "markers reach one replica only",
    "markers are charged to the inputs' credit",
)


@pytest.mark.parametrize("name", sampled(DEFECTS, ALWAYS))
def test_the_defect_is_noticed(name: str, tmp_path: Path) -> None:
    change, test, words = DEFECTS[name]
    ran = Planted(tmp_path, [change]).test(test)
    assert ran.status == 1, ran.output
    assert words in ran.output, ran.output
