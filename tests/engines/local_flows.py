"""Nodes for the tests of the local engine, importable by its workers."""

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Unpack

import numpy as np
from numpy.typing import NDArray

import videoflow as vf

Image = NDArray[np.uint8]


class Frames(vf.Producer):
    """Images whose pixels all hold the number of the frame."""

    def __init__(self, frames: int = 60, side: int = 64, **options: Unpack[vf.NodeOptions]) -> None:
        super().__init__(**options)
        self.frames = frames
        self.side = side

    def produce(self, resume: int | None) -> Iterator[vf.Item]:
        for number in range(resume or 0, self.frames):
            yield vf.Item(np.full((self.side, self.side), number % 251, np.uint8), offset=number)


class Endless(vf.Producer):
    """Counts until it is stopped."""

    def produce(self, resume: int | None, ctx: vf.Context) -> Iterator[vf.Item]:
        number = resume or 0
        while not ctx.stopping:
            yield vf.Item(number, offset=number)
            number += 1


class Blocked(vf.Producer):
    """Hands out one item, then waits until it is interrupted."""

    def open(self) -> None:
        self.interrupted = threading.Event()

    def produce(self, resume: int | None) -> Iterator[vf.Item]:
        yield vf.Item(1, offset=0)
        self.interrupted.wait()

    def interrupt(self) -> None:
        self.interrupted.set()


class Deaf(vf.Producer):
    """Hands out three items, then waits for ever."""

    def produce(self, resume: int | None) -> Iterator[vf.Item]:
        for number in range(resume or 0, 3):
            yield vf.Item(number, offset=number)
        threading.Event().wait()


class Mean(vf.Processor):
    """Turns an image into its first pixel."""

    def process(self, image: Image) -> int:
        return int(image[0, 0])


class Kills(vf.Processor):
    """Ends its own process on one value, and passes on the others.

    Args:
        value: Which one.
        how: `kill`, `exit`, `hang`, or `raise`.
    """

    def __init__(self, value: int, how: str = "kill", **options: Unpack[vf.NodeOptions]) -> None:
        super().__init__(**options)
        self.value = value
        self.how = how

    def process(self, value: int) -> int:
        if value == self.value:
            if self.how == "kill":
                os.kill(os.getpid(), signal.SIGKILL)
            elif self.how == "exit":
                os._exit(9)
            elif self.how == "hang":
                threading.Event().wait()
            else:
                raise ValueError("this value")
        return value


class CannotOpen(vf.Processor):
    """Fails in `open`, in one of several ways."""

    def __init__(self, how: str, **options: Unpack[vf.NodeOptions]) -> None:
        super().__init__(**options)
        self.how = how

    def open(self) -> None:
        sys.stdout.write("opening, and about to fail\n")
        if self.how == "raise":
            raise OSError("no such camera")
        os.kill(os.getpid(), signal.SIGSEGV)

    def process(self, value: Any) -> Any:
        return value


class OpensSlowly(vf.Processor):
    """Takes a while to open, as a model that is being loaded does."""

    def open(self) -> None:
        threading.Event().wait(3.5)

    def process(self, value: int) -> int:
        return value


class StartsChild(vf.Processor):
    """Starts a process that would outlive it, and writes down its number."""

    def __init__(self, path: str, **options: Unpack[vf.NodeOptions]) -> None:
        super().__init__(**options)
        self.path = path

    def open(self) -> None:
        code = "import threading; threading.Event().wait()"
        child = subprocess.Popen([sys.executable, "-c", code])
        Path(self.path).write_text(str(child.pid), encoding="ascii")

    def process(self, value: int) -> int:
        return value


class Lines(vf.Consumer):
    """Appends a line per value."""

    def __init__(self, path: str, **options: Unpack[vf.NodeOptions]) -> None:
        super().__init__(**options)
        self.path = path

    def open(self) -> None:
        sys.stdout.write("hello from the sink\n")
        Path(self.path).touch()

    def consume(self, value: Any) -> None:
        with Path(self.path).open("a", encoding="ascii") as file:
            file.write(f"{value}\n")


class Gate(vf.Consumer):
    """Notes each value; waits at one of them until a file exists."""

    def __init__(self, path: str, gate: str, at: int, **options: Unpack[vf.NodeOptions]) -> None:
        super().__init__(**options)
        self.path = path
        self.gate = gate
        self.at = at

    def consume(self, value: Any) -> None:
        with Path(self.path).open("a", encoding="ascii") as file:
            file.write(f"{value}\n")
        pause = threading.Event()
        while value == self.at and not Path(self.gate).exists():
            pause.wait(0.02)


class OnlyHere(vf.Processor):
    """Can be made in one process only."""

    def __init__(self, process: str, **options: Unpack[vf.NodeOptions]) -> None:
        super().__init__(**options)
        if str(os.getpid()) != process:
            raise ValueError(f"made in the process {os.getpid()}")

    def process(self, value: int) -> int:
        return value
