"""The detector core: pictures in, boxes out, over ONNX Runtime. Used by the detector node.

It imports ONNX Runtime and OpenCV, so it is imported only when a detector opens. On a CPU it runs picture by
picture with a fixed number of threads, so that a box never depends on what else was in the batch. It refuses
a model whose inputs or outputs it does not know.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
from numpy.typing import NDArray
from onnxruntime.capi import onnxruntime_pybind11_state as native

from videoflow.errors import ArgumentInvalid, LibraryMissing
from videoflow.nodes.vision._decode import Boxes, decode_ssd, decode_yolo, select
from videoflow.nodes.vision._letterbox import letterbox
from videoflow.nodes.vision._models import locate, read_facts

PROVIDERS = {"cpu": "CPUExecutionProvider", "cuda": "CUDAExecutionProvider"}
ERRORS_ONLY = 3
LOAD_ERRORS = (
    native.Fail,
    native.InvalidArgument,
    native.InvalidGraph,
    native.InvalidProtobuf,
    native.NoModel,
    native.NotImplemented,
    native.RuntimeException,
)


Picture = tuple[NDArray[np.uint8], str]
"""An image, (H, W, 3) or (H, W) for `gray`, and the order of its channels: `bgr`, `rgb` or `gray`."""


def choose_provider(provider: str, available: Sequence[str]) -> str:
    """Returns the ONNX Runtime provider for `auto`, `cpu` or `cuda`.

    Args:
        provider: What the user asked for.
        available: What this installation of ONNX Runtime can use.

    Raises:
        LibraryMissing: The provider asked for is not in this installation.
    """
    if provider == "auto":
        return PROVIDERS["cuda"] if PROVIDERS["cuda"] in available else PROVIDERS["cpu"]
    if PROVIDERS[provider] not in available:
        raise LibraryMissing(
            f"this ONNX Runtime has no provider {provider!r}",
            cause=f"it has {', '.join(available)}",
            remedy="install the ONNX Runtime for this device, or use provider='auto'",
        )
    return PROVIDERS[provider]


class Session:
    """A loaded detection model.

    Args:
        model: A preset or the path of an `.onnx` file.
        provider: `auto`, `cpu` or `cuda`.
        threads: Threads for one run; results are pinned for a given number.

    Attributes:
        class_names: Names in lower case, by class id.
        provider: The ONNX Runtime provider that is really used.
    """

    def __init__(self, model: str, provider: str, threads: int) -> None:
        path = locate(model)
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = threads
        options.inter_op_num_threads = 1
        options.execution_mode = onnxruntime.ExecutionMode.ORT_SEQUENTIAL
        options.log_severity_level = ERRORS_ONLY
        options.add_session_config_entry("session.intra_op.allow_spinning", "0")
        chosen = choose_provider(provider, onnxruntime.get_available_providers())
        fallback = [PROVIDERS["cpu"]] if chosen != PROVIDERS["cpu"] else []
        try:
            self._session = onnxruntime.InferenceSession(str(path), options, providers=[chosen, *fallback])
        except LOAD_ERRORS as error:
            raise ArgumentInvalid(
                f"the model file {path.name} cannot be loaded", cause=str(error), remedy="check the file"
            ) from error
        self._facts = read_facts(self._session.get_modelmeta().custom_metadata_map, path)
        self._input: str = self._session.get_inputs()[0].name
        self._size = self._input_size(path)
        self.class_names = self._facts.class_names
        self.provider: str = self._session.get_providers()[0]

    def _input_size(self, path: Path) -> tuple[int, int]:
        shape = self._session.get_inputs()[0].shape
        if len(shape) != 4 or shape[1] != 3 or not all(isinstance(side, int) for side in shape[2:]):
            raise ArgumentInvalid(
                f"the model file {path.name} has an input of shape {shape}",
                cause="expected (N, 3, H, W) with fixed H and W",
                remedy="export it with a fixed picture size",
            )
        return shape[3], shape[2]

    def detect(
        self, pictures: Sequence[Picture], wanted: Sequence[int] | None, floor: float, nms_iou: float
    ) -> list[Boxes]:
        """Returns the boxes of each picture, in pixels of that picture, best first.

        Args:
            pictures: Pictures of any sizes.
            wanted: Class ids looked for; None for all.
            floor: Least confidence, in 0..1.
            nms_iou: Overlap above which the worse of two boxes of a class goes.
        """
        if self.provider == PROVIDERS["cpu"] and len(pictures) > 1:
            return [boxes for one in pictures for boxes in self.detect([one], wanted, floor, nms_iou)]
        fitted = [letterbox(image, order, self._size) for image, order in pictures]
        tensor = (
            np.stack([square for square, _ in fitted]).transpose(0, 3, 1, 2).astype(np.float32, order="C")
        )
        tensor *= np.float32(self._facts.scale)
        tensor += np.float32(self._facts.offset)
        outputs = self._session.run(self._outputs(), {self._input: tensor})
        found = []
        for place, (_, placement) in enumerate(fitted):
            raw = self._decode([output[place] for output in outputs], wanted, floor)
            kept = select(raw._replace(xyxy=placement.to_picture(raw.xyxy)), nms_iou)
            found.append(kept)
        return found

    def _outputs(self) -> list[str] | None:
        return ["boxes", "scores"] if self._facts.decode == "ssd" else None

    def _decode(self, outputs: list[NDArray[Any]], wanted: Sequence[int] | None, floor: float) -> Boxes:
        if self._facts.decode == "ssd":
            return decode_ssd(outputs[0], outputs[1], self._size[0], wanted, floor)
        return decode_yolo(outputs[0], wanted, floor)
