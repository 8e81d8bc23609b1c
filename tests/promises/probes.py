"""Small flows that a planted defect is tried on: one run, and its report as JSON.

Usage: python -m tests.promises.probes FLOW ENGINE FOLDER
"""

import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import videoflow as vf
from tests.engines.flows import Batches, Numbers, Repeat, Rows, Total, odd_only, same

ITEMS = 20
ALL_OUT = threading.Event()


def chain() -> vf.Flow:
    """A source, a step, a sink."""
    return vf.Flow([Rows(name="rows")(same(name="same")(Numbers(ITEMS, name="numbers")))])


def fused() -> vf.Flow:
    """The same, with the step and the sink in one task behind another step."""
    first = same(name="first", fuse="one")(Numbers(ITEMS, name="numbers"))
    return vf.Flow([Rows(name="rows")(same(name="second", fuse="one")(first))])


def unordered() -> vf.Flow:
    """Replicas that read replicas: nobody but the sink reads in order."""
    left = same(name="left", replicas=2)(Numbers(ITEMS, name="numbers"))
    return vf.Flow([Rows(name="rows")(same(name="right", replicas=2)(left))])


def stateful() -> vf.Flow:
    """A step with state, a fan-out, skips, and a sink that makes its inputs durable in groups."""
    numbers = Numbers(ITEMS, name="numbers")
    total = Total(name="total")(numbers)
    repeated = Repeat(name="repeat")(numbers)
    return vf.Flow(
        [Rows(name="rows")(total), Batches(name="file")(odd_only(name="odd")(numbers)), Rows()(repeated)]
    )


class Announced(Numbers):
    """Numbers, and a sign when the last one is out."""

    def produce(self, resume: int | None) -> Iterator[vf.Item]:
        yield from super().produce(resume)
        ALL_OUT.set()


class Late(Rows):
    """Begins when its source has ended."""

    def consume(self, *row: Any, ctx: vf.Context) -> None:
        ALL_OUT.wait(20)
        super().consume(*row, ctx=ctx)


def newest() -> vf.Flow:
    """A reader that is far behind a live edge, in threads."""
    return vf.Flow([Late(name="rows")(Announced(ITEMS, name="numbers").latest())])


FLOWS: dict[str, Callable[[], vf.Flow]] = {
    "chain": chain,
    "fused": fused,
    "unordered": unordered,
    "stateful": stateful,
    "newest": newest,
}


def main(name: str, engine: str, folder: str) -> None:
    """Runs a flow, whatever comes of it, and prints its report."""
    options: dict[str, Any] = {"stall_seconds": 25.0, "drain_seconds": 3.0}
    if engine == "local":
        options["runs_folder"] = Path(folder)
    report = FLOWS[name]().start(engine, **options).wait()
    sys.stdout.buffer.write(report.to_json())


if __name__ == "__main__":
    main(*sys.argv[1:])
