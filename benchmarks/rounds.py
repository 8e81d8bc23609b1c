"""Runs a workload: a first try that says how many items fit a round, then rounds that take turns.

Used by the command and by its test. It refuses a contender that failed its first try, by name and with why.
"""

import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

from benchmarks.measuring import Contender, Failure, Figures, measure
from benchmarks.workloads import Workload

_FIRST_FRAMES, _FIRST_SMALL = 24, 600
_WARM_SHARE, _WARM_SHARE_PACED = 10, 2
_LEAST_FIXED = 20
_TIMEOUT_SECONDS = 120.0


@dataclass(frozen=True)
class Size:
    """How much is measured.

    Attributes:
        rounds: Of every contender.
        seconds: What a round of one contender is to take, starting left out; below 1, fixed numbers of items
            shrink with it.
        items: Of every round, whatever a first try says; 0: ask it.
        patience_seconds: After so long a contender of a round has failed.
    """

    rounds: int
    seconds: float
    items: int = 0
    patience_seconds: float = _TIMEOUT_SECONDS


@dataclass
class Outcome:
    """What became of a workload.

    Attributes:
        workload: Which.
        samples: Contender → figures of each round, in order; None where a round failed.
        failures: Contender → why it gave no figures.
        seconds: How long all took.
    """

    workload: Workload
    samples: dict[str, list[Figures | None]] = field(default_factory=dict)
    failures: dict[str, str] = field(default_factory=dict)
    seconds: float = 0.0


def run_workload(workload: Workload, size: Size, say: Callable[[str], None]) -> Outcome:
    """Runs every contender of a workload in turn.

    Args:
        workload: What is measured.
        size: How much.
        say: Is told what goes on.
    """
    began = time.monotonic()
    outcome = Outcome(workload)
    items: dict[str, int] = {}
    for contender in workload.contenders:
        found = _items_of(contender, workload, size)
        if isinstance(found, Failure):
            outcome.failures[contender.name] = found.why
            say(f"{workload.name}: {contender.name}: {found.why}")
        else:
            items[contender.name] = found
            outcome.samples[contender.name] = []
    present = [contender for contender in workload.contenders if contender.name in items]
    for number in range(size.rounds):
        for contender in _turned(present, number):
            figures = _round(contender, workload, items[contender.name], size)
            if isinstance(figures, Failure):
                outcome.failures[contender.name] = f"a round failed: {figures.why}"
                say(f"{workload.name}: {contender.name}: {figures.why}")
                outcome.samples[contender.name].append(None)
                continue
            outcome.samples[contender.name].append(figures)
            account = figures.get("ledger", "")
            lost = f", lost {figures['lost']}" if figures.get("lost") else ""
            say(
                f"{workload.name} {number + 1}/{size.rounds}: {contender.name}:"
                f" {figures.get('per_second', 0):,.1f} {workload.unit}{lost} {account}"
            )
    _add_hand_over(outcome)
    outcome.seconds = time.monotonic() - began
    return outcome


def _items_of(contender: Contender, workload: Workload, size: Size) -> int | Failure:
    if contender.why_not:
        return Failure(contender.why_not)
    if size.items:
        return min(size.items, workload.fixed or size.items)
    if workload.fixed:
        return max(_LEAST_FIXED, int(workload.fixed * min(1.0, size.seconds)))
    first = _FIRST_FRAMES if workload.job.kind == "frames" else _FIRST_SMALL
    tried = _round(contender, workload, first, size)
    if isinstance(tried, Failure):
        return tried
    return max(first, min(workload.most, int(tried["per_second"] * size.seconds)))


def _round(contender: Contender, workload: Workload, items: int, size: Size) -> Figures | Failure:
    # Where latency is measured, what piled up while the last process was starting must be gone.
    share = _WARM_SHARE_PACED if workload.job.per_second else _WARM_SHARE
    job = replace(workload.job, items=items, warm=max(1, items // share))
    return measure(contender, job, size.patience_seconds)


def _turned(contenders: list[Contender], number: int) -> list[Contender]:
    """Who comes first changes from round to round."""
    start = number % max(1, len(contenders))
    return contenders[start:] + contenders[:start]


def _add_hand_over(outcome: Outcome) -> None:
    """Says what a fused node costs: the chain's time per item less that without nodes, by node."""
    chain = outcome.samples.get("videoflow, fused, eight nodes", [])
    bare = outcome.samples.get("videoflow, fused, no node between", [])
    for long, short in zip(chain, bare, strict=False):
        if long and short and long["per_second"] and short["per_second"]:
            long["hand_over_us"] = (1 / long["per_second"] - 1 / short["per_second"]) / 8 * 1e6


def figure(figures: Figures | None, name: str) -> float | None:
    """Returns a figure by its name, `.` between levels, or None."""
    found: Any = figures
    for part in name.split("."):
        found = found.get(part) if isinstance(found, dict) else None
    return float(found) if isinstance(found, int | float) else None


def values(outcome: Outcome, contender: str, name: str) -> list[float]:
    """Returns a contender's figure in every round that has it."""
    found = (figure(sample, name) for sample in outcome.samples.get(contender, []))
    return [value for value in found if value is not None]


def ratios(outcome: Outcome, contender: str, against: str, name: str) -> list[float]:
    """Returns the ratios of two contenders' figures, one of each round that both have."""
    pairs = zip(outcome.samples.get(contender, []), outcome.samples.get(against, []), strict=False)
    both = ((figure(mine, name), figure(theirs, name)) for mine, theirs in pairs)
    return [mine / theirs for mine, theirs in both if mine is not None and theirs]


def middle(found: list[float]) -> float | None:
    """Returns the median, or None of nothing."""
    return statistics.median(found) if found else None
