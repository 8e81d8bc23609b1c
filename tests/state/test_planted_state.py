"""State, snapshots and effect keys: a defect of each that a test must notice."""

from pathlib import Path

from tests.promises.planting import Change, Planted

KEPT, NODES = "worker/_kept.py", "worker/_nodes.py"
BOUNDS, SNAPSHOTS = "tests/state/test_bounds.py::", "tests/state/test_snapshots.py::"
REPLAY = "tests/state/test_replay.py::"
KEYS, RESUME = "tests/state/test_effect_keys.py::", "tests/state/test_resume.py::"

OPTIONS = ("-q", "-n", "0", "-p", "no:cacheprovider", "--tb", "short", "--no-header")

# What is planted; where; the test that must fail, and words of its complaint.
DEFECTS: dict[str, tuple[Change, str, str]] = {
    "a deleted key still counts": (
        Change(
            KEPT, "sum(size - self._sizes.get(key, 0) for", "sum(max(0, size - self._sizes.get(key, 0)) for"
        ),
        BOUNDS + "test_what_is_deleted_makes_room",
        "StateTooLarge",
    ),
    "a value that cannot be kept is said to be on an edge": (
        Change(
            "graph/_state.py",
            "            raise self._refused(key, error) from error.__cause__\n",
            "            raise\n",
        ),
        BOUNDS + "test_a_value_that_no_edge_carries_names_the_key_and_the_line",
        "assert ",
    ),
    "a snapshot is not counted": (
        Change(KEPT, "        self._take({name: len(body)})\n", ""),
        BOUNDS + "test_more_than_the_bound_ends_the_run_by_node_key_and_bytes",
        "DID NOT RAISE",
    ),
    "a key is that of the attempt": (
        Change(
            "graph/_context.py",
            "hash_id(self.run_id, self.node, self.input_id)",
            "hash_id(self.run_id, self.node, self.attempt)",
        ),
        KEYS + "test_a_key_is_that_of_the_input_at_every_attempt_and_of_no_other",
        "assert ",
    ),
    "a suspended task says its last words": (
        Change("worker/core/_core.py", "if not (aborted or self.suspended):", "if not aborted:"),
        RESUME + "test_two_stops_and_what_goes_on_are_one_run",
        "written(out) == files",
    ),
    "a replay writes over what is there": (
        Change("engines/replay.py", "if (flow.folder / name).exists():", "if name == name + name:"),
        REPLAY + "test_what_cannot_be_replayed_is_refused_by_name",
        "DID NOT RAISE",
    ),
    "what is missing passes for a value": (
        Change(
            "nodes/replayed.py",
            "in self._inputs.items():",
            'in {**dict.fromkeys(self.ports, next(iter(members), "")), **self._inputs}.items():',
        ),
        REPLAY + "test_the_node_and_what_is_below_it_run_and_nothing_else",
        "assert ",
    ),
    "another flow is taken for the same": (
        Change("engines/_suspended.py", "        self._require_same(request.spec)\n", ""),
        RESUME + "test_what_cannot_be_resumed_is_refused_by_name",
        "Error",
    ),
    "nobody is given its snapshot": (
        Change(NODES, "not kept.has_snapshot:\n", "kept is not None:\n"),
        SNAPSHOTS + "test_another_process_goes_on_where_the_last_commit_stands",
        "assert ",
    ),
}


def test_the_suite_notices_each(tmp_path: Path) -> None:
    """All are planted in one copy, since they are far from each other; each has its own test there."""
    ids = {test.split("::")[0] + "::" + test.split("::")[1] for _, test, _ in DEFECTS.values()}
    ran = Planted(tmp_path, [change for change, _, _ in DEFECTS.values()]).module("pytest", *OPTIONS, *ids)
    assert ran.status == 1, ran.output
    for name, (_, test, complaint) in DEFECTS.items():
        told = ran.output.partition(f"_ {test.split('::')[1]}")[2].partition("\n____")[0]
        assert complaint in told, f"not noticed: {name}\n{ran.output}"
