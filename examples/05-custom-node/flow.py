"""A node of your own: two ports, and from none to many outputs for one input."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Unpack

import numpy as np

import videoflow as vf
from videoflow.nodes import JsonlSink, SyntheticScene


@dataclass(frozen=True)
class Portrait:
    """What somebody looks like.

    Attributes:
        index: Number of the frame.
        width: Pixels along x.
        height: Pixels along y.
        clothes: The most frequent strong colour as blue, green, red, in steps of 32.
    """

    index: int
    width: int
    height: int
    clothes: tuple[int, int, int]


class Cutter(vf.Processor):
    """Cuts everybody out of a frame; says on its first port how many there were.

    Args:
        taller_than: Only people of more pixels than this.
    """

    ports = ("out", "crops")
    many: Mapping[str, int] = {"crops": 16}  # at most so many outputs for one input

    def __init__(self, taller_than: int, **options: Unpack[vf.NodeOptions]) -> None:
        super().__init__(**options)
        self.taller_than = taller_than

    def process(self, frame: vf.Frame, people: vf.Detections) -> Iterator[object]:
        tall = people[people.xyxy[:, 3] - people.xyxy[:, 1] > self.taller_than]
        if len(tall):  # without this output the port is skipped for this frame
            yield {"index": frame.index, "people": len(people), "tall": len(tall)}
        for x1, y1, x2, y2 in tall.xyxy.tolist():
            yield vf.Out(frame.crop(x1, y1, x2, y2), "crops")  # a view: no pixel is copied


class Painter(vf.Processor):
    """Describes one person."""

    def process(self, crop: vf.Frame) -> Portrait | object:
        pixels = crop.image.reshape(-1, 3)
        strong = pixels[np.ptp(pixels, axis=1) > 100]
        if len(strong) < 50:
            return vf.SKIP
        steps, counts = np.unique(strong // 32, axis=0, return_counts=True)
        blue, green, red = (32 * steps[counts.argmax()].astype(int)).tolist()
        return Portrait(crop.index, crop.width, crop.height, (blue, green, red))


def build_flow(
    frames: int = 60, taller_than: int = 95, counts: str = "counts.jsonl", portraits: str = "portraits.jsonl"
) -> vf.Flow:
    """Cut people out of a scene and describe them.

    Args:
        frames: Length of the drawn scene.
        taller_than: Only people of more pixels than this.
        counts: One line for each frame with tall people.
        portraits: One line for each of them.
    """
    scene = SyntheticScene(frames, name="camera")
    cutter = Cutter(taller_than, name="cut", fuse="look")(scene, scene.truth)
    painter = Painter(name="paint", fuse="look")(cutter.crops)
    tall = JsonlSink(counts, name="counts")(cutter)
    looks = JsonlSink(portraits, name="portraits")(painter)
    return vf.Flow([tall, looks], name="custom-node")
