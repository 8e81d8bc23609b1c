"""What passes by on the terminal, and what comes back to the caller."""

import dataclasses

import numpy as np
import pytest

import videoflow as vf
from videoflow.media import Detections, Frame, LineCount
from videoflow.nodes import Collect, Console, SyntheticScene
from videoflow.testing import drive


def counts(seconds: list[float], source: str = "a.mp4") -> list[LineCount]:
    return [LineCount(time, index, source, up=index, down=0) for index, time in enumerate(seconds)]


def printed(capsys: pytest.CaptureFixture[str]) -> list[str]:
    captured = capsys.readouterr()
    assert captured.out == ""
    return captured.err.splitlines()


def test_one_line_is_printed_per_interval_of_event_time_and_the_last_one_at_the_end(
    capsys: pytest.CaptureFixture[str],
) -> None:
    drive(Console(every_seconds=1, name="say"), counts([0, 0.5, 0.9, 1, 1.5, 2.5, 2.75]))
    assert [text.split("index=")[1].split()[0] for text in printed(capsys)] == ["0", "3", "5", "6"]


def test_a_line_says_node_source_time_and_value(capsys: pytest.CaptureFixture[str]) -> None:
    drive(Console(name="say"), counts([12.72]))
    assert printed(capsys) == ["say  a.mp4  12.720 s  index=0 up=0 down=0 crossings=[]"]


def test_each_source_has_intervals_of_its_own(capsys: pytest.CaptureFixture[str]) -> None:
    one, other = counts([0, 0.2], "a.mp4"), counts([0.1, 0.3], "b.mp4")
    drive(Console(every_seconds=10), [one[0], other[0], one[1], other[1]])
    assert [text.split()[1] for text in printed(capsys)] == ["a.mp4", "b.mp4", "a.mp4", "b.mp4"]


def test_a_time_that_goes_back_begins_anew(capsys: pytest.CaptureFixture[str]) -> None:
    drive(Console(every_seconds=60), counts([100, 130, 5, 6]))
    assert [text.split()[2] for text in printed(capsys)] == ["100.000", "5.000", "6.000"]


def test_zero_seconds_print_everything(capsys: pytest.CaptureFixture[str]) -> None:
    drive(Console(every_seconds=0), counts([0, 0, 0.01]))
    assert len(printed(capsys)) == 3


def test_boxes_are_counted_by_name_and_frames_described(capsys: pytest.CaptureFixture[str]) -> None:
    found = Detections.from_arrays(
        np.zeros((3, 4)), class_id=[1, 0, 1], class_names=["car", "person"], source="a.mp4"
    )
    drive(Console(every_seconds=0, name="say"), [found, Detections.empty(source="a.mp4")])
    drive(Console(name="see"), drive(SyntheticScene(frames=1, size=(64, 48)), []))
    boxes, none, frame = printed(capsys)
    assert boxes.endswith("  2 person, 1 car")
    assert none.endswith("  nothing")
    assert frame.endswith("  frame 0, 64x48")


def test_a_long_value_is_cut(capsys: pytest.CaptureFixture[str]) -> None:
    drive(Console(), ["x" * 1000])
    (text,) = printed(capsys)
    assert len(text) < 200
    assert text.endswith("…")


def test_an_interval_below_zero_is_refused() -> None:
    with pytest.raises(vf.ArgumentInvalid, match="every_seconds cannot be -1"):
        Console(-1)


@vf.processor
def number(frame: Frame) -> int:
    return frame.index


@vf.processor
def odd(frame: Frame) -> int | object:
    return frame.index if frame.index % 2 else vf.SKIP


def scene(frames: int) -> SyntheticScene:
    return SyntheticScene(frames=frames, size=(32, 32), people=0)


def test_rows_come_back_in_order_under_the_name_of_the_node() -> None:
    camera = scene(300)
    flow = vf.Flow([Collect(name="all")(number(camera)), Collect(name="odd")(odd(camera))], name="rows")
    assert flow.run().values == {"all": list(range(300)), "odd": list(range(1, 300, 2))}


def test_several_inputs_are_a_row_each_time() -> None:
    camera = scene(4)
    both = Collect(name="rows", missing="none")(number(camera), odd(camera))
    assert vf.Flow([both], name="rows").run().values["rows"] == [[0, None], [1, 1], [2, None], [3, 3]]


def test_values_of_the_library_come_back_as_they_were() -> None:
    camera = scene(2)
    (first, second) = vf.Flow([Collect(name="frames")(camera)], name="rows").run().values["frames"]
    expected = drive(scene(2), [])
    assert [first, second] == expected
    assert dataclasses.asdict(first).keys() == dataclasses.asdict(expected[0]).keys()


def test_one_row_too_many_ends_the_run_by_name() -> None:
    flow = vf.Flow([Collect(limit=5, name="few")(number(scene(6)))], name="rows")
    with pytest.raises(vf.NodeFailed, match="its limit is 5") as failure:
        flow.run()
    assert failure.value.node == "few"
    assert "limit=" in failure.value.remedy
    report = failure.value.report
    assert isinstance(report, vf.RunReport)
    assert (report.verdict, report.exit_status) == ("failed", 4)
    assert report.values["few"] == [0, 1, 2, 3, 4]


def test_a_limit_that_is_just_reached_is_no_failure() -> None:
    flow = vf.Flow([Collect(limit=6, name="few")(number(scene(6)))], name="rows")
    assert flow.run().values["few"] == [0, 1, 2, 3, 4, 5]
