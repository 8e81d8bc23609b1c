"""Nodes of every kind of task, each of which notes every call, so that what was redone can be counted."""

import os
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Unpack

import numpy as np
from numpy.typing import NDArray

import videoflow as vf
from videoflow.nodes import JsonlSink

FRAMES = 60
SIDE = 160  # 25 600 bytes: a payload, not inline
OFTEN = 40  # deaths at barriers are charged to the input in work, and must not use up its attempts
ITEM_BYTES = SIDE * SIDE
Image = NDArray[np.uint8]


def note(folder: str, task: str, number: int) -> None:
    """Appends `process number` to the calls of a task, in one write."""
    path = Path(folder, f"{task}.calls")
    descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    try:
        os.write(descriptor, f"{os.getpid()} {number}\n".encode())
    finally:
        os.close(descriptor)


class Frames(vf.Producer):
    """Sixty images at a pace that lets kills hit while it works."""

    max_item_bytes = ITEM_BYTES

    def __init__(self, folder: str, **options: Unpack[vf.NodeOptions]) -> None:
        super().__init__(**options)
        self.folder = folder

    def produce(self, resume: int | None, ctx: vf.Context) -> Iterator[vf.Item]:
        pace = threading.Event()
        for number in range(resume or 0, FRAMES):
            pace.wait(0.003)
            note(self.folder, "frames", number)
            image = ctx.empty((SIDE, SIDE))
            image[:] = number
            image[number, :] = 255
            yield vf.Item(image, offset=number, time_seconds=number / 25)


class Shifted(vf.Processor):
    """Stateless: a new image per image."""

    max_item_bytes = ITEM_BYTES

    def __init__(self, folder: str, **options: Unpack[vf.NodeOptions]) -> None:
        super().__init__(**options)
        self.folder = folder

    def process(self, image: Image, ctx: vf.Context) -> Image:
        number = int(image[-1, 0])
        note(self.folder, "shifted", number)
        shifted: Image = ctx.empty(image.shape)
        np.subtract(255, image, out=shifted)
        return shifted


class Total(vf.Processor):
    """Stateful: the sum so far of the means; at the end, how many there were."""

    max_item_bytes = 1024

    def __init__(self, folder: str, **options: Unpack[vf.NodeOptions]) -> None:
        super().__init__(**options)
        self.folder = folder

    def process(self, image: Image, ctx: vf.Context) -> dict[str, int]:
        note(self.folder, "total", 255 - int(image[-1, 0]))
        count, total = ctx.state.get("count", 0) + 1, ctx.state.get("total", 0) + int(image.sum())
        ctx.state["count"], ctx.state["total"] = count, total
        return {"count": count, "total": total}

    def flush(self, ctx: vf.Context) -> vf.Out:
        return vf.Out({"count": ctx.state["count"], "final": True})


class Both(vf.Processor):
    """A trace join: an image, unchanged and by reference, where both agree."""

    max_item_bytes = ITEM_BYTES

    def __init__(self, folder: str, **options: Unpack[vf.NodeOptions]) -> None:
        super().__init__(**options)
        self.folder = folder

    def process(self, image: Image, shifted: Image) -> Image:
        number = int(image[-1, 0])
        note(self.folder, "both", number)
        if number != 255 - int(shifted[-1, 0]):
            raise ValueError(f"{number} met {int(shifted[-1, 0])}")
        return image


class Squeezed(vf.Processor):
    """First of a fused pair; leaves out every seventh image."""

    max_item_bytes = 1024

    def __init__(self, folder: str, **options: Unpack[vf.NodeOptions]) -> None:
        super().__init__(**options)
        self.folder = folder

    def process(self, image: Image) -> Any:
        number = int(image[-1, 0])
        note(self.folder, "squeezed", number)
        return vf.SKIP if number % 7 == 3 else int(image.sum())


class Named(vf.Processor):
    """Second of a fused pair."""

    max_item_bytes = 1024

    def process(self, value: int) -> dict[str, int]:
        return {"sum": value}


class File(JsonlSink):
    """A sink with checkpoints: the library's own."""

    def __init__(self, path: str, folder: str, **options: Unpack[vf.NodeOptions]) -> None:
        super().__init__(path, **options)
        self.folder = folder

    def consume(self, value: Any, ctx: vf.Context) -> None:
        note(self.folder, "file", value["count"] + (FRAMES if "final" in value else 0))
        super().consume(value, ctx)


class Rows(vf.Consumer):
    """Keeps what it consumes for the report."""

    collects = True

    def __init__(self, folder: str, task: str, **options: Unpack[vf.NodeOptions]) -> None:
        super().__init__(**options)
        self.folder = folder
        self.task = task

    def consume(self, value: Any, ctx: vf.Context) -> None:
        number = ctx.state.get("count", 0)
        note(self.folder, self.task, number)
        ctx.state[f"row/{number:08d}"] = value
        ctx.state["count"] = number + 1


def every_kind(folder: Path) -> vf.Flow:
    """Each kind of task once: source, competing, stateful with flush, join, fused, checkpoints, effects."""
    at = str(folder)
    frames = Frames(at, name="frames", retries=OFTEN)
    shifted = Shifted(at, name="shifted", replicas=2, retries=OFTEN)(frames)
    total = Total(at, name="total", retries=OFTEN)(shifted)
    both = Both(at, name="both", retries=OFTEN)(frames, shifted)
    squeezed = Squeezed(at, name="squeezed", fuse="pair", retries=OFTEN)(both)
    named = Named(name="named", fuse="pair", retries=OFTEN)(squeezed)
    file = File(str(folder / "totals.jsonl"), at, name="file", retries=OFTEN)(total)
    rows = Rows(at, "rows", name="rows", retries=OFTEN)(named)
    return vf.Flow([file, rows], name="storm")


class Live(vf.Producer):
    """Sixty numbers, from the first again after a death: what was live is gone."""

    resumable = False

    def produce(self, resume: int | None) -> Iterator[vf.Item]:
        pace = threading.Event()
        for number in range(FRAMES):
            pace.wait(0.003)
            yield vf.Item(number, offset=number)


class Slow(vf.Consumer):
    """Keeps what it consumes for the report, slowly."""

    collects = True

    def consume(self, value: Any, ctx: vf.Context) -> None:
        threading.Event().wait(0.02)
        number = ctx.state.get("count", 0)
        ctx.state[f"row/{number:08d}"] = int(value[-1, 0])
        ctx.state["count"] = number + 1


class Marked(vf.Processor):
    """Stateless: each image with a key; leaves out every seventh."""

    max_item_bytes = ITEM_BYTES

    def process(self, image: Image) -> Any:
        number = int(image[-1, 0])
        return vf.SKIP if number % 7 == 3 else vf.Out(image, key=f"key {number % 5}")


class PerKey(vf.Processor):
    """Stateful: how many of its key there were."""

    max_item_bytes = 1024

    def process(self, image: Image, ctx: vf.Context) -> dict[str, int]:
        number = int(image[-1, 0])
        count = ctx.state[f"count {number % 5}"] = ctx.state.get(f"count {number % 5}", 0) + 1
        return {"number": number, "count": count}

    def flush(self, ctx: vf.Context) -> vf.Out:
        return vf.Out({"number": -1, "count": sum(ctx.state[key] for key in ctx.state)})


class Corners(vf.Processor):
    """Some views of one image."""

    ports = ("corners",)
    many: Mapping[str, int] = {"corners": 4}
    max_item_bytes = ITEM_BYTES

    def process(self, image: Image) -> Iterator[vf.Out]:
        for k in range(int(image[-1, 0]) % 4):
            yield vf.Out(image[k * 20 :], port="corners")


class Meeting(vf.Processor):
    """A trace join of an image, what was counted, and the list of its corners."""

    max_item_bytes = ITEM_BYTES

    def process(self, image: Image | None, counted: Any, corners: list[Image] | None) -> dict[str, Any]:
        number = None if image is None else int(image[-1, 0])
        sums = [int(corner.sum()) for corner in corners or ()]
        return {"number": number, "counted": counted, "corners": sums}


class Guess(vf.Processor):
    """Stateless, and different each time: what two readers get must be one answer."""

    deterministic = False
    max_item_bytes = 1024

    def process(self, image: Image) -> dict[str, Any]:
        return {"number": int(image[-1, 0]), "guess": os.urandom(4).hex()}


class Echo(vf.Processor):
    """Stateless: what it gets."""

    max_item_bytes = 1024

    def process(self, value: Any) -> Any:
        return value


class Same(vf.Processor):
    """A trace join of one answer that came two ways."""

    max_item_bytes = 1024

    def process(self, one: Any, other: Any) -> int:
        if one != other:
            raise ValueError(f"{one} is not {other}")
        return int(one["number"])


def in_parts(folder: Path) -> vf.Flow:
    """Partitions by key with state and flush, a join by trace with a list, and answers by chance."""
    frames = Frames(str(folder), name="frames", retries=OFTEN)
    marked = Marked(name="marked", replicas=2, retries=OFTEN)(frames)
    counted = PerKey(name="counted", replicas=3, partition_by="key", retries=OFTEN)(marked)
    corners = Corners(name="corners", retries=OFTEN)(frames).port("corners")
    meeting = Meeting(name="meeting", replicas=2, missing="none", retries=OFTEN)(frames, counted, corners)
    file = JsonlSink(str(folder / "met.jsonl"), name="file", retries=OFTEN)(meeting)
    guess = Guess(name="guess", replicas=2, retries=OFTEN)(frames)
    same = Same(name="same", retries=OFTEN)(guess, Echo(name="echo", retries=OFTEN)(guess))
    rows = Rows(str(folder), "rows", name="rows", retries=OFTEN)(same)
    return vf.Flow([file, rows], name="parts")
