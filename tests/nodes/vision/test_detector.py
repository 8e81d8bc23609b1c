"""The shipped model is the original one, boxes lie where things are, and mistakes are named."""

import hashlib
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper

from tests.nodes.vision.support import frame_of, plain_frame
from videoflow.errors import ArgumentInvalid, FlowError, LibraryMissing
from videoflow.media import Detections
from videoflow.nodes.vision import Detector
from videoflow.nodes.vision._letterbox import letterbox
from videoflow.nodes.vision._models import MODELS, PRESETS
from videoflow.nodes.vision._session import choose_provider

PERSON_SSD = MODELS / "person-ssd.onnx"
REFERENCE = Path(__file__).parent / "person_ssd_reference.json"


def opened(detector: Detector) -> Detector:
    detector.open()
    return detector


def picture() -> NDArray[np.uint8]:
    """A 300x300 RGB picture of gradients, a chessboard and two rectangles, the same on every machine."""
    y, x = np.mgrid[0:300, 0:300]
    chess = ((x // 30 + y // 30) % 2) * 255
    image = np.stack([x * 255 // 299, y * 255 // 299, chess], axis=-1).astype(np.uint8)
    image[90:240, 120:170] = (40, 60, 200)
    image[60:90, 130:160] = (220, 180, 150)
    return image


def test_the_shipped_model_is_the_one_that_was_converted() -> None:
    digest, name = (MODELS / "person-ssd.onnx.sha256").read_text(encoding="utf-8").split()
    assert name == PERSON_SSD.name
    assert hashlib.sha256(PERSON_SSD.read_bytes()).hexdigest() == digest
    assert "Apache License" in (MODELS / "LICENSE").read_text(encoding="utf-8")


def test_the_shipped_model_gives_what_the_original_gives_in_its_own_interpreter() -> None:
    """The numbers were recorded from the TFLite original; the tolerance is a tenth of a pixel's share."""
    recorded = json.loads(REFERENCE.read_text(encoding="utf-8"))
    session = onnxruntime.InferenceSession(str(PERSON_SSD), providers=["CPUExecutionProvider"])
    tensor = picture().astype(np.float32).transpose(2, 0, 1)[None] / np.float32(127.5) - np.float32(1)
    boxes, scores = session.run(["boxes", "scores"], {"image": tensor})
    assert boxes.shape == (1, 1917, 4)
    assert scores.shape == (1, 1917, 24)
    np.testing.assert_allclose(boxes[0, recorded["anchors"]], recorded["boxes"], atol=2e-4)
    np.testing.assert_allclose(scores[0, recorded["anchors"]], recorded["scores"], atol=5e-5)
    assert abs(boxes).mean() == pytest.approx(recorded["mean_absolute_box"], rel=1e-5)
    assert scores.mean() == pytest.approx(recorded["mean_score"], rel=1e-4)


def test_the_class_names_known_without_the_file_are_those_of_the_file() -> None:
    for preset, names in PRESETS.items():
        said = json.loads(
            {entry.key: entry.value for entry in onnx.load(MODELS / f"{preset}.onnx").metadata_props}[
                "videoflow"
            ]
        )
        assert tuple(said["class_names"]) == names


def test_detections_say_what_they_are_of() -> None:
    found = opened(Detector(min_confidence=0.0)).process(plain_frame())
    assert isinstance(found, Detections)
    assert found.image_size == (640, 360)
    assert found.source == "street.mp4"
    assert "person" in found.class_names
    assert len(found) > 0
    assert (np.diff(found.confidence) <= 0).all(), "best first"
    assert (found.track_id == -1).all()
    assert found.xyxy.min() >= 0
    assert (found.xyxy[:, 2] <= 640).all()
    assert (found.xyxy[:, 3] <= 360).all()


def test_a_flat_picture_holds_nobody() -> None:
    assert len(opened(Detector(classes=["person"])).process(plain_frame())) == 0


def test_only_the_wanted_classes_are_returned() -> None:
    detector = opened(Detector(classes=["Person", "car"], min_confidence=0.0))
    found = detector.process(plain_frame())
    assert {row["class_name"] for row in found.rows()} <= {"person", "car"}


def test_a_batch_of_mixed_sizes_gives_what_its_frames_give_alone() -> None:
    images = [picture(), picture()[:200], np.repeat(picture(), 3, axis=1), picture()[::2, ::3]]
    frames = [frame_of(np.ascontiguousarray(image), index=k) for k, image in enumerate(images)]
    detector = opened(Detector(min_confidence=0.02))
    together = detector.process_batch(frames)
    assert together == [detector.process(frame) for frame in frames]
    assert [found.image_size for found in together] == [(300, 300), (300, 200), (900, 300), (100, 150)]


def test_a_frame_gives_the_same_boxes_in_every_run_and_order_of_channels() -> None:
    as_rgb = frame_of(picture(), pixel_format="rgb")
    as_bgr = frame_of(np.ascontiguousarray(picture()[..., ::-1]))
    first = opened(Detector(min_confidence=0.02)).process(as_rgb)
    assert len(first) > 0
    assert opened(Detector(min_confidence=0.02)).process(as_rgb) == first
    assert opened(Detector(min_confidence=0.02)).process(as_bgr) == first


def test_a_gray_frame_is_taken() -> None:
    gray = frame_of(picture()[..., 1].copy(), pixel_format="gray")
    assert opened(Detector(min_confidence=0.0)).process(gray).image_size == (300, 300)


def test_a_crop_by_reference_is_looked_at_like_a_copy_of_it() -> None:
    detector = opened(Detector(min_confidence=0.02))
    crop = frame_of(picture()).crop(100, 50, 250, 260)
    copy = frame_of(crop.copy())
    assert not crop.image.flags.c_contiguous
    assert detector.process(crop) == detector.process(copy)


@given(
    st.integers(1, 700),
    st.integers(1, 700),
    st.floats(0, 1),
    st.floats(0, 1),
    st.sampled_from([(300, 300), (64, 32)]),
)
def test_a_point_of_the_square_goes_back_to_where_it_was(
    width: int, height: int, across: float, down: float, size: tuple[int, int]
) -> None:
    square, placement = letterbox(np.zeros((height, width, 3), np.uint8), "bgr", size)
    assert square.shape == (size[1], size[0], 3)
    x, y = across * width, down * height
    there = [x * placement.scale[0] + placement.offset[0], y * placement.scale[1] + placement.offset[1]]
    assert 0 <= there[0] <= size[0]
    assert 0 <= there[1] <= size[1]
    back = placement.to_picture(np.array([there * 2]))
    np.testing.assert_allclose(back[0], [x, y, x, y], atol=1e-3)


def yolo_model(path: Path, metadata: dict[str, str]) -> Path:
    """Writes a model of 64x32 pictures that finds a dog at (10, 8)-(30, 24) with 0.75, whatever it sees."""
    answer = np.zeros((1, 6, 2), np.float32)
    answer[0, :, 0] = (20, 16, 20, 16, 0.1, 0.75)
    nodes = [
        helper.make_node("ReduceMin", ["image"], ["least"], keepdims=1, axes=[1, 2, 3]),
        helper.make_node("Sub", ["least", "least"], ["zero"]),
        helper.make_node("Reshape", ["zero", "flat"], ["nothing"]),
        helper.make_node("Add", ["nothing", "answer"], ["found"]),
    ]
    graph = helper.make_graph(
        nodes,
        "always-a-dog",
        [helper.make_tensor_value_info("image", TensorProto.FLOAT, ["n", 3, 32, 64])],
        [helper.make_tensor_value_info("found", TensorProto.FLOAT, ["n", 6, 2])],
        initializer=[
            numpy_helper.from_array(answer, "answer"),
            numpy_helper.from_array(np.array([-1, 1, 1], np.int64), "flat"),
        ],
    )
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
    made.ir_version = 8
    helper.set_model_props(made, metadata)
    onnx.save(made, path)
    return path


def test_a_model_of_ones_own_is_read_by_what_its_exporter_wrote(tmp_path: Path) -> None:
    path = yolo_model(tmp_path / "dog.onnx", {"names": "{0: 'Cat', 1: 'Dog'}", "imgsz": "[32, 64]"})
    found = opened(Detector(str(path), classes=["dog"])).process(frame_of(np.zeros((64, 128, 3), np.uint8)))
    assert found.xyxy.tolist() == [[20, 16, 60, 48]]
    assert found.rows()[0]["class_name"] == "dog"
    assert found.confidence.tolist() == [0.75]


def test_a_model_of_ones_own_without_such_a_class_is_refused(tmp_path: Path) -> None:
    path = yolo_model(tmp_path / "dog.onnx", {"names": "{0: 'Cat', 1: 'Dog'}"})
    with pytest.raises(ArgumentInvalid, match="no class 'dgo'") as caught:
        opened(Detector(str(path), classes=["dgo"]))
    assert caught.value.remedy == "did you mean 'dog'?"


def test_a_model_that_does_not_say_how_to_read_it_is_refused(tmp_path: Path) -> None:
    path = yolo_model(tmp_path / "dog.onnx", {})
    with pytest.raises(ArgumentInvalid, match="does not say how to read it") as caught:
        opened(Detector(str(path)))
    assert "videoflow" in caught.value.remedy


def test_a_file_that_is_no_model_and_a_missing_one_are_refused_by_name(tmp_path: Path) -> None:
    (tmp_path / "people.onnx").write_bytes(b"not a model")
    with pytest.raises(ArgumentInvalid, match=r"people\.onnx cannot be loaded"):
        opened(Detector(str(tmp_path / "people.onnx")))
    with pytest.raises(ArgumentInvalid, match="there is no model file") as caught:
        opened(Detector(str(tmp_path / "peopel.onnx")))
    assert caught.value.remedy == "did you mean 'people.onnx'?"


def test_mistakes_are_found_when_the_node_is_made_and_the_nearest_name_is_given() -> None:
    with pytest.raises(ArgumentInvalid, match="no model is named 'person-sdd'") as caught:
        Detector("person-sdd")
    assert "did you mean 'person-ssd'?" in caught.value.remedy
    with pytest.raises(ArgumentInvalid, match="no class 'persn'") as caught:
        Detector(classes=["persn"])
    assert caught.value.remedy == "did you mean 'person'?"
    with pytest.raises(ArgumentInvalid, match="min_confidence cannot be 35"):
        Detector(min_confidence=35)
    with pytest.raises(ArgumentInvalid, match="threads cannot be 0"):
        Detector(threads=0)
    unknown: Any = "cdua"
    with pytest.raises(ArgumentInvalid, match="provider"):
        Detector(provider=unknown)
    with pytest.raises(FlowError, match="classes"):
        Detector(classes="person")


def test_an_accelerator_that_is_not_there_is_refused_and_never_replaced_silently() -> None:
    assert choose_provider("auto", ["CPUExecutionProvider"]) == "CPUExecutionProvider"
    both = ["CUDAExecutionProvider", "CPUExecutionProvider"]
    assert choose_provider("auto", both) == "CUDAExecutionProvider"
    assert choose_provider("cpu", both) == "CPUExecutionProvider"
    with pytest.raises(LibraryMissing, match="no provider 'cuda'"):
        choose_provider("cuda", ["CPUExecutionProvider"])


def test_making_nodes_loads_no_heavy_library() -> None:
    code = (
        "import sys\n"
        "from videoflow.nodes.vision import Annotator, Detector, LineCounter, Tracker\n"
        "Detector(classes=['person']), Tracker(), LineCounter((0, 0, 5, 5)), Annotator()\n"
        "print([name for name in ('cv2', 'onnxruntime', 'scipy', 'av') if name in sys.modules])\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
