"""Small nodes for tests of engines."""

from collections.abc import Iterator, Mapping
from typing import Any, Unpack

import videoflow as vf


class Numbers(vf.Producer):
    """0, 1, 2, … as items."""

    def __init__(self, count: int = 20, **options: Unpack[vf.NodeOptions]) -> None:
        super().__init__(**options)
        self.count = count

    def produce(self, resume: int | None) -> Iterator[vf.Item]:
        for number in range(resume or 0, self.count):
            yield vf.Item(number, offset=number, time_seconds=number / 10)


class Endless(vf.Producer):
    """Numbers until the run stops."""

    def produce(self, resume: int | None) -> Iterator[vf.Item]:
        number = resume or 0
        while True:
            yield vf.Item(number, offset=number)
            number += 1


class Total(vf.Processor):
    """The sum so far; at the end, what it came to."""

    def process(self, number: int, ctx: vf.Context) -> int:
        total = ctx.state.get("total", 0) + number
        ctx.state["total"] = total
        return int(total)

    def flush(self, ctx: vf.Context) -> vf.Out:
        return vf.Out({"final": ctx.state["total"]})


class Rows(vf.Consumer):
    """Keeps what it consumes for `report.values`."""

    collects = True

    def consume(self, *row: Any, ctx: vf.Context) -> None:
        number = ctx.state.get("count", 0)
        ctx.state[f"row/{number:08d}"] = row[0] if len(row) == 1 else list(row)
        ctx.state["count"] = number + 1


@vf.processor
def same(value: Any) -> Any:
    return value


@vf.processor
def negative(value: Any) -> Any:
    return -value


@vf.processor
def odd_only(value: int) -> Any:
    return value if value % 2 else vf.SKIP


class Repeat(vf.Processor):
    """Emits a number as often as it says, modulo four."""

    many: Mapping[str, int] = {"out": 4}

    def process(self, number: int) -> Iterator[Any]:
        for turn in range(number % 4):
            yield [number, turn]


class FailsOn(vf.Processor):
    """Raises on one number."""

    def __init__(self, number: int, kind: str = "ValueError", **options: Unpack[vf.NodeOptions]) -> None:
        super().__init__(**options)
        self.number = number
        self.kind = kind

    def process(self, number: int) -> int:
        if number == self.number:
            raise {"ValueError": ValueError, "OSError": OSError}[self.kind](f"cannot do {number}")
        return number


class FailsOnce(vf.Processor):
    """Raises on the first attempt at each number."""

    def process(self, number: int, ctx: vf.Context) -> list[int]:
        if ctx.attempt == 1 and number % 5 == 0:
            raise OSError("try again")
        return [number, ctx.attempt]


class OpensNot(vf.Processor):
    """Cannot be opened."""

    def open(self) -> None:
        raise FileNotFoundError("no model here")

    def process(self, number: int) -> int:
        return number


class Batches(vf.Consumer):
    """Makes inputs durable five at a time, in a list that stands for a file."""

    holds_items = 5
    collects = True

    def __init__(self, **options: Unpack[vf.NodeOptions]) -> None:
        super().__init__(**options)
        self.buffer: list[Any] = []

    def consume(self, value: Any) -> None:
        self.buffer.append(value)

    def checkpoint(self, ctx: vf.Context) -> int | None:
        if len(self.buffer) < 5 and not ctx.draining:
            return None
        done, self.buffer = self.buffer, []
        written = ctx.state.get("count", 0)
        for number, value in enumerate(done):
            ctx.state[f"row/{written + number:08d}"] = value
        ctx.state["count"] = written + len(done)
        return len(done)
