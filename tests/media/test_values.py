"""Frames, detections and observations: what they accept, keep and hand out."""

import copy
import dataclasses
import pickle
import subprocess
import sys
from fractions import Fraction
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest

from videoflow.errors import NotYet
from videoflow.media import Detections, Event, Frame, LineCount, ZoneCount


def make_frame(**changes: Any) -> Frame:
    values: dict[str, Any] = {
        "image": np.arange(4 * 6 * 3, dtype=np.uint8).reshape(4, 6, 3),
        "pts": 1001,
        "time_base": Fraction(1, 30000),
        "index": 1,
        "source": "street.mp4",
    }
    return Frame(**(values | changes))


def make_detections() -> Detections:
    return Detections.from_arrays(
        [[0, 0, 4, 8], [1, 1, 3, 3], [2, 2, 9, 9]],
        confidence=[0.9, 0.35, 0.5],
        class_id=[1, 0, 1],
        track_id=[7, -1, 9],
        class_names=["bicycle", "person"],
        image_size=(10, 10),
        source="street.mp4",
        data={"speed": np.array([0.1, 0.2, np.nan], np.float32)},
    )


def fields_of(value: Any) -> dict[str, Any]:
    return {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}


VALUES = {
    "frame": make_frame(),
    "gray": make_frame(image=np.zeros((2, 3), np.uint8), pixel_format="gray", duration_pts=1001),
    "detections": make_detections(),
    "none found": Detections.empty(class_names=["person"]),
    "line": LineCount(0.5, 3, "a", 1, 2, ((4, "up"),)),
    "zone": ZoneCount(0.5, 3, "a", 1),
    "event": Event("gap", 0.5, "a", None, {"cause": "stall"}),
}


@pytest.mark.parametrize("value", VALUES.values(), ids=VALUES.keys())
def test_a_value_is_rebuilt_from_its_fields(value: Any) -> None:
    again = type(value)(**fields_of(value))
    assert again == value
    assert fields_of(again).keys() == fields_of(value).keys()


@pytest.mark.parametrize("value", VALUES.values(), ids=VALUES.keys())
def test_pickle_and_copy_keep_content_and_keep_arrays_read_only(value: Any) -> None:
    for again in (pickle.loads(pickle.dumps(value)), copy.deepcopy(value)):
        assert again == value
        arrays = [entry for entry in fields_of(again).values() if isinstance(entry, np.ndarray)]
        assert not any(array.flags.writeable for array in arrays)


def test_values_are_rebuilt_from_lists_as_the_wire_gives_them() -> None:
    found = make_detections()
    lists = fields_of(found) | {"class_names": ["bicycle", "person"], "image_size": [10, 10]}
    assert Detections(**lists) == found
    crossing: Any = [[4, "up"]]
    assert LineCount(0.5, 3, "a", 1, 2, crossing) == LineCount(0.5, 3, "a", 1, 2, ((4, "up"),))


def test_a_frame_shares_the_bytes_it_was_given_and_cannot_be_written() -> None:
    image = np.zeros((4, 6, 3), np.uint8)
    frame = make_frame(image=image)
    assert np.shares_memory(frame.image, image)
    assert image.flags.writeable
    with pytest.raises(ValueError, match="read-only"):
        frame.image[0, 0] = 1
    with pytest.raises(dataclasses.FrozenInstanceError):
        frame.__setattr__("index", 2)


def test_a_frames_time_is_exact() -> None:
    frame = make_frame(pts=1001 * 10**9)
    assert frame.time_exact == Fraction(1001 * 10**9, 30000)
    assert frame.time_seconds == float(frame.time_exact)


@pytest.mark.parametrize(
    ("changes", "received"),
    [
        ({"image": np.zeros((300, 300), np.uint8)}, r"\(300, 300\) uint8"),
        ({"image": np.zeros((3, 4, 4), np.uint8)}, r"\(3, 4, 4\) uint8"),
        ({"image": np.zeros((3, 4, 3), np.float32)}, r"\(3, 4, 3\) float32"),
        ({"image": np.zeros((0, 4, 3), np.uint8)}, r"\(0, 4, 3\) uint8"),
        ({"pixel_format": "gray"}, r"\(4, 6, 3\) uint8"),
        ({"pixel_format": "yuv"}, "'yuv'"),
        ({"time_base": Fraction(0)}, "0"),
        ({"rotation_applied": 45}, "45"),
        ({"clock": "wall"}, "'wall'"),
    ],
)
def test_a_frame_says_what_it_received(changes: dict[str, Any], received: str) -> None:
    with pytest.raises(ValueError, match=received):
        make_frame(**changes)


def test_a_list_is_not_an_image() -> None:
    with pytest.raises(TypeError, match="got list"):
        make_frame(image=[[0]])


@pytest.mark.parametrize(
    "changes", [{"index": 2}, {"pts": 1}, {"corrupt": True}, {"image": np.zeros((4, 6, 3), np.uint8)}]
)
def test_frames_that_differ_are_unequal(changes: dict[str, Any]) -> None:
    assert make_frame() == make_frame()
    assert make_frame() != make_frame(**changes)


def test_drawing_goes_through_a_copy_and_keeps_the_times() -> None:
    frame = make_frame()
    image = frame.copy()
    image[:] = 9
    drawn = frame.with_image(image)
    assert drawn.image.max() == 9
    assert frame.image.max() > 9
    assert (drawn.pts, drawn.index, drawn.source) == (frame.pts, frame.index, frame.source)
    gray = frame.with_image(image[:, :, 0], pixel_format="gray")
    assert (gray.width, gray.height) == (6, 4)


def test_a_crop_is_a_view_clipped_to_the_image() -> None:
    frame = make_frame()
    part = frame.crop(-3, 1, 2.2, 99)
    assert part.image.shape == (3, 3, 3)
    assert np.shares_memory(part.image, frame.image)
    assert part.time_exact == frame.time_exact
    with pytest.raises(ValueError, match="6x4"):
        frame.crop(6, 0, 9, 4)


@pytest.mark.parametrize("pixel_format", ["bgr", "rgb"])
def test_a_saved_picture_has_the_frames_colours(tmp_path: Path, pixel_format: Any) -> None:
    image = np.zeros((8, 8, 3), np.uint8)
    image[:, :, 0 if pixel_format == "bgr" else 2] = 200
    frame = make_frame(image=image, pixel_format=pixel_format)
    read = cv2.imread(str(frame.save(tmp_path / "a.PNG")))
    assert read is not None
    assert read[0, 0].tolist() == [200, 0, 0]
    assert frame._repr_png_().startswith(b"\x89PNG")
    assert frame.save(tmp_path / "a.jpg").read_bytes().startswith(b"\xff\xd8")
    with pytest.raises(ValueError, match="gif"):
        frame.save(tmp_path / "a.gif")


def test_detections_are_chosen_by_mask_name_position_and_slice() -> None:
    found = make_detections()
    assert found[found.confidence > 0.4].track_id.tolist() == [7, 9]
    assert found.of("person").track_id.tolist() == [7, 9]
    assert found[1].class_id.tolist() == [0]
    assert len(found[:2]) == 2
    assert len(found[[]]) == 0
    assert found[[2, 0]].data["speed"].shape == (2,)
    with pytest.raises(ValueError, match="bicycle, person"):
        found.of("cat")
    assert len(Detections.empty().of("cat")) == 0


def test_rows_are_json_like_with_short_floats() -> None:
    row = make_detections().rows()[1]
    assert row == {
        "xyxy": [1.0, 1.0, 3.0, 3.0],
        "confidence": 0.35,
        "class_id": 0,
        "class_name": "bicycle",
        "track_id": -1,
        "speed": 0.2,
    }


@pytest.mark.parametrize(
    ("changes", "received"),
    [
        ({"xyxy": np.zeros((3, 4))}, r"\(3, 4\) float64"),
        ({"xyxy": np.zeros((3, 5), np.float32)}, r"\(3, 5\) float32"),
        ({"confidence": np.zeros(2, np.float32)}, r"\(2,\) float32"),
        ({"track_id": np.zeros(3, np.int32)}, r"\(3,\) int32"),
        ({"class_id": np.array([0, 1, 2], np.int32)}, "got 0 to 2"),
        ({"class_names": ("Person", "car")}, "'Person'"),
        ({"data": {"a": np.zeros(4)}}, r"\(4,\) float64"),
    ],
)
def test_detections_say_what_they_received(changes: dict[str, Any], received: str) -> None:
    with pytest.raises(ValueError, match=received):
        Detections(**(fields_of(make_detections()) | changes))


def test_equal_detections_may_hold_nan_and_unequal_ones_differ_anywhere() -> None:
    assert make_detections() == make_detections()
    assert make_detections() != make_detections()[:2]
    assert make_detections() != dataclasses.replace(make_detections(), source="other")
    assert make_detections() != dataclasses.replace(make_detections(), data={})


def test_supervision_is_refused_by_name() -> None:
    with pytest.raises(NotYet, match="to_supervision"):
        make_detections().to_supervision()
    with pytest.raises(NotYet, match="from_supervision"):
        Detections.from_supervision(None)


def test_importing_the_types_loads_no_codec_library() -> None:
    code = "import sys, videoflow.media; print(sorted({'av', 'cv2'} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
