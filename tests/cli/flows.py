"""Nodes for real runs of the command line."""

import os
import signal
import sys
from collections.abc import Iterator
from typing import Unpack

import videoflow as vf


class Numbers(vf.Producer):
    """Numbers from 0; without an end, until it is interrupted."""

    def __init__(self, upto: int | None, **options: Unpack[vf.NodeOptions]) -> None:
        super().__init__(**options)
        self.upto = upto

    def produce(self, resume: int | None, ctx: vf.Context) -> Iterator[vf.Item]:
        number = resume or 0
        while not ctx.stopping and (self.upto is None or number < self.upto):
            yield vf.Item(number, offset=number, time_seconds=number / 25)
            number += 1


class Trouble(vf.Processor):
    """Does something to one number."""

    def __init__(self, what: str, number: int, **options: Unpack[vf.NodeOptions]) -> None:
        super().__init__(**options)
        self.what = what
        self.number = number

    def process(self, value: int) -> int:
        if value == self.number and self.what == "raise":
            raise ValueError(f"expected no {value}")
        if value == self.number and self.what == "fail":
            raise KeyError(value)
        if value == self.number and self.what == "die":
            os.kill(os.getpid(), signal.SIGKILL)
        return value


class Say(vf.Consumer):
    """Prints some numbers."""

    def consume(self, value: int) -> None:
        if value % 50 == 7:
            sys.stdout.write(f"seen {value}\n")
            sys.stdout.flush()


def build_flow(upto: int | None = 100, trouble: str = "none", at: int = 33) -> vf.Flow:
    numbers = Numbers(upto, name="numbers")
    troubled = Trouble(trouble, at, name="trouble", retries=1, on_error={"KeyError": "fatal"})(numbers)
    return vf.Flow([Say(name="say")(troubled)], name="real")
