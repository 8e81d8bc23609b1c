"""Defects of the planner, and the check that notices each; run on a copy of the product, one after another.

`python -m tests.planner.planted FOLDER` changes the copy of `videoflow` in a folder, imports it anew, runs
the check, puts the file back, and prints for each defect what the check said, or "" where it said nothing.
"""

import importlib
import json
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.promises.planting import Change
from videoflow.errors import FlowError

CHANNELS, RUN = "planner/_judging_channels.py", "planner/_judging_run.py"
ENGINE, REQUIREMENTS = "planner/_judging_engine.py", "planner/_requirements.py"
FINDINGS, COMPOSITION = "planner/_findings.py", "planner/_composition.py"
REQUIRING, PLAN = "planner/_requiring.py", "planner/_plan.py"
JUDGED = 600


@dataclass(frozen=True)
class Defect:
    """A change, the check that must fail, and words of its complaint."""

    change: Change
    check: str
    complaint: str


REFUSALS = "test_refusals.test_what_is_asked_in_vain_is_refused_before_anything_starts"
NEIGHBOURS = "test_refusals.test_what_is_nearly_the_same_and_can_be_given_is_admitted"
JUDGE = "test_admission.test_the_planner_admits_what_is_given_and_nothing_else"
AUDIT = "test_audit.test_judging_touches_nothing_but_values"
FLOWS = "test_requiring."
FUSING, GROUPING, CHAINS = "planner/_fusing.py", "planner/_grouping.py", "test_fusing."

DEFECTS = {
    "a store that evicts is taken": Defect(
        Change(CHANNELS, "lambda evicts: not evicts", "lambda evicts: True"),
        REFUSALS,
        "not refused: reliable work with payloads in a store that evicts",
    ),
    "what could not be read is taken for given": Defect(
        Change(FINDINGS, "        elif isinstance(seen, Unknown):\n", "        elif seen is None:\n"),
        REFUSALS,
        "not refused: reliable work with payloads in a store whose settings cannot be read",
    ),
    "what could not be read is taken for missing": Defect(
        Change(FINDINGS, "        if self._misses:\n", "        if self._misses or self._unread:\n"),
        JUDGE,
        "refused, and unread is right",
    ),
    "only the first miss is told": Defect(
        Change(FINDINGS, "IncompatibleProfile(self._misses,", "IncompatibleProfile(self._misses[:1],"),
        "test_refusals.test_all_that_is_missing_is_listed_once_in_words_and_for_each_subject_in_fields",
        "",
    ),
    "a majority is not asked for": Defect(
        Change(CHANNELS, "    return 2 * failures + 1\n", "    return failures + 1\n"),
        JUDGE,
        "fewer copies than were asked for",
    ),
    "one server's disk is enough to lose one server": Defect(
        Change(
            CHANNELS,
            "            needed = Durability.STREAM_QUORUM\n",
            "            needed = Durability.STREAM\n",
        ),
        REFUSALS,
        "not refused: one tolerated failure, accepted by a single server on its disk",
    ),
    "an archive needs no run store": Defect(
        Change(
            RUN,
            "_DURABLE = (Profile.DURABLE_CONTROL, Profile.REPLAY_ARCHIVE)",
            "_DURABLE = (Profile.DURABLE_CONTROL,)",
        ),
        REFUSALS,
        "not refused: an archive without a durable shared store",
    ),
    "an archive may forget a second early": Defect(
        Change(CHANNELS, "lambda kept: kept >= horizon,", "lambda kept: kept >= horizon - 1,"),
        REFUSALS,
        "not refused: an archive for longer than the server keeps it",
    ),
    "any key makes effects happen once": Defect(
        Change(CHANNELS, "horizon is not None and kept >= horizon", "horizon is not None"),
        REFUSALS,
        "not refused: exactly-once effects with keys that are forgotten before",
    ),
    "two retentions share a channel": Defect(
        Change(
            COMPOSITION, "findings.settle(ask, messaging.splits_retention, f", "findings.settle(ask, True, f"
        ),
        REFUSALS,
        "not refused: two retention classes of one port",
    ),
    "what a step makes is not counted": Defect(
        Change(REQUIREMENTS, "        return sum(rooms) + sum(", "        return sum(rooms) + 0 * sum("),
        REFUSALS,
        "not refused: buffers that at their worst are larger than the payload store",
    ),
    "any batch is taken": Defect(
        Change(ENGINE, "limit is None or task.batch_items <= limit", "True"),
        REFUSALS,
        "not refused: larger batches than the engine makes",
    ),
    "clocks of hosts are taken to agree": Defect(
        Change(ENGINE, "join.tolerance_seconds >= apart + uncertain", "join.tolerance_seconds >= apart"),
        REFUSALS,
        "not refused: a join tolerance below the uncertainty of the clocks",
    ),
    "a limit is reached one too early": Defect(
        Change(
            RUN,
            "self._findings.settle(ask, wanted <= limit, f",
            "self._findings.settle(ask, wanted < limit, f",
        ),
        NEIGHBOURS,
        "cannot be given",
    ),
    "a channel is given less than was asked": Defect(
        Change(COMPOSITION, "copies=copies_needed(wanted.tolerated_failures)", "copies=copies_needed(0)"),
        JUDGE,
        "fewer copies than were asked for",
    ),
    "what the whole flow asks reaches no channel": Defect(
        Change(REQUIRING, "        failures.append(requirements.tolerated_failures)\n", "        pass\n"),
        FLOWS + "test_lost_servers_are_asked_of_every_lossless_edge_and_of_a_live_one_by_name",
        "",
    ),
    "a direct call passes for a channel": Defect(
        Change(REQUIRING, "        if is_direct or (each", "        if not is_direct and (each"),
        REFUSALS,
        "not refused: a requirement of a channel between fused nodes",
    ),
    "partitions count as one subscription": Defect(
        Change(REQUIRING, "subscriptions=len(readings) * channel.partitions", "subscriptions=len(readings)"),
        FLOWS + "test_a_limit_of_subscriptions_counts_partitions",
        "DID NOT RAISE",
    ),
    "bounds are chosen after admission and not admitted": Defect(
        Change(PLAN, "admitted = _admit(wiring, facts, fitted)", "admitted = _admit(wiring, facts)"),
        REFUSALS,
        "not refused: buffers of a flow that do not fit the payload store",
    ),
    "what its author never wants fused is fused": Defect(
        Change(FUSING, '"says fuse=False": options.fuse is False', '"says fuse=False": False'),
        CHAINS + "test_what_is_separated_stays_apart_however_cheap",
        "",
    ),
    "a node leaves the process that its label names": Defect(
        Change(FUSING, 'says": isinstance(options.fuse, str)', 'says": False'),
        CHAINS + "test_what_is_separated_stays_apart_however_cheap",
        "",
    ),
    "a node with a time limit shares a process": Defect(
        Change(FUSING, "options.timeout_seconds is not None", "False"),
        CHAINS + "test_what_is_separated_stays_apart_however_cheap",
        "",
    ),
    "a live edge is fused": Defect(
        Change(
            GROUPING,
            "            elif edge.latest is not None:\n                yield",
            "            elif False:\n                yield",
        ),
        CHAINS + "test_a_live_edge_is_not_fused",
        "",
    ),
    "an expensive node is fused": Defect(
        Change(FUSING, "<= _PACE_SHARE * self._limit", "<= _PACE_SHARE + self._limit"),
        CHAINS + "test_two_long_nodes_work_at_once_and_the_plan_says_what_they_take",
        "",
    ),
    "a fused task may set the pace itself": Defect(
        Change(FUSING, "sum(each) - max(each) <= _CHEAP_SHARE * hop", "each[-1] <= hop"),
        CHAINS + "test_a_task_does_not_grow_until_it_sets_the_pace_itself",
        "",
    ),
    "what nobody measured is cheap": Defect(
        Change(FUSING, "        if unknown:\n", "        if not members:\n"),
        CHAINS + "test_what_was_not_measured_is_not_fused_and_the_plan_says_so",
        "",
    ),
    "a node with another reader is taken in": Defect(
        Change(FUSING, "if len(_readers(spec, above)) == 1 and", "if"),
        CHAINS + "test_a_fan_out_and_a_join_are_not_chains",
        "",
    ),
    "fusing by cost cannot be turned off": Defect(
        Change(FUSING, "if not facts.fuse or facts.costs is None", "if facts.costs is None"),
        CHAINS + "test_who_turns_fusing_off_has_each_node_by_itself",
        "",
    ),
    "planning looks at the disk": Defect(
        Change(
            COMPOSITION, "    findings.conclude()\n", "    findings.conclude()\n    open(__file__).close()\n"
        ),
        AUDIT,
        "it reached for",
    ),
}


def main(folder: Path) -> None:
    """Plants each defect in turn; the first run has none."""
    checks = sorted({defect.check for defect in DEFECTS.values()})
    complaints = [said_by(folder, None, check) for check in checks]
    found = {"": next((words for words in complaints if words is not None), None)}
    for name, defect in DEFECTS.items():
        found[name] = said_by(folder, defect.change, defect.check)
    sys.stdout.write(json.dumps(found))


def said_by(folder: Path, change: Change | None, check: str) -> str | None:
    """Returns what a check says of the copy with a change, or None where it says nothing."""
    path = folder / "videoflow" / (change.file if change else "__init__.py")
    before = path.read_bytes()
    if change is not None:
        change.apply(folder / "videoflow")
    try:
        for call in calls_of(check):
            call()
    except (AssertionError, FlowError, pytest.fail.Exception) as error:
        return f"{type(error).__name__}: {error}"
    finally:
        path.write_bytes(before)
    return None


def calls_of(check: str) -> Iterator[Callable[[], Any]]:
    """Imports the planner and a check anew, and yields its calls, one for each case it has."""
    for name in list(sys.modules):
        if f"{name}.".startswith(("videoflow.planner.", "tests.planner.")) and name != __name__:
            del sys.modules[name]
    importlib.invalidate_caches()
    module, _, function = check.rpartition(".")
    tests: Any = importlib.import_module(f"tests.planner.{module}")
    test = getattr(tests, function)
    if module == "test_admission":
        tests.CASES = JUDGED
    if hasattr(test, "pytestmark"):
        yield from (partial(test, case) for case in tests.CASES)
    else:
        yield test


if __name__ == "__main__":
    main(Path(sys.argv[1]))
