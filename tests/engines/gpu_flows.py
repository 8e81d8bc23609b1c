"""Flows that ask for GPUs. One holds them until it is let go: it reads from a pipe that nobody writes."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Unpack

import videoflow as vf
from videoflow.nodes import Collect


class Numbers(vf.Producer):
    def __init__(self, count: int, **options: Unpack[vf.NodeOptions]) -> None:
        super().__init__(**options)
        self.count = count

    def produce(self, resume: int | None) -> Iterator[vf.Item]:
        for number in range(resume or 0, self.count):
            yield vf.Item(number, offset=number)


class Seer(vf.Processor):
    """Says which devices it sees and has; with a pipe it says so into a file and waits."""

    def __init__(self, pipe: str = "", **options: Unpack[vf.NodeOptions]) -> None:
        super().__init__(**options)
        self.pipe = pipe

    def process(self, number: int, ctx: vf.Context) -> list[object]:
        seen: list[object] = [os.environ.get("CUDA_VISIBLE_DEVICES"), [device.uuid for device in ctx.devices]]
        if self.pipe:
            Path(f"{self.pipe}.seen").write_text(str(seen[0]), encoding="utf-8")
            Path(self.pipe).read_bytes()
        return seen


def build_flow(gpus: int = 1, pipe: str = "", sharing: str = "", gib: int = 0, count: int = 2) -> vf.Flow:
    """Reports what each item saw; all of it is one task, so that it is one process.

    Args:
        gpus: How many for each replica.
        pipe: Waits until somebody writes here.
        sharing: How they are shared; empty: does not say.
        gib: Peak that is declared.
        count: Items.
    """
    gpu = vf.Gpu(sharing=sharing, peak_memory_bytes=gib << 30 or None) if sharing else None
    asked = vf.Resources(gpus=gpus, gpu=gpu) if gpus else vf.Resources()
    seen = Seer(pipe, name="seer", resources=asked, fuse="all")(Numbers(count, name="numbers", fuse="all"))
    return vf.Flow([Collect(name="out", fuse="all")(seen)], name="gpus")
