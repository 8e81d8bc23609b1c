"""Nodes that take several inputs in one call, for tests of engines."""

import os
import signal
from collections.abc import Iterator, Sequence
from typing import Unpack

import numpy as np
from numpy.typing import NDArray

import videoflow as vf

Picture = NDArray[np.int64]


class Pictures(vf.Producer):
    """Small pictures of one number each.

    Args:
        count: How many.
        every: One of so many has another shape; 1: none has.
    """

    max_item_bytes = 1000

    def __init__(self, count: int = 40, every: int = 2, **options: Unpack[vf.NodeOptions]) -> None:
        super().__init__(**options)
        self.count = count
        self.every = every

    def produce(self, resume: int | None) -> Iterator[vf.Item]:
        for number in range(resume or 0, self.count):
            yield vf.Item(np.full((1 + (number % self.every == 1), 2), number), offset=number)


class Sums(vf.Processor):
    """Adds up each picture of a stack of them, and says how many there were.

    Args:
        bad: A picture of this number cannot be summed.
        kills: A picture of this number ends the process.
    """

    max_item_bytes = 1000

    def __init__(self, bad: int = -1, kills: int = -1, **options: Unpack[vf.NodeOptions]) -> None:
        super().__init__(**options)
        self.bad = bad
        self.kills = kills

    def process_batch(self, inputs: Sequence[Picture]) -> list[list[int]]:
        stack = np.stack(inputs)
        if self.kills in stack:
            os.kill(os.getpid(), signal.SIGKILL)
        if self.bad in stack:
            raise ValueError(f"{self.bad} is a bad one")
        return [[int(total), len(inputs)] for total in stack.sum(axis=(1, 2))]


class LargeSums(Sums):
    """Might make large items, so that few of its inputs may be answered out of turn."""

    max_item_bytes = 1 << 24
