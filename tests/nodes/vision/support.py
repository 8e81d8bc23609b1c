"""What the tests of vision nodes share: frames, boxes, and a bench that runs one node with real state."""

from collections.abc import Iterator, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from videoflow.graph import Context, Out, Processor, State
from videoflow.media import Detections, Frame
from videoflow.wire import decode_value, encode_value, freeze

SOURCE = "street.mp4"


class Bench:
    """Runs a processor as a worker does: state is frozen, and survives a restart only through bytes."""

    def __init__(self, node: Processor, committed: dict[str, Any] | None = None) -> None:
        self.committed: dict[str, Any] = {} if committed is None else committed
        self.ctx = Context(node="tested", keyed_state=State(self.committed, freeze))
        self.node = node
        node.open()

    def __call__(self, *inputs: Any, time_seconds: float | None = None) -> list[Any]:
        """Returns everything that the node makes of one input."""
        self.ctx.time_seconds = time_seconds
        self.ctx.ordinal = 0 if self.ctx.ordinal is None else self.ctx.ordinal + 1
        self.ctx.state.begin()
        made = self.node.process(*inputs, ctx=self.ctx)
        outputs = list(made) if isinstance(made, Iterator) else [made]
        self.ctx.state.keep()
        for output in outputs:
            freeze(output.value if isinstance(output, Out) else output)
        return outputs

    def restarted(self, node: Processor) -> "Bench":
        """Returns a bench for a new process: another node, and the committed state read back from bytes."""
        after = Bench(node, decode_value(encode_value(self.committed).body))
        after.ctx.ordinal = self.ctx.ordinal
        return after


def main_output(outputs: Sequence[Any]) -> Any:
    """Returns the one output of the first port."""
    (value,) = [output for output in outputs if not isinstance(output, Out)]
    return value


def boxes(
    *xyxy: Sequence[float],
    confidence: float | Sequence[float] = 0.9,
    track_id: Sequence[int] | None = None,
    class_id: Sequence[int] | None = None,
    source: str = SOURCE,
) -> Detections:
    """Returns detections with these boxes, of the classes car and person; person by default."""
    count = len(xyxy)
    scores = [confidence] * count if isinstance(confidence, float) else confidence
    return Detections.from_arrays(
        list(xyxy),
        confidence=scores,
        class_id=[1] * count if class_id is None else class_id,
        track_id=track_id,
        class_names=("car", "person"),
        image_size=(640, 360),
        source=source,
    )


def frame_of(image: NDArray[np.uint8], *, index: int = 0, fps: int = 25, **rest: Any) -> Frame:
    """Returns a frame with this image."""
    return Frame(image=image, pts=index, time_base=Fraction(1, fps), index=index, source=SOURCE, **rest)


def plain_frame(index: int = 0, *, fps: int = 25, level: int = 128) -> Frame:
    """Returns a 640x360 frame of one gray."""
    return frame_of(np.full((360, 640, 3), level, np.uint8), index=index, fps=fps)
