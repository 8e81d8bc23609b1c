"""`make soak`: one run at full rate for an hour, and what it holds and how long items take meanwhile.

For whoever changes what may leak or slow down with time. A source, a step and a sink in processes of their
own move arrays as fast as they can. The result, Markdown, tells memory and latency over time, and how fast
each grows. It never fails on time or memory: a reader judges. It refuses a run that did not end as it should.
"""

import argparse
import json
import math
import os
import sys
import tempfile
import time
from array import array
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Unpack

import numpy as np
from numpy.typing import NDArray

import videoflow as vf
from benchmarks import machine
from benchmarks.holding import Held, held_by, slope
from benchmarks.measuring import ROOT
from videoflow.engines._local_run import LocalRun
from videoflow.graph.report import RunReport, Verdict

HOUR_SECONDS = 3600.0
SIDE = 256  # 64 KiB an item: through payload slots, not inside the envelope
ITEM_BYTES = SIDE * SIDE
_ROWS = 30  # of the table
_LEAST_LOOKS = 2  # or there is no slope
_SETTLED = 0.25  # of the time, after which what warms up is warm
_LEGEND = (
    "Latency: microseconds from the source to the sink, through full buffers at full rate. Private memory is "
    "what a process has for itself. SQLite begins its log, the largest of the files, anew at 4 MiB."
)
Image = NDArray[np.uint8]


class Images(vf.Producer):
    """Arrays with the time at which they were made, until it is stopped."""

    max_item_bytes = ITEM_BYTES

    def produce(self, resume: int | None, ctx: vf.Context) -> Iterator[vf.Item]:
        """Yields (SIDE, SIDE) uint8."""
        number = resume or 0
        while not ctx.stopping:
            image = np.full((SIDE, SIDE), number % 251, np.uint8)
            image.reshape(-1)[:8].view(np.int64)[0] = time.monotonic_ns()
            yield vf.Item(image, offset=number)
            number += 1


class Inverted(vf.Processor):
    """A new image per image, whose time stays."""

    max_item_bytes = ITEM_BYTES

    def process(self, image: Image) -> Image:
        """Returns (SIDE, SIDE) uint8."""
        made = 255 - image
        made.reshape(-1)[:8] = image.reshape(-1)[:8]
        return made


class Latencies(vf.Consumer):
    """Writes a row for each period: its items, and how long they took, in microseconds.

    Args:
        path: File of JSON rows.
        period_seconds: How long a row is.
    """

    def __init__(self, path: str, period_seconds: float, **options: Unpack[vf.NodeOptions]) -> None:
        super().__init__(**options)
        self.path, self.period_seconds = path, period_seconds

    def open(self) -> None:
        """Begins the first row."""
        self.took = array("q")
        self.until = time.monotonic() + self.period_seconds

    def consume(self, image: Image) -> None:
        """Looks at the clock."""
        now = time.monotonic_ns()
        self.took.append(now - int(image.reshape(-1)[:8].view(np.int64)[0]))
        if now >= self.until * 1e9:
            took = np.percentile(self.took, [50, 99]) / 1000
            row = {"items": len(self.took), "p50": float(took[0]), "p99": float(took[1])}
            with Path(self.path).open("a", encoding="utf-8") as rows:
                rows.write(json.dumps(row) + "\n")
            del self.took[:]
            self.until += self.period_seconds


@dataclass(frozen=True)
class Look:
    """What was seen at one moment.

    Attributes:
        seconds: Since the run began.
        rate: Items a second since the last look.
        p50_us, p99_us: How long items took in the period before.
        held: What the run held.
    """

    seconds: float
    rate: float
    p50_us: float
    p99_us: float
    held: Held


@dataclass(frozen=True)
class Soaked:
    """A run, as it was seen.

    Attributes:
        looks: In the order of time.
        report: Of the run.
    """

    looks: list[Look]
    report: RunReport

    @property
    def settled(self) -> list[Look]:
        """The looks after it had warmed up; all where there are too few."""
        late = [look for look in self.looks if look.seconds >= _SETTLED * self.looks[-1].seconds]
        return late if len(late) > 1 else self.looks


def soak(seconds: float, period_seconds: float, told: Callable[[Look], None]) -> Soaked:
    """Runs at full rate for a while, and looks at the end of every period.

    Args:
        seconds: How long; it goes on until two periods are over.
        period_seconds: How often it is looked at.
        told: Called with each look.

    Raises:
        RuntimeError: The run ended by itself, or not as it should.
    """
    with tempfile.TemporaryDirectory(prefix="soak") as folder:
        path = Path(folder) / "rows.jsonl"
        sink = Latencies(str(path), period_seconds, name="latencies")
        flow = vf.Flow([sink(Inverted(name="inverted")(Images(name="images")))])
        run = flow.start("local", runs_folder=Path(folder) / "runs", stall_seconds=60.0)
        if not isinstance(run, LocalRun):
            raise TypeError("the soak looks at processes")
        began = time.monotonic()
        looks: list[Look] = []
        try:
            while len(looks) < _LEAST_LOOKS or time.monotonic() - began < seconds:
                row = _next_row(run, path, len(looks))
                items = (looks[-1].held.items if looks else 0) + row["items"]
                held = held_by(run, items)
                rate = row["items"] / period_seconds
                looks.append(Look(time.monotonic() - began, rate, row["p50"], row["p99"], held))
                told(looks[-1])
        finally:
            run.stop()
            report = run.wait()
    if report.verdict is not Verdict.STOPPED or not all(edge.closed for edge in report.edges):
        raise RuntimeError(f"the run ended {report.verdict}: {report.failure}")
    return Soaked(looks, report)


def _next_row(run: LocalRun, path: Path, number: int) -> dict[str, Any]:
    """Waits for the next row of the sink."""
    while True:
        lines = path.read_text(encoding="utf-8").splitlines(keepends=True) if path.exists() else []
        if len(lines) > number and lines[number].endswith("\n"):
            row: dict[str, Any] = json.loads(lines[number])
            return row
        if run.wait_for(0.1) is not None:
            raise RuntimeError(f"the run ended by itself: {run.wait().failure}")


def document(soaked: Soaked, facts: dict[str, str], remark: str) -> str:
    """Returns the result: the facts, how fast what was seen grows, and the table over time.

    Args:
        soaked: What was seen.
        facts: Of the machine.
        remark: What a reader must know first, or "".
    """
    names = list(soaked.looks[0].held.private_bytes)
    announced = sum(edge.announced for edge in soaked.report.edges)
    closed = all(edge.closed for edge in soaked.report.edges)
    lines = ["# Soak", "", *([f"**{remark}**", ""] if remark else [])]
    lines += ["| fact | |", "|---|---|", *(f"| {name} | {text} |" for name, text in facts.items())]
    lines += [f"| ledger | {announced} announced on {len(soaked.report.edges)} edges, closed: {closed} |", ""]
    lines += [
        "## Growth after the first quarter",
        "",
        "| what | by least squares | of the mean |",
        "|---|---|---|",
    ]
    lines += [_grown(soaked.settled, *what) for what in _WHAT]
    heads = ["seconds", "items", "items/s", "p50 us", "p99 us", *(f"{name} KB" for name in names)]
    heads += ["shared KB", "records", "files KB"]
    lines += ["", "## Over time", "", _row(heads), "|---" * len(heads) + "|"]
    step = max(1, math.ceil(len(soaked.looks) / _ROWS))
    lines += [_told(look, names) for look in soaked.looks[step - 1 :: step]]
    lines += ["", _LEGEND]
    return "\n".join(lines) + "\n"


_WHAT: tuple[tuple[str, str, Callable[[Look], float]], ...] = (
    ("private memory, all processes", "bytes a second", lambda look: sum(look.held.private_bytes.values())),
    ("shared memory", "bytes a second", lambda look: look.held.shared_bytes),
    ("records", "rows a second", lambda look: look.held.rows),
    ("files", "bytes a second", lambda look: look.held.file_bytes),
    ("latency p50", "us a second", lambda look: look.p50_us),
    ("latency p99", "us a second", lambda look: look.p99_us),
    ("rate", "items/s a second", lambda look: look.rate),
)


def _grown(looks: Sequence[Look], name: str, unit: str, figure: Callable[[Look], float]) -> str:
    """Tells how fast a figure grew, and by what share of its mean over the time that was seen."""
    pairs = [(look.seconds, figure(look)) for look in looks]
    grown = slope(pairs) if len(pairs) > 1 else 0.0
    mean = sum(value for _, value in pairs) / len(pairs)
    share = grown * (pairs[-1][0] - pairs[0][0]) / mean if mean else 0.0
    return f"| {name} | {grown:.3g} {unit} | {share:+.2%} |"


def _told(look: Look, names: Sequence[str]) -> str:
    held = look.held
    memory = [*(held.private_bytes[name] >> 10 for name in names), held.shared_bytes >> 10]
    figures = [look.rate, look.p50_us, look.p99_us]
    cells = [
        f"{look.seconds:.0f}",
        str(held.items),
        *(f"{value:.0f}" for value in figures),
        *map(str, memory),
    ]
    return _row([*cells, str(held.rows), str(held.file_bytes >> 10)])


def _row(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cells) + " |"


def main() -> None:
    """Runs the command."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.soak", description=__doc__)
    parser.add_argument("--seconds", type=float, default=HOUR_SECONDS, help="how long (default an hour)")
    parser.add_argument("--period", type=float, default=0.0, help="seconds of a look (default 10 at most)")
    parser.add_argument(
        "--out", type=Path, default=None, help="the result (default benchmarks/results/DATE-soak.md)"
    )
    given = parser.parse_args()
    today = datetime.now(UTC).date().isoformat()
    short = given.seconds < HOUR_SECONDS
    folder = ROOT / ("out" if short else "benchmarks/results")
    out: Path = given.out or folder / f"{today}-soak.md"
    facts = machine.facts(sorted(os.sched_getaffinity(0)))
    soaked = soak(
        given.seconds,
        given.period or min(10.0, max(1.0, given.seconds / 100)),
        lambda look: print(
            f"{look.seconds:7.0f} s {look.rate:9.0f} items/s  p50 {look.p50_us:9.0f} us  "
            f"{sum(look.held.private_bytes.values()) >> 10} KB",
            file=sys.stderr,
            flush=True,
        ),
    )
    facts |= {
        "date": today,
        "load after": machine.load(),
        "took": f"{soaked.looks[-1].seconds:.0f} s",
        "items": f"{SIDE} x {SIDE} uint8, three processes",
    }
    remark = f"{given.seconds:.0f} seconds, not the hour that a soak is." if short else ""
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(document(soaked, facts, remark), encoding="utf-8")
    print(f"written to {out}", file=sys.stderr)


if __name__ == "__main__":
    main()
