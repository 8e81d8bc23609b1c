"""Several cameras, of which one slow reader always gets the newest frames."""

from typing import Unpack

import numpy as np

import videoflow as vf
from videoflow.nodes import Console, JsonlSink, SyntheticScene


class Crowd(vf.Processor):
    """Says how much of a frame is people: pixels with colour, since the place has none.

    It is slow on purpose, as a large model would be: it looks `rounds` times.
    """

    def __init__(self, rounds: int, **options: Unpack[vf.NodeOptions]) -> None:
        super().__init__(**options)
        self.rounds = rounds

    def process(self, frame: vf.Frame) -> dict[str, object]:
        share = 0.0
        for _ in range(self.rounds):
            colours = frame.image.astype(np.int16)
            share = float((np.ptp(colours, axis=2) > 60).mean())
        return {"source": frame.source, "index": frame.index, "people_share": round(share, 4)}


def build_flow(cameras: int = 3, frames: int = 60, rounds: int = 5, out: str = "crowd.jsonl") -> vf.Flow:
    """Watch several cameras at once, and skip what there is no time for.

    Args:
        cameras: How many.
        frames: Frames of each.
        rounds: How slow the reader is.
        out: One line for each frame that was looked at.
    """
    scenes = [SyntheticScene(frames, seed=number, name=f"camera-{number}") for number in range(cameras)]
    newest = vf.merge(*scenes).latest(key="source")
    crowd = Crowd(rounds, name="crowd")(newest)
    log, say = JsonlSink(out, name="log")(crowd), Console(name="say")(crowd)
    return vf.Flow([log, say], name="several-cameras")
