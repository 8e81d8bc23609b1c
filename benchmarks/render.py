"""Writes a result down: a Markdown table for each workload, the budgets, and the facts of the machine.

Used by the command. It refuses to hide: a contender that gave no figures stands in the table with why, and a
figure that misses its budget says so.
"""

from collections.abc import Mapping

from benchmarks.contenders import COPY_FLOOR, FORWARD_FLOOR, FORWARD_PLACE_FLOOR, MEMCPY, PLACE_FLOOR
from benchmarks.rounds import Outcome, figure, middle, ratios, values
from benchmarks.workloads import Budget

# How many times a frame's bytes are copied on the way from the maker to the consumer.
_COPIES = {COPY_FLOOR.name: 4, PLACE_FLOOR.name: 2, FORWARD_FLOOR.name: 2, FORWARD_PLACE_FLOOR.name: 1}
_LEAST_SHARE = 0.9
_COLUMNS = (
    ("CPU us/item", "cpu_us", 1.0),
    ("hop p50 us", "hop_us.p50", 1.0),
    ("hop p99 us", "hop_us.p99", 1.0),
    ("start s", "start_seconds", 1.0),
    ("stop s", "stop_seconds", 1.0),
    ("hand-over us", "hand_over_us", 1.0),
    ("private MB early", "early_bytes", 1e-6),
    ("private MB late", "late_bytes", 1e-6),
)


def document(facts: Mapping[str, str], outcomes: list[Outcome], remark: str) -> str:
    """Returns a whole result.

    Args:
        facts: Of the machine.
        outcomes: One for each workload.
        remark: What a reader must know first, or "".
    """
    lines = ["# Benchmarks", ""]
    if remark:
        lines += [f"**{remark}**", ""]
    lines += ["| fact | |", "|---|---|", *(f"| {name} | {text} |" for name, text in facts.items()), ""]
    lines += budget_table(outcomes)
    for outcome in outcomes:
        lines += workload_table(outcome)
    return "\n".join(lines).rstrip() + "\n"


def budget_table(outcomes: list[Outcome]) -> list[str]:
    """Returns every budget with what was found."""
    lines = ["## Budgets", "", "| workload | budget | found | |", "|---|---|---|---|"]
    for outcome in outcomes:
        for budget in outcome.workload.budgets:
            found = held(outcome, budget)
            lines.append(
                f"| {outcome.workload.name} | {budget.said} | {_told(found)} | {_verdict(found, budget)} |"
            )
        lines += _shares(outcome)
    return [*lines, ""]


def held(outcome: Outcome, budget: Budget) -> float | None:
    """Returns what a budget is about, as measured: a median of ratios, or a median."""
    if budget.against:
        return middle(ratios(outcome, budget.contender, budget.against, budget.figure))
    found = middle(values(outcome, budget.contender, budget.figure))
    return None if found is None else found * budget.scale


def _verdict(found: float | None, budget: Budget) -> str:
    if found is None:
        return "not measured"
    kept = found <= budget.bound if budget.at_most else found >= budget.bound
    return "kept" if kept else "missed"


def _shares(outcome: Outcome) -> list[str]:
    """Says what share of the same round's memcpy the floors reach."""
    lines = []
    for name, copies in _COPIES.items():
        shares = [copies * ratio for ratio in ratios(outcome, name, MEMCPY.name, "per_second")]
        share = middle(shares)
        if share is not None:
            verdict = "kept" if share >= _LEAST_SHARE else "missed"
            said = f"{name} ({copies} copies): >= {_LEAST_SHARE} of memcpy"
            lines.append(f"| {outcome.workload.name} | {said} | {_told(share)} | {verdict} |")
    return lines


def workload_table(outcome: Outcome) -> list[str]:
    """Returns the table of one workload, best first, and who is missing."""
    workload = outcome.workload
    names = sorted(outcome.samples, key=lambda name: -(middle(values(outcome, name, "per_second")) or 0))
    columns = [column for column in _COLUMNS if any(any(values(outcome, name, column[1])) for name in names)]
    heads = [
        "contender",
        workload.unit,
        "min to max",
        f"x {workload.floor}",
        *(head for head, _, _ in columns),
    ]
    lines = [f"## {workload.name}: {workload.title}", ""]
    lines += [_row([*heads, "rounds", "lost"]), "|---" * (len(heads) + 2) + "|"]
    for name in names:
        rates = values(outcome, name, "per_second")
        ratio = middle(ratios(outcome, name, workload.floor, "per_second"))
        more = [_told(_scaled(outcome, name, column, factor)) for _, column, factor in columns]
        spread = f"{_told(min(rates))} to {_told(max(rates))}" if rates else ""
        lost = sum(values(outcome, name, "lost"))
        sent = lost + sum(values(outcome, name, "items"))
        rounds = len(rates) or len(outcome.samples[name])
        share = f"{lost / sent:.0%}" if lost else "0"
        lines.append(_row([name, _told(middle(rates)), spread, _told(ratio), *more, str(rounds), share]))
    lines += ["", *_wrong(outcome)]
    lines += [f"* {name}: {why}" for name, why in outcome.failures.items()]
    lines += _ledgers(outcome)
    return [*lines, f"* measured in {outcome.seconds:.0f} s", ""]


def _scaled(outcome: Outcome, name: str, column: str, factor: float) -> float | None:
    found = middle(values(outcome, name, column))
    return None if found is None else found * factor


def _wrong(outcome: Outcome) -> list[str]:
    lines = []
    for name in outcome.samples:
        for what in ("wrong", "out_of_order"):
            count = sum(values(outcome, name, what))
            if count:
                lines.append(f"* {name}: {count:.0f} items {what.replace('_', ' ')}")
    return lines


def _ledgers(outcome: Outcome) -> list[str]:
    lines = []
    for name, samples in outcome.samples.items():
        last = next((sample for sample in reversed(samples) if sample and "ledger" in sample), None)
        if last is not None:
            busy = {
                node: round(share, 3) for node, share in last.get("busy", {}).items() if share is not None
            }
            lines.append(f"* ledger of {name}: {last['ledger']}; share of time in user code {busy}")
        stages = next((figure(sample, "stage_us.detect") for sample in samples if sample), None)
        if stages is not None and samples[-1]:
            told = {stage: round(value) for stage, value in samples[-1]["stage_us"].items()}
            lines.append(f"* {name}: processor us a frame {told}")
    return lines


def _row(cells: list[str]) -> str:
    return "| " + " | ".join(cells) + " |"


def _told(value: float | None) -> str:
    if value is None:
        return ""
    if abs(value) >= 100:
        return f"{value:,.0f}"
    return f"{value:.3g}"
