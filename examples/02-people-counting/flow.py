"""Count people who cross a line, and draw what was counted."""

from pathlib import Path

import videoflow as vf
from videoflow.nodes import (
    Annotator,
    Detector,
    JsonlSink,
    LineCounter,
    SyntheticScene,
    Tracker,
    VideoSink,
    VideoSource,
)


def build_flow(
    source: str = "synthetic",
    out: Path = Path("people.mp4"),
    line: tuple[int, int, int, int] = (0, 250, 768, 250),
    frames: int = 300,
) -> vf.Flow:
    """Count people who cross a line.

    Args:
        source: Video file, or `synthetic` for a drawn scene.
        out: Annotated video to write; the counts go to counts.jsonl beside it.
        line: x1, y1, x2, y2 in pixels of the upright frame.
        frames: Length of the drawn scene.
    """
    if source == "synthetic":
        camera: vf.Producer = SyntheticScene(frames, name="camera")
    else:
        camera = VideoSource(source, name="camera")
    boxes = Detector(classes=["person"], name="detect", replicas=2)(camera)
    tracks = Tracker(name="track", fuse="count")(boxes)
    counts = LineCounter(line, name="count", fuse="count")(tracks)
    drawn = Annotator(name="draw")(camera, tracks, counts)
    video = VideoSink(out, name="video")(drawn)
    log = JsonlSink(out.with_name("counts.jsonl"), name="log")(counts)
    return vf.Flow([video, log], name="people-counting")
