"""What is drawn is where it belongs, the input is left alone, and a restart changes no pixel."""

from itertools import combinations, pairwise

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.nodes.vision.support import SOURCE, Bench, boxes, frame_of, main_output, plain_frame
from videoflow.media import Detections, Frame, LineCount, ZoneCount
from videoflow.nodes.vision import Annotator
from videoflow.nodes.vision._drawing import track_colour

BOX = [200.0, 120.0, 260.0, 280.0]


def drawn(annotator: Annotator, frame: Frame, *layers: object) -> Frame:
    output: Frame = main_output(Bench(annotator)(frame, *layers))
    return output


def changed(before: Frame, after: Frame) -> NDArray[np.bool_]:
    return np.asarray((before.image != after.image).any(axis=-1))


def counted(up: int = 3, down: int = 1, crossings: tuple[tuple[int, str], ...] = ()) -> LineCount:
    return LineCount(0.0, 0, SOURCE, up, down, crossings)


def test_without_anything_to_draw_the_picture_stays_as_it_was() -> None:
    frame = plain_frame()
    assert drawn(Annotator(), frame) == frame
    assert drawn(Annotator(), frame, boxes()) == frame


def test_the_frame_that_came_in_is_left_alone() -> None:
    frame = plain_frame()
    before = frame.copy()
    out = drawn(Annotator(), frame, boxes(BOX, track_id=[7]), counted())
    assert np.array_equal(frame.image, before)
    assert (out.pts, out.index, out.source) == (frame.pts, frame.index, frame.source)


def test_a_box_is_drawn_around_its_object_in_the_colour_of_its_track() -> None:
    frame = plain_frame()
    out = drawn(Annotator(labels=False, traces=False), frame, boxes(BOX, track_id=[7]))
    assert tuple(out.image[200, 200]) == track_colour(7)
    assert tuple(out.image[280, 230]) == track_colour(7)
    mark = changed(frame, out)
    assert not mark[130:270, 210:250].any(), "what is inside stays visible"
    outside = mark.copy()
    outside[115:286, 195:266] = False
    assert not outside.any()


def test_a_label_stands_above_its_box_and_inside_the_picture() -> None:
    frame, plain = plain_frame(), Annotator(labels=False, traces=False)
    for box in (BOX, [200.0, 2.0, 260.0, 80.0], [600.0, 100.0, 639.0, 200.0]):
        seen = boxes(box, track_id=[7])
        label = changed(drawn(plain, frame, seen), drawn(Annotator(traces=False), frame, seen))
        assert label.sum() > 200
        rows = np.flatnonzero(label.any(axis=1))
        assert box[1] - 30 <= rows.min() <= rows.max() <= box[1] + 30


def test_a_track_has_one_colour_and_a_dozen_in_a_row_are_told_apart() -> None:
    colours = [track_colour(track) for track in range(1, 13)]
    assert [track_colour(track) for track in range(1, 13)] == colours
    for one, other in combinations(colours, 2):
        assert np.abs(np.subtract(one, other)).max() > 50
    for one, other in pairwise(colours):
        assert np.abs(np.subtract(one, other)).max() > 100, "neighbours most easily"


def test_colours_are_the_same_in_every_order_of_channels() -> None:
    seen, flat = boxes(BOX, track_id=[7]), np.full((360, 640, 3), 128, np.uint8)
    as_bgr = drawn(Annotator(), frame_of(flat), seen, counted())
    as_rgb = drawn(Annotator(), frame_of(flat, pixel_format="rgb"), seen, counted())
    assert as_rgb.pixel_format == "rgb"
    assert np.array_equal(as_rgb.image[..., ::-1], as_bgr.image)


def test_a_gray_frame_comes_out_in_colour() -> None:
    gray = frame_of(np.full((360, 640), 128, np.uint8), pixel_format="gray")
    out = drawn(Annotator(), gray, boxes(BOX, track_id=[7]))
    assert (out.pixel_format, out.image.shape) == ("bgr", (360, 640, 3))


def test_counts_stand_in_the_corner_whatever_the_order_of_the_inputs() -> None:
    frame = plain_frame()
    tracks, count = boxes(BOX, track_id=[7]), counted()
    zone = ZoneCount(0.0, 0, SOURCE, inside=2)
    assert changed(frame, drawn(Annotator(), frame, count))[:20, :40].all()
    assert drawn(Annotator(), frame, tracks, count) == drawn(Annotator(), frame, count, tracks)
    taller = changed(frame, drawn(Annotator(), frame, count, zone)).sum()
    assert taller > changed(frame, drawn(Annotator(), frame, count)).sum()


def test_other_numbers_make_another_picture() -> None:
    frame = plain_frame()
    assert drawn(Annotator(), frame, counted(up=3)) != drawn(Annotator(), frame, counted(up=4))


def test_a_trace_follows_a_track_and_ends_with_it() -> None:
    bench, plain = Bench(Annotator(labels=False)), Annotator(labels=False, traces=False)
    for index in range(24):
        x = 100.0 + 10 * index
        bench(plain_frame(index), boxes([x, 100, x + 40, 200], track_id=[7]))
    seen, frame = boxes([340, 100, 380, 200], track_id=[7]), plain_frame(24)
    trace = changed(drawn(plain, frame, seen), main_output(bench(frame, seen)))
    columns = np.flatnonzero(trace.any(axis=0))
    assert columns.min() < 140
    assert columns.max() > 300
    assert set(np.flatnonzero(trace.any(axis=1))) <= set(range(192, 209)), "where the feet were"
    gone = main_output(bench(plain_frame(25), boxes()))
    assert gone == plain_frame(25)


def test_a_crossing_stays_marked_for_most_of_a_second() -> None:
    bench, plain = Bench(Annotator(labels=False)), Bench(Annotator(labels=False))
    seen = boxes(BOX, track_id=[7])
    marked = []
    for index in range(40):
        count = counted(crossings=((7, "up"),) if index == 5 else ())
        frame = plain_frame(index)
        with_mark = main_output(bench(frame, seen, count))
        marked.append(with_mark != main_output(plain(frame, seen, counted())))
    assert [index for index, mark in enumerate(marked) if mark] == list(range(5, 26))


def test_a_restart_at_any_frame_changes_no_pixel() -> None:
    whole, parted = Bench(Annotator()), Bench(Annotator())
    for index in range(12):
        parted = parted.restarted(Annotator())
        x = 100.0 + 10 * index
        layers = (
            boxes([x, 100, x + 40, 200], track_id=[7]),
            counted(crossings=((7, "down"),) if index == 3 else ()),
        )
        assert whole(plain_frame(index), *layers) == parted(plain_frame(index), *layers)


@pytest.mark.parametrize("size", [(64, 48), (321, 241), (1920, 1080), (3840, 2160)])
def test_marks_scale_with_the_picture(size: tuple[int, int]) -> None:
    width, height = size
    frame = frame_of(np.full((height, width, 3), 128, np.uint8))
    box = [0.3 * width, 0.3 * height, 0.5 * width, 0.9 * height]
    share = changed(frame, drawn(Annotator(), frame, boxes(box, track_id=[7]), counted())).mean()
    assert 0.01 < share < 0.6


def test_a_missing_input_is_left_out_and_another_type_is_refused() -> None:
    frame = plain_frame()
    assert drawn(Annotator(), frame, None, counted()) == drawn(Annotator(), frame, counted())
    with pytest.raises(TypeError, match="not str"):
        drawn(Annotator(), frame, "boxes")


def test_untracked_boxes_are_labelled_by_class_and_need_no_names() -> None:
    frame = plain_frame()
    nameless = Detections.from_arrays([BOX], confidence=[0.5])
    assert drawn(Annotator(), frame, nameless) != frame
    assert drawn(Annotator(), frame, boxes(BOX)) != frame
