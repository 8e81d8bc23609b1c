"""A flow without an end in sight: a scene is filmed, and a line is written for each frame.

One frame can be held up until a file exists.
"""

import threading
from pathlib import Path
from typing import Unpack

import videoflow as vf
from videoflow.nodes import JsonlSink, SyntheticScene, VideoSink


class Gate(vf.Processor):
    """Lets frames pass; holds one up until a file exists."""

    def __init__(self, held: int | None, until: str, **options: Unpack[vf.NodeOptions]) -> None:
        super().__init__(**options)
        self.held = held
        self.until = until

    def process(self, frame: vf.Frame) -> vf.Frame:
        waiting = threading.Event()
        while frame.index == self.held and not Path(self.until).exists():
            waiting.wait(0.02)
        return frame


@vf.processor
def number(frame: vf.Frame) -> dict[str, int]:
    return {"frame": frame.index}


def build_flow(held: int | None = None, out: str = "scene.mp4") -> vf.Flow:
    scene = SyntheticScene(frames=1_000_000, size=(64, 48), name="scene")
    gate = Gate(held, "open", name="gate")(scene)
    return vf.Flow(
        [VideoSink(out, fragment_frames=5, name="video")(gate), JsonlSink("log.jsonl")(number(scene))]
    )
