"""Counting people by hand: the stages one by one, and a script of threads without videoflow's engines.

Run by the benchmarks as `python -m benchmarks.people JOB MODE`, with the video in `BENCHMARK_VIDEO`. PyAV
decodes and encodes, ONNX Runtime runs the model of the package; tracking, counting and drawing are the code
of the library, called directly. Modes: `stages` measures each stage alone; `threads` overlaps them as one
would by hand; `flow` is the same as a flow on the local engine. Of both the rate between the first and the
last frame encoded counts: starting and stopping have budgets of their own. It refuses a video that cannot be
opened.
"""

import json
import os
import queue
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from fractions import Fraction
from functools import partial
from itertools import islice
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import av
import numpy as np

import videoflow as vf
from benchmarks.ours.filming import WatchedSink
from benchmarks.ours.run import ledger
from benchmarks.work import VIDEO_VARIABLE, job_of_command, quantiles, write_figures
from videoflow.nodes import Annotator, Detector, LineCounter, Tracker, VideoSource

LINE = (0, 250, 768, 250)
_RATE = 10
_DETECTORS = 2
_AHEAD = 8


def decoded(video: str, items: int) -> Iterator[vf.Frame]:
    """Yields frames (576, 768, 3) uint8 BGR."""
    with av.open(video) as container:
        pictures = islice(container.decode(video=0), items)
        for index, picture in enumerate(pictures):
            image = np.asarray(picture.to_ndarray(format="bgr24"), np.uint8)
            yield vf.Frame(image=image, pts=index, time_base=Fraction(1, _RATE), index=index, source=video)


class Drawing:
    """Tracking, counting and drawing of one frame after another, called directly."""

    def __init__(self) -> None:
        self._tracker, self._counter, self._annotator = Tracker(), LineCounter(LINE), Annotator()
        self._tracker.open()
        self._annotator.open()
        self._contexts: list[Any] = [SimpleNamespace(state={}, source="", empty=np.empty) for _ in range(3)]

    def draw(self, frame: vf.Frame, boxes: vf.Detections) -> vf.Frame:
        """Returns the frame with tracks and counts."""
        for context in self._contexts:
            context.time_seconds, context.ordinal = frame.time_seconds, frame.index
        tracks = self._tracker.process(boxes, self._contexts[0])
        count: Any = next(iter(self._counter.process(tracks, self._contexts[1])))
        return self._annotator.process(frame, tracks, count, ctx=self._contexts[2])


class Encoder:
    """H.264 as the library's sink writes it: veryfast, crf 23, one thread, no B-frames."""

    def __init__(self, path: str) -> None:
        self._container = av.open(path, "w")
        self._stream = self._container.add_stream(
            "libx264", rate=_RATE, options={"preset": "veryfast", "crf": "23", "bf": "0"}
        )
        self._stream.width, self._stream.height, self._stream.pix_fmt = 768, 576, "yuv420p"
        self._stream.codec_context.thread_count = 1

    def add(self, frame: vf.Frame) -> None:
        """Encodes a frame."""
        picture = av.VideoFrame.from_ndarray(frame.image, format="bgr24")
        self._container.mux(self._stream.encode(picture))

    def close(self) -> None:
        """Ends the file."""
        self._container.mux(self._stream.encode(None))
        self._container.close()


def _detector() -> Detector:
    found = Detector(classes=["person"])
    found.open()
    return found


def stages(video: str, items: int, folder: str) -> dict[str, Any]:
    """Returns processor seconds per frame of each stage alone, and what they bound two cores to."""
    spent: dict[str, float] = {}

    def timed(name: str, stage: Callable[[], list[Any]]) -> list[Any]:
        began = time.process_time()
        made = stage()
        spent[name] = (time.process_time() - began) / items
        return made

    detector, drawing, encoder = _detector(), Drawing(), Encoder(f"{folder}/stages.mp4")
    frames = timed("decode", lambda: list(decoded(video, items)))
    boxes = timed("detect", lambda: [detector.process(frame) for frame in frames])
    drawn = timed("draw", lambda: [drawing.draw(*pair) for pair in zip(frames, boxes, strict=True)])
    timed("encode", lambda: list(map(encoder.add, drawn)))
    encoder.close()
    cores = len(os.sched_getaffinity(0))
    alone = max(spent["decode"], spent["draw"], spent["encode"])
    bound = max(sum(spent.values()) / cores, alone)
    return {"items": items, "lost": 0, "per_second": 1 / bound, "stage_us": _micro(spent)}


def _micro(seconds: dict[str, float]) -> dict[str, float]:
    return {name: value * 1e6 for name, value in seconds.items()}


def by_hand(video: str, items: int, folder: str) -> dict[str, Any]:
    """A thread decodes, two detect, one draws, one encodes; queues between them hold a few frames."""
    todo: queue.Queue[vf.Frame | None] = queue.Queue(_AHEAD)
    drawn: queue.Queue[vf.Frame | None] = queue.Queue(_AHEAD)
    times: list[float] = []
    ready: dict[int, tuple[vf.Frame, vf.Detections]] = {}
    changed = threading.Condition()
    detectors, drawing, encoder = (
        [_detector() for _ in range(_DETECTORS)],
        Drawing(),
        Encoder(f"{folder}/h.mp4"),
    )

    def decode() -> None:
        for frame in decoded(video, items):
            todo.put(frame)
        for _ in detectors:
            todo.put(None)

    def detect(detector: Detector) -> None:
        while (frame := todo.get()) is not None:
            boxes = detector.process(frame)
            with changed:
                changed.wait_for(lambda: len(ready) < _AHEAD or frame.index == min(ready) - 1)
                ready[frame.index] = frame, boxes
                changed.notify_all()

    def draw() -> None:
        for index in range(items):
            with changed:
                changed.wait_for(partial(ready.__contains__, index))
                pair = ready.pop(index)
                changed.notify_all()
            drawn.put(drawing.draw(*pair))
        drawn.put(None)

    def encode() -> None:
        while (frame := drawn.get()) is not None:
            encoder.add(frame)
            times.append(time.monotonic())
        encoder.close()

    works = [decode, draw, encode, *(lambda detector=detector: detect(detector) for detector in detectors)]
    threads = [threading.Thread(target=work, daemon=True) for work in works]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return {"items": items, "lost": 0, "per_second": (items - 1) / (times[-1] - times[0])}


def flow(video: str, items: int, folder: str) -> dict[str, Any]:
    """The same as a flow."""
    camera = VideoSource(video, name="camera", end_seconds=items / _RATE)
    boxes = Detector(classes=["person"], name="detect", replicas=_DETECTORS)(camera)
    tracks = Tracker(name="track")(boxes)
    counts = LineCounter(LINE, name="count")(tracks)
    drawn = Annotator(name="draw")(camera, tracks, counts)
    times = Path(folder, "times.json")
    sink = WatchedSink(f"{folder}/flow.mp4", str(times), name="video")(drawn)
    report = vf.Flow([sink], name="people").run(engine="local")
    first, last = json.loads(times.read_text())
    seen = sum(source.items for source in report.sources)
    busy = {node.node: node.busy_share for node in report.nodes}
    calls = quantiles([node.p50_seconds * 1e6 for node in report.nodes if node.p50_seconds])
    figures = {"items": seen, "lost": items - seen, "per_second": (seen - 1) / (last - first), "busy": busy}
    return {**figures, "call_us": calls, "ledger": ledger(report), "verdict": report.verdict}


MODES = {"stages": stages, "threads": by_hand, "flow": flow}


def main() -> None:
    """Runs one mode."""
    job = job_of_command()
    with tempfile.TemporaryDirectory() as folder:
        write_figures(job.out, MODES[sys.argv[2]](os.environ[VIDEO_VARIABLE], job.items, folder))


if __name__ == "__main__":
    main()
