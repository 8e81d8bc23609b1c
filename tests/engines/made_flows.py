"""Nodes that make the arrays which they emit, and say where these lie; importable by workers."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Unpack

import numpy as np
from numpy.typing import NDArray

import videoflow as vf
from tests.engines.flows import Rows

SIDE = 160  # 25 600 bytes: a payload, not inline
BYTES = SIDE * SIDE
Image = NDArray[np.uint8]


def place_of(image: Image) -> list[int] | None:
    """Where an array lies in memory that processes share, by whichever address; None in a process's own."""
    address = image.__array_interface__["data"][0]
    for line in Path("/proc/self/maps").read_text(encoding="utf-8").splitlines():
        span, access, offset, _, inode, *_ = line.split()
        first, last = (int(end, 16) for end in span.split("-"))
        if first <= address < last:
            return [int(inode), int(offset, 16) + address - first] if access.endswith("s") else None
    raise AssertionError("it lies nowhere")


def made(ctx: vf.Context, number: int) -> Image:
    """An image that is full of a number."""
    image = ctx.empty((SIDE, SIDE))
    image[:] = number
    return image


def told(image: Image) -> int:
    """What an image is full of; -1 where that is not one number."""
    number = int(image.flat[0])
    return number if np.all(image == number) else -1


class Images(vf.Producer):
    """Images with the places where they were made."""

    max_item_bytes = BYTES + 1000

    def __init__(self, count: int = 100, **options: Unpack[vf.NodeOptions]) -> None:
        super().__init__(**options)
        self.count = count

    def produce(self, resume: int | None, ctx: vf.Context) -> Iterator[vf.Item]:
        for number in range(resume or 0, self.count):
            image = made(ctx, number)
            yield vf.Item({"image": image, "made": place_of(image)}, offset=number)


class Places(Rows):
    """Keeps what images are full of, where they were made, and where they lie."""

    def consume(self, *row: Any, ctx: vf.Context) -> None:
        image = row[0]["image"]
        super().consume([told(image), row[0]["made"], place_of(image)], ctx=ctx)


class Told(Rows):
    """Keeps what images are full of."""

    def consume(self, *row: Any, ctx: vf.Context) -> None:
        super().consume(*map(told, row), ctx=ctx)


class Keeps(vf.Processor):
    """Stateless: emits an image for several numbers before it makes another one."""

    max_item_bytes = BYTES

    def open(self) -> None:
        self.kept: dict[int, Image] = {}

    def process(self, number: int, ctx: vf.Context) -> Image:
        tens = number - number % 10
        if tens not in self.kept:
            self.kept = {tens: made(ctx, tens)}
        return self.kept[tens]


class Counts(vf.Processor):
    """Stateful: an image of how many there were, after one that is never emitted."""

    max_item_bytes = BYTES

    def process(self, number: int, ctx: vf.Context) -> Image:
        made(ctx, 255)
        ctx.state["count"] = count = ctx.state.get("count", 0) + 1
        return made(ctx, count)

    def flush(self, ctx: vf.Context) -> vf.Out:
        return vf.Out(made(ctx, ctx.state["count"] + 1))


class Prepares(Counts):
    """Counts, and makes arrays as soon as it is opened; writes down where they lie."""

    def __init__(self, path: str, **options: Unpack[vf.NodeOptions]) -> None:
        super().__init__(**options)
        self.path = path

    def open(self, ctx: vf.Context) -> None:
        self.before = [made(ctx, 255), made(ctx, 255)]
        with open(self.path, "a", encoding="ascii") as file:
            file.writelines(f"{place_of(image)}\n" for image in self.before)


class Halves(vf.Processor):
    """Images and views of them on two ports."""

    ports = ("whole", "half")
    max_item_bytes = BYTES

    def process(self, number: int, ctx: vf.Context) -> Iterator[vf.Out]:
        image = made(ctx, number)
        yield vf.Out(image, "whole")
        if ctx.attempt == 1 and number % 20 == 10:
            raise OSError("try again")
        yield vf.Out(image[SIDE // 4 :], "half")


class Before(vf.Processor):
    """First of a fused pair: says where its array lies."""

    def process(self, number: int, ctx: vf.Context) -> Any:
        return [number, place_of(made(ctx, number))]


class After(vf.Processor):
    """Second of a fused pair: says where both arrays lie."""

    max_item_bytes = BYTES

    def process(self, value: Any, ctx: vf.Context) -> Any:
        return [*value, place_of(made(ctx, 0))]
