"""Who crosses a line is counted once, in the direction that the line's own direction gives."""

from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.nodes.vision.support import SOURCE, Bench, boxes, main_output
from videoflow.errors import ArgumentInvalid
from videoflow.graph import Out
from videoflow.media import Event, LineCount
from videoflow.nodes.vision import LineCounter

RIGHTWARDS = (0, 200, 640, 200)


def standing(x: float, y: float) -> list[float]:
    """The box, 20 wide and 40 high, of somebody whose feet are at x, y."""
    return [x - 10, y - 40, x + 10, y]


def walk(counter: LineCounter, *feet: tuple[float, float]) -> tuple[LineCount, list[Event]]:
    """Returns the last count and all events of one track that goes through these points."""
    bench, events, count = Bench(counter), [], None
    for index, (x, y) in enumerate(feet):
        outputs = bench(boxes(standing(x, y), track_id=[7]), time_seconds=index / 10)
        count = main_output(outputs)
        events += [output.value for output in outputs if isinstance(output, Out)]
    assert count is not None
    return count, events


def test_up_is_from_the_right_of_the_line_to_its_left() -> None:
    count, events = walk(LineCounter(RIGHTWARDS), (100, 250), (100, 150))
    assert (count.up, count.down, count.crossings) == (1, 0, ((7, "up"),))
    assert events == [
        Event("line-crossed", 0.1, SOURCE, 7, {"way": "up", "x": 100.0, "y": 150.0}),
    ]


@pytest.mark.parametrize(
    ("line", "start", "end"),
    [
        ((0, 200, 640, 200), (100, 250), (100, 150)),  # a→b points right: left is above
        ((640, 200, 0, 200), (100, 150), (100, 250)),  # points left: left is below
        ((300, 0, 300, 360), (250, 100), (350, 100)),  # points down: left is on the right of the screen
        ((300, 360, 300, 0), (350, 100), (250, 100)),  # points up: left is on the left of the screen
        ((0, 0, 360, 360), (100, 200), (200, 100)),  # a diagonal down to the right: left is above it
    ],
)
def test_every_direction_of_the_line(
    line: tuple[int, int, int, int], start: tuple[int, int], end: tuple[int, int]
) -> None:
    assert walk(LineCounter(line), start, end)[0].up == 1
    assert walk(LineCounter(line), end, start)[0].down == 1


def test_there_and_back_counts_once_each_way() -> None:
    count, events = walk(LineCounter(RIGHTWARDS), (100, 250), (100, 150), (100, 250))
    assert (count.up, count.down) == (1, 1)
    assert [event.data["way"] for event in events] == ["up", "down"]


def test_a_way_around_the_end_of_the_line_is_no_crossing() -> None:
    count, _ = walk(LineCounter((100, 200, 300, 200)), (350, 250), (350, 150), (200, 150))
    assert (count.up, count.down) == (0, 0)


def test_stepping_onto_the_line_and_back_is_no_crossing_and_across_it_is_one() -> None:
    assert walk(LineCounter(RIGHTWARDS), (100, 250), (100, 200), (100, 250))[0].crossings == ()
    assert walk(LineCounter(RIGHTWARDS), (100, 250), (100, 200), (100, 250))[0].up == 0
    assert walk(LineCounter(RIGHTWARDS), (100, 250), (100, 200), (100, 150))[0].up == 1


def test_trembling_on_the_line_counts_nothing() -> None:
    tremor = [(100 + k, 200 + (1.5 if k % 2 else -1.5)) for k in range(50)]
    assert walk(LineCounter(RIGHTWARDS), (100, 250), *tremor)[1] == []


def test_a_track_first_seen_beyond_the_line_has_not_crossed_it() -> None:
    assert walk(LineCounter(RIGHTWARDS), (100, 150))[0].up == 0


def test_a_track_that_was_out_of_sight_while_it_crossed_is_counted() -> None:
    bench = Bench(LineCounter(RIGHTWARDS))
    bench(boxes(standing(100, 250), track_id=[7]), time_seconds=0.0)
    bench(boxes(track_id=[]), time_seconds=0.5)
    assert main_output(bench(boxes(standing(100, 150), track_id=[7]), time_seconds=1.5)).up == 1


def test_the_anchor_decides_what_crosses() -> None:
    head, feet = LineCounter(RIGHTWARDS, anchor="top"), LineCounter(RIGHTWARDS, anchor="bottom")
    assert walk(head, (100, 300), (100, 225))[0].up == 1
    assert walk(feet, (100, 300), (100, 225))[0].up == 0


def test_a_count_says_when_and_where_and_comes_for_every_frame() -> None:
    bench = Bench(LineCounter(RIGHTWARDS))
    first = main_output(bench(boxes(track_id=[]), time_seconds=1.0))
    second = main_output(bench(boxes(track_id=[]), time_seconds=1.5))
    assert first == LineCount(1.0, 0, SOURCE, 0, 0)
    assert second == LineCount(1.5, 1, SOURCE, 0, 0)


def test_each_source_is_counted_on_its_own() -> None:
    bench = Bench(LineCounter(RIGHTWARDS))
    bench(boxes(standing(100, 250), track_id=[7], source="left.mp4"), time_seconds=0.0)
    other = main_output(bench(boxes(standing(100, 150), track_id=[7], source="right.mp4"), time_seconds=0.1))
    assert (other.up, other.source) == (0, "right.mp4")


def test_what_it_keeps_does_not_grow_with_the_length_of_the_video() -> None:
    bench = Bench(LineCounter(RIGHTWARDS))
    for track in range(300):
        bench(boxes(standing(100, 250), track_id=[track]), time_seconds=float(track))
    assert len(bench.committed[SOURCE]["tracks"]) <= 61


@given(st.lists(st.tuples(st.integers(0, 640), st.integers(100, 300)), max_size=20), st.integers(0, 19))
def test_a_restart_at_any_frame_changes_nothing(feet: list[tuple[int, int]], cut: int) -> None:
    whole, parted = Bench(LineCounter(RIGHTWARDS)), Bench(LineCounter(RIGHTWARDS))
    for index, (x, y) in enumerate(feet):
        if index == cut:
            parted = parted.restarted(LineCounter(RIGHTWARDS))
        seen = boxes(standing(x, y), track_id=[3])
        assert whole(seen, time_seconds=index / 10) == parted(seen, time_seconds=index / 10)


@given(st.lists(st.tuples(st.integers(-50, 700), st.integers(100, 300)), min_size=2, max_size=30))
def test_ups_and_downs_of_one_track_across_an_endless_line_take_turns(feet: list[Any]) -> None:
    _, events = walk(LineCounter((-10_000, 200, 10_000, 200)), *feet)
    ways = [event.data["way"] for event in events]
    assert all(one != other for one, other in pairwise(ways))


def test_boxes_without_tracks_are_refused_with_what_to_do() -> None:
    with pytest.raises(ValueError, match="put a Tracker before it"):
        Bench(LineCounter(RIGHTWARDS))(boxes(standing(0, 0)), time_seconds=0.0)


def test_frames_without_a_time_are_refused() -> None:
    with pytest.raises(ValueError, match="the source gave none"):
        Bench(LineCounter(RIGHTWARDS))(boxes(track_id=[]), time_seconds=None)


def test_a_line_of_one_point_is_refused() -> None:
    with pytest.raises(ArgumentInvalid, match="line cannot be"):
        LineCounter((5, 5, 5, 5))


def test_many_cross_at_once() -> None:
    bench = Bench(LineCounter(RIGHTWARDS))
    before = boxes(*(standing(x, 250) for x in range(0, 640, 20)), track_id=list(range(32)))
    after = boxes(*(standing(x, 150) for x in range(0, 640, 20)), track_id=list(range(32)))
    bench(before, time_seconds=0.0)
    outputs = bench(after, time_seconds=0.1)
    assert main_output(outputs).up == 32
    assert [output.value.track_id for output in outputs[1:]] == np.arange(32).tolist()
