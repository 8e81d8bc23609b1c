"""The nodes of the benchmark flows.

Imported by the workers of a run. They do the work of `benchmarks.work` and nothing else; what is measured is
written by the consumer when it closes. They refuse nothing.
"""

import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Unpack

import numpy as np

import videoflow as vf
from benchmarks.work import FRAME_SHAPE, Array, Job, Maker, Meter, remake, remake_bytes, write_figures

_ENCODED_BYTES = 128


def _job(argument: dict[str, Any]) -> Job:
    return Job(**argument)


class Source(vf.Producer):
    """Makes the items of a job: frames (1080, 1920, 3) uint8, or 1 KiB of bytes.

    Args:
        job: What is measured.
        own: Frames are arrays of its own, which are copied when they are emitted.
    """

    def __init__(self, job: dict[str, Any], own: bool = False, **options: Unpack[vf.NodeOptions]) -> None:
        super().__init__(**options)
        self.job, self.own = job, own

    def max_item_bytes(self) -> int:
        """Returns the bytes of an item, with what its encoding adds."""
        return _job(self.job).item_bytes + _ENCODED_BYTES

    def produce(self, resume: int | None, ctx: vf.Context) -> Iterator[vf.Item]:
        job = _job(self.job)
        maker = Maker(job)
        if job.kind == "frames":
            for index in maker.indices():
                frame = np.empty(FRAME_SHAPE, np.uint8) if self.own else ctx.empty(FRAME_SHAPE, np.uint8)
                maker.make(index, frame.reshape(-1))
                yield vf.Item(frame, offset=index)
        else:
            for index in maker.indices():
                yield vf.Item(maker.make_bytes(index), offset=index)


class Remake(vf.Processor):
    """Makes a new item of each.

    Args:
        own: As of the source.
    """

    def __init__(self, own: bool = False, **options: Unpack[vf.NodeOptions]) -> None:
        super().__init__(**options)
        self.own = own

    def process(self, item: Array | bytes, ctx: vf.Context) -> Array | bytes:
        if isinstance(item, bytes):
            return remake_bytes(item)
        new = np.empty_like(item) if self.own else ctx.empty(item.shape, item.dtype)
        remake(item.reshape(-1), new.reshape(-1))
        return new


class Forward(vf.Processor):
    """Hands on what it was given."""

    def process(self, item: Array | bytes) -> Array | bytes:
        return item


class Sink(vf.Consumer):
    """Looks at every item, and writes the figures at the end."""

    def __init__(self, job: dict[str, Any], **options: Unpack[vf.NodeOptions]) -> None:
        super().__init__(**options)
        self.job = job

    def open(self) -> None:
        self.meter = Meter(_job(self.job))

    def consume(self, item: Array | bytes) -> None:
        self.meter.take(item)

    def close(self) -> None:
        self.meter.finish()


class Join(vf.Consumer):
    """Looks at every frame as it comes back from all of several."""

    def __init__(self, job: dict[str, Any], **options: Unpack[vf.NodeOptions]) -> None:
        super().__init__(**options)
        self.job = job

    def open(self) -> None:
        self.meter = Meter(_job(self.job))

    def consume(self, *items: Array) -> None:
        for item in items[1:]:
            assert item.shape == items[0].shape
        self.meter.take(items[0])

    def close(self) -> None:
        self.meter.finish()


class Count(vf.Producer):
    """Yields whole numbers, which cost nothing to make."""

    max_item_bytes = 16

    def __init__(self, items: int, **options: Unpack[vf.NodeOptions]) -> None:
        super().__init__(**options)
        self.items = items

    def produce(self, resume: int | None) -> Iterator[vf.Item]:
        for index in range(self.items):
            yield vf.Item(index, offset=index)


class Add(vf.Processor):
    """A node as cheap as a node can be."""

    def process(self, number: int) -> int:
        return number + 1


class Tally(vf.Consumer):
    """Notes when the first, the first measured and the last number arrived.

    Args:
        items: How many are to come.
        warm: So many first ones are not measured.
        out: File for the figures.
    """

    def __init__(self, items: int, warm: int, out: str, **options: Unpack[vf.NodeOptions]) -> None:
        super().__init__(**options)
        self.items, self.warm, self.out = items, warm, out

    def open(self) -> None:
        self.seen = self.sum = 0
        self.first = self.started = self.last = 0.0

    def consume(self, number: int) -> None:
        self.seen += 1
        self.sum += number
        if self.seen == 1:
            self.first = time.monotonic()
        if self.seen == self.warm:
            self.started = time.monotonic()
        if self.seen == self.items:
            self.last = time.monotonic()

    def close(self) -> None:
        measured = self.seen - self.warm
        seconds = self.last - self.started
        write_figures(
            self.out,
            {
                "items": self.seen,
                "lost": self.items - self.seen,
                "sum": self.sum,
                "per_second": measured / seconds if self.started and seconds > 0 else 0.0,
                "first": self.first,
                "last": self.last,
            },
        )


class Weighed(vf.Processor):
    """A NumPy-only node that says how much private memory its process has, early and late.

    Args:
        items: How many inputs come.
        out: File for the figures; the number of the input is put behind it.
    """

    def __init__(self, items: int, out: str, **options: Unpack[vf.NodeOptions]) -> None:
        super().__init__(**options)
        self.items, self.out = items, out

    def open(self) -> None:
        self.seen = 0
        self.ones = np.ones(64)
        self.early = 0

    def process(self, item: bytes) -> bytes:
        self.seen += 1
        assert float(self.ones.sum()) == self.ones.size
        if self.seen == self.items // 5:
            self.early = private_bytes()
        if self.seen == self.items:
            write_figures(self.out, {"early_bytes": self.early, "late_bytes": private_bytes()})
        return item


def private_bytes() -> int:
    """Returns the bytes that are this process's alone; memory made to be shared is left out."""
    total, ours = 0, True
    for line in Path(f"/proc/{os.getpid()}/smaps").read_text().splitlines():
        name, _, rest = line.partition(":")
        if name in ("Private_Clean", "Private_Dirty"):
            total += ours * int(rest.split()[0]) * 1024
        elif "-" in name.split(" ")[0]:  # the head of a mapping: its access is r, w, x and p or s
            ours = not line.split()[1].endswith("s")
    return total
