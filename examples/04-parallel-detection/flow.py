"""Two detectors at work at once; what comes out is in order all the same."""

import videoflow as vf
from videoflow.nodes import Detector, JsonlSink, SyntheticScene


def build_flow(frames: int = 60, replicas: int = 2, out: str = "boxes.jsonl") -> vf.Flow:
    """Detect people in parallel.

    Args:
        frames: Length of the drawn scene.
        replicas: Detectors that work at once.
        out: One line for each frame, in the order of the frames.
    """
    camera = SyntheticScene(frames, name="camera")
    boxes = Detector(classes=["person"], name="detect", replicas=replicas)(camera)
    return vf.Flow([JsonlSink(out, name="log")(boxes)], name="parallel-detection")
