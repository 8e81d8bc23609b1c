"""What is measured: each workload with who takes part, and the budgets that it is held to.

Used by the command. A workload is one job given to several contenders, interleaved round by round; a ratio is
the median of the ratios of one round each, so that a machine that drifts does not matter. It refuses nothing.
"""

import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass

from benchmarks.contenders import (
    COPY_FLOOR,
    FAN,
    FORWARD_FLOOR,
    FORWARD_PLACE_FLOOR,
    MEMCPY,
    OURS,
    OWN,
    PLACE_FLOOR,
    ours,
    peers,
)
from benchmarks.measuring import ROOT, Contender
from benchmarks.work import VIDEO_VARIABLE, Job

_BARE = (sys.executable, "-m", "benchmarks.bare")
_PEOPLE = (sys.executable, "-m", "benchmarks.people")


@dataclass(frozen=True)
class Budget:
    """A promise about one contender.

    Attributes:
        contender: Its name.
        figure: Which of its figures, with `.` between levels.
        bound: What it is held to.
        against: A contender whose figure the bound is a multiple of; "": none, it is absolute.
        at_most: Whether less is better.
        scale: Factor from the figure to the bound's unit.
        said: In words.
    """

    contender: str
    figure: str
    bound: float
    said: str
    against: str = ""
    at_most: bool = False
    scale: float = 1.0


@dataclass(frozen=True)
class Workload:
    """One job for several contenders.

    Attributes:
        name: What the command is given.
        title: In words.
        job: Kind and pace; the number of items is found by a first try, unless `fixed`.
        contenders: Who takes part.
        floor: Name of the contender that ratios are made with.
        budgets: Of `performance.md`.
        fixed: Items of every round, or 0.
        most: The most items of a round.
        unit: Of the rate.
    """

    name: str
    title: str
    job: Job
    contenders: tuple[Contender, ...]
    floor: str
    budgets: tuple[Budget, ...] = ()
    fixed: int = 0
    most: int = 200_000
    unit: str = "frames/s"


def _rate(bound: float, said: str, against: str, contender: str = OURS.name) -> Budget:
    return Budget(contender, "per_second", bound, said, against)


def _hops(p50: float, p99: float | None, floor: str) -> tuple[Budget, ...]:
    """Bounds for the time of one hop, as multiples of the floor's."""
    found = [Budget(OURS.name, "hop_us.p50", p50, f"hop p50 <= {p50} x floor", floor, at_most=True)]
    if p99 is not None:
        found.append(Budget(OURS.name, "hop_us.p99", p99, f"hop p99 <= {p99} x floor", floor, at_most=True))
    return tuple(found)


def _frames() -> list[Workload]:
    frames = Job("frames", 0, 0)
    forwarding = Job("frames", 0, 0, forward=True)
    old = "videoflow 1.0.4 batch"
    return [
        Workload(
            "W1a",
            "1080p BGR, the processor emits a new buffer",
            frames,
            (MEMCPY, COPY_FLOOR, PLACE_FLOOR, OURS, OWN, *peers()),
            COPY_FLOOR.name,
            (
                _rate(0.95, ">= 0.95 x floor", COPY_FLOOR.name),
                _rate(1.0, "not behind iceoryx2", "iceoryx2"),
                _rate(50, ">= 50 x videoflow 1.0.4", old),
            ),
            most=2000,
        ),
        Workload(
            "W1b",
            "1080p BGR, the processor forwards its input",
            forwarding,
            (MEMCPY, FORWARD_FLOOR, FORWARD_PLACE_FLOOR, OURS, OWN),
            FORWARD_FLOOR.name,
            (_rate(0.9, ">= 0.9 x forward floor", FORWARD_FLOOR.name),),
            most=3000,
        ),
        Workload(
            "W1c",
            "1080p at 30 frames a second: how long a hop takes",
            Job("frames", 0, 0, per_second=30),
            (COPY_FLOOR, PLACE_FLOOR, OURS, OWN),
            COPY_FLOOR.name,
            _hops(1.3, 2.0, COPY_FLOOR.name),
            fixed=150,
        ),
        Workload(
            "W3",
            "1080p to four that hand on, and back through a join",
            forwarding,
            (FORWARD_FLOOR, OURS, FAN),
            OURS.name,
            (_rate(0.8, ">= 0.8 x W1b", OURS.name, FAN.name),),
            most=2000,
        ),
    ]


def _small() -> list[Workload]:
    small = Job("small", 0, 0)
    return [
        Workload(
            "W2",
            "1 KiB, the processor emits a new item",
            small,
            (COPY_FLOOR, FORWARD_FLOOR, OURS, *peers()),
            COPY_FLOOR.name,
            (
                _rate(0.6, ">= 0.6 x floor", COPY_FLOOR.name),
                _rate(40_000, ">= 40 000 a second", ""),
                _rate(500, ">= 500 x videoflow 1.0.4", "videoflow 1.0.4 batch"),
            ),
            unit="items/s",
        ),
        Workload(
            "W2-latency",
            "1 KiB at 100 a second: how long a hop takes",
            Job("small", 0, 0, per_second=100),
            (COPY_FLOOR, OURS),
            COPY_FLOOR.name,
            _hops(2.0, None, COPY_FLOOR.name),
            fixed=400,
            unit="items/s",
        ),
    ]


def _chains() -> list[Workload]:
    count = Job("small", 0, 0)
    fused = ours("chain-fused", "videoflow, fused, eight nodes")
    threads = ours("chain-threads", "videoflow, threads")
    calls = Contender("eight calls of Python", _BARE, ("calls",), is_floor=True)
    return [
        Workload(
            "W4",
            "eight cheap nodes in a chain",
            count,
            (
                calls,
                ours("bare-fused", "videoflow, fused, no node between"),
                fused,
                threads,
                ours("chain-local", "videoflow, a process each"),
            ),
            calls.name,
            (
                Budget(fused.name, "hand_over_us", 5, "hand-over <= 5 us a fused node", at_most=True),
                Budget(threads.name, "per_second", 50_000, "threads >= 50 000 items a second"),
            ),
            unit="items/s",
        ),
    ]


def _people() -> list[Workload]:
    stages = Contender("bound by the stages alone", _PEOPLE, ("stages",), _no_video(), is_floor=True)
    by_hand = Contender("a script of threads", _PEOPLE, ("threads",), _no_video())
    flow = Contender("videoflow", _PEOPLE, ("flow",), _no_video())
    return [
        Workload(
            "W5",
            "people counting on vtest.avi, decode to encode",
            Job("frames", 0, 0),
            (stages, by_hand, flow),
            stages.name,
            (
                _rate(0.9, ">= 0.9 x the bound of the stages", stages.name, flow.name),
                _rate(1.0, "not behind the script", by_hand.name, flow.name),
            ),
            fixed=795,
        ),
    ]


def _edges() -> list[Workload]:
    few = Job("small", 0, 0)
    threads, local = (
        ours("one-threads", "videoflow, threads"),
        ours("one-local", "videoflow, three processes"),
    )
    bare = Contender("three interpreters with NumPy", _BARE, ("start",), is_floor=True)
    one = Contender("one interpreter with NumPy", _BARE, ("memory",), is_floor=True)
    weighed = ours("memory", "videoflow, a worker")
    return [
        Workload(
            "start-stop",
            "from start to the first item, and from the last item to the report",
            few,
            (bare, threads, local),
            bare.name,
            (
                Budget(threads.name, "start_seconds", 0.3, "start, threads <= 0.3 s", at_most=True),
                Budget(local.name, "start_seconds", 0.8, "start, processes <= 0.8 s", at_most=True),
                Budget(threads.name, "stop_seconds", 0.2, "stop, threads <= 0.2 s", at_most=True),
                Budget(local.name, "stop_seconds", 0.2, "stop, processes <= 0.2 s", at_most=True),
            ),
            fixed=50,
            unit="items/s",
        ),
        Workload(
            "memory",
            "private memory of a worker whose node needs NumPy alone",
            few,
            (one, weighed),
            one.name,
            (Budget(weighed.name, "late_bytes", 45, "<= 45 MB a worker", at_most=True, scale=1e-6),),
            fixed=20_000,
            unit="items/s",
        ),
    ]


def _no_video() -> str:
    return (
        "" if os.environ.get(VIDEO_VARIABLE) else "no real footage: tools/fetch_footage.sh could not get it"
    )


def find_video() -> None:
    """Asks for the footage, and notes where it is for the contenders of W5."""
    done = subprocess.run(
        [str(ROOT / "tools" / "fetch_footage.sh")], capture_output=True, text=True, check=False
    )
    if done.returncode == 0:
        os.environ[VIDEO_VARIABLE] = done.stdout.strip()


def workloads() -> dict[str, Workload]:
    """Returns every workload by name, in order."""
    groups: tuple[Callable[[], list[Workload]], ...] = (_frames, _small, _chains, _people, _edges)
    return {workload.name: workload for group in groups for workload in group()}
