"""Whole flows under seeded faults: nothing breaks, what fails fails again, and what is hit is counted."""

import json
import os
import random
import subprocess
import sys
from collections import Counter

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings

from tests.simulation.graphs import chain, diamond, graphs, schedules, simulated, source
from videoflow.graph import merge
from videoflow.simulation import (
    FEATURES,
    PlannedFault,
    Schedule,
    Simulation,
    Subject,
    Table,
    explore,
    generate,
    kind_of,
)
from videoflow.simulation import _library as library
from videoflow.simulation._kinds import KINDS
from videoflow.simulation._rarity import Rarity
from videoflow.simulation._schedule import actions_at, choose_faults
from videoflow.simulation._table import POINTS, cells, why_not

SCHEDULES = 300
_SAME = """
import json, sys
from videoflow.simulation import graph_of
simulation = graph_of(int(sys.argv[1]))
results = [simulation.run(simulation.schedule(n), telling=True) for n in range(6)]
print(json.dumps([[r.steps, list(r.violations), [str(e) for e in r.story]] for r in results]))
"""


@pytest.mark.parametrize("part", range(8))
def test_random_graphs_keep_every_promise(part: int) -> None:
    search = explore(SCHEDULES, 1_000 * (part + 1))
    assert search.found == [], f"python -m tools.simulate tells it: {search.found}"
    assert search.counted == SCHEDULES
    assert search.empty < search.counted / 4


@settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
@given(graphs(), schedules())
def test_graphs_of_hypothesis_keep_every_promise(subject: Subject, seed: int) -> None:
    simulation = Simulation(subject)
    assert simulation.broken == ()
    result = simulation.run(simulation.schedule(seed))
    assert result.violations == ()


def test_a_seed_gives_the_same_run_in_every_process() -> None:
    told = [
        subprocess.run(
            [sys.executable, "-c", _SAME, "17"],
            env={**os.environ, "PYTHONHASHSEED": seed},
            stdout=subprocess.PIPE,
            text=True,
            timeout=50,
            check=True,
        ).stdout
        for seed in ("1", "2")
    ]
    first = json.loads(told[0])
    assert told[0] == told[1]
    assert all(len(story) > 10 for _, _, story in first)


def test_different_seeds_give_different_orders() -> None:
    simulation = diamond()
    stories = {
        tuple((e.station, e.what) for e in simulation.run(Schedule(seed), telling=True).story)
        for seed in range(8)
    }
    assert len(stories) == 8


@pytest.mark.parametrize("action", ["crash", "raise", "delay"])
@pytest.mark.parametrize(
    ("station", "point"),
    [
        ("source-0", "commit.before"),
        ("source-0", "publish.accepted"),
        ("step-0", "receive.after"),
        ("step-0", "publish.sent"),
        ("saver-0", "effect.done"),
        ("saver-0", "commit.after"),
        ("saver-0", "settle.sent"),
        ("saver-0", "terminator.sent"),
    ],
)
def test_what_is_planned_happens_there_and_nothing_is_lost(station: str, point: str, action: str) -> None:
    fault = PlannedFault(station, point, action)
    result = chain().run(Schedule(5, (fault,)), telling=True)
    assert result.fired == (fault,)
    assert result.violations == ()
    starts = Counter(event.station for event in result.story if event.what.startswith("starts"))
    assert starts[station] == (1 if action == "delay" else 2)


def test_a_schedule_in_which_nothing_happened_does_not_count() -> None:
    never = PlannedFault("step-0", "publish.sent", "crash", 10_000)
    result = chain().run(Schedule(1, (never,)))
    assert not result.counts
    assert result.violations == ()


def test_a_stop_ends_the_run_early_and_the_rest_is_equal() -> None:
    ends = [chain(30).run(Schedule(3, (), stops=(step,))) for step in range(10, 200, 10)]
    assert all(result.violations == () for result in ends)
    assert any(result.stopped for result in ends)


def test_what_means_nothing_at_a_point_is_refused() -> None:
    with pytest.raises(ValueError, match="means nothing"):
        PlannedFault("step-0", "publish.sent", "twice")


def test_a_killer_is_put_aside_and_its_neighbours_are_not() -> None:
    simulation = diamond(trouble={"killer": [2]})
    result = simulation.run(Schedule(9), telling=True)
    assert result.violations == ()
    assert sum(event.what == "dies" for event in result.story) == 5
    aside = [event.what for event in result.story if event.what.startswith("PutAside")]
    assert len(aside) == 1


def test_each_kind_of_task_and_each_feature_occurs() -> None:
    kinds = Counter(
        kind_of(subject.plan, task)
        for subject in (generate(random.Random(seed)) for seed in range(250))
        for task in subject.plan.tasks
    )
    assert set(kinds) == set(KINDS)
    assert min(kinds.values()) >= 3


@pytest.mark.parametrize("feature", sorted(FEATURES))
def test_a_feature_can_be_left_out(feature: str) -> None:
    subject = generate(random.Random(4), FEATURES - {feature})
    assert 1 <= len(subject.plan.spec.nodes) <= 8


def test_faults_are_chosen_where_something_was_reached() -> None:
    hits = {("a-0", "commit.before"): 3, ("b-0", "call:publish"): 50}
    chosen = [choose_faults(random.Random(seed), hits, 2) for seed in range(200)]
    points = Counter(fault.point for faults in chosen for fault in faults)
    assert set(points) == {"commit.before", "call:publish"}
    assert 0.6 < points["commit.before"] / points["call:publish"] < 1.7, "rare points have the same chance"
    assert {f.action for faults in chosen for f in faults if f.point == "call:publish"} == set(
        actions_at("call:publish")
    )


def test_the_table_has_a_cell_for_each_point_that_tasks_of_a_kind_come_to() -> None:
    table = Table([(("publish.sent", "crash", "source"), 3), (("publish.sent", "raise", "source"), 1)])
    missing = table.missing(2)
    assert ("publish.sent", "crash", "source") not in missing
    assert {("publish.sent", "raise", "source"), ("publish.sent", "delay", "join")} <= set(missing)
    assert not any(kind == "sink" and point == "publish.sent" for point, _, kind in missing)
    assert why_not("publish.sent", "sink") == "nothing reads it"
    header, *rows = table.lines()
    assert header.split()[0] == "source"
    row = next(row for row in rows if row.startswith("publish.sent crash"))
    assert row.split()[:4] == ["publish.sent", "crash", "3", "0"]
    assert len(rows) == sum(len(actions_at(point)) for point in POINTS)


def test_a_stop_may_come_twice_or_end_without_draining() -> None:
    twice = [chain(30).run(Schedule(3, stops=(step, step + 4))) for step in range(10, 200, 20)]
    quits = [chain(30).run(Schedule(3, stops=(step, step + 4), quits=True)) for step in range(10, 200, 20)]
    assert all(result.violations == () for result in (*twice, *quits))
    assert sum(r.steps for r in quits) < sum(r.steps for r in twice)


def test_a_run_that_is_resumed_comes_to_what_it_comes_to_without_a_stop() -> None:
    simulation = chain(30)
    for step in range(10, 120, 10):
        result = simulation.run(Schedule(4, stops=(step,), resumed=True), telling=True)
        assert result.violations == ()
        assert result.stopped
        starts = [
            event.what for event in result.story if event.station == "saver-0" and "starts" in event.what
        ]
        assert len(starts) == 2


def test_a_wake_up_that_is_lost_only_takes_time() -> None:
    lost = tuple(PlannedFault("saver-0", "call:wake", "lost", hit) for hit in (1, 2, 3))
    result = chain().run(Schedule(5, lost, calm=True))
    assert len(result.fired) == 3
    assert result.violations == ()


def test_an_aborted_parent_and_one_that_ended_do_not_hold_up_a_join() -> None:
    origin = source(4)
    left = library.Step(1, name="left", trouble={"fatal": [3]}, ordered=False)
    meet = library.Step(2, name="meet", missing="none")
    sink = library.Rows(name="rows")
    simulation = simulated(sink(meet(left(origin).latest(capacity=4), origin)))
    for seed in range(20):
        result = simulation.run(Schedule(seed))
        assert result.violations == ()


def test_a_run_without_faults_gives_a_live_reader_all_that_there_is() -> None:
    both = merge(library.Source(2, name="one"), library.Source(2, name="two"))
    words = library.LastWords(1, name="words")(both)  # they come to both readers in one step
    newest, every = library.Rows(name="newest"), library.Rows(name="every")
    simulation = simulated(newest(words.latest()), every(words))
    calls = simulation.reference(None).record.calls
    assert len(calls["every"]) == 6
    assert [made.origin for made in calls["newest"]] == [made.origin for made in calls["every"]]


def test_a_schedule_that_was_aimed_is_replayed_as_it_is() -> None:
    simulation = diamond()
    often = {cell: 100 for cell in simulation.cells if cell[0] != "publish.sent"}
    aimed = simulation.schedule(5, Rarity(often, simulation.cells))
    assert {fault.point for fault in aimed.faults} == {"publish.sent"}
    again = msgspec.convert(msgspec.to_builtins(aimed), Schedule)
    assert again == aimed
    runs = [simulation.run(schedule, telling=True) for schedule in (aimed, again)]
    assert runs[0].story == runs[1].story


def test_what_was_hit_least_is_aimed_at_and_a_seed_is_always_the_same_search() -> None:
    searches = [explore(60, 40), explore(60, 40)]
    counts = searches[0].table.counts
    assert counts == searches[1].table.counts
    assert not any(why_not(point, kind) for point, _, kind in counts)
    often, seldom = Rarity(counts, list(cells())).rates(
        [max(counts, key=counts.__getitem__), ("a", "b", "c")]
    )
    assert seldom > 5 * often
