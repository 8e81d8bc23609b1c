"""Flows that are profiled, and then fused; in a light module, since their workers import it."""

from typing import Any, Unpack

import videoflow as vf
from tests.engines.flows import Numbers, same

STEPS = 200_000  # of a sum: a few milliseconds, whatever else the machine does meanwhile
COUNT = 80
HEAVY_STEPS = 30_000


class Odd(vf.Processor):
    """Passes odd numbers on, adding some."""

    def __init__(self, more: int = 2, **options: Unpack[vf.NodeOptions]) -> None:
        super().__init__(**options)
        self.more = more

    def process(self, number: int) -> Any:
        return number + self.more if number % 2 else vf.SKIP


class Counted(vf.Processor):
    """How many came so far, and what came; at the end, the sum."""

    def process(self, number: int, ctx: vf.Context) -> dict[str, int]:
        count = ctx.state.get("count", 0) + 1
        ctx.state["count"] = count
        ctx.state["sum"] = ctx.state.get("sum", 0) + number
        return {"count": count, "number": number}

    def flush(self, ctx: vf.Context) -> vf.Out:
        return vf.Out({"sum": ctx.state["sum"]})


class Kept(vf.Consumer):
    """Keeps what it was told, under which id."""

    collects = True

    def consume(self, value: Any, ctx: vf.Context) -> None:
        number = len(ctx.state)
        ctx.state[f"row/{number:08d}"] = [ctx.input_id, ctx.ordinal, ctx.source, value]


class Slow(Kept):
    """Sets the pace."""

    def consume(self, value: Any, ctx: vf.Context) -> None:
        assert sum(range(STEPS))
        super().consume(value, ctx)


def flow(*, more: int = 2, pace: bool = False, beside: bool = True) -> vf.Flow:
    """Three cheap steps and two readers; one of them sets the pace, where that matters."""
    numbers = Numbers(COUNT, name="numbers")
    odd = Odd(more, name="odd")(numbers)
    again = Odd(more * 2, name="again")(odd)
    counted = Counted(name="counted")(again)
    sink = Slow if pace else Kept
    sinks = [sink(name="slow", fuse=False)(counted), *([Kept(name="kept")(numbers)] if beside else [])]
    return vf.Flow(sinks, name="measured")


class Heavy(vf.Processor):
    """Works on each number for a while."""

    def process(self, number: int) -> int:
        return number if sum(range(HEAVY_STEPS)) else 0


@vf.consumer
def end(number: Any) -> None:
    """Takes nothing but time."""


def chain() -> vf.Flow:
    return vf.Flow([end(Heavy(name="heavy")(same(Numbers(200, name="numbers"))))], name="chain")
