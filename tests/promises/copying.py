"""A flow that the tests of bad input run: a video is copied, and a line is written for each frame."""

import videoflow as vf
from videoflow.nodes import JsonlSink, VideoSink, VideoSource


@vf.processor
def shape(frame: vf.Frame) -> dict[str, int]:
    return {"height": frame.height}


def build_flow(source: str, out: str = "copy.mp4", log: str = "log.jsonl") -> vf.Flow:
    camera = VideoSource(source, name="camera")
    return vf.Flow([VideoSink(out, name="video")(camera), JsonlSink(log, name="log")(shape(camera))])
