"""On real footage of a street corner: people are found, keep their numbers, and are counted."""

from fractions import Fraction
from pathlib import Path

import av
import numpy as np
import pytest

from tests.nodes.vision.support import Bench, main_output
from videoflow.media import Detections, Frame
from videoflow.nodes.vision import Detector, LineCounter, Tracker

SAMPLED_EVERY = 20
TRACKED_FRAMES = 80


def frames(path: Path, *, every: int, count: int) -> list[Frame]:
    """Returns frames of the video."""
    found = []
    with av.open(str(path)) as container:
        for index, picture in enumerate(container.decode(video=0)):
            if index >= every * count:
                break
            if index % every == 0:
                image = np.asarray(picture.to_ndarray(format="bgr24"), np.uint8)
                time = Fraction(picture.pts or 0) * (picture.time_base or Fraction(1, 10))
                made = Frame(
                    image=image,
                    pts=time.numerator,
                    time_base=Fraction(1, time.denominator),
                    index=index,
                    source=path.name,
                )
                found.append(made)
    return found


@pytest.fixture(scope="module")
def detected(footage: Path) -> list[tuple[Frame, Detections]]:
    """The first frames, one by one, with the people found."""
    detector = Detector(classes=["person"])
    detector.open()
    return [(frame, detector.process(frame)) for frame in frames(footage, every=1, count=TRACKED_FRAMES)]


def test_at_least_four_people_are_found_in_a_sampled_frame(footage: Path) -> None:
    detector = Detector(classes=["person"])
    detector.open()
    people = [len(detector.process(frame)) for frame in frames(footage, every=SAMPLED_EVERY, count=40)]
    assert len(people) == 40
    assert np.mean(people) >= 4
    assert min(people) >= 2


def test_people_keep_their_numbers_for_seconds(detected: list[tuple[Frame, Detections]]) -> None:
    bench = Bench(Tracker())
    seen: dict[int, int] = {}
    for frame, found in detected:
        tracked = main_output(bench(found, time_seconds=frame.time_seconds))
        for number in tracked.track_id.tolist():
            seen[number] = seen.get(number, 0) + 1
    assert len(seen) <= 16, "eight people come by; numbers are not used up by flicker"
    assert sum(frames_seen >= 30 for frames_seen in seen.values()) >= 4, "four are followed for three seconds"


def test_four_people_who_come_in_from_the_right_are_counted(detected: list[tuple[Frame, Detections]]) -> None:
    tracker, counter = Bench(Tracker()), Bench(LineCounter((650, 576, 650, 60)))
    count = None
    for frame, found in detected:
        tracked = main_output(tracker(found, time_seconds=frame.time_seconds))
        count = main_output(counter(tracked, time_seconds=frame.time_seconds))
    assert count is not None
    assert 3 <= count.up <= 5
    assert count.down <= 1
