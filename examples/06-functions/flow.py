"""Nodes of plain functions, as one writes them in a notebook."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

import videoflow as vf
from videoflow.nodes import Collect, JsonlSink, SyntheticScene


@vf.processor
def gray(frame: vf.Frame) -> NDArray[np.uint8]:
    mean: NDArray[np.uint8] = frame.image.mean(axis=2).astype(np.uint8)
    return mean


# What stands after * are arguments, given when the node is made.
@vf.processor
def edges(image: NDArray[np.uint8], *, least: int = 40) -> NDArray[np.uint8]:
    steps = np.abs(np.diff(image.astype(np.int16), axis=1))
    return (255 * (steps > least)).astype(np.uint8)


# Two inputs of one frame meet, whatever way they took.
@vf.processor
def measured(frame: vf.Frame, edge: NDArray[np.uint8]) -> dict[str, Any]:
    return {"index": frame.index, "edge_share": round(float((edge > 0).mean()), 5)}


@vf.processor
def every_tenth(row: dict[str, Any]) -> dict[str, Any] | object:
    return row if row["index"] % 10 == 0 else vf.SKIP


def build_flow(frames: int = 50, least: int = 40, out: str = "edges.jsonl") -> vf.Flow:
    """Measure how many edges a scene has.

    Args:
        frames: Length of the drawn scene.
        least: How much brighter a pixel must be than its neighbour.
        out: One line for each frame.
    """
    scene = SyntheticScene(frames, name="camera")
    edge = edges(least=least, name="edges", fuse="look")(gray(name="gray", fuse="look")(scene))
    rows = measured(name="measured")(scene, edge)
    log = JsonlSink(out, name="log")(rows)
    return vf.Flow([log, Collect(name="tenth")(every_tenth(rows))], name="functions")
