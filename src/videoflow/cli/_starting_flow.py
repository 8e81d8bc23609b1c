"""The flow that `videoflow init` writes: short, commented, and running as it stands, without any video."""

STARTING_FLOW = '''\
"""A flow to start from. Try:

    videoflow explain flow.py
    videoflow run-local flow.py
    videoflow run-local flow.py --source street.mp4      (needs: pip install 'videoflow[video]')
"""

import videoflow as vf
from videoflow.nodes import Console, JsonlSink, SyntheticScene, VideoSource


# A node can be a plain function. It is called once per input and returns what it makes of it.
# Frames are read-only: write `frame.copy()` to draw on one.
@vf.processor
def brightness(frame: vf.Frame) -> dict[str, float]:
    return {"mean": round(float(frame.image.mean()), 2), "darkest": float(frame.image.min())}


# Or a class, when it has settings or needs to prepare something.
class Alarm(vf.Processor):
    """Passes on what is brighter than a limit, and says nothing about the rest."""

    def __init__(self, limit: float) -> None:
        self.limit = limit

    def process(self, measured: dict[str, float]):
        return measured if measured["mean"] > self.limit else vf.SKIP


# Each parameter of this function becomes an option of `videoflow run-local`, with the help below.
def build_flow(source: str = "", out: str = "brightness.jsonl", limit: float = 100.0) -> vf.Flow:
    """Measure how bright a video is.

    Args:
        source: Video file to read; a drawn scene when left out.
        out: File for the measurements, one line of JSON per frame.
        limit: Mean brightness, 0 to 255, above which a frame is reported.
    """
    camera = VideoSource(source, name="camera") if source else SyntheticScene(frames=300, name="camera")
    measured = brightness(camera)
    alarms = Alarm(limit, name="alarm")(measured)
    return vf.Flow([JsonlSink(out, name="log")(measured), Console(name="say")(alarms)], name="brightness")


if __name__ == "__main__":
    build_flow().run()
'''
