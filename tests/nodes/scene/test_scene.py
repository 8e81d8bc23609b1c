"""The drawn scene: the same everywhere, resumable anywhere, and true about what it shows."""

import hashlib
from collections.abc import Generator
from typing import Any

import cv2
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

import videoflow as vf
from videoflow.graph import Item
from videoflow.media import Detections, Frame
from videoflow.nodes import SyntheticScene

DIGEST = "f8e0bf771a41a523"
"""Of the 300 frames of the default scene; another one means that scenes changed for everybody."""


def items(scene: SyntheticScene, resume: int | None = None) -> list[Item]:
    return list(scene.produce(resume))


@pytest.fixture(scope="module")
def default() -> list[Item]:
    return items(SyntheticScene())


def test_the_default_scene_has_the_same_bytes_on_every_machine(default: list[Item]) -> None:
    pixels = hashlib.sha256()
    for item in default:
        pixels.update(item.value.image.tobytes())
    assert pixels.hexdigest()[:16] == DIGEST


def test_frames_have_exact_times_and_dense_offsets(default: list[Item]) -> None:
    assert [item.offset for item in default] == list(range(300))
    assert [item.time_seconds for item in default] == [n / 25 for n in range(300)]
    frame = default[7].value
    assert isinstance(frame, Frame)
    assert (frame.width, frame.height, frame.index, frame.source) == (640, 360, 7, "scene-0")


@settings(max_examples=25)
@given(
    seed=st.integers(0, 50),
    resume=st.integers(0, 12),
    people=st.integers(0, 7),
    size=st.sampled_from([(16, 16), (70, 50)]),
)
def test_any_frame_can_be_made_by_itself(seed: int, resume: int, people: int, size: tuple[int, int]) -> None:
    whole = items(SyntheticScene(frames=12, size=size, people=people, seed=seed))
    rest = items(SyntheticScene(frames=12, size=size, people=people, seed=seed), resume)
    assert [(item.offset, item.value, item.ports["truth"]) for item in rest] == [
        (item.offset, item.value, item.ports["truth"]) for item in whole[resume:]
    ]


def test_seeds_give_other_scenes_and_other_sources() -> None:
    one, other = (items(SyntheticScene(frames=1, seed=seed))[0].value for seed in (1, 2))
    assert one.source != other.source
    assert not np.array_equal(one.image, other.image)


def test_everybody_is_in_the_truth_with_a_number_of_their_own(default: list[Item]) -> None:
    for item in default[::50]:
        truth = item.ports["truth"]
        assert isinstance(truth, Detections)
        assert truth.track_id.tolist() == [1, 2, 3, 4, 5]
        assert {row["class_name"] for row in truth.rows()} == {"person"}
        assert (truth.image_size, truth.source) == ((640, 360), "scene-0")
        assert (truth.xyxy >= 0).all()
        assert (truth.xyxy[:, 2] <= 640).all()
        assert (truth.xyxy[:, 3] <= 360).all()


def test_people_walk_and_do_not_jump(default: list[Item]) -> None:
    feet = np.array([item.ports["truth"].xyxy[:, 3] for item in default])
    middles = np.array([item.ports["truth"].xyxy[:, ::2].mean(1) for item in default])
    assert (np.abs(np.diff(feet, axis=0)) <= 6).all()
    assert (np.abs(np.diff(middles, axis=0)) <= 12).all()
    assert (np.ptp(middles, axis=0) > 200).all()


def test_everybody_crosses_the_middle_of_the_ground(default: list[Item]) -> None:
    feet = np.array([item.ports["truth"].xyxy[:, 3] for item in default])
    assert ((feet.min(0) < 200) & (feet.max(0) > 200)).all()


def vivid(image: NDArray[np.uint8]) -> tuple[NDArray[np.bool_], NDArray[np.int64]]:
    """Which pixels have colour, and their hue in 0..179."""
    hsv = cv2.cvtColor(image, cv2.COLOR_BGR2HSV)
    return (hsv[..., 1] > 110) & (hsv[..., 2] > 60), hsv[..., 0].astype(np.int64)


def colour_boxes(image: NDArray[np.uint8]) -> list[tuple[int, int, int, int]]:
    """A detector for coloured things: the largest blob of each hue that many pixels have."""
    mask, hue = vivid(image)
    counts = np.bincount(hue[mask], minlength=180)
    boxes = []
    while counts.max() > 60:
        peak = int(counts.argmax())
        away = np.abs((np.arange(180) - peak + 90) % 180 - 90)
        near = mask & (away[hue] <= 8)
        counts[away <= 8] = 0
        _, _, stats, _ = cv2.connectedComponentsWithStats(near.astype(np.uint8))
        large = [row for row in stats[1:].tolist() if row[4] > 20]
        if large:
            left, top = min(row[0] for row in large), min(row[1] for row in large)
            right, bottom = max(row[0] + row[2] for row in large), max(row[1] + row[3] for row in large)
            boxes.append((left, top, right, bottom))
    return boxes


def overlap(one: Any, other: Any) -> float:
    left, top = max(one[0], other[0]), max(one[1], other[1])
    right, bottom = min(one[2], other[2]), min(one[3], other[3])
    both = max(0, right - left) * max(0, bottom - top)
    areas = [(box[2] - box[0]) * (box[3] - box[1]) for box in (one, other)]
    return float(both / (sum(areas) - both))


def test_a_detector_for_colours_finds_nine_of_ten_people_where_the_truth_says(default: list[Item]) -> None:
    hits = people = false = 0
    for item in default[::10]:
        found = colour_boxes(item.value.image)
        truth = item.ports["truth"].xyxy.tolist()
        hits += sum(any(overlap(box, each) >= 0.5 for each in found) for box in truth)
        false += sum(all(overlap(box, each) < 0.1 for box in truth) for each in found)
        people += len(truth)
    assert hits / people >= 0.9
    assert false == 0


def test_the_background_has_no_colour() -> None:
    (empty,) = items(SyntheticScene(frames=1, people=0))
    mask, _ = vivid(empty.value.image)
    assert not mask.any()


def test_the_run_knows_how_many_frames_to_expect_and_how_it_ended() -> None:
    scene = SyntheticScene(frames=3, size=(32, 32))
    assert scene.summary() == {"expected": 3}
    produced = scene.produce(None)
    next(produced)
    assert isinstance(produced, Generator)
    produced.close()
    assert scene.summary()["outcome"] == "stopped"
    items(scene)
    assert scene.summary()["outcome"] == "complete"


def test_a_scene_without_frames_is_complete() -> None:
    scene = SyntheticScene(frames=0)
    assert items(scene) == []
    assert scene.summary()["outcome"] == "complete"


@pytest.mark.parametrize(
    "arguments", [{"frames": -1}, {"size": (640, 8)}, {"people": -1}, {"seed": -1}], ids=str
)
def test_a_number_out_of_its_range_is_refused_by_name(arguments: dict[str, Any]) -> None:
    with pytest.raises(vf.ArgumentInvalid, match=next(iter(arguments))):
        SyntheticScene(**arguments)
