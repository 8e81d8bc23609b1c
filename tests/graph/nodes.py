"""Small nodes that the tests of this folder wire."""

import asyncio
from collections.abc import Iterator, Mapping
from typing import Any, Unpack

import videoflow as vf


async def turned() -> None:
    """Waits until the loop has called something else, as any true wait does."""
    elsewhere = asyncio.Event()
    asyncio.get_running_loop().call_soon(elsewhere.set)
    await elsewhere.wait()


class Numbers(vf.Producer):
    """Yields whole numbers."""

    def __init__(self, count: int = 3, **options: Unpack[vf.NodeOptions]) -> None:
        super().__init__(**options)
        self.count = count

    def produce(self, resume: int | None) -> Iterator[vf.Item]:
        for number in range(resume or 0, self.count):
            yield vf.Item(number, offset=number)


class Double(vf.Processor):
    """Doubles a number."""

    def process(self, number: int) -> int:
        return 2 * number


class Total(vf.Processor):
    """Adds up, in its state."""

    def process(self, number: int, ctx: vf.Context) -> int:
        ctx.state["total"] = ctx.state.get("total", 0) + number
        total: int = ctx.state["total"]
        return total


class Split(vf.Processor):
    """Emits as many crops as the number says, and the number itself."""

    ports = ("out", "crops")
    many: Mapping[str, int] = {"crops": 4}

    def process(self, number: int) -> Iterator[Any]:
        yield number
        for part in range(number):
            yield vf.Out(part, port="crops")


class Pair(vf.Processor):
    """Joins two inputs."""

    def process(self, first: Any, second: Any) -> Any:
        return (first, second)


class Last(vf.Processor):
    """Says at the end what it saw last."""

    def process(self, number: int, ctx: vf.Context) -> int:
        ctx.state["last"] = number
        return number

    def flush(self, ctx: vf.Context) -> Any:
        return ctx.state.get("last")


class Sink(vf.Consumer):
    """Takes anything."""

    def __init__(self, label: str = "", **options: Unpack[vf.NodeOptions]) -> None:
        super().__init__(**options)
        self.label = label

    def consume(self, *values: Any) -> None: ...


@vf.processor
def halve(number: int, *, by: int = 2) -> float:
    """Divides."""
    return number / by
