"""What batches gain: a node whose call has a fixed cost, by the most inputs of a call.

Run as `python -m benchmarks.batches [ROUNDS]`. Every round runs each size once, in turn, and divides its rate
by that of single calls in the same round; the table shows the median, beside what arithmetic allows. The cost
of a call is slept, as for a device that works elsewhere, so that the processors are free for the framework.
"""

import statistics
import sys
import time
from collections.abc import Iterator, Sequence
from typing import Any, Unpack

import numpy as np

import videoflow as vf

FIXED_SECONDS, EACH_SECONDS = 0.004, 0.0001
SIZES = (1, 2, 4, 8, 16, 32)
CALLS = 150


class Items(vf.Producer):
    """Arrays of 4 KiB."""

    max_item_bytes = 4096

    def __init__(self, count: int, **options: Unpack[vf.NodeOptions]) -> None:
        super().__init__(**options)
        self.count = count

    def produce(self, resume: int | None) -> Iterator[vf.Item]:
        """Yields them."""
        for number in range(resume or 0, self.count):
            yield vf.Item(np.full(512, number), offset=number)


class Costly(vf.Processor):
    """Takes its time for each call, and a little for each input."""

    max_item_bytes = 1000

    def process_batch(self, inputs: Sequence[Any]) -> list[int]:
        """Returns the first number of each."""
        time.sleep(FIXED_SECONDS + len(inputs) * EACH_SECONDS)
        return [int(given[0]) for given in inputs]


class Times(vf.Consumer):
    """Keeps when a tenth of the items had come, and when all had."""

    collects = True

    def __init__(self, count: int, **options: Unpack[vf.NodeOptions]) -> None:
        super().__init__(**options)
        self.count = count

    def consume(self, number: int, ctx: vf.Context) -> None:
        """Looks at the clock, where it is one of the two."""
        if number in (self.count // 10, self.count - 1):
            ctx.state[f"row/{number:08d}"] = time.monotonic()


def rate(engine: str, size: int) -> tuple[float, float]:
    """Runs the flow once; returns items a second, and inputs of a call."""
    count = CALLS * size
    batch = vf.Batch(size, 0.05) if size > 1 else None
    costly = Costly(batch=batch, name="costly")(Items(count, name="items"))
    report = vf.Flow([Times(count, name="times")(costly)]).run(engine)
    began, ended = report.values["times"]
    found = next(node.batches for node in report.nodes if node.node == "costly")
    return (count - 1 - count // 10) / (ended - began), found.mean_items if found else 1.0


def main(rounds: int) -> None:
    """Prints a table for each engine."""
    for engine in ("threads", "local"):
        ratios: dict[int, list[float]] = {size: [] for size in SIZES}
        sizes: dict[int, list[float]] = {size: [] for size in SIZES}
        for turn in range(rounds):
            rates: dict[int, float] = {}
            for size in SIZES[turn % len(SIZES) :] + SIZES[: turn % len(SIZES)]:
                rates[size], mean = rate(engine, size)
                sizes[size].append(mean)
            for size in SIZES:
                ratios[size].append(rates[size] / rates[1])
        print(f"\n{engine}, {FIXED_SECONDS * 1e3:g} ms a call and {EACH_SECONDS * 1e3:g} ms an input")
        print("| most inputs | in fact | times as many items a second | at best |\n|---|---|---|---|")
        for size in SIZES:
            best = (FIXED_SECONDS + EACH_SECONDS) / (FIXED_SECONDS / size + EACH_SECONDS)
            middle, mean = statistics.median(ratios[size]), statistics.mean(sizes[size])
            print(f"| {size} | {mean:.1f} | {middle:.2f} | {best:.2f} |")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 3)
