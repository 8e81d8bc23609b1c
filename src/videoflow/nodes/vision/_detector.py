"""`Detector`: finds objects in frames. It needs the extras `onnx` and `video`, loaded when it opens.

Used in flows on frames. It refuses a model that it cannot read, when it opens.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal, Unpack

from videoflow.errors import LibraryMissing
from videoflow.graph import NodeOptions, Processor
from videoflow.media import Detections, Frame
from videoflow.nodes._arguments import require, require_input
from videoflow.nodes.vision._models import known_classes, wanted_ids

if TYPE_CHECKING:
    from videoflow.nodes.vision._session import Session


class Detector(Processor):
    """Finds objects in frames of any size, with a detection model over ONNX Runtime.

    Reads a `Frame`, makes `Detections` in pixels of that frame, best first. The preset `person-ssd` finds
    people and 22 other classes; it is shipped with videoflow and needs no network. A model of your own is an
    `.onnx` file with an input (N, 3, H, W) of RGB whose metadata says how to read it: an entry `videoflow`
    with a JSON object of `decode` (`ssd` or `yolo`), `class_names`, `scale` and `offset`, or the entries that
    exporters of YOLO models write.

    Args:
        model: A preset, or the path of an `.onnx` file.
        classes: Names of the classes looked for; None for all of the model.
        min_confidence: Least confidence of a box, in 0..1.
        nms_iou: Overlap above which the worse of two boxes of one class is left out, in 0..1.
        provider: Where the model runs: `auto` takes CUDA where the installed ONNX Runtime has it.
        threads: Threads of one replica on a CPU; results are the same in every run with as many.

    Raises:
        ArgumentInvalid: An unknown preset, class or provider (the nearest is named), or a number out of
            range.

    Example:
        >>> Detector(classes=["person"])
        <Detector>
    """

    batch_invariant = True
    max_item_bytes: int = 1 << 18

    def __init__(
        self,
        model: str = "person-ssd",
        *,
        classes: Sequence[str] | None = None,
        min_confidence: float = 0.35,
        nms_iou: float = 0.5,
        provider: Literal["auto", "cpu", "cuda"] = "auto",
        threads: int = 1,
        **options: Unpack[NodeOptions],
    ) -> None:
        super().__init__(**options)
        require(0 <= min_confidence <= 1, "Detector", "min_confidence", min_confidence, "0 to 1")
        require(0 <= nms_iou <= 1, "Detector", "nms_iou", nms_iou, "0 to 1")
        require(threads >= 1, "Detector", "threads", threads, "1 or more")
        names = known_classes(model)
        if names is not None:
            wanted_ids(classes, names)
        self._model = model
        self._classes = classes
        self._min_confidence = min_confidence
        self._nms_iou = nms_iou
        self._provider = provider
        self._threads = threads
        self._session: Session | None = None
        self._wanted: tuple[int, ...] | None = None

    def open(self) -> None:
        """Loads the model.

        Raises:
            LibraryMissing: ONNX Runtime or OpenCV is not installed, or lacks the provider.
            ArgumentInvalid: The model file is missing, unreadable, or has no such class.
        """
        try:
            from videoflow.nodes.vision._session import Session
        except ImportError as error:
            raise LibraryMissing(
                "Detector needs ONNX Runtime and OpenCV",
                cause=str(error),
                remedy='pip install "videoflow[onnx,video]"',
            ) from error
        self._session = Session(self._model, self._provider, self._threads)
        self._wanted = wanted_ids(self._classes, self._session.class_names)

    def process(self, frame: Frame) -> Detections:
        """Returns the objects of one frame."""
        return self.process_batch([frame])[0]

    def process_batch(self, inputs: Sequence[Frame]) -> list[Detections]:
        """Returns the objects of each frame, in order; the frames may differ in size.

        Raises:
            TypeError: An input is no `Frame`.
        """
        session = self._session
        if session is None:
            raise RuntimeError("Detector.process was called before open")
        for frame in inputs:
            require_input(frame, Frame, "Detector", "wire it to a source of frames")
        pictures = [(frame.image, frame.pixel_format) for frame in inputs]
        found = session.detect(pictures, self._wanted, self._min_confidence, self._nms_iou)
        return [
            Detections.from_arrays(
                boxes.xyxy,
                confidence=boxes.confidence,
                class_id=boxes.class_id,
                class_names=session.class_names,
                image_size=(frame.width, frame.height),
                source=frame.source,
            )
            for frame, boxes in zip(inputs, found, strict=True)
        ]

    def close(self) -> None:
        """Lets go of the model."""
        self._session = None
