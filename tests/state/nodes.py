"""Nodes that remember in themselves, in `ctx.state`, or in a place outside that knows keys."""

import sqlite3
from collections.abc import Iterator
from typing import Any, Unpack

import numpy as np

import videoflow as vf


class Numbers(vf.Producer):
    """0, 1, 2, …; the key of each is its remainder by eight."""

    max_item_bytes = 4096

    def __init__(self, count: int = 40, **options: Unpack[vf.NodeOptions]) -> None:
        super().__init__(**options)
        self.count = count

    def produce(self, resume: int | None) -> Iterator[vf.Item]:
        for number in range(resume or 0, self.count):
            yield vf.Item(number, offset=number, time_seconds=number / 10, key=f"camera {number % 8}")


class Smoothed(vf.Processor):
    """A running mean that lives in the node, as that of a library object would, made in `open`."""

    max_item_bytes = 4096

    def open(self) -> None:
        self.mean = np.zeros(2)
        self.seen: list[int] = []

    def process(self, number: int) -> list[float]:
        self.seen = [*self.seen[-4:], number]
        self.mean = 0.5 * self.mean + np.array([number, 1.0])
        return [float(value) for value in self.mean] + [float(sum(self.seen))]

    def snapshot(self) -> dict[str, Any]:
        return {"mean": self.mean, "seen": self.seen}

    def restore(self, value: dict[str, Any]) -> None:
        self.mean, self.seen = value["mean"], value["seen"]


class Counted(vf.Processor):
    """Numbers what it is given, in a plain attribute and in `ctx.state`; both must tell the same."""

    max_item_bytes = 4096

    def __init__(self, **options: Unpack[vf.NodeOptions]) -> None:
        super().__init__(**options)
        self.count = 0

    def process(self, value: Any, ctx: vf.Context) -> list[Any]:
        self.count += 1
        ctx.state["count"] = ctx.state.get("count", 0) + 1
        return [value, self.count, ctx.state["count"]]

    def snapshot(self) -> int:
        return self.count

    def restore(self, value: int) -> None:
        self.count = value


class Rows(vf.Consumer):
    """Keeps what it consumes for `report.values`."""

    collects = True

    def consume(self, row: Any, ctx: vf.Context) -> None:
        number = ctx.state.get("count", 0)
        ctx.state[f"row/{number:08d}"] = row
        ctx.state["count"] = number + 1


class Upserts(vf.Consumer):
    """Puts rows into a database under their effect key; what is repeated replaces itself."""

    effect_key_seconds = None

    def __init__(self, path: str, **options: Unpack[vf.NodeOptions]) -> None:
        super().__init__(**options)
        self.path = path

    def open(self) -> None:
        self.database = sqlite3.connect(self.path, timeout=30.0, isolation_level=None)
        self.database.execute("CREATE TABLE IF NOT EXISTS calls (key TEXT, value TEXT)")
        self.database.execute("CREATE TABLE IF NOT EXISTS rows (key TEXT PRIMARY KEY, value TEXT)")

    def consume(self, value: Any, ctx: vf.Context) -> None:
        row = (ctx.effect_key, repr(value))
        self.database.execute("INSERT INTO calls VALUES (?, ?)", row)
        self.database.execute("INSERT OR REPLACE INTO rows VALUES (?, ?)", row)

    def close(self) -> None:
        self.database.close()
