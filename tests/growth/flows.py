"""A flow of small items that stops at marks, so that what it holds can be looked at while nothing moves."""

import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Unpack

import videoflow as vf
from benchmarks.holding import Held, held_by
from videoflow.engines._local_run import LocalRun

ITEM_BYTES = 256
_LOOK_SECONDS = 0.01
_STILL_LOOKS = 3000
Build = Callable[[Path, Sequence[int]], vf.Flow]


class Numbers(vf.Producer):
    """Counts, and waits at each mark until a file says that it may go on.

    Args:
        folder: Where these files come.
        marks: After how many items to wait; the last one ends it.
    """

    max_item_bytes = ITEM_BYTES

    def __init__(self, folder: str, marks: list[int], **options: Unpack[vf.NodeOptions]) -> None:
        super().__init__(**options)
        self.folder, self.marks = folder, marks

    def produce(self, resume: int | None, ctx: vf.Context) -> Iterator[vf.Item]:
        looking = threading.Event()
        for number in range(resume or 0, self.marks[-1] + 1):
            if number in self.marks:
                while not ctx.stopping and not Path(self.folder, str(number)).exists():
                    looking.wait(_LOOK_SECONDS)
            if number < self.marks[-1]:
                yield vf.Item(number, offset=number)


class Doubled(vf.Processor):
    """Stateless."""

    max_item_bytes = ITEM_BYTES

    def process(self, number: int) -> int:
        return 2 * number


class Total(vf.Processor):
    """Joins by trace, and keeps a sum as its state."""

    max_item_bytes = ITEM_BYTES

    def process(self, number: int, doubled: int, ctx: vf.Context) -> int:
        if doubled != 2 * number:
            raise ValueError(f"{number} met {doubled}")
        ctx.state["total"] = ctx.state.get("total", 0) + number
        return 2 * number


class Last(vf.Consumer):
    """Refuses what is not twice the next number."""

    def open(self) -> None:
        self.next = 0

    def consume(self, number: int) -> None:
        if number != 2 * self.next:
            raise ValueError(f"{number} came instead of {2 * self.next}")
        self.next += 1


def chain(folder: Path, marks: Sequence[int]) -> vf.Flow:
    """Returns a source, a stateless step and a sink: what any run of many items goes through."""
    return vf.Flow(
        [Last(name="last")(Doubled(name="doubled")(Numbers(str(folder), list(marks), name="numbers")))]
    )


def joined(folder: Path, marks: Sequence[int]) -> vf.Flow:
    """Returns a source, a stateless step, a stateful join of both, and a sink: all that keeps something."""
    numbers = Numbers(str(folder), list(marks), name="numbers")
    total = Total(name="total")(numbers, Doubled(name="doubled")(numbers))
    return vf.Flow([Last(name="last")(total)])


def held_at(build: Build, folder: Path, marks: Sequence[int]) -> tuple[list[Held], LocalRun]:
    """Runs a flow in processes; returns what it held at each mark, at rest, and the run, which has ended.

    Args:
        build: `chain` or `joined`.
        folder: Empty; the run folder comes into it.
        marks: Numbers of items, ascending; the run ends after the last.
    """
    run = build(folder, marks).start("local", runs_folder=folder / "runs")
    assert isinstance(run, LocalRun)
    found = []
    for mark in marks:
        _await(run, mark)
        found.append(held_by(run, mark))
        Path(folder, str(mark)).touch()
    run.wait()
    return found, run


def _await(run: LocalRun, items: int) -> None:
    """Waits until so many items have come through all nodes, as long as any of them moves."""
    before, still = None, 0
    while still < _STILL_LOOKS:
        nodes = run.status().nodes
        if len(nodes) == len(run.plan.spec.nodes) and all(n.items == items and not n.queue for n in nodes):
            return
        assert run.wait_for(_LOOK_SECONDS) is None, run.wait().failure
        now = [node.items for node in nodes]
        before, still = now, still + 1 if now == before else 0
    raise AssertionError(f"{items} items did not come through: {run.status()}")


class Few(vf.Producer):
    """Five numbers, and nothing to wait for."""

    max_item_bytes = ITEM_BYTES

    def produce(self, resume: int | None) -> Iterator[vf.Item]:
        for number in range(resume or 0, 5):
            yield vf.Item(number, offset=number)


def short() -> vf.Flow:
    """Returns a flow that ends at once."""
    return vf.Flow([Last(name="last")(Doubled(name="doubled")(Few(name="few")))])
