"""On the synthetic scene, where the truth is known: found, followed, counted and drawn by a whole flow."""

import numpy as np
import pytest

import videoflow as vf
from tests.nodes.vision.color_detector import ColorDetector
from videoflow.media import Detections, Frame, LineCount
from videoflow.nodes import Annotator, Collect, LineCounter, SyntheticScene, Tracker
from videoflow.nodes.vision._boxes import overlaps
from videoflow.testing import drive


def recall(found: list[Detections], truth: list[Detections]) -> float:
    """Returns the share of true boxes that a found box overlaps by half or more."""
    hits = [
        (overlaps(there.xyxy, here.xyxy).max(axis=1, initial=0.0) >= 0.5).tolist()
        for here, there in zip(found, truth, strict=True)
    ]
    return float(np.mean(np.concatenate(hits)))


@pytest.mark.parametrize(
    ("seed", "size"), [(0, (640, 360)), (1, (640, 360)), (2, (320, 180)), (3, (1280, 720))]
)
def test_a_colour_detector_finds_nine_of_ten_people(seed: int, size: tuple[int, int]) -> None:
    frames: list[Frame] = drive(SyntheticScene(96, size, seed=seed), [])[::4]
    truth = drive(SyntheticScene(96, size, seed=seed), [], port="truth")[::4]
    found = drive(ColorDetector(), frames)
    assert recall(found, truth) >= 0.9
    assert sum(map(len, found)) <= 1.1 * sum(map(len, truth)), "and invents nobody"


def test_a_tracker_on_the_true_boxes_follows_everybody_as_themselves() -> None:
    truth: list[Detections] = drive(SyntheticScene(frames=200), [], port="truth")
    tracked: list[Detections] = drive(Tracker(), truth)
    owners: dict[int, list[int]] = {}
    for before, after in zip(truth, tracked, strict=True):
        assert np.array_equal(before.xyxy, after.xyxy)
        for person, number in zip(before.track_id.tolist(), after.track_id.tolist(), strict=True):
            owners.setdefault(person, []).append(number)
    right = sum(numbers.count(max(set(numbers), key=numbers.count)) for numbers in owners.values())
    assert right / sum(map(len, owners.values())) >= 0.9
    assert {number for numbers in owners.values() for number in numbers} == set(range(1, 6))


def people_counting() -> vf.Flow:
    scene = SyntheticScene(frames=100, size=(320, 180), name="scene")
    tracks = Tracker(name="track")(ColorDetector(name="detect", replicas=2)(scene))
    counts = LineCounter((160, 180, 160, 0), name="count")(tracks)
    drawn = Annotator(name="draw")(scene, tracks, counts)
    events = Collect(name="events")(counts.events)
    return vf.Flow([Collect(name="rows")(counts), Collect(name="pictures")(drawn), events])


def test_a_flow_counts_every_frame_and_says_each_crossing_once() -> None:
    report = people_counting().run(engine="threads")
    rows: list[LineCount] = report.values["rows"]
    assert report.verdict == "complete"
    assert [row.index for row in rows] == list(range(100))
    assert rows[-1].up + rows[-1].down > 0
    assert rows[-1].up + rows[-1].down == sum(len(row.crossings) for row in rows)
    said = [(event.time_seconds, event.track_id, event.data["way"]) for event in report.values["events"]]
    assert said == [(row.time_seconds, track, way) for row in rows for track, way in row.crossings]
    assert len(report.values["pictures"]) == 100
