"""`kill -9` of workers of every kind, at every barrier and at any time: nothing is lost or done twice.

`make storm` runs it with 200 kills, every other run with 20. It prints a table with a row for each barrier.
"""

import sys
from pathlib import Path

import pytest

from tests.storm.storm import Kill, Outcome, Wanted, at_barriers, from_outside, some, undisturbed
from videoflow.graph.report import Verdict

MOST_RUNS = 6
KILLS_PER_RUN = 14


@pytest.mark.timeout(1500)
def test_workers_killed_at_every_barrier_change_nothing(
    kills: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    plain = undisturbed(_folder(tmp_path, "plain"))
    assert plain.report.verdict is Verdict.COMPLETE
    wanted = some(kills)
    hit: dict[tuple[str, str], Kill] = {}
    counted = 0
    for number in range(MOST_RUNS):
        left: Wanted = {
            task: [row for row in rows if (task, row[0]) not in hit] for task, rows in wanted.items()
        }
        if not any(left.values()):
            break
        outcome = at_barriers(_folder(tmp_path, f"barriers{number}"), left)
        check(outcome, plain)
        hit |= {(kill.task, kill.barrier): kill for kill in outcome.kills}
        counted += len(outcome.kills)
    with capsys.disabled():
        sys.stdout.write(table(wanted, hit) + "\n")
    assert [row for row in rows_of(wanted) if row not in hit] == []
    outside = 0
    for seed in range(kills):
        if counted >= kills:
            break
        outcome = from_outside(_folder(tmp_path, f"outside{seed}"), seed, min(KILLS_PER_RUN, kills - counted))
        check(outcome, plain)
        counted += len(outcome.kills)
        outside += len(outcome.kills)
    with capsys.disabled():
        sys.stdout.write(f"{counted} kills, {outside} of them at any time\n")
    assert counted >= kills


def check(outcome: Outcome, plain: Outcome) -> None:
    """Compares a run with one in which nothing died."""
    report = outcome.report
    assert report.verdict is Verdict.COMPLETE, (report.failure, report.gaps, report.dead_letters)
    assert [edge for edge in report.edges if not edge.closed] == []
    assert outcome.written == plain.written
    assert report.values == plain.report.values
    assert [e.announced for e in report.edges] == [e.announced for e in plain.report.edges]
    assert outcome.restarts >= len(outcome.kills)
    assert [kill for kill in outcome.kills if kill.redone > kill.window] == []


def rows_of(wanted: Wanted) -> list[tuple[str, str]]:
    return [(task, barrier) for task, rows in wanted.items() for barrier, _ in rows]


def table(wanted: Wanted, hit: dict[tuple[str, str], Kill]) -> str:
    """The rows that were wanted, each with the kill that hit."""
    lines = ["", f"{'barrier':<18} {'task':<10} {'attempt':>7} {'redone':>6} {'at most':>7} {'recovery':>9}"]
    for task, barrier in rows_of(wanted):
        kill = hit.get((task, barrier))
        if kill is None:
            lines.append(f"{barrier:<18} {task:<10} {'not hit':>7}")
        else:
            figures = f"{kill.attempt:>7} {kill.redone:>6} {kill.window:>7} {kill.seconds:>7.2f} s"
            lines.append(f"{barrier:<18} {task:<10} {figures}")
    return "\n".join(lines)


def _folder(tmp_path: Path, name: str) -> Path:
    folder = tmp_path / name
    folder.mkdir()
    return folder
