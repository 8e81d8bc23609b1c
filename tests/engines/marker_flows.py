"""Nodes that make markers and take them, importable by workers."""

import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Unpack

import videoflow as vf
from tests.engines.flows import Numbers

PATIENCE_SECONDS = 30.0


class Late(Numbers):
    """Numbers, of which many fit, the last hundred of them when somebody has ended.

    Args:
        count: How many.
        after: The file that says so.
    """

    max_item_bytes = 100

    def __init__(self, count: int, after: str, **options: Unpack[vf.NodeOptions]) -> None:
        super().__init__(count, **options)
        self.after = after

    def produce(self, resume: int | None) -> Iterator[vf.Item]:
        pause, until = threading.Event(), time.monotonic() + PATIENCE_SECONDS
        for item in super().produce(resume):
            while item.value == self.count - 100 and not Path(self.after).exists():
                assert time.monotonic() < until, "nobody has ended"
                pause.wait(0.02)
            yield item


class Alarms(vf.Processor):
    """Passes numbers on; every fifth one is a marker, too."""

    ports = ("out", "events")
    max_item_bytes = 1000

    def process(self, number: int) -> Iterator[Any]:
        yield number
        if number % 5 == 0:
            yield vf.Out({"alarm": number}, "events")


class Heard(vf.Processor):
    """Passes values on; notes its markers in a file of each replica."""

    max_item_bytes = 1000

    def __init__(self, folder: str, **options: Unpack[vf.NodeOptions]) -> None:
        super().__init__(**options)
        self.folder = folder

    def process(self, value: Any) -> Any:
        return value

    def on_control(self, marker: Any, ctx: vf.Context) -> None:
        with Path(self.folder, f"heard-{ctx.slot}").open("a", encoding="ascii") as file:
            file.write(f"{marker['alarm']}\n")


class Log(vf.Consumer):
    """Keeps what it consumes, and its markers, for `report.values`; may wait at one value for a file."""

    collects = True

    def __init__(self, gate: str = "", at: int = -1, **options: Unpack[vf.NodeOptions]) -> None:
        super().__init__(**options)
        self.gate = gate
        self.at = at

    def consume(self, value: int, ctx: vf.Context) -> None:
        pause = threading.Event()
        if value == self.at:
            Path(f"{self.gate}.reached").touch()
        while value == self.at and not Path(self.gate).exists():
            pause.wait(0.02)
        ctx.state[f"row/{value:08d}"] = value

    def close(self) -> None:
        if self.gate:
            Path(f"{self.gate}.closed").touch()

    def on_control(self, marker: Any, ctx: vf.Context) -> None:
        number = marker["alarm"] if isinstance(marker, dict) else marker
        ctx.state[f"row/{number:08d}-marker"] = {"marker": number}


class Picky(vf.Consumer):
    """Takes numbers, and no marker but the first."""

    def consume(self, value: int) -> None:
        """Takes it."""

    def on_control(self, marker: Any) -> None:
        if marker["alarm"]:
            raise ValueError(f"what is {marker}?")
