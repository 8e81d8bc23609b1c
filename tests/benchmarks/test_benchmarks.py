"""The benchmarks in their shortest form: the floors carry all, a result hides nothing. Never on time."""

import json
import sys
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest

from benchmarks import contenders
from benchmarks.measuring import Contender, Failure, Figures, measure
from benchmarks.plot import draw
from benchmarks.render import document, workload_table
from benchmarks.rounds import Outcome, Size, ratios, run_workload
from benchmarks.work import Job, Maker, Meter, remake
from benchmarks.workloads import Budget, Workload, workloads

ITEMS = 20
NOTHING = "it moved nothing"


def failing(name: str) -> Contender:
    return Contender(name, (sys.executable, "-S", "-c", f"raise SystemExit({NOTHING!r})"))


@pytest.fixture(scope="module")
def floors() -> Outcome:
    """One round of the copying floor, memcpy, a contender that fails and one that is not installed."""
    absent = Contender("absent", ("false",), why_not="not set up")
    workload = Workload(
        "short",
        "small items",
        Job("small", 0, 0),
        (contenders.COPY_FLOOR, contenders.FORWARD_PLACE_FLOOR, contenders.MEMCPY, failing("broken"), absent),
        contenders.COPY_FLOOR.name,
        (Budget("broken", "per_second", 1.0, "as fast as the floor", contenders.COPY_FLOOR.name),),
    )
    return run_workload(workload, Size(1, 0.1, ITEMS, patience_seconds=30), lambda line: None)


@pytest.mark.parametrize("name", [contenders.COPY_FLOOR.name, contenders.FORWARD_PLACE_FLOOR.name])
def test_a_floor_carries_every_item_whole_and_in_order(floors: Outcome, name: str) -> None:
    (figures,) = floors.samples[name]
    assert figures is not None
    assert (figures["items"], figures["lost"], figures["wrong"], figures["out_of_order"]) == (ITEMS, 0, 0, 0)
    assert figures["per_second"] > 0


def test_the_copying_floor_carries_frames(tmp_path: Path) -> None:
    found = measure(contenders.PLACE_FLOOR, Job("frames", 4, 1), 30)
    assert not isinstance(found, Failure)
    assert (found["items"], found["lost"], found["wrong"]) == (4, 0, 0)


def test_a_result_names_who_failed_and_who_is_missing_and_what_was_not_measured(floors: Outcome) -> None:
    text = document({"machine": "some"}, [floors], "taken under load")
    assert "taken under load" in text
    assert NOTHING in text
    assert "* absent: not set up" in text
    assert "| short | as fast as the floor |  | not measured |" in text
    assert "(1 copies): >= 0.9 of memcpy" in text


def test_a_picture_is_drawn_of_what_was_measured(floors: Outcome) -> None:
    texts = [node.text or "" for node in ElementTree.fromstring(draw([floors])).iter()]
    assert contenders.FORWARD_PLACE_FLOOR.name in texts
    assert "broken" not in texts


def test_a_picture_of_a_paced_workload_shows_how_long_a_hop_took() -> None:
    paced = workloads()["W2-latency"]
    samples: dict[str, list[Figures | None]] = {
        paced.floor: [{"per_second": 100.0, "hop_us": {"p50": 50.0}}],
        "videoflow": [{"per_second": 100.0, "hop_us": {"p50": 250.0}}],
    }
    texts = [node.text or "" for node in ElementTree.fromstring(draw([Outcome(paced, samples)])).iter()]
    assert texts.index(paced.floor) < texts.index("videoflow") == texts.index("5") - 1


def test_ratios_are_of_one_round_each() -> None:
    workload = workloads()["W2"]
    samples: dict[str, list[Figures | None]] = {
        "a": [{"per_second": 2.0}, None, {"per_second": 9.0}],
        "b": [{"per_second": 1.0}, {}, {"per_second": 3.0}],
    }
    assert ratios(Outcome(workload, samples), "a", "b", "per_second") == [2.0, 3.0]


def test_a_table_shows_what_a_contender_lost_and_spoilt() -> None:
    figures = {"items": 15, "lost": 5, "wrong": 2, "per_second": 7.0}
    text = "\n".join(workload_table(Outcome(workloads()["W2"], {"dora (drops)": [figures]})))
    assert "| 25% |" in text
    assert "* dora (drops): 2 items wrong" in text


def test_every_budget_is_about_somebody_who_takes_part() -> None:
    for workload in workloads().values():
        names = {contender.name for contender in workload.contenders}
        assert workload.floor in names
        for budget in workload.budgets:
            assert {budget.contender, budget.against or budget.contender} <= names


@pytest.mark.parametrize("defect", ["none", "lost", "wrong", "again"])
def test_the_meter_sees_what_did_not_arrive_as_it_was_sent(defect: str, tmp_path: Path) -> None:
    job = Job("small", 6, 1, out=str(tmp_path / "figures.json"))
    maker, meter = Maker(job), Meter(job)
    for index in maker.indices():
        item = remake(maker.make(index))
        if defect == "lost" and index == 3:
            continue
        if defect == "wrong" and index == 3:
            item[item.size // 2] ^= np.uint8(1)
        meter.take(item)
        if defect == "again" and index == 3:
            meter.take(item)
    meter.finish()
    found = json.loads(Path(job.out).read_text())
    seen = {name for name in ("lost", "wrong", "out_of_order") if found[name] > 0}
    assert seen == {"none": set(), "lost": {"lost"}, "wrong": {"wrong"}, "again": {"out_of_order"}}[defect]


def test_every_item_is_written_anew_and_no_two_that_follow_are_alike() -> None:
    maker = Maker(Job("small", 4, 0))
    item = np.zeros(1024, np.uint8)
    first = maker.make(0, item).copy()
    second = maker.make(1, item).copy()
    assert (first[32:] != second[32:]).mean() > 0.9
