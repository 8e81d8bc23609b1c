"""A flow with what a resumed run must carry on: video and lines, a fan-out, a join, replicas, last words."""

from collections.abc import Iterator, Mapping
from fractions import Fraction
from pathlib import Path
from typing import Any, Unpack

import numpy as np

import videoflow as vf
from tests.state.nodes import Numbers, Smoothed
from videoflow.clock import RealClock
from videoflow.nodes import JsonlSink, VideoSink

FRAMES = 60


class Gated(vf.Producer):
    """Small frames, so many as the number in a file says, which is looked at again; without the file, all."""

    max_item_bytes = 1 << 16

    def __init__(self, gate: str, **options: Unpack[vf.NodeOptions]) -> None:
        super().__init__(**options)
        self.gate = Path(gate)

    def produce(self, resume: int | None, ctx: vf.Context) -> Iterator[vf.Item]:
        clock = RealClock()
        for number in range(resume or 0, FRAMES):
            while self.gate.exists() and number >= int(self.gate.read_text(encoding="ascii") or 0):
                clock.wait([], clock.monotonic() + 0.01)
                if ctx.stopping:
                    return
            image = np.full((32, 48, 3), number * 4 % 251, np.uint8)
            image[number % 32] = 255
            frame = vf.Frame(image=image, pts=number, time_base=Fraction(1, 25), index=number, source="gated")
            yield vf.Item(frame, offset=number, time_seconds=frame.time_seconds)


class Parts(vf.Processor):
    """Says a number as often as its remainder by three."""

    many: Mapping[str, int] = {"out": 4}
    max_item_bytes = 1 << 12

    def process(self, frame: vf.Frame) -> Iterator[int]:
        for turn in range(frame.index % 3):
            yield frame.index * 10 + turn


class Sum(vf.Processor):
    """The sum so far, of the list of parts of each frame; its last words are the whole."""

    ports = ("out", "last")
    max_item_bytes = 1 << 12

    def process(self, frame: vf.Frame, parts: list[int], ctx: vf.Context) -> dict[str, Any]:
        ctx.state["sum"] = ctx.state.get("sum", 0) + sum(parts)
        return {"index": frame.index, "sum": ctx.state["sum"]}

    def flush(self, ctx: vf.Context) -> vf.Out:
        return vf.Out({"whole": ctx.state["sum"]}, "last")


@vf.processor
def brightness(frame: vf.Frame) -> float:
    return float(frame.image.mean())


def small_flow(folder: Path) -> vf.Flow:
    """A video, and lines of what a node with a snapshot makes."""
    camera = Gated(str(folder / "gate"), name="camera")
    mean = Smoothed(name="mean")(brightness(name="bright")(camera))
    video = VideoSink(folder / "a.mp4", fragment_frames=8, name="video")(camera)
    return vf.Flow([video, JsonlSink(folder / "mean.jsonl", name="means")(mean)], name="resumable")


def flow_of(folder: Path) -> vf.Flow:
    """All kinds of tasks; beside them a source that ends long before the other."""
    camera = Gated(str(folder / "gate"), name="camera")
    parts = Parts(name="parts")(camera)
    total = Sum(name="total")(camera, parts)
    mean = Smoothed(name="mean")(brightness(name="bright", replicas=2)(camera))
    return vf.Flow(
        [
            VideoSink(folder / "a.mp4", fragment_frames=8, name="video")(camera),
            JsonlSink(folder / "total.jsonl", name="totals")(total),
            JsonlSink(folder / "last.jsonl", name="last")(total.last),
            JsonlSink(folder / "mean.jsonl", name="means")(mean),
            JsonlSink(folder / "short.jsonl", name="shorts")(Numbers(5, name="short")),
        ],
        name="resumable",
    )
