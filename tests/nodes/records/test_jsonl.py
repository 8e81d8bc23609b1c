"""Lines of JSON: what stands in them, and that each is there exactly once."""

import json
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import videoflow as vf
from tests.nodes.sinks import SinkRun
from videoflow.media import Detections, Event, Frame, LineCount
from videoflow.nodes import JsonlSink, SyntheticScene
from videoflow.testing import drive


@dataclass(frozen=True)
class Reading:
    """A value of a user's."""

    level: float
    gains: np.ndarray[Any, Any]
    share: Fraction = Fraction(1, 3)


def run_of(path: Path, values: list[Any]) -> SinkRun:
    """A run of a sink that can be killed."""

    def release(sink: vf.Consumer) -> None:
        assert isinstance(sink, JsonlSink)
        file = sink._opened()._file
        if file is not None:
            file.close()

    return SinkRun(lambda: JsonlSink(path), values, release)


def line(value: Any, folder: Path) -> dict[str, Any]:
    """The one line that a value comes to."""
    drive(JsonlSink(folder / "one.jsonl"), [value])
    (text,) = (folder / "one.jsonl").read_text(encoding="utf-8").splitlines()
    found: dict[str, Any] = json.loads(text)
    return found


def test_a_line_has_its_place_and_the_fields_of_the_value(tmp_path: Path) -> None:
    count = LineCount(12.72, 318, "street.mp4", up=3, down=1, crossings=((7, "up"),))
    drive(JsonlSink(tmp_path / "counts.jsonl"), [count])
    assert (tmp_path / "counts.jsonl").read_bytes() == (
        b'{"crossings":[[7,"up"]],"down":1,"index":318,"source":"street.mp4","time_seconds":12.72,"up":3}\n'
    )


def test_detections_are_a_list_of_boxes_with_the_shortest_floats(tmp_path: Path) -> None:
    found = Detections.from_arrays(
        [[10.1, 20, 30, 60]], confidence=[0.9], class_names=["person"], image_size=(640, 360), source="a.mp4"
    )
    assert line(found, tmp_path) == {
        "source": "a.mp4",
        "index": 0,
        "time_seconds": 0.0,
        "image_size": [640, 360],
        "detections": [
            {
                "xyxy": [10.1, 20.0, 30.0, 60.0],
                "confidence": 0.9,
                "class_id": 0,
                "class_name": "person",
                "track_id": -1,
            }
        ],
    }


def test_a_frame_without_a_find_is_a_line_too(tmp_path: Path) -> None:
    assert line(Detections.empty(source="a.mp4"), tmp_path)["detections"] == []


def test_a_frame_has_no_pixels_and_its_own_place(tmp_path: Path) -> None:
    image = np.zeros((36, 64, 3), np.uint8)
    frame = Frame(image=image, pts=3003, time_base=Fraction(1, 30000), index=3, source="street.mp4")
    found = line(frame, tmp_path)
    assert (found["index"], found["time_seconds"], found["source"]) == (3, 0.1001, "street.mp4")
    assert (found["width"], found["height"], found["corrupt"]) == (64, 36, False)
    assert "image" not in found


def test_an_event_keeps_its_data_and_gets_the_number_of_its_source_item(tmp_path: Path) -> None:
    found = line(Event("gap", 4.5, "a.mp4", data={"seconds": 2}), tmp_path)
    assert (found["kind"], found["data"], found["index"]) == ("gap", {"seconds": 2}, 0)


@pytest.mark.parametrize(
    ("value", "shown"),
    [(7, 7), ("text", "text"), (None, None), ([1, [2.5]], [1, [2.5]]), (b"\x00\xff", "AP8=")],
)
def test_what_has_no_fields_stands_in_value(value: object, shown: object, tmp_path: Path) -> None:
    assert line(value, tmp_path)["value"] == shown


def test_a_record_of_the_user_is_written_by_its_fields(tmp_path: Path) -> None:
    found = line(Reading(float("nan"), np.array([[0.1, 2.0]], np.float32)), tmp_path)
    assert (found["level"], found["gains"], found["share"]) == (None, [[0.1, 2.0]], "1/3")


def test_an_array_too_large_for_a_line_is_refused_with_its_shape(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"\(300, 300\)"):
        drive(JsonlSink(tmp_path / "a.jsonl"), [np.zeros((300, 300))])


def test_a_value_without_a_line_is_put_aside_and_its_neighbours_are_written(tmp_path: Path) -> None:
    @vf.processor
    def grown(frame: Frame) -> np.ndarray[Any, Any]:
        return np.zeros((400, 400) if frame.index == 2 else (1,), np.uint8)

    scene = SyntheticScene(frames=5, size=(32, 32), people=0)
    report = vf.Flow([JsonlSink(tmp_path / "a.jsonl", name="log")(grown(scene))], name="big").run()
    assert (report.verdict, report.exit_status) == ("incomplete", 1)
    assert [letter.attempts for letter in report.dead_letters] == [1]
    written = [json.loads(text)["index"] for text in (tmp_path / "a.jsonl").read_text().splitlines()]
    assert written == [0, 1, 3, 4]


def test_lines_can_be_read_before_they_are_committed(tmp_path: Path) -> None:
    run = run_of(tmp_path / "a.jsonl", list(range(10)))
    run.give(3)
    assert run.settled == 0
    assert len((tmp_path / "a.jsonl").read_text().splitlines()) == 3
    run.drain()


def test_a_new_run_replaces_the_file_and_makes_its_folder(tmp_path: Path) -> None:
    path = tmp_path / "new" / "a.jsonl"
    for values in ([1, 2, 3], [4]):
        drive(JsonlSink(path), values)
    assert [json.loads(text)["value"] for text in path.read_text().splitlines()] == [4]


def test_the_file_of_an_earlier_run_stays_until_the_first_line_and_no_longer(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    drive(JsonlSink(path), [1, 2])
    run_of(path, [3]).abort()
    assert len(path.read_text().splitlines()) == 2
    run = run_of(path, [3])
    run.give(1)
    assert [json.loads(text)["value"] for text in path.read_text().splitlines()] == [3]
    run.abort()
    assert not path.exists()


def test_without_an_input_there_is_an_empty_file(tmp_path: Path) -> None:
    drive(JsonlSink(tmp_path / "a.jsonl"), [1])
    drive(JsonlSink(tmp_path / "a.jsonl"), [])
    assert (tmp_path / "a.jsonl").read_bytes() == b""


def test_what_does_not_count_is_taken_back_when_a_run_is_not_drained(tmp_path: Path) -> None:
    run = run_of(tmp_path / "a.jsonl", list(range(100)))
    run.give(40)
    run.abort()
    assert len((tmp_path / "a.jsonl").read_text().splitlines()) == run.settled == 32
    assert run.summary["lines"] == 32


CRASHES = st.lists(
    st.tuples(st.integers(1, 45), st.sampled_from(["clean", "uncommitted", "torn"])), max_size=4
)


@settings(max_examples=40)
@given(count=st.integers(0, 100), crashes=CRASHES)
def test_each_line_is_there_once_whatever_crashes(
    count: int, crashes: list[tuple[int, str]], tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.mktemp("lines") / "a.jsonl"
    run = run_of(path, [{"number": number} for number in range(count)])
    for inputs, kind in crashes:
        run.give(inputs, crash_before_commit=kind == "uncommitted")
        if kind == "torn":
            with path.open("ab") as file:
                file.write(b'{"number":')
        run.crash()
    run.drain()
    lines = [json.loads(text) for text in path.read_text().splitlines()]
    assert [(each["index"], each["number"]) for each in lines] == [(n, n) for n in range(count)]
    assert run.summary == {"bytes": path.stat().st_size, "lines": count}


def test_a_file_that_lost_its_end_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    run = run_of(path, list(range(40)))
    run.give(40)
    path.write_bytes(b"")
    with pytest.raises(vf.OutputUnwritable, match="cannot be continued"):
        run.crash()


def test_a_folder_that_cannot_be_made_is_refused_by_name(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(vf.OutputUnwritable, match="cannot be written"):
        drive(JsonlSink(tmp_path / "file" / "a.jsonl"), [1])


def test_relative_paths_belong_to_the_folder_where_the_flow_was_built(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "built").mkdir()
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "built")
    scene = SyntheticScene(frames=2, size=(32, 32), people=0)
    flow = vf.Flow([JsonlSink("a.jsonl")(scene)], name="moved")
    monkeypatch.chdir(tmp_path / "elsewhere")
    report = flow.run()
    assert report.verdict == "complete"
    assert report.outputs == ["a.jsonl"]
    assert (tmp_path / "built" / "a.jsonl").exists()
    assert list((tmp_path / "elsewhere").iterdir()) == []
