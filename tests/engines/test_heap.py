"""A worker makes its arrays in memory that it has: the kernel does not clear new pages for each frame."""

import json
import resource
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Unpack

import numpy as np
import pytest

import videoflow as vf
from videoflow.graph.report import Verdict

SHAPE = (1080, 1920, 3)
PAGES = 1080 * 1920 * 3 // 4096
FRAMES = 60
WARM = 20


class Frames(vf.Producer):
    """Frames of 6 MB."""

    max_item_bytes = 7 << 20

    def produce(self, resume: int | None) -> Iterator[vf.Item]:
        for number in range(resume or 0, FRAMES):
            yield vf.Item(np.full(SHAPE, number, np.uint8), offset=number)


class Remade(vf.Processor):
    """Makes a new frame of each, and notes the faults of pages of its process so far."""

    def __init__(self, faults: str, **options: Unpack[vf.NodeOptions]) -> None:
        super().__init__(**options)
        self.faults = faults

    def open(self) -> None:
        self.seen: list[int] = []

    def process(self, frame: Any) -> Any:
        self.seen.append(resource.getrusage(resource.RUSAGE_SELF).ru_minflt)
        new = np.empty_like(frame)
        np.copyto(new, frame)
        return new

    def close(self) -> None:
        Path(self.faults).write_text(json.dumps(self.seen))


class Last(vf.Consumer):
    """Takes them."""

    def consume(self, frame: Any) -> None:
        assert frame.shape == SHAPE


def faults_a_frame(folder: Path) -> float:
    file = folder / "faults.json"
    flow = vf.Flow([Last(name="last")(Remade(str(file), name="remade")(Frames(name="frames")))])
    report = flow.run("local", runs_folder=folder / "runs")
    assert report.verdict is Verdict.COMPLETE, report.failure
    seen: list[int] = json.loads(file.read_text())
    return (seen[-1] - seen[WARM]) / (FRAMES - 1 - WARM)


def test_frames_are_made_in_memory_that_the_worker_keeps(tmp_path: Path) -> None:
    assert faults_a_frame(tmp_path) < PAGES / 20


def test_whoever_says_otherwise_of_the_heap_is_heeded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MALLOC_MMAP_THRESHOLD_", "1000000")  # a mapping of its own for each frame
    assert faults_a_frame(tmp_path) > PAGES / 20
