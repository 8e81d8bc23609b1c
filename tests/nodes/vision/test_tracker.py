"""A track keeps its number: through gaps, at any frame rate, and across a restart at any frame."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.nodes.vision.support import Bench, boxes, main_output
from videoflow.errors import ArgumentInvalid
from videoflow.media import Detections
from videoflow.nodes.vision import Tracker


def walker(seconds: float, *, speed: float = 60.0, start: float = 50.0, y: float = 100.0) -> list[float]:
    """The box, 40 wide and 100 high, of somebody who walks at a speed in pixels a second."""
    x = start + speed * seconds
    return [x, y, x + 40, y + 100]


def track(bench: Bench, detections: Detections, seconds: float) -> list[int]:
    output = main_output(bench(detections, time_seconds=seconds))
    numbers: list[int] = output.track_id.tolist()
    return numbers


def test_two_people_keep_their_numbers_and_their_boxes() -> None:
    bench = Bench(Tracker())
    for index in range(30):
        seen = boxes(walker(index / 25), walker(index / 25, speed=-60, start=500))
        out = main_output(bench(seen, time_seconds=index / 25))
        assert out.track_id.tolist() == [1, 2]
        assert np.array_equal(out.xyxy, seen.xyxy)
        assert out.of("person").source == seen.source


def test_people_who_meet_and_pass_do_not_swap() -> None:
    bench = Bench(Tracker())
    for index in range(100):
        seconds = index / 25
        seen = boxes(walker(seconds, start=0), walker(seconds, start=240, speed=-60, y=140))
        if index % 2:
            seen = seen[[1, 0]]
        expected = [2, 1] if index % 2 else [1, 2]
        assert track(bench, seen, seconds) == expected


@pytest.mark.parametrize("fps", [5, 10, 25, 60])
def test_somebody_hidden_for_less_than_lost_seconds_comes_back_as_the_same(fps: int) -> None:
    bench = Bench(Tracker(lost_seconds=2.0))
    seen_numbers = set()
    for index in range(6 * fps):
        seconds = index / fps
        hidden = 2.0 < seconds < 3.5
        seen_numbers.update(track(bench, boxes() if hidden else boxes(walker(seconds)), seconds))
    assert seen_numbers == {1}


@pytest.mark.parametrize("fps", [5, 10, 25, 60])
def test_somebody_hidden_for_longer_gets_a_new_number(fps: int) -> None:
    bench = Bench(Tracker(lost_seconds=1.0))
    numbers = []
    for index in range(6 * fps):
        seconds = index / fps
        hidden = 2.0 < seconds < 3.5
        numbers += track(bench, boxes() if hidden else boxes(walker(seconds)), seconds)
    assert sorted(set(numbers)) == [1, 2]


def test_lost_time_is_the_time_of_frames_even_when_frames_are_dropped() -> None:
    bench = Bench(Tracker(lost_seconds=1.0))
    assert track(bench, boxes(walker(0)), 0.0) == [1]
    assert track(bench, boxes(walker(0.04)), 0.04) == [1]
    assert track(bench, boxes(walker(0.04)), 5.0) == [1], "the next frame, however late, is no gap in sight"
    track(bench, boxes(), 5.04)
    track(bench, boxes(), 6.2)
    assert track(bench, boxes(walker(0.04)), 6.24) == [], (
        "out of sight for 1.2 s: forgotten, not yet confirmed"
    )


def test_a_new_person_is_left_out_until_the_second_frame_and_a_flicker_gets_no_number() -> None:
    bench = Bench(Tracker())
    old, new, flicker = walker(0, speed=0), walker(0, speed=0, start=300), walker(0, speed=0, start=500)
    assert track(bench, boxes(old), 0.0) == [1]
    assert track(bench, boxes(old, flicker), 0.04) == [1]
    assert track(bench, boxes(old, new), 0.08) == [1]
    assert track(bench, boxes(old, new), 0.12) == [1, 2], "numbers are dense: the flicker took none"


def test_a_doubtful_box_continues_a_track_but_begins_none() -> None:
    bench = Bench(Tracker(activate=0.4))
    known, stranger = walker(0, speed=0), walker(0, speed=0, start=400)
    assert track(bench, boxes(known), 0.0) == [1]
    for index in range(1, 10):
        seen = boxes(known, stranger, confidence=[0.36, 0.36])
        assert track(bench, seen, index / 25) == [1]


def test_a_box_of_another_class_never_continues_a_track() -> None:
    bench = Bench(Tracker())
    here = walker(0, speed=0)
    assert track(bench, boxes(here, class_id=[1]), 0.0) == [1]
    assert track(bench, boxes(here, class_id=[0]), 0.04) == []
    assert track(bench, boxes(here, class_id=[0]), 0.08) == [2]


def test_each_source_has_its_own_tracks() -> None:
    bench = Bench(Tracker())
    here = walker(0, speed=0)
    assert track(bench, boxes(here, here, source="left.mp4"), 0.0) == [1, 2]
    assert track(bench, boxes(here, source="right.mp4"), 0.0) == [1]


def test_a_time_that_goes_back_and_a_source_without_times_lose_nobody() -> None:
    bench = Bench(Tracker())
    for seconds in (10.0, 10.04, 0.0, 0.04, None, None, 0.0):
        out = main_output(bench(boxes(walker(0, speed=0)), time_seconds=seconds))
        assert out.track_id.tolist() == [1]


def test_an_empty_video_gives_empty_detections() -> None:
    bench = Bench(Tracker())
    out = main_output(
        bench(Detections.empty(class_names=("person",), image_size=(640, 360)), time_seconds=0.0)
    )
    assert len(out) == 0
    assert out.class_names == ("person",)


def test_data_and_size_of_the_detections_stay_with_their_boxes() -> None:
    seen = Detections.from_arrays(
        [walker(0), walker(0, start=300)],
        confidence=[0.1, 0.9],
        class_names=("person",),
        image_size=(640, 360),
        data={"colour": np.array([7, 8])},
    )
    out = main_output(Bench(Tracker())(seen, time_seconds=0.0))
    assert out.data["colour"].tolist() == [8]
    assert out.image_size == (640, 360)


@given(
    st.lists(
        st.lists(
            st.tuples(
                st.integers(0, 500),
                st.integers(0, 250),
                st.integers(5, 150),
                st.integers(5, 150),
                st.floats(0, 1),
            ),
            max_size=6,
        ),
        max_size=12,
    ),
    st.integers(0, 11),
)
def test_a_restart_at_any_frame_changes_nothing(video: list[list[Any]], cut: int) -> None:
    whole, parted = Bench(Tracker()), Bench(Tracker())
    for index, frame in enumerate(video):
        if index == cut:
            parted = parted.restarted(Tracker())
        seen = boxes(*([x, y, x + w, y + h] for x, y, w, h, _ in frame), confidence=[c for *_, c in frame])
        first, second = (main_output(bench(seen, time_seconds=index / 25)) for bench in (whole, parted))
        assert first == second
        assert len(set(first.track_id.tolist())) == len(first), "no number twice in a frame"
        assert (first.track_id > 0).all()


def test_numbers_out_of_range_are_refused_by_name() -> None:
    with pytest.raises(ArgumentInvalid, match="activate cannot be 40"):
        Tracker(activate=40)
    with pytest.raises(ArgumentInvalid, match="lost_seconds"):
        Tracker(lost_seconds=-1.0)
