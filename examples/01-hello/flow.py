import videoflow as vf
from videoflow.nodes import JsonlSink, SyntheticScene


@vf.processor
def brightness(frame: vf.Frame) -> dict[str, float]:
    return {"mean": round(float(frame.image.mean()), 2)}


def build_flow(frames: int = 50, out: str = "brightness.jsonl") -> vf.Flow:
    """Measure how bright a drawn scene is."""
    return vf.Flow([JsonlSink(out)(brightness(SyntheticScene(frames, name="camera")))], name="hello")
